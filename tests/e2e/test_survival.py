# SPDX-License-Identifier: Apache-2.0
"""What survives when a sandbox is paused and resumed, paused by its lifetime and woken by traffic, started from a snapshot, or forked:
everything that a program can tell. Each fact is looked at after each of the four ways; where a copy was made, neither of the two sees
what happens in the other."""
import hashlib
from dataclasses import dataclass

import pytest
from conftest import eventually
from e2b.sandbox_sync.commands.pty import PtySize
from e2b_code_interpreter import Sandbox

MIB = 1 << 20
PORT = 8000
# Holds facts in its memory and tells them on a socket of its own.
WITNESS = r"""
import hashlib, http.server, os, threading, time
buffer = bytearray(hashlib.shake_128(b"survival").digest(32 << 20))
open("/tmp/lines", "w").write("".join(f"line {n}\n" for n in range(100_000)))
lines = open("/tmp/lines")
os.unlink("/tmp/lines")
for _ in range(10): lines.readline()
count = 0
def work():
    global count
    while True:
        count += 1
        time.sleep(0.05)
threading.Thread(target=work, daemon=True).start()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        what, _, value = self.path[1:].partition("/")
        if what == "set": buffer[int(value)] ^= 1
        told = {"count": lambda: f"{os.getpid()} {count}", "line": lambda: lines.readline(), "set": lambda: "",
                "hash": lambda: hashlib.sha256(buffer).hexdigest(), "cwd": os.getcwd}[what]().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
    def log_message(self, *_): pass
http.server.HTTPServer(("", 8000), Handler).serve_forever()
"""
KERNEL = """
import fractions, threading, time
kept = {"answer": 42, "list": [1, 2]}
def twice(x): return 2 * x
ticks = 0
def work():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.05)
threading.Thread(target=work, daemon=True).start()
"""


@dataclass
class Told:
    """What was true just before."""
    pid: int
    terminal: int
    count: int
    ticks: int
    boot_id: str
    executions: int


class Life:
    """A sandbox full of facts, and what became of it."""

    def __init__(self, server, **options):
        self.server = server
        self.source = self.after = Sandbox.create(timeout=900, **options)
        self.snapshot_id = None
        try:
            self._plant()
        except BaseException:
            self.close()
            raise

    def _plant(self) -> None:
        source = self.source
        source.files.write("/home/user/witness.py", WITNESS)
        process = source.commands.run("exec python3 /home/user/witness.py", background=True, timeout=0, cwd="/usr/share")
        source.run_code(KERNEL)
        terminal = source.pty.create(PtySize(rows=24, cols=80), timeout=0)
        source.pty.send_stdin(terminal.pid, b"export WORD=kept; unexported=too; cd /var/tmp; echo rea''dy\n")
        seen = b""
        for _, _, data in terminal:
            seen += data or b""
            if b"ready" in seen:
                break
        terminal.disconnect()
        eventually(lambda: self.ask(source, "count"), 60)
        source.commands.run("head -c 4194304 /dev/urandom > /dev/shm/kept; sha256sum < /dev/shm/kept > /dev/shm/hash")
        # Nothing of this reaches the disk by itself.
        source.commands.run("sysctl -qw vm.dirty_writeback_centisecs=0; cp /dev/shm/kept /home/user/unsynced; "
                            "mv /home/user/unsynced /home/user/renamed", user="root")
        dirty = source.commands.run("grep ^Dirty: /proc/meminfo").stdout
        assert int(dirty.split()[1]) >= 4096, dirty
        pid, count = self.ask(source, "count").split()
        execution = source.run_code("ticks")
        self.before = Told(process.pid, terminal.pid, int(count), int(execution.text), self.boot_id(source),
                           execution.execution_count)
        assert int(pid) == process.pid

    @staticmethod
    def boot_id(sandbox) -> str:
        return sandbox.commands.run("cat /proc/sys/kernel/random/boot_id").stdout

    def ask(self, sandbox, path: str) -> str | None:
        """What the witness answers, through the ingress."""
        status, text, _ = self.server.request(
            "GET", f"/{path}", headers={"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": str(PORT)}, key=False)
        return str(text) if status == 200 else None

    def state(self) -> str:
        return self.server.request("GET", f"/sandboxes/{self.source.sandbox_id}")[1]["state"]

    def close(self) -> None:
        for sandbox in {self.source.sandbox_id: self.source, self.after.sandbox_id: self.after}.values():
            sandbox.kill()
        if self.snapshot_id:
            assert Sandbox.delete_snapshot(self.snapshot_id)


def paused(server) -> Life:
    life = Life(server)
    assert life.source.pause()
    life.after = Sandbox.connect(life.source.sandbox_id, timeout=900)
    return life


def paused_by_its_lifetime(server) -> Life:
    life = Life(server, lifecycle={"on_timeout": "pause", "auto_resume": True})
    life.source.set_timeout(0)
    eventually(lambda: life.state() == "paused", 30)
    assert life.ask(life.source, "cwd") == "/usr/share"  # this is what wakes it
    assert life.state() == "running"
    return life


