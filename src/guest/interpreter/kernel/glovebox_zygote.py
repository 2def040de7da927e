# SPDX-License-Identifier: Apache-2.0
"""A Python that has imported what kernels need and runs nothing. Kernels are forked from it: each is ready in a fraction of
the time, and all share the memory of what was imported.

Started as `glovebox_zygote.py <ipython config> <module>,...`. One JSON object in a line, each way:
    to it (fd 3)    {"connection_file", "cwd"}, or {"reap": pid} for a kernel whose end has been read from /proc
    from it (fd 4)  {"ready": true} once; then for each kernel {"pid"}, said by itself, or {"refused": why}
"""

import importlib
import json
import os
import signal
import sys

_REQUESTS, _ANSWERS = 3, 4


def _say(answer):
    os.write(_ANSWERS, (json.dumps(answer) + "\n").encode())


def _import_all(names):
    # Kernels choose this backend themselves before anything is imported; here they come too late.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    for name in ("ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "IPython.core.completerlib", *names):
        try:
            importlib.import_module(name)
        except Exception as error:
            print(f"not imported: {name} ({error})", file=sys.stderr)


def _exercise_plots():
    # Finds fonts: the first real figure is then as quick as the second. Not through pyplot, which would choose its backend
    # here, where there is no shell to show figures.
    if "matplotlib.pyplot" not in sys.modules:
        return
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    FigureCanvasAgg(figure)
    figure.add_subplot().plot([0, 1], [0, 1])
    figure.savefig(io.BytesIO(), format="png")


def _found(name):
    """Where a fresh Python would import a package from, and when that was last changed."""
    # What is imported already answers for itself, so the finders are asked.
    spec = next(filter(None, (finder.find_spec(name, None) for finder in sys.meta_path)), None)
    if spec is None or not str(spec.origin).endswith(".py"):
        return None
    return spec.origin, os.stat(os.path.dirname(spec.origin)).st_mtime_ns, os.stat(spec.origin).st_mtime_ns


def _packages():
    names = [name for name, module in list(sys.modules.items()) if "." not in name and getattr(module, "__file__", None)]
    return {name: _found(name) for name in names if name != "__main__"}


def _outdated(packages):
    """The first package that a fresh Python would import from elsewhere, or in another version; None when there is none."""
    importlib.invalidate_caches()
    for name, found in packages.items():
        try:
            if _found(name) != found:
                return name
        except Exception:
            return name
    return None


def _become_kernel(request, config):
    os.setpgid(0, 0)
    _say({"pid": os.getpid()})
    os.close(_REQUESTS)
    os.close(_ANSWERS)
    if os.path.isdir(request["cwd"]):
        os.chdir(request["cwd"])
    sys.path[0] = ""  # as `python -m` has it
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed([int.from_bytes(os.urandom(4), "little") for _ in range(16)])
    from ipykernel.kernelapp import IPKernelApp

    sys.argv[:] = ["ipykernel_launcher", "-f", request["connection_file"], "--config=" + config]
    app = IPKernelApp.instance()
    app.initialize(sys.argv[1:])
    app.start()


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    config, names = sys.argv[1], [name for name in sys.argv[2].split(",") if name]
    _import_all(names)
    _exercise_plots()
    packages = _packages()
    _say({"ready": True})
    with open(_REQUESTS, closefd=False) as requests:
        while line := requests.readline():
            request = json.loads(line)
            if "reap" in request:
                os.waitpid(request["reap"], 0)
            elif (name := _outdated(packages)) is not None:
                _say({"refused": f"{name} has changed"})
            elif os.fork() == 0:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                return request, config
    return None


if __name__ == "__main__":
    work = main()
    # Out of the loop's frames: a kernel's traceback knows nothing of it.
    if work is not None:
        _become_kernel(*work)
