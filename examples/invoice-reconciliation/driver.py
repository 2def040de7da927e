# SPDX-License-Identifier: Apache-2.0
"""The client's side of the demo. Speaks to Glovebox through the official SDK alone, as any program would."""
import csv
import io
import json
import urllib.request
from pathlib import Path

from e2b import CommandExitException, Sandbox

FOLDER = "/home/user/job"
TEMPLATE = "base"  # the smallest; the script needs nothing but Python


def reach_from_host(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode().strip()


def reach_from(sandbox: Sandbox, url: str) -> tuple[int, str]:
    """Exit code and output of curl inside the sandbox."""
    try:
        done = sandbox.commands.run(f"curl -sS --max-time 20 {url}", timeout=60)
        return done.exit_code, done.stdout.strip()
    except CommandExitException as error:
        return error.exit_code, error.stderr.strip()


def open_sandbox() -> Sandbox:
    return Sandbox.create(TEMPLATE, timeout=300, metadata={"demo": "control"})


def closed_sandbox() -> Sandbox:
    return Sandbox.create(TEMPLATE, timeout=300, allow_internet_access=False, metadata={"demo": "invoice-reconciliation"})


def upload(sandbox: Sandbox, data: Path) -> None:
    for name in ("invoices.csv", "ledger.csv"):
        sandbox.files.write(f"{FOLDER}/{name}", (data / name).read_bytes())


def count_rows(sandbox: Sandbox) -> int:
    count = f"import csv; print(sum(1 for _ in csv.DictReader(open('{FOLDER}/invoices.csv', newline=''))))"
    return int(sandbox.commands.run(f'python3 -c "{count}"').stdout)


def run_unread_script(sandbox: Sandbox, script: Path, control_url: str) -> dict:
    """Runs a script that this program does not look at; its last line of output is its report."""
    sandbox.files.write(f"{FOLDER}/agent_script.py", script.read_bytes())
    done = sandbox.commands.run(f"python3 {FOLDER}/agent_script.py", envs={"CONTROL_URL": control_url}, timeout=300)
    return json.loads(done.stdout.strip().splitlines()[-1])


def download_result(sandbox: Sandbox) -> tuple[str, dict[str, int]]:
    text = sandbox.files.read(f"{FOLDER}/result.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    matched = sum(row["verdict"] == "matched" for row in rows)
    return text, {"rows": len(rows), "matched": matched, "mismatched": len(rows) - matched}


def kernel_inside(sandbox: Sandbox) -> str:
    return sandbox.commands.run("uname -sr").stdout.strip()


def destroy(sandbox: Sandbox) -> bool:
    """True when the server has forgotten the sandbox."""
    return sandbox.kill() and not sandbox.is_running()
