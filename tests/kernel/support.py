# SPDX-License-Identifier: Apache-2.0
"""The kernel's modules as a kernel has them, without a kernel: a shell of IPython in this process."""

import json
import os
import subprocess
import sys
from pathlib import Path

KERNEL = Path(__file__).resolve().parents[2] / "src/guest/interpreter/kernel"
sys.path.insert(0, str(KERNEL))
sys.dont_write_bytecode = True  # the sources' folder stays as it is


def as_json(value):
    """What a client gets; text that is not strict JSON (NaN, numpy's numbers) fails."""
    return json.loads(json.dumps(value, allow_nan=False))


_shell = None


def shell():
    global _shell
    if _shell is None:
        import glovebox_formatters
        from IPython.core.interactiveshell import InteractiveShell

        _shell = InteractiveShell.instance()
        glovebox_formatters.install(_shell)
    return _shell


def bundle(obj):
    """The MIME kinds that `obj` is displayed as."""
    data, _ = shell().display_formatter.format(obj)
    return as_json(data)


def run_python(code, **variables):
    """What a process of its own prints, in which the kernel's modules can be imported."""
    code = f"import sys; sys.path.insert(0, {str(KERNEL)!r}); sys.dont_write_bytecode = True\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