def from_a_snapshot(server) -> Life:
    life = Life(server)
    life.snapshot_id = life.source.create_snapshot().snapshot_id
    life.after = Sandbox.create(life.snapshot_id, timeout=900)
    return life


def forked(server) -> Life:
    life = Life(server)
    [life.after] = life.source.fork(count=1, timeout=900)
    assert isinstance(life.after, Sandbox), life.after
    return life


WAYS = {"pause": paused, "auto-pause": paused_by_its_lifetime, "snapshot": from_a_snapshot, "fork": forked}


@pytest.fixture(scope="module", params=WAYS)
def life(request, server):
    made = WAYS[request.param](server)
    yield made
    made.close()


def test_the_same_boot_goes_on(life):
    assert life.boot_id(life.after) == life.before.boot_id


def test_a_program_counts_on(life):
    pid, count = map(int, life.ask(life.after, "count").split())
    assert pid == life.before.pid and count >= life.before.count
    eventually(lambda: int(life.ask(life.after, "count").split()[1]) > count)
    assert pid in [process.pid for process in life.after.commands.list()]


def test_an_open_file_without_a_name_is_read_on(life):
    assert life.ask(life.after, "line") == "line 10\n"
    assert life.ask(life.after, "line") == "line 11\n"


def test_memory_of_a_program_is_the_same(life):
    assert life.ask(life.after, "hash") == hashlib.sha256(hashlib.shake_128(b"survival").digest(32 * MIB)).hexdigest()


def test_a_file_in_memory_is_the_same(life):
    assert life.after.commands.run("sha256sum < /dev/shm/kept | cmp - /dev/shm/hash").exit_code == 0


def test_s2_what_was_written_and_not_synced_is_there(life):
    """Once in the page cache, and once from the disk."""
    assert not life.after.files.exists("/home/user/unsynced")
    check = "sha256sum < /home/user/renamed | cmp - /dev/shm/hash"
    assert life.after.commands.run(check).exit_code == 0
    life.after.commands.run("sync; echo 3 > /proc/sys/vm/drop_caches", user="root")
    assert life.after.commands.run(check).exit_code == 0


def test_variables_of_the_interpreter_are_there(life):
    execution = life.after.run_code("str(twice(kept['answer']) + fractions.Fraction(1, 2)) + str(kept['list'])")
    assert execution.error is None and execution.text == "169/2[1, 2]"
    assert execution.execution_count > life.before.executions


def test_the_interpreters_kernel_works_on(life):
    ticks = int(life.after.run_code("ticks").text)
    assert ticks >= life.before.ticks
    eventually(lambda: int(life.after.run_code("ticks").text) > ticks)


def test_a_listening_socket_answers(life):
    assert life.ask(life.after, "cwd") == "/usr/share"
    assert life.after.commands.run(f"curl -sS http://localhost:{PORT}/cwd").stdout == "/usr/share"


def test_a_terminal_has_its_environment_and_folder(life):
    terminal = life.after.pty.connect(life.before.terminal, timeout=60)
    life.after.pty.send_stdin(terminal.pid, b'echo "told:$WORD:$unexported:$PWD:$(printenv WORD):$(pwd -P):en""d"\n')
    seen = b""
    for _, _, data in terminal:
        seen += data or b""
        if b":end" in seen:
            break
    terminal.disconnect()
    assert b"told:kept:too:/var/tmp:kept:/var/tmp:end" in seen, seen


def test_what_one_does_the_other_does_not_see(life):
    if life.after.sandbox_id == life.source.sandbox_id:
        return  # no copy was made
    before = life.ask(life.after, "hash")
    for one, other, name in ((life.after, life.source, "copy"), (life.source, life.after, "source")):
        there = life.ask(other, "hash")
        one.files.write(f"/home/user/{name}", name)
        one.files.write(f"/dev/shm/{name}", name)
        one.commands.run(f"echo {name} >> /home/user/renamed; sync")
        one.run_code(f"only_{name} = 1; kept['answer'] = '{name}'")
        assert life.ask(one, "set/5000000" if name == "copy" else "set/25000000") is not None
        assert not other.files.exists(f"/home/user/{name}") and not other.files.exists(f"/dev/shm/{name}")
        assert name.encode() not in other.files.read("/home/user/renamed", format="bytes")[-16:]
        assert other.run_code(f"'only_{name}' in globals()").text == "False"
        assert other.run_code("str(kept['answer'])").text != name
        assert life.ask(other, "hash") == there
    assert len({before, life.ask(life.after, "hash"), life.ask(life.source, "hash")}) == 3
    assert life.after.commands.kill(life.before.pid)
    eventually(lambda: life.before.pid not in [process.pid for process in life.after.commands.list()])
    assert life.ask(life.source, "count").split()[0] == str(life.before.pid)
