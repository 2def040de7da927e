# SPDX-License-Identifier: Apache-2.0
"""The main job as one command, and the same through the official client."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import GLOVEBOX, ROOT, TEMPLATES, eventually

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines need root")


@pytest.fixture
def scratch(tmp_path):
    """Folders for a demo's output and for its temporary files, which must be empty again afterwards."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    yield tmp_path, temporary
    assert list(temporary.iterdir()) == []


def command(*arguments: str) -> list[str]:
    return [GLOVEBOX, "demo", "--templates-dir", TEMPLATES, *arguments]


def environment(temporary: Path) -> dict[str, str]:
    return os.environ | {"TMPDIR": str(temporary)}


def processes_that_use(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in (entry / "cmdline").read_text() + (entry / "mountinfo").read_text():
                found.append(entry.name)
        except OSError:
            pass
    return found


def test_the_main_job_is_one_command(scratch):
    folder, temporary = scratch
    output = folder / "output"
    done = subprocess.run(command("--json", "--output", str(output)), capture_output=True, text=True, timeout=600,
                          env=environment(temporary), cwd=folder)
    assert done.returncode == 0, (done.stdout, done.stderr)
    summary = json.loads(done.stdout)
    assert summary["ok"] and all(finding["ok"] for finding in summary["findings"])
    assert summary["result"] == {"rows": 200, "matched": 188, "mismatched": 12}
    assert {finding["section"][:3] for finding in summary["findings"]} == {"(a)", "(b)", "(c)", "(d)", "(e)", "(f)"}
    assert len(summary["blocked"]) >= 2 and {line["verdict"] for line in summary["blocked"]} == {"deny"}
    assert summary["isolation"]["class"] == "microvm" and summary["isolation"]["accelerator"] in ("kvm", "tcg")
    assert json.loads((output / "summary.json").read_text()) == summary
    assert "Done." in (output / "transcript.txt").read_text()
    # The open sandbox and the host were there, the closed one was not.
    assert len((output / "control-server.log").read_text().splitlines()) == 2
    assert {path.name for path in output.iterdir()} >= {"result.csv", "egress.jsonl", "isolation.json", "invoices.csv"}
    assert processes_that_use(temporary) == []


def test_it_keeps_its_output_below_the_current_folder_and_says_where(scratch):
    folder, temporary = scratch
    done = subprocess.run(command(), capture_output=True, text=True, timeout=600, env=environment(temporary), cwd=folder)
    assert done.returncode == 0, (done.stdout, done.stderr)
    (kept,) = (folder / "demo-output").iterdir()
    assert done.stdout.splitlines()[-1] == f"Done. Everything is kept in {kept}"
    assert "  FAIL" not in done.stdout and done.stdout.count("  ok   ") == 12


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(scratch, which):
    folder, temporary = scratch
    process = subprocess.Popen(command("--output", str(folder / "output")), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=environment(temporary), cwd=folder)
    try:
        for line in process.stdout:  # a sandbox runs by then
            if "from the host" in line:
                break
        process.send_signal(which)
        _, complaint = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "interrupted" in complaint
    assert processes_that_use(temporary) == []


def test_a_killed_demo_takes_its_server_along(scratch):
    folder, temporary = scratch
    process = subprocess.Popen(command("--output", str(folder / "output")), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, env=environment(temporary), cwd=folder)
    for line in process.stdout:
        if "from the host" in line:
            break
    process.kill()
    process.wait()
    eventually(lambda: processes_that_use(temporary) == [], 300)
    for left in temporary.iterdir():  # nobody was there to remove it
        subprocess.run(["rm", "-rf", str(left)], check=True)


def test_errors_say_what_to_do(scratch):
    folder, temporary = scratch
    (folder / "file").write_text("")
    no_place = subprocess.run(command("--output", str(folder / "file")), capture_output=True, text=True,
                              env=environment(temporary), cwd=folder)
    assert no_place.returncode == 1 and "--output" in no_place.stderr
    nobody = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", *command("--output", str(folder / "output"))],
                            capture_output=True, text=True, env=environment(temporary), cwd="/")
    assert nobody.returncode == 1 and "as root" in nobody.stderr
    as_json = subprocess.run(command("--json", "--output", str(folder / "file")), capture_output=True, text=True,
                             env=environment(temporary), cwd=folder)
    assert as_json.returncode == 1 and not json.loads(as_json.stdout)["ok"]


def test_the_same_through_the_official_client(scratch):
    folder, temporary = scratch
    done = subprocess.run([sys.executable, str(ROOT / "examples/invoice-reconciliation/demo.py"), str(folder / "output")],
                          capture_output=True, text=True, timeout=600, cwd=folder,
                          env=environment(temporary) | {"GLOVEBOX": GLOVEBOX, "GLOVEBOX_TEMPLATES_DIR": TEMPLATES})
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "188 matched, 12 mismatched, 200 in all" in done.stdout
    assert "  FAIL" not in done.stdout
