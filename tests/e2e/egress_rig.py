# SPDX-License-Identifier: Apache-2.0
"""What the scenarios of egress share: a sandbox on the host of internet.py, ways to try something from inside, and what the decision
log says of it."""
import datetime

import pytest
from conftest import eventually
from e2b import CommandExitException, Sandbox

ALL = "0.0.0.0/0"
REFUSED = (7, 35, 56)  # curl's ends: refused, reset before TLS was there, reset after it had asked
LISTED = {"deny_out": [ALL], "allow_out": [
    "ok.example.com", "*.sub.example.com", "alias.example.com", "inward.example.com", "loop.example.com", "slow.example.com",
    "*.rebind.example.com", "*.moves.example.com", "private.example.com", "meta.example.com", "mixed.example.com", "8.8.8.8"]}


@pytest.fixture(scope="module")
def box(host):
    """One sandbox for all tests of a file; each gives it the network that it needs."""
    sandbox = Sandbox.create("base", timeout=1800, **host.connection)
    yield sandbox
    sandbox.kill()


@pytest.fixture
def listed(box):
    """The box when names are in force: what is in LISTED, and nothing else."""
    box.update_network(LISTED)
    return box


def run(sandbox: Sandbox, command: str, timeout: float = 60):
    try:
        return sandbox.commands.run(command, timeout=timeout)
    except CommandExitException as ended:
        return ended


def curl(sandbox: Sandbox, *arguments: str):
    return run(sandbox, "curl -sk -m 15 " + " ".join(arguments))


def status(sandbox: Sandbox, url: str) -> str:
    return curl(sandbox, f"{url} -o /dev/null -w '%{{http_code}}'").stdout


def python(sandbox: Sandbox, program: str, user: str = "root"):
    sandbox.files.write("/tmp/probe.py", program, user=user)
    return sandbox.commands.run("timeout 100 python3 /tmp/probe.py", user=user, timeout=120)


def now() -> str:
    """For decided(since)."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").removesuffix("+00:00")


def decided(server, sandbox: Sandbox, since: str = "", **wanted) -> list[dict]:
    """The lines with these values, once there are some."""
    def found():
        lines = server.decisions(sandbox.sandbox_id)
        return [d for d in lines if all(d.get(k) == v for k, v in wanted.items()) and d.get("time", "") >= since]

    return eventually(found, 10)
