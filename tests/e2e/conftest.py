# SPDX-License-Identifier: Apache-2.0
"""End-to-end tests: a real server with the templates that `make templates` has prepared, spoken to by the official clients.
Each run has a data folder and a port of its own and removes what it made."""
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

pytest_plugins = ["stillness"]
ROOT = Path(__file__).resolve().parent.parent.parent
GLOVEBOX = os.environ.get("GLOVEBOX", str(ROOT / "build/dist/glovebox"))
TEMPLATES = os.environ.get("GLOVEBOX_TEMPLATES_DIR", "/var/lib/glovebox/templates")
sys.path.insert(0, str(ROOT / "examples/invoice-reconciliation"))


class Server:
    """One glovebox process."""

    def __init__(self, *arguments: str, data: Path | None = None, prefix: tuple[str, ...] = (),
                 templates: Path | str = TEMPLATES):
        self.data = data or Path(tempfile.mkdtemp(prefix="glovebox-e2e-"))
        self.arguments = arguments
        self.templates = templates
        self.prefix = prefix  # of the command line, such as one that enters a namespace
        self.process = None
        self.start()

    def command(self) -> list[str]:
        return [*self.prefix, GLOVEBOX, "serve", "--port", "0", "--data-dir", str(self.data), "--templates-dir", str(self.templates),
                *self.arguments]

    def start(self) -> None:
        with open(self.data / "log", "a") as log:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        assert "ready on" in line, (line, self.log())
        self.url = line.split()[-1]
        self.key = (self.data / "api-key").read_text().strip()

    def log(self) -> str:
        return (self.data / "log").read_text()

    @property
    def connection(self) -> dict[str, str]:
        """For the official client, beside the options of a call."""
        return {"api_key": self.key, "api_url": self.url, "sandbox_url": self.url}

    def variables(self) -> dict[str, str]:
        return {"E2B_API_KEY": self.key, "E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url}

    def request(self, method: str, path: str, body=None, headers=None, key: bool = True):
        """Status, decoded JSON (or text) and headers of one bare request."""
        host, port = self.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=900)
        sent = {"X-API-Key": self.key} if key else {}
        sent |= headers or {}
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            with contextlib.suppress(ValueError):
                text = json.loads(text)
            return answer.status, text, dict(answer.getheaders())
        finally:
            connection.close()

    def cli(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([GLOVEBOX, *arguments, "--data-dir", str(self.data)], capture_output=True, text=True, timeout=1800)

    def decisions(self, sandbox_id: str) -> list[dict]:
        return json.loads(self.cli("sandbox", "egress", sandbox_id, "--json").stdout)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # ends the sandboxes too
            try:
                self.process.wait(600)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def kill_hard(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.data, ignore_errors=True)


def is_vmm_of(pid: int | str, sandbox_id: str) -> bool:
    """By its disk: the control group of a sandbox from the warm pool has the name it had there."""
    with contextlib.suppress(OSError):
        return f"/sandboxes/{sandbox_id}/" in Path(f"/proc/{pid}/mountinfo").read_text()
    return False


@pytest.fixture(scope="session")
def server():
    running = Server()
    os.environ.update(running.variables())
    yield running
    running.close()


@pytest.fixture(scope="session")
def internet():
    """URL of a server that stands for the internet."""
    from control_server import control_server

    with tempfile.TemporaryDirectory() as folder, control_server(Path(folder) / "log") as url:
        yield url


@pytest.fixture(scope="session")
def net():
    """A host with a whole internet of ours behind it: internet.py."""
    from internet import internet as stand_in

    with stand_in() as there:
        yield there


@pytest.fixture(scope="session")
def host(net):
    """The server on that host, whose operator has closed something."""
    running = net.serve("closed = ['203.0.113.12', '*.closed.example.com']\n")
    yield running
    running.close()


@pytest.fixture(scope="session")
def elders(server):
    """What must grow old before it can be looked at: elders.py."""
    from elders import Elders

    begun = Elders(server)
    yield begun
    begun.close()


@pytest.fixture
def base(server):
    """A sandbox of the template base, with the network open."""
    from e2b import Sandbox

    sandbox = Sandbox.create("base", timeout=300)
    yield sandbox
    sandbox.kill()


@pytest.fixture(scope="module")
def box(server):
    """One sandbox of base for all tests of a file; each leaves it as it was."""
    from e2b import Sandbox

    sandbox = Sandbox.create("base", timeout=1800)
    yield sandbox
    sandbox.kill()


@pytest.fixture(scope="module")
def interpreter(server):
    """One sandbox of the default template for all tests of a file; each leaves its contexts as they were."""
    from e2b_code_interpreter import Sandbox

    sandbox = Sandbox.create(timeout=1800)
    yield sandbox
    sandbox.kill()


@pytest.fixture
def agent(server, box):
    """The agent of the box as bytes: raw_agent.py."""
    from raw_agent import Agent

    with Agent(server, box) as connection:
        yield connection


@pytest.fixture
def folder(box):
    """A new folder in the box for one test."""
    path = f"/home/user/{uuid.uuid4().hex}"
    box.files.make_dir(path)
    yield path
    box.commands.run(f"rm -rf {path}")


def eventually(check, seconds: float = 30, every: float = 0.2):
    """The first true value of check(). Fails when none comes and nothing has moved for so many seconds, or after twenty times
    as many in any case."""
    from stillness import Stillness  # not before pytest has loaded it as a plugin

    limit = Stillness(max(seconds, 30), max(20 * seconds, 600))
    while True:
        value = check()
        if value:
            return value
        why = limit.over()
        assert not why, f"not true, and {why}"
        time.sleep(every)
