# SPDX-License-Identifier: Apache-2.0
"""A template as a file: from the folder of one server into that of another."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import GLOVEBOX, TEMPLATES, Server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="machines need root")


def template(*arguments: str, data: Path, templates: Path | str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([GLOVEBOX, "template", *arguments, "--data-dir", str(data), "--templates-dir", str(templates)],
                          capture_output=True, timeout=600, **options)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    file = folder / "base.glovebox-template"
    done = template("export", "base", "-o", str(file), data=folder, templates=TEMPLATES)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in folder.iterdir()] == [file.name]
    return file


@pytest.fixture
def other(tmp_path):
    """Data and templates of another machine: empty ones."""
    yield tmp_path / "data", tmp_path / "templates"
    shutil.rmtree(tmp_path, ignore_errors=True)


def listed(data: Path, templates: Path) -> list[dict]:
    return json.loads(template("list", "--json", data=data, templates=templates).stdout)


def test_a_sandbox_starts_from_an_imported_template(archive, other):
    from e2b import Sandbox

    data, templates = other
    done = template("import", str(archive), data=data, templates=templates, text=True)
    assert done.returncode == 0 and "template base is ready" in done.stdout, done.stderr
    (there,) = listed(data, templates)
    assert there["name"] == "base" and there["imported_ms"] > 0
    assert b"imported 20" in template("list", data=data, templates=templates).stdout
    server = Server("--pool", "0", templates=templates)
    try:
        with Sandbox.create("base", timeout=300, **server.connection) as sandbox:
            assert sandbox.commands.run("echo $((6 * 7))").stdout == "42\n"
            assert sandbox.commands.run("cat /.e2b | grep BUILD").stdout.strip() == f"BUILD_ID={there['build_id']}"
    finally:
        server.close()
    # Without a definition, a root image or a kernel on this machine.
    assert not (data / "builder").exists()
    again = template("import", str(archive), data=data, templates=templates, text=True)
    assert again.returncode == 0 and "is already there" in again.stdout


def test_a_running_server_sees_it_at_once(archive, other):
    data, templates = other
    server = Server("--pool", "0", templates=templates)
    try:
        assert server.request("GET", "/templates")[1] == []
        assert template("import", str(archive), data=data, templates=templates).returncode == 0
        assert [one["aliases"] for one in server.request("GET", "/templates")[1]] == [["base"]]
        status, made, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base"})
        assert status == 201, made
    finally:
        server.close()


def test_it_goes_through_pipes(archive, other):
    data, templates = other
    exported = template("export", "base", "-o", "-", data=data, templates=TEMPLATES)
    assert exported.returncode == 0 and b"standard output" in exported.stderr
    imported = template("import", "-", data=data, templates=templates, input=exported.stdout)
    assert imported.returncode == 0, imported.stderr
    assert len(listed(data, templates)) == 1
    again = template("import", "-", data=data, templates=templates, input=exported.stdout)
    assert again.returncode == 0 and b"already there" in again.stderr


@pytest.mark.parametrize("where", [0, 100, 0.3, 0.9, -1])
def test_a_damaged_archive_is_refused_and_leaves_nothing(archive, other, where):
    data, templates = other
    content = bytearray(archive.read_bytes())
    at = int(len(content) * where) if isinstance(where, float) else where
    content[at] ^= 0x40
    for arguments in (["import", "-"], ["import", "-", "--force"]):
        done = template(*arguments, data=data, templates=templates, input=bytes(content))
        assert done.returncode != 0
        complaint = done.stderr.decode().splitlines()[-1]
        assert complaint.startswith("glovebox: the archive is not imported: ") and "archive" in complaint
        assert not templates.exists() or list(templates.iterdir()) == []


def test_a_cut_archive_is_refused(archive, other):
    data, templates = other
    content = archive.read_bytes()
    for length in (0, 10, 200, len(content) // 2, len(content) - 1):
        done = template("import", "-", data=data, templates=templates, input=content[:length])
        assert done.returncode != 0
    assert b"not complete" in done.stderr
    assert not templates.exists() or list(templates.iterdir()) == []


def test_a_full_disk_is_one_clear_error(archive, other):
    data, _ = other
    small = data.parent / "small"
    small.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", str(small)], check=True)
    try:
        done = template("import", str(archive), data=data, templates=small / "templates", text=True)
        assert done.returncode == 6 and "MiB are free" in done.stderr and "--templates-dir" in done.stderr, done.stderr
        assert list((small / "templates").iterdir()) == []
        export = template("export", "base", "-o", str(small / "out"), data=data, templates=TEMPLATES, text=True)
        assert export.returncode == 6 and "No space left on device" in export.stderr, export.stderr
        assert [path.name for path in small.iterdir()] == ["templates"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_an_interrupted_import_leaves_nothing(archive, other):
    data, templates = other
    process = subprocess.Popen([GLOVEBOX, "template", "import", "-", "--data-dir", str(data), "--templates-dir",
                                str(templates)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(archive, "rb") as source:
        process.stdin.write(source.read(20_000_000))
        process.stdin.flush()
    while not list(templates.glob(".import-*/disk.img")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)  # it waits for more
    with contextlib.suppress(BrokenPipeError):
        process.stdin.flush()
    assert process.wait(60) == 130
    process.stdin.close()
    assert b"interrupted" in process.stderr.read()
    process.stderr.close()
    assert list(templates.iterdir()) == []


def test_another_vmm_is_refused_unless_it_is_forced(archive, other):
    """The archive of a machine with another QEMU: its header says so, with a checksum that is right."""
    import hashlib
    import struct

    data, templates = other
    content = archive.read_bytes()
    (length,) = struct.unpack_from("<I", content, 12)
    header = json.loads(content[48:48 + length])
    header["manifest"]["vmm_id"], header["manifest"]["vmm_version"] = "0" * 24, "6.2.0"
    text = json.dumps(header).encode()
    changed = content[:12] + struct.pack("<I", len(text)) + hashlib.sha256(text).digest() + text + content[48 + length:]
    refused = template("import", "-", data=data, templates=templates, input=changed)
    assert refused.returncode != 0 and b"captured with QEMU 6.2.0, and this machine has" in refused.stderr
    assert b"glovebox template prepare base" in refused.stderr
    assert not templates.exists() or list(templates.iterdir()) == []
    forced = template("import", "-", "--force", data=data, templates=templates, input=changed)
    assert forced.returncode == 0, forced.stderr
