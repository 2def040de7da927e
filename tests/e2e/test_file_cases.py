# SPDX-License-Identifier: Apache-2.0
"""Cases from the field, F: what is in files, through the API and for commands. Paths and names are in test_path_cases.py, watching
in test_watch_cases.py, slow transfers in test_time_cases.py."""
import hashlib
import io
import json
import os
import socket
import subprocess
import uuid
from urllib.parse import urlencode

import pytest
from conftest import ROOT, eventually
from e2b import InvalidArgumentException, Sandbox
from e2b.exceptions import NotEnoughSpaceException
from elders import LONG, MIB
from raw_agent import Agent

GIB = 1 << 30
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

pytestmark = pytest.mark.usefixtures("elders")  # what must age begins to


@pytest.mark.parametrize("size", [0, 1, 18 * 1024, 65535, 65536, 65537, MIB])
def test_f1_files_of_many_sizes_come_back_equal(box, folder, size):
    data = os.urandom(size)
    ways = {"form": {"data": data}, "stream": {"data": io.BytesIO(data)}, "raw": {"data": data, "use_octet_stream": True},
            "zipped": {"data": data, "gzip": True}, "pieces": {"data": iter([data[:1000], data[1000:]])}}
    for way, options in ways.items():
        box.files.write(f"{folder}/{way}", **options)
        assert bytes(box.files.read(f"{folder}/{way}", format="bytes")) == data, way
        assert b"".join(box.files.read(f"{folder}/{way}", format="stream")) == data, way
        assert bytes(box.files.read(f"{folder}/{way}", format="bytes", gzip=True)) == data, way
        assert box.files.get_info(f"{folder}/{way}").size == size, way
    sums = {line.split()[0] for line in box.commands.run(f"sha256sum {folder}/*").stdout.splitlines()}
    assert sums == {hashlib.sha256(data).hexdigest()}
    box.files.write_files([{"path": f"{folder}/many-{n}", "data": data} for n in range(3)])
    for n in range(3):
        assert bytes(box.files.read(f"{folder}/many-{n}", format="bytes")) == data


def test_f1_five_gibibytes_are_read_at_their_ends_and_at_every_32_bit_limit(box, agent, folder):
    """A sparse file, read by ranges."""
    size = 5 * GIB
    marks = [0, 2 * GIB - 4, 4 * GIB - 4, size - 8]
    box.commands.run(f"truncate -s {size} {folder}/huge; cd {folder}; "
                     + "; ".join(f"printf 'mark%04d' {n} | dd of=huge bs=1 seek={at} conv=notrunc status=none"
                                 for n, at in enumerate(marks)))
    assert box.files.get_info(f"{folder}/huge").size == size
    for n, at in enumerate(marks):
        status, body, headers = agent.download(f"{folder}/huge", Range=f"bytes={at}-{at + 7}")
        assert (status, body) == (206, b"mark%04d" % n)
        assert headers["Content-Range"] == f"bytes {at}-{at + 7}/{size}"
    assert agent.download(f"{folder}/huge", Range="bytes=-8")[1] == b"mark0003"
    assert agent.download(f"{folder}/huge", Range=f"bytes={size}-")[0] == 416


def test_f1_a_large_file_comes_back_equal(server):
    """5 GiB each way under GLOVEBOX_LONG_TESTS=1."""
    sandbox = Sandbox.create("code-interpreter-v1", timeout=3600)  # the larger disk
    try:
        block = os.urandom(MIB)
        sent, got = hashlib.sha256(), hashlib.sha256()

        def pieces():
            for n in range(5 * 1024 if LONG else 128):
                piece = n.to_bytes(8) + block[8:]
                sent.update(piece)
                yield piece

        sandbox.files.write("/home/user/huge", pieces())
        with sandbox.files.read("/home/user/huge", format="stream") as stream:
            for piece in stream:
                got.update(piece)
        assert got.digest() == sent.digest()
        seen = sandbox.commands.run("sha256sum < /home/user/huge", timeout=1800).stdout.split()[0]
        assert seen == sent.hexdigest()
    finally:
        sandbox.kill()


def test_f1_what_does_not_fit_is_an_error_and_leaves_no_file(box, folder):
    blocks, size = map(int, box.commands.run("stat -f -c '%f %S' /home").stdout.split())
    box.commands.run(f"fallocate -l {blocks * size - 24 * MIB} {folder}/filler", user="root")
    with pytest.raises(NotEnoughSpaceException):
        box.files.write(f"{folder}/too-large", bytes(64 * MIB))
    assert box.commands.run(f"ls -A {folder}").stdout == "filler\n"


