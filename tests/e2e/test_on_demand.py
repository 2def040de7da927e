# SPDX-License-Identifier: Apache-2.0
"""Templates that are only defined: a server needs none to start, says how far one is that somebody prepares, and has one
prepared that somebody wants."""
import fcntl
import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import GLOVEBOX, Server, eventually
from e2b import Sandbox


class EmptyServer(Server):
    """A server without a template, with definitions of the test's own."""

    def __init__(self, definitions: dict[str, str], *arguments: str):
        self.root = Path(tempfile.mkdtemp(prefix="glovebox-e2e-"))
        self.templates = self.root / "templates"
        for name, text in definitions.items():
            folder = self.root / "images" / name
            (folder / "npm").mkdir(parents=True)
            (folder / "template.toml").write_text(f'name = "{name}"\n' + text)
            # A lock that no npm can read: a preparation fails at its first step, without the network.
            (folder / "npm/package.json").write_text("{}")
            (folder / "npm/package-lock.json").write_text("broken")
        super().__init__(*arguments, templates=self.templates)

    def command(self) -> list[str]:
        return [GLOVEBOX, "serve", "--port", "0", "--data-dir", str(self.data), "--templates-dir", str(self.templates),
                "--images-dir", str(self.root / "images"), "--cache-dir", str(self.root / "cache"), *self.arguments]

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.root, ignore_errors=True)

    def create(self, template: str):
        return self.request("POST", "/sandboxes", {"templateID": template})

    @contextmanager
    def builder(self, name: str, percent: int, step: str):
        """Somebody who prepares a template, as far as a server can see."""
        folder = self.templates / ".preparing"
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / f"{name}.json").write_text(json.dumps({"percent": percent, "step": step, "detail": "70 s"}))
            yield


@pytest.fixture
def start():
    running = []

    def begin(*arguments: str, **definitions: str) -> EmptyServer:
        running.append(EmptyServer(definitions, *arguments))
        return running[-1]

    yield begin
    for server in running:
        server.close()


def test_a_template_that_somebody_prepares_is_on_its_way(start):
    server = start(slow="")
    with server.builder("slow", 64, "freeze"):
        status, body, headers = server.create("slow")
        assert (status, body["code"]) == (503, 503), body
        assert body["message"] == "template 'slow' is being prepared: 64 %, freeze (70 s); try again"
        assert int(headers["Retry-After"]) >= 1
        assert server.create("other")[0] == 404
        assert server.request("GET", "/templates/aliases/slow")[0] == 404  # who only asks begins nothing
    assert server.request("GET", "/health")[0] == 200


def test_who_wants_a_template_has_it_prepared_once_and_is_told_of_the_failure(start):
    server = start(broken="")
    status, body, headers = server.create("broken")
    assert status == 503 and "template 'broken' is being prepared" in body["message"] and "Retry-After" in headers

    def failure():
        code, answer, _ = server.create("broken")
        assert code == 503
        return answer["message"] if "could not be prepared" in answer["message"] else None

    message = eventually(failure, seconds=120)
    assert "npm" in message and "It is tried again when somebody asks for it" in message
    assert server.create("broken")[1]["message"].startswith("template 'broken' could not be prepared")  # not at once again
    assert server.log().count('"a template is prepared because somebody wants it"') == 1
    assert '"a template could not be prepared"' in server.log()
    assert server.request("GET", "/health")[0] == 200


def test_the_first_sandbox_of_a_template_has_it_made(tmp_path):
    class Real(Server):
        """With the definitions and the root images that there are, and no template."""

        def command(self) -> list[str]:
            return [GLOVEBOX, "serve", "--port", "0", "--data-dir", str(self.data), "--templates-dir", str(tmp_path / "templates"),
                    "--pool", "0"]

    server, said = Real(), set()
    try:
        def made():
            status, body, _ = server.request("POST", "/sandboxes", {"templateID": "base"})
            if status == 201:
                return body["sandboxID"]
            assert status == 503 and "template 'base' is being prepared" in body["message"], body
            said.add(body["message"])
            assert server.request("GET", "/health")[0] == 200
            return None

        sandbox = Sandbox.connect(eventually(made, seconds=600, every=1), **server.connection)
        assert sandbox.commands.run("echo made").stdout == "made\n"
        assert any("wait" in message or "boot" in message for message in said), said
    finally:
        server.close()


def test_an_operator_may_want_to_prepare_templates_himself(start, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[templates]\nprepare_on_demand = false\n")
    server = start("--config", str(config), broken="")
    status, body, _ = server.create("broken")
    assert status == 404 and "`glovebox template prepare broken` makes it" in body["message"]
    with server.builder("broken", 12, "boot"):
        assert server.create("broken")[0] == 503
