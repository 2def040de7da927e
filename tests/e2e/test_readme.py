# SPDX-License-Identifier: Apache-2.0
"""The example of the README, in both languages, with the newest clients of the registries."""
import subprocess

from conftest import ROOT


def test_python_state_is_kept_between_calls(server):
    from e2b_code_interpreter import Sandbox

    with Sandbox.create() as sandbox:
        sandbox.run_code("x = 20")
        execution = sandbox.run_code("print('counted'); x + 22")
        assert execution.text == "42"
        assert execution.logs.stdout == ["counted\n"]
        assert execution.error is None


def test_javascript_state_is_kept_between_calls(server):
    own = ROOT / "build/npm/node_modules/.bin/node"
    node = str(own) if own.exists() else "node"
    done = subprocess.run([node, str(ROOT / "tests/e2e/js/readme.mjs")], capture_output=True, text=True, timeout=1800,
                          cwd=ROOT / "build/npm")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "42"


def test_the_frozen_kernel_has_pandas_numpy_and_matplotlib_imported(server):
    from e2b_code_interpreter import Sandbox

    with Sandbox.create() as sandbox:
        loaded = sandbox.run_code("import sys; sorted({'pandas', 'numpy', 'matplotlib'} & set(sys.modules))")
        assert loaded.text == "['matplotlib', 'numpy', 'pandas']"
        chart = sandbox.run_code("import matplotlib.pyplot as plt; plt.plot([1, 2, 3]); plt.show()")
        assert chart.results[0].png
        table = sandbox.run_code("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
        assert "<table" in table.results[0].html


def test_errors_of_the_code_are_results_and_not_exceptions(server):
    from e2b_code_interpreter import Sandbox

    with Sandbox.create() as sandbox:
        execution = sandbox.run_code("1 / 0")
        assert execution.error.name == "ZeroDivisionError"
        assert sandbox.run_code("1 + 1").text == "2"


def test_two_sandboxes_of_one_snapshot_draw_different_random_numbers(server):
    from e2b_code_interpreter import Sandbox

    code = "import random, numpy, os; (random.random(), float(numpy.random.rand()), os.urandom(8).hex())"
    with Sandbox.create() as one, Sandbox.create() as two:
        assert one.run_code(code).text != two.run_code(code).text
        first, second = (s.commands.run("cat /proc/sys/kernel/random/uuid; hostname").stdout for s in (one, two))
        assert first != second


def test_environment_variables_reach_commands_and_kernels(server):
    from e2b_code_interpreter import Sandbox

    value = "a 'quoted' \"value\"\nwith ünicode"
    with Sandbox.create(envs={"GREETING": value}) as sandbox:
        assert sandbox.commands.run('printf %s "$GREETING"').stdout == value
        assert sandbox.run_code("import os; print(os.environ['GREETING'], end='')").logs.stdout == [value]
        assert sandbox.commands.run("echo $E2B_SANDBOX $E2B_SANDBOX_ID").stdout.split() == ["true", sandbox.sandbox_id]