def test_f2_an_empty_file_is_empty_bytes(box, agent, folder):
    box.files.write(f"{folder}/written", b"")
    box.commands.run(f"touch {folder}/touched")
    for name in ("written", "touched"):
        path = f"{folder}/{name}"
        assert box.files.read(path) == "" and box.files.read(path, format="bytes") == bytearray()
        assert list(box.files.read(path, format="stream")) in ([], [b""])
        assert box.files.get_info(path).size == 0
        status, body, headers = agent.download(path)
        assert (status, body, headers["Content-Length"]) == (200, b"", "0")
    assert box.files.read("/proc/1/status").startswith("Name:")  # says that it is empty and is not


# A log that grows, one that is cut whenever it has a MiB, and a file that is written anew all the time, in place.
RESTLESS = """
import os, sys, time
os.chdir(sys.argv[1])
line = b"%-63d\\n" % 1
with open("growing", "ab", 0) as growing, open("cut", "wb", 0) as cut:
    growing.write(line * 8192)
    for n in range(10**9):
        growing.write(line * 64)
        cut.write(line * 1024)
        if n % 16 == 15:
            cut.truncate(64)
            cut.seek(64)
        with open("rewritten", "wb", 0) as rewritten:
            rewritten.write(line * (1 + n * 37 % 64))
        time.sleep(0.01)
"""


def javascript_reads(box, *paths: str) -> list[str]:
    """The beginnings of the files as e2b from npm reads them."""
    own = ROOT / "build/npm/node_modules/.bin/node"
    done = subprocess.run([str(own) if own.exists() else "node", str(ROOT / "tests/e2e/js/odd_files.mjs"), box.sandbox_id, *paths],
                          capture_output=True, text=True, timeout=600, cwd=ROOT / "build/npm")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_the_kernel_makes_is_read_whole(server, box, agent):
    """stat says 4096 bytes of a file of /sys, and none of one of /proc."""
    mtu, version = "/sys/class/net/lo/mtu", "/proc/version"
    for path in (mtu, version, "/proc/cpuinfo"):
        expected = box.commands.run(f"cat {path}").stdout
        for options in ({}, {"gzip": True}):
            read = box.files.read(path, **options)
            assert read == expected or path == "/proc/cpuinfo" and read.startswith("processor"), path
        assert len(b"".join(box.files.read(path, format="stream"))) == len(box.files.read(path, format="bytes")) > 0
    size = len(box.files.read(mtu))
    status, body, headers = agent.download(mtu, Range="bytes=1-2")
    assert (status, body, headers["Content-Range"]) == (206, box.files.read(mtu)[1:3].encode(), f"bytes 1-2/{size}")
    signed = box.download_url(mtu).split("/files?")[1]
    at = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": "49983"}
    assert server.request("GET", f"/files?{signed}", headers=at, key=False)[:2] == (200, int(box.files.read(mtu)))
    assert javascript_reads(box, mtu, version)[0] == box.files.read(mtu)


def test_files_that_change_while_they_are_read_are_read(box, folder):
    box.files.write(f"{folder}/restless.py", RESTLESS)
    restless = box.commands.run(f"python3 {folder}/restless.py {folder}", background=True, timeout=0)
    paths = [f"{folder}/{name}" for name in ("growing", "cut", "rewritten")]
    try:
        eventually(lambda: all(box.files.exists(path) for path in paths))
        for _ in range(5):
            assert len(box.files.read(paths[0])) >= 8192 * 64
            for path in paths:
                read = bytes(box.files.read(path, format="bytes"))
                assert read.replace(b"\0", b"").strip(b"1 \n") == b"", path
                box.files.read(path, gzip=True)
                assert sum(map(len, box.files.read(path, format="stream"))) >= 0
        assert len(javascript_reads(box, paths[0], paths[0])) == 2
    finally:
        restless.kill()


def test_f3_bytes_are_not_taken_for_text(box, folder):
    data = PNG + bytes(range(256)) * 3 + b"\xef\xbf\xbd\xff\xfe\x00"
    for name in ("picture.png", "text.txt", "page.html", "data.json", "nothing"):
        path = f"{folder}/{name}"
        for options in ({}, {"use_octet_stream": True}, {"gzip": True}):
            box.files.write(path, data, **options)
            assert bytes(box.files.read(path, format="bytes")) == data
            assert b"".join(box.files.read(path, format="stream")) == data
            assert box.files.read(path) == data.decode(errors="replace")
            assert box.commands.run(f"sha256sum < {path}").stdout.split()[0] == hashlib.sha256(data).hexdigest()
    text = "\ufeffé € \U0001f4a9\r\n\x00\x7f"
    box.files.write(f"{folder}/text.txt", text)
    assert box.files.read(f"{folder}/text.txt") in (text, text.removeprefix("\ufeff"))
    assert bytes(box.files.read(f"{folder}/text.txt", format="bytes")) == text.encode()
    handle = box.commands.run(f"cat > {folder}/piped", background=True, stdin=True)
    handle.send_stdin(data)
    handle.close_stdin()
    handle.wait()
    assert bytes(box.files.read(f"{folder}/piped", format="bytes")) == data


