# SPDX-License-Identifier: Apache-2.0
"""Cases S20 and S26: the host's disk is full. A guest loses nothing silently, what cannot be saved runs on, and the server stays."""
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from conftest import eventually
from e2b import Sandbox
from test_restart import OwnServer

MIB = 1 << 20


class SmallServer(OwnServer):
    """A server whose data folder is a file system of its own."""

    def __init__(self):
        self.mount = Path(tempfile.mkdtemp(prefix="glovebox-e2e-small-"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1G,mode=0755", "glovebox-test", str(self.mount)], check=True)
        try:
            super().__init__("--pool", "0", data=self.mount)
        except BaseException:
            self.unmount()
            raise

    @property
    def ballast(self) -> Path:
        return self.mount / "ballast"

    def leave_free(self, size: int) -> None:
        """Takes all room but so many bytes."""
        room = os.statvfs(self.mount)
        with open(self.ballast, "ab") as file:
            os.posix_fallocate(file.fileno(), file.tell(), max(room.f_bavail * room.f_frsize - size, 1))

    def is_full(self) -> bool:
        room = os.statvfs(self.mount)
        return room.f_bavail * room.f_frsize < 512 * 1024

    def free(self) -> None:
        self.ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.mount)], check=True)
        self.mount.rmdir()

    def close(self) -> None:
        self.free()
        if self.process.poll() is not None:
            self.start()  # to end what a failed test has left
        super().close()
        for path in self.mount.iterdir() if self.mount.exists() else ():
            shutil.rmtree(path, ignore_errors=True)
        self.unmount()


@pytest.fixture(scope="module")
def small():
    server = SmallServer()
    yield server
    server.close()


@pytest.fixture
def sandbox(small):
    made = Sandbox.create("base", timeout=1800, **small.connection)
    yield made
    small.free()
    made.kill()
    assert small.machines() == []
    eventually(lambda: not list((small.data / "sandboxes").iterdir()))
    assert not list((small.data / "snapshots").iterdir())


WRITER = """
import hashlib, os, sys
with open("/home/user/large", "wb") as file:
    for number in range(48):
        file.write(hashlib.shake_128(b"%d" % number).digest(1 << 20))
    file.flush()
    os.fsync(file.fileno())
print("synced")
"""


def digest() -> str:
    whole = hashlib.sha256()
    for number in range(48):
        whole.update(hashlib.shake_128(b"%d" % number).digest(MIB))
    return whole.hexdigest()


def test_s20_a_guest_that_writes_to_a_full_disk_waits_until_there_is_room(small, sandbox):
    sandbox.files.write("/home/user/writer.py", WRITER)
    sandbox.commands.run("head -c 4000000 /dev/urandom > /home/user/early; sha256sum < /home/user/early > /home/user/hash; sync")
    other = Sandbox.create("base", timeout=1800, **small.connection)
    try:
        small.leave_free(20 * MIB)
        writer = sandbox.commands.run("python3 /home/user/writer.py", background=True, timeout=0)
        eventually(small.is_full, 120)
        time.sleep(3)
        # The server, and who needs no room, go on.
        listed = {item["sandboxID"]: item["state"] for item in small.request("GET", "/v2/sandboxes")[1]}
        assert listed == {sandbox.sandbox_id: "running", other.sandbox_id: "running"}
        assert other.commands.run("echo alive").stdout == "alive\n"
        small.free()
        assert writer.wait().stdout == "synced\n"
        sandbox.commands.run("sync; echo 3 > /proc/sys/vm/drop_caches", user="root")
        assert sandbox.commands.run("sha256sum < /home/user/large").stdout.split()[0] == digest()
        assert sandbox.commands.run("sha256sum < /home/user/early | cmp - /home/user/hash").exit_code == 0
        told = sandbox.commands.run("dmesg | grep -iE 'I/O error|EXT4-fs (error|warning)|remounting' || true", user="root").stdout
        assert told == ""
    finally:
        small.free()
        other.kill()


