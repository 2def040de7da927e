# SPDX-License-Identifier: Apache-2.0
"""Packages of Python and JavaScript, installed while the sandbox runs: from an index in the stand-in internet when the sandbox is open;
with a clear word and soon when it is closed."""
import base64
import hashlib
import io
import json
import tarfile
import zipfile

import pytest
from e2b_code_interpreter import Sandbox
from egress_rig import run
from interpreter_cells import JAVASCRIPT, PYTHON, TYPESCRIPT, long
from interpreter_cells import run as run_cell

HOST = "ok.example.com"
INDEX = f"http://{HOST}/packages/simple/"
REGISTRY = f"http://{HOST}/packages/npm/"
PIP = f"pip install --index-url {INDEX} --trusted-host {HOST} --disable-pip-version-check"
NPM = f"npm install --registry {REGISTRY} --no-audit --no-fund --no-update-notifier"


def wheel() -> bytes:
    files = {"gbtiny/__init__.py": "word = 'from the wheel'\n",
             "gbtiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: gbtiny\nVersion: 1.0\n",
             "gbtiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "gbtiny-1.0.dist-info/RECORD"
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(text)}\n")
    files[record] = "".join(lines) + f"{record},,\n"
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return whole.getvalue()


def tarball(description: dict) -> bytes:
    files = {"package/package.json": json.dumps(description), "package/index.js": "exports.word = 'from the tarball'\n"}
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return whole.getvalue()


@pytest.fixture(scope="module")
def index(net):
    """A package index and a registry, with one package each."""
    simple, npm = net.folder / "packages/simple/gbtiny", net.folder / "packages/npm"
    for folder in (simple, npm):
        folder.mkdir(parents=True)
    (simple / "gbtiny-1.0-py3-none-any.whl").write_bytes(wheel())
    (simple / "index.html").write_text('<!DOCTYPE html><html><body><a href="gbtiny-1.0-py3-none-any.whl">gbtiny-1.0-py3-none-any.whl</a>')
    description = {"name": "gbtiny", "version": "1.0.0", "main": "index.js"}
    packed = tarball(description)
    (npm / "gbtiny-1.0.0.tgz").write_bytes(packed)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    (npm / "gbtiny").write_text(json.dumps({"name": "gbtiny", "dist-tags": {"latest": "1.0.0"}, "versions": {
        "1.0.0": {**description, "dist": {"tarball": f"{REGISTRY}gbtiny-1.0.0.tgz", "integrity": integrity}}}}))
    return net


@pytest.fixture(scope="module")
def opened(host):
    sandbox = Sandbox.create(timeout=900, **host.connection)
    yield sandbox
    sandbox.kill()


@pytest.fixture(scope="module")
def closed(host):
    sandbox = Sandbox.create(timeout=900, allow_internet_access=False, **host.connection)
    yield sandbox
    sandbox.kill()


def test_a_python_package_is_installed_and_imported_at_once(index, opened):
    assert opened.run_code("import gbtiny").error.name == "ModuleNotFoundError"
    installed = opened.run_code(f"!{PIP} gbtiny", timeout=200)
    assert installed.error is None and "Successfully installed gbtiny-1.0" in "".join(installed.logs.stdout), installed
    assert opened.run_code("import gbtiny; gbtiny.word").text == "from the wheel"


@long
def test_a_python_package_installed_by_a_command_is_there_for_the_kernel(index, opened):
    run(opened, "pip uninstall -qy gbtiny; sudo pip uninstall -qy gbtiny", timeout=200)
    installed = run(opened, f"{PIP} gbtiny", timeout=200)
    assert installed.exit_code == 0, installed.stderr
    again = opened.run_code("import sys; sys.modules.pop('gbtiny', None); import gbtiny; gbtiny.word")
    assert again.error is None and again.text == "from the wheel", again


def test_a_javascript_package_is_installed_and_imported_at_once(index, opened):
    assert run_cell(opened, JAVASCRIPT, "require('gbtiny')").error.name == "Error"
    installed = run(opened, f"{NPM} gbtiny", timeout=200)
    assert installed.exit_code == 0, installed.stderr
    assert run_cell(opened, JAVASCRIPT, "require('gbtiny').word").text == "from the tarball"
    assert run_cell(opened, JAVASCRIPT, "import { word } from 'gbtiny'\nword").text == "from the tarball"
    assert run_cell(opened, TYPESCRIPT, "import tiny from 'gbtiny'\ntiny.word as string").text == "from the tarball"


@pytest.mark.parametrize("command, said", [
    (f"{PIP} gbtiny", ("name resolution", "Name or service not known", "unreachable", "refused")),
    (f"{NPM} gbtiny", ("EAI_AGAIN", "ENOTFOUND", "ENETUNREACH", "ECONNREFUSED"))], ids=["pip", "npm"])
def test_what_a_closed_sandbox_cannot_have_is_refused_soon(index, closed, command, said):
    mark = index.mark()
    failed = run(closed, command, timeout=60)
    assert failed.exit_code != 0
    assert any(word in failed.stdout + failed.stderr for word in said) and failed.stderr, failed
    assert not index.log(mark, kind="http"), "nothing was asked"


@long
def test_what_a_closed_sandbox_cannot_have_is_refused_to_cells_too(closed):
    failed = closed.run_code(f"import subprocess; subprocess.run('{PIP} gbtiny', shell=True).returncode", timeout=60)
    assert failed.text == "1" and "No matching distribution" in "".join(failed.logs.stdout + failed.logs.stderr), failed