def test_f12_what_was_written_is_there_for_the_next_command(box, agent, folder):
    path = f"{folder}/shared"
    for n in range(20):
        assert agent.upload(path, str(n).encode())[0] == 200
        assert agent.run("/bin/cat", path).stdout == str(n).encode()
        assert agent.run("/bin/sh", "-c", f"echo {n} again > {path}").exit_code == 0
        assert agent.download(path)[1] == f"{n} again\n".encode()
    for n in range(5):
        box.files.write(f"{folder}/script-{n}", f"echo {n}")
        assert box.commands.run(f"bash script-{n} > out-{n}; cat out-{n}", cwd=folder).stdout == f"{n}\n"
        assert box.files.read(f"{folder}/out-{n}") == f"{n}\n"


def upload_with_header_bytes(agent: Agent, path: str, header: bytes) -> int:
    """Status of an upload that has the bytes among its headers as they are; 0 when the connection is closed instead."""
    head = f"POST /files?{urlencode({'path': path})} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for name, value in agent.headers(Content_Type="application/octet-stream", Content_Length="1").items():
        head += f"{name}: {value}\r\n"
    host, port = agent.server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head.encode() + header + b"\r\n\r\nx")
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return int(answer.split()[1]) if answer else 0


def test_f17_metadata_is_one_line_and_fits(box, agent, folder):
    path = f"{folder}/file"
    for header in (b"X-Metadata-a: good\n", b"X-Metadata-a: good\nX-Metadata-b: smuggled", b"X-Metadata-a: go\rod",
                   b"X-Metadata-a: \x01",
                   b"X-Metadata-a: caf\xe9", b"X-Metadata-a: \xe2\x82\xac", b"X-Metadata-a: nul\0", b"X-Metadata-a b: x",
                   b"X-Metadata-: x", b"X-Metadata-a\n: x", b"X-Metadata-\xc3\xa9: x", b"X-Metadata-" + b"k" * 300 + b": x",
                   b"X-Metadata-a: " + b"v" * 10_000, b"X-Metadata-a: " + b"v" * 70_000,
                   b"\r\n".join(b"X-Metadata-%d: " % n + b"v" * 900 for n in range(20))):
        status = upload_with_header_bytes(agent, path, header)
        assert 400 <= status < 500, (header[:60], status)
        assert not box.files.exists(path), header[:60]
    assert box.commands.run(f"ls -A {folder}").stdout == ""
    # a continued line is one line or nothing
    if upload_with_header_bytes(agent, path, b"X-Metadata-a: one\r\n two") < 300:
        assert "\n" not in box.files.get_info(path).metadata["a"]
    for wrong in ({"a": "b\n"}, {"a\n": "b"}, {"a": "é"}, {"": "b"}, {"a b": "c"}):
        with pytest.raises(InvalidArgumentException):
            box.files.write(path, "x", metadata=wrong)
    good = {"author": "somebody: \"x\" ~", "a!#$%&'*+-.^_`|~9": "all of a token", "long": "v" * 2000}
    for octets in (False, True):
        assert box.files.write(path, "x", metadata=good, use_octet_stream=octets).metadata == good
        assert box.files.get_info(path).metadata == good
    assert box.files.rename(path, path + "2").metadata == good
    [entry] = box.files.list(folder)
    assert entry.metadata == good
    box.files.write(path + "2", "y")
    assert not box.files.get_info(path + "2").metadata


def test_f21_holes_stay_holes(box, agent, folder):
    """Wherever the API copies: moving to another file system and back, and joining parts."""
    shm = f"/dev/shm/{uuid.uuid4().hex}"

    def allocated(path: str) -> int:
        return int(box.commands.run(f"stat -c %b {path}").stdout) * 512

    box.commands.run("printf begin > sparse; truncate -s 1G sparse; printf end >> sparse; truncate -s 2G sparse", cwd=folder)
    digest = box.commands.run("head -c 5 sparse; tail -c +1073741825 sparse | head -c 3", cwd=folder).stdout
    assert digest == "beginend"
    try:
        for path in (shm, f"{folder}/back"):
            source = f"{folder}/sparse" if path == shm else shm
            box.files.rename(source, path)
            assert box.files.get_info(path).size == 2 * GIB and allocated(path) < MIB
            assert agent.download(path, Range="bytes=1073741822-1073741828")[1] == b"\0\0end\0\0"
        box.commands.run("mv back part-1; printf tail > part-2", cwd=folder)
        status, _, _ = agent.send("POST", "/files/compose", headers=agent.headers(Content_Type="application/json"), body=(
            '{"source_paths":["%s/part-1","%s/part-2"],"destination":"%s/whole"}' % (folder, folder, folder)))
        assert status == 200
        assert box.files.get_info(f"{folder}/whole").size == 2 * GIB + 4
        assert agent.download(f"{folder}/whole", Range="bytes=-6")[1] == b"\0\0tail"
        assert allocated(f"{folder}/whole") < MIB
    finally:
        box.files.remove(shm)