def test_s20_a_guest_that_waits_for_room_can_be_killed(small, sandbox):
    sandbox.files.write("/home/user/writer.py", WRITER)
    victim = Sandbox.create("base", timeout=1800, **small.connection)
    victim.files.write("/home/user/writer.py", WRITER)
    small.leave_free(16 * MIB)
    victim.commands.run("python3 /home/user/writer.py", background=True, timeout=0)
    eventually(small.is_full, 120)
    for call in ("pause", "snapshots"):
        status, body, _ = small.request("POST", f"/sandboxes/{victim.sandbox_id}/{call}", {})
        assert status == 507, body
    assert small.request("DELETE", f"/sandboxes/{victim.sandbox_id}")[0] == 204
    assert len(small.machines()) == 1
    assert sandbox.commands.run("echo alive").stdout == "alive\n"


def test_s20_a_guest_that_waits_for_room_is_taken_over_by_the_next_server(small):
    waiting = Sandbox.create("base", timeout=1800, **small.connection)
    waiting.files.write("/home/user/writer.py", WRITER)
    small.leave_free(20 * MIB)
    pid = waiting.commands.run("python3 /home/user/writer.py > /dev/shm/told", background=True, timeout=0).pid
    eventually(small.is_full, 120)
    time.sleep(1)
    small.kill_hard()
    small.free()  # a server needs a little room to start; nobody has told the guest
    time.sleep(1)
    assert small.is_full() is False and len(small.machines()) == 1
    small.start()
    assert [item["sandboxID"] for item in small.request("GET", "/v2/sandboxes")[1]] == [waiting.sandbox_id]
    again = Sandbox.connect(waiting.sandbox_id, timeout=1800, **small.connection)
    try:
        eventually(lambda: pid not in [process.pid for process in again.commands.list()], 60)
        assert again.files.read("/dev/shm/told") == "synced\n"
        again.commands.run("echo 3 > /proc/sys/vm/drop_caches", user="root")
        assert again.commands.run("sha256sum < /home/user/large").stdout.split()[0] == digest()
    finally:
        again.kill()


@pytest.mark.parametrize("what", ["pause", "pause without memory", "snapshot", "fork", "create"])
def test_s26_what_cannot_be_saved_runs_on_and_the_caller_is_told(small, sandbox, what):
    path = f"/sandboxes/{sandbox.sandbox_id}"
    sandbox.files.write("/dev/shm/kept", "in memory")
    process = sandbox.commands.run("sleep 1000", background=True, timeout=0)
    sandbox.commands.run("sync")
    small.leave_free(2 * MIB)
    if what == "pause without memory":
        small.leave_free(0)
    call = {"pause": ("POST", f"{path}/pause", {}), "pause without memory": ("POST", f"{path}/pause", {"memory": False}),
            "snapshot": ("POST", f"{path}/snapshots", {}), "fork": ("POST", f"{path}/fork", {"count": 2, "timeout": 60}),
            "create": ("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60})}[what]
    status, body, _ = small.request(*call)
    print(what, status, body)
    if what == "create" and status == 201:
        small.request("DELETE", f"/sandboxes/{body['sandboxID']}")  # there was just enough room
    else:
        assert status == 507 and body["code"] == 507 and "space" in body["message"], body
    assert small.request("GET", path)[1]["state"] == "running"
    assert [item["sandboxID"] for item in small.request("GET", "/v2/sandboxes")[1]] == [sandbox.sandbox_id]
    assert small.request("GET", "/snapshots")[1] == [] and not list((small.data / "snapshots").iterdir())
    assert not (small.data / "sandboxes" / sandbox.sandbox_id / "paused.json").exists()
    small.free()
    assert sandbox.files.read("/dev/shm/kept") == "in memory"
    assert process.pid in [running.pid for running in sandbox.commands.list()]
    assert sandbox.pause()  # now there is room
    again = Sandbox.connect(sandbox.sandbox_id, timeout=1800, **small.connection)
    assert again.files.read("/dev/shm/kept") == "in memory"
