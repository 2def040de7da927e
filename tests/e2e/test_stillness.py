# SPDX-License-Identifier: Apache-2.0
"""The tests' own limit of time."""
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import stillness


def test_work_moves_and_waiting_does_not():
    before = {7: (5.0, False)}
    assert not stillness.moved(before, {7: (5.05, False)}, 1)
    assert stillness.moved(before, {7: (5.3, False)}, 1)
    assert stillness.moved(before, {7: (5.0, True)}, 1)
    assert stillness.moved(before, {7: (5.0, False), 8: (0.0, False)}, 1)
    assert not stillness.moved(before, {}, 1)


@pytest.mark.parametrize("program, why", [("while :; do :; done", "though something moved"), ("sleep 1000", "nothing moved")])
def test_a_process_that_works_is_told_from_one_that_sleeps(program, why):
    with subprocess.Popen(["sh", "-c", program]) as process:
        try:
            limit = stillness.Stillness(4 / stillness.SLOWNESS, 8 / stillness.SLOWNESS, process.pid)
            while not (said := limit.over()):
                time.sleep(0.5)
            assert why in said
        finally:
            process.kill()


def test_a_test_that_hangs_fails_and_the_next_one_runs(tmp_path):
    (tmp_path / "test_hang.py").write_text(textwrap.dedent("""
        import time
        import stillness
        stillness.STILL = 3 / stillness.SLOWNESS
        def test_hangs():
            time.sleep(1000)
        def test_next():
            pass
    """))
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "stillness", "-q", "-p", "no:cacheprovider", str(tmp_path)],
                          cwd=Path(__file__).parent, capture_output=True, text=True, timeout=900)
    assert "1 failed, 1 passed" in done.stdout, done
    assert "nothing moved for 3 s" in done.stdout and "test_hang.py" in done.stderr, done
