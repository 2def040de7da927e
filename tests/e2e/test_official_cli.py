# SPDX-License-Identifier: Apache-2.0
"""The official command line (npm @e2b/cli), from create to kill, as a person would use it."""
import json
import os
import pty
import re
import select
import subprocess
import time

import pytest
from conftest import ROOT

CLI = ROOT / "build/npm/node_modules/@e2b/cli/dist/index.js"


def node() -> str:
    own = ROOT / "build/npm/node_modules/.bin/node"
    return str(own) if own.exists() else "node"


@pytest.fixture
def cli(server, tmp_path):
    environment = os.environ | server.variables() | {"HOME": str(tmp_path), "NO_COLOR": "1", "CI": "1"}

    def run(*arguments: str, input: str | None = None, check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run([node(), str(CLI), *arguments], env=environment, input=input, capture_output=True, text=True,
                              timeout=1800)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    run.environment = environment
    return run


def created(text: str) -> str:
    return re.search(r"\bi[a-z0-9]{19}\b", text).group()


@pytest.fixture
def sandbox(cli, server):
    sandbox_id = created(cli("sandbox", "create", "base", "--detach").stdout)
    yield sandbox_id
    server.request("DELETE", f"/sandboxes/{sandbox_id}")


def listed(cli, *arguments: str) -> dict[str, dict]:
    return {item["sandboxId"]: item for item in json.loads(cli("sandbox", "list", "-f", "json", *arguments).stdout)}


def test_from_create_to_kill(cli, sandbox):
    assert listed(cli)[sandbox]["state"] == "running"
    assert sandbox in cli("sandbox", "list").stdout
    info = json.loads(cli("sandbox", "info", sandbox, "-f", "json").stdout)
    assert info["sandboxId"] == sandbox and info["state"] == "running"

    done = cli("sandbox", "exec", sandbox, "echo from inside; exit 7", check=False)
    assert done.stdout.strip() == "from inside" and done.returncode == 7
    assert cli("sandbox", "exec", "-u", "root", "-c", "/etc", "-e", "WORD=kept", sandbox, 'echo "$(whoami) $PWD $WORD"').stdout.strip() \
        == "root /etc kept"
    assert cli("sandbox", "exec", sandbox, "wc -c", input="x" * 200_000).stdout.strip() == "200000"

    cli("sandbox", "exec", sandbox, "echo kept > /dev/shm/memory")
    cli("sandbox", "pause", sandbox)
    assert sandbox not in listed(cli)
    assert listed(cli, "-s", "paused")[sandbox]["state"] == "paused"
    cli("sandbox", "resume", sandbox)
    assert listed(cli)[sandbox]["state"] == "running"
    assert cli("sandbox", "exec", sandbox, "cat /dev/shm/memory").stdout.strip() == "kept"

    cli("sandbox", "kill", sandbox)
    assert sandbox not in listed(cli, "-s", "running,paused")
    again = cli("sandbox", "kill", sandbox, check=False)
    assert "wasn't found" in again.stdout + again.stderr or "not found" in (again.stdout + again.stderr).lower()


def test_snapshots(cli, sandbox, server):
    cli("sandbox", "exec", sandbox, "echo of then > /dev/shm/memory")
    made = cli("sandbox", "snapshot", "create", sandbox, "-n", "from-cli")
    assert "default/from-cli:default" in made.stdout
    cli("sandbox", "exec", sandbox, "echo later > /dev/shm/memory")
    assert "default/from-cli" in cli("sandbox", "snapshot", "list").stdout
    copy = created(cli("sandbox", "create", "from-cli", "--detach").stdout)
    assert cli("sandbox", "exec", copy, "cat /dev/shm/memory").stdout.strip() == "of then"
    cli("sandbox", "kill", copy)
    cli("sandbox", "snapshot", "delete", "default/from-cli:default")
    assert "from-cli" not in cli("sandbox", "snapshot", "list").stdout


def test_exec_of_a_paused_sandbox_wakes_it(cli, sandbox):
    cli("sandbox", "pause", sandbox)
    assert cli("sandbox", "exec", sandbox, "echo awake").stdout.strip() == "awake"
    assert listed(cli)[sandbox]["state"] == "running"


def test_connect_gives_a_terminal(cli, sandbox):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(node(), [node(), str(CLI), "sandbox", "connect", sandbox], cli.environment | {"TERM": "xterm"}) \
            if os.path.isabs(node()) else os.execvpe(node(), [node(), str(CLI), "sandbox", "connect", sandbox], cli.environment)
    seen = b""
    deadline = time.monotonic() + 120
    typed = False
    try:
        while b"answer=42" not in seen and time.monotonic() < deadline:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:
                    break
            if not typed and (b"$" in seen or b"#" in seen):
                os.write(terminal, b"echo answer=$((6*7))\n")
                typed = True
        assert b"answer=42" in seen, seen
        os.write(terminal, b"exit\n")
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    if not os.read(terminal, 65536):
                        break
                except OSError:
                    break
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert listed(cli)[sandbox]["state"] == "running"


def test_templates_are_listed(cli):
    assert "base" in cli("template", "list").stdout


def test_a_wrong_key_is_a_clear_error(cli):
    cli.environment["E2B_API_KEY"] = "e2b_" + "0" * 40
    done = cli("sandbox", "list", check=False)
    assert done.returncode != 0
    assert "API key" in done.stdout + done.stderr
