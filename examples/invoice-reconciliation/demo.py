# SPDX-License-Identifier: Apache-2.0
"""What `glovebox demo` does, driven by the official Python client as any program of yours would: starts a server, runs the
unread script in a sandbox without network, shows what happened where, destroys the sandbox, and keeps everything in a
folder that can be handed over (demo-output/<time>, or the one that is named as an argument)."""
import contextlib
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GLOVEBOX = os.environ.get("GLOVEBOX", str(ROOT / "build/dist/glovebox"))
sys.path.insert(0, str(HERE))

from control_server import control_server  # noqa: E402
from make_data import make  # noqa: E402


class Report:
    """Prints and keeps what it prints."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.file = open(folder / "transcript.txt", "w")
        self.failed = False

    def say(self, text: str = "") -> None:
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()

    def show(self, what: str, good: bool, text: str) -> None:
        self.failed = self.failed or not good
        self.say(f"  {'ok  ' if good else 'FAIL'} {what}: {text}")

    def keep(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@contextlib.contextmanager
def server(data: Path, log: Path):
    """A server of its own, on a free port, with the templates that are prepared already."""
    templates = os.environ.get("GLOVEBOX_TEMPLATES_DIR", "/var/lib/glovebox/templates")
    with open(log, "w") as err:
        process = subprocess.Popen([GLOVEBOX, "serve", "--port", "0", "--data-dir", str(data), "--templates-dir", templates],
                                   stdout=subprocess.PIPE, stderr=err, text=True)
    try:
        first = process.stdout.readline()
        if "ready" not in first:
            raise RuntimeError(f"the server did not start: {log.read_text()[-800:]}")
        output = subprocess.run([GLOVEBOX, "env", "--data-dir", str(data)], check=True, capture_output=True, text=True)
        for line in output.stdout.splitlines():
            name, value = line.removeprefix("export ").split("=", 1)
            os.environ[name] = value
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def evidence(kind: str, sandbox_id: str, data: Path):
    """What the operator sees, through the command line."""
    output = subprocess.run([GLOVEBOX, "sandbox", kind, sandbox_id, "--json", "--data-dir", str(data)],
                            check=True, capture_output=True, text=True)
    return json.loads(output.stdout)


def leftovers(data: Path, sandbox_id: str) -> list[str]:
    """Files and processes of a sandbox that are still there."""
    found = [str(path) for path in (data / "sandboxes").glob(f"*{sandbox_id}*")]
    for entry in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            if f"/sandboxes/{sandbox_id}/" in entry.read_text():
                found.append(f"process {entry.parent.name}")
    return found


def job(report: Report, data: Path, url: str) -> None:
    import driver  # needs the variables that point at the server

    say, show = report.say, report.show
    say("\n(a) The way out exists, and it is closed for the sandbox that runs the unread script")
    show("from the host", driver.reach_from_host(url) != "", f"{url} -> {driver.reach_from_host(url)!r}")
    opened = driver.open_sandbox()
    code, text = driver.reach_from(opened, url)
    show("from an open sandbox", code == 0, repr(text))
    driver.destroy(opened)
    started = time.monotonic()
    sandbox = driver.closed_sandbox()
    created = time.monotonic() - started
    code, text = driver.reach_from(sandbox, url)
    show("from the closed sandbox", code != 0, f"curl ends with {code}: {text}")

    say("\n(b) The job's input, counted inside")
    driver.upload(sandbox, report.folder)
    rows = driver.count_rows(sandbox)
    show("rows of invoices.csv", rows == 200, str(rows))

    say("\n(c) The unread script's result")
    summary = driver.run_unread_script(sandbox, HERE / "agent_script.py.txt", url)
    show("the script's own report", not summary["network"].startswith("reached"), json.dumps(summary))
    text, counts = driver.download_result(sandbox)
    report.keep("result.csv", text)
    show("result.csv", counts == {"rows": 200, "matched": 188, "mismatched": 12},
         f"{counts['matched']} matched, {counts['mismatched']} mismatched, {counts['rows']} in all")

    say("\n(d) The decision log")
    lines = evidence("egress", sandbox.sandbox_id, data)
    report.keep("egress.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    host = url.split("/")[2].split(":")[0]
    blocked = [line for line in lines if line["verdict"] == "deny" and line["address"] == host]
    show("blocked attempts on record", len(blocked) >= 2, json.dumps(blocked[-1]) if blocked else "none")

    say("\n(e) What really ran it")
    facts = evidence("isolation", sandbox.sandbox_id, data)
    report.keep("isolation.json", json.dumps(facts, indent=2) + "\n")
    inside = driver.kernel_inside(sandbox)
    layer = "hardware virtualisation (KVM)" if facts["accelerator"] == "kvm" else "software emulation (TCG)"
    show("layer", facts["class"] == "microvm", f"{facts['vmm']} microvm, {layer}: {facts['acceleratorReason']}")
    show("kernel inside and outside", inside.split()[-1] != platform.release(),
         f"{inside} inside, Linux {platform.release()} outside")
    show("time to create", True, f"{created * 1000:.0f} ms")

    say("\n(f) The end")
    show("destroyed", driver.destroy(sandbox), sandbox.sandbox_id)
    left = leftovers(data, sandbox.sandbox_id)
    show("files and processes gone", not left, ", ".join(left) or "nothing is left")


def main() -> int:
    if os.geteuid() != 0:
        print("demo: run as root: machines and network namespaces need it", file=sys.stderr)
        return 1
    named = ROOT / "demo-output" / datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else named
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(folder)
    report.say("Glovebox demo: an agent's script that nobody has read reconciles 200 invoices in a closed machine")
    make(folder)
    shutil.copy(HERE / "agent_script.py.txt", folder)
    data = Path(tempfile.mkdtemp(prefix="glovebox-demo-"))
    try:
        with control_server(folder / "control-server.log") as url, server(data, folder / "server.log"):
            job(report, data, url)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    report.say(f"\n{'FAILED' if report.failed else 'Done'}. Everything is kept in {folder}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
