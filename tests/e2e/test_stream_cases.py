# SPDX-License-Identifier: Apache-2.0
"""Cases from the field, X: what flows while a command runs, and clients that go away in the middle of it."""
import os
import random
import threading
import time
from pathlib import Path

import pytest
from conftest import Server, eventually
from e2b import Sandbox
from raw_agent import Agent, hang_up

DISCONNECTS = 1000
BROKEN = b"\xe2\x82 \xff\xfe \xc0\xaf \xed\xa0\x80 \xf0\x9f\x92 \x80\x80 \xe2"


def resident_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_x1_every_byte_of_the_output_arrives(box, agent):
    euros = "€" * (1 << 20)
    assert box.commands.run("python3 -c \"print('€' * (1 << 20), end='')\"").stdout == euros
    # odd sizes, so that characters are cut at every place, on both streams, and what is no UTF-8 at all
    write = ("import os, sys\ndata = open('/tmp/bytes', 'rb').read()\nfor fd in (1, 2):\n    at = 0\n"
             "    while at < len(data): at += os.write(fd, data[at:at + 8191])\n")
    data = euros.encode()[:1 << 20] + BROKEN + bytes(range(256)) * 64 + BROKEN
    box.files.write("/tmp/bytes", data)
    done = agent.run("/usr/bin/python3", "-c", write)
    assert done.stdout == data and done.stderr == data
    # the official client shows what is broken as replacement characters, and nothing but that
    shown = box.commands.run("cat /tmp/bytes; cat /tmp/bytes >&2")
    assert shown.stdout == shown.stderr == data.decode(errors="replace")
    box.files.remove("/tmp/bytes")


@pytest.mark.parametrize("text", ["a\r\n\r\nb\r\n", "\n\n\n", "\n", "", "no end", " lead\n\ttab \n \n", "\r", "a\rb\n\n", "\0\n\0"])
def test_x16_blank_lines_and_line_ends_are_kept(box, agent, text):
    write = f"printf %b '{ascii_escapes(text)}'"
    heard = []
    done = box.commands.run(f"{write}; {write} >&2", on_stdout=heard.append)
    assert done.stdout == done.stderr == "".join(heard) == text
    assert agent.run("/usr/bin/printf", "%b", ascii_escapes(text)).stdout == text.encode()


def ascii_escapes(text: str) -> str:
    return "".join(f"\\0{ord(c):03o}" for c in text)


def test_x6_output_of_a_client_that_has_gone_is_discarded(server, box, agent):
    before, server_before = agent.resident_kib(), resident_kib(server.process.pid)
    with agent.another() as another:
        stream = another.start("/usr/bin/yes")
        pid = stream.until(stream.process(), lambda done: len(done.stdout) > 1 << 20).pid
        stream.drop()
    try:
        def written() -> int:
            return int(agent.download(f"/proc/{pid}/io")[1].split(b"wchar: ")[1].split()[0])

        # neither held up nor collected: far more than any buffer goes through
        goal = written() + (64 << 20)
        eventually(lambda: written() > goal, 120)
        assert agent.resident_kib() < before + (16 << 10)
        assert resident_kib(server.process.pid) < server_before + (32 << 10)
        # who comes back sees only what is new
        with agent.another() as another:
            again = another.connect(pid)
            assert again.process().pid == pid
            again.drop()
    finally:
        agent.kill(pid)


def test_x6_a_client_that_reads_nothing_costs_no_memory(server, box, agent):
    before, server_before = agent.resident_kib(), resident_kib(server.process.pid)
    with agent.another() as another:
        stream = another.start("/usr/bin/yes")
        pid = stream.process().pid
        try:
            for _ in range(10):
                time.sleep(0.5)
                assert agent.resident_kib() < before + (16 << 10)
                assert resident_kib(server.process.pid) < server_before + (32 << 10)
        finally:
            agent.kill(pid)
            stream.drop()


def test_x8_starts_that_are_cancelled_at_once_leave_nothing_and_do_not_hold_up_the_stop():
    server = Server()
    try:
        sandbox = Sandbox.create("base", timeout=600, api_key=server.key, api_url=server.url, sandbox_url=server.url)
        with Agent(server, sandbox) as agent:
            def cancelled_start(*command: str, reset: bool) -> None:
                another = agent.another()
                another.ask("process.Process/Start", {"process": {"cmd": command[0], "args": list(command[1:])}})
                hang_up(another.connection, reset)

            inside, outside = agent.open_files(), open_files(server.process.pid)
            for n in range(100):
                cancelled_start("/bin/sleep", "0.5", reset=n % 2 == 0)
            eventually(lambda: agent.pids() == [] and agent.open_files() <= inside + 40, 60)
            eventually(lambda: open_files(server.process.pid) <= outside + 40, 60)
            assert agent.run("/bin/echo", "well").stdout == b"well\n"
            for n in range(30):
                cancelled_start("/bin/sleep", "1000", reset=n % 2 == 0)
        server.stop()
        assert server.process.returncode == 0
    finally:
        server.close()


def test_x9_a_thousand_disconnects_in_the_middle_crash_nothing(server, box, agent):
    """Each client leaves at a random point of a random exchange: in the request, before the answer, in the stream."""
    box.files.write("/tmp/x9/big", os.urandom(1 << 20))
    files, server_files = agent.open_files(), open_files(server.process.pid)
    started = agent.download("/proc/1/stat")[1].split()[21]
    chatter = "import time\nwhile True:\n    print('chatter' * 500, flush=True)\n    time.sleep(0.01)"
    with agent.another() as another:
        talker = another.start("/usr/bin/python3", "-c", chatter)
        pid = talker.process().pid
        talker.drop()
    errors = []

    def leave_once(dice: random.Random) -> None:
        another = agent.another()
        kind = dice.choice(["request", "start", "terminal", "follow", "follow", "watch", "download", "upload"])
        reset = dice.random() < 0.5
        if kind == "request":
            another.connection.connect()
            text = b"POST /process.Process/Start HTTP/1.1\r\nHost: localhost\r\n" + b"".join(
                f"{k}: {v}\r\n".encode() for k, v in another.headers().items()) + b"Content-Length: 5000\r\n\r\n" + bytes(4000)
            another.connection.sock.sendall(text[:dice.randrange(len(text))])
        elif kind == "upload":
            another.connection.putrequest("POST", "/files?path=/tmp/x9/never-whole")
            for name, value in another.headers(Content_Type="application/octet-stream", Content_Length="1000000").items():
                another.connection.putheader(name, value)
            another.connection.endheaders(bytes(dice.randrange(100_000)))
        elif kind == "download":
            another.connection.request("GET", "/files?path=/tmp/x9/big", headers=another.headers())
            answer = another.connection.getresponse()
            answer.read(dice.randrange(100_000))
            answer.close()
        else:
            if kind == "follow":
                stream = another.connect(pid)
            elif kind == "watch":
                stream = another.stream("filesystem.Filesystem/WatchDir", {"path": "/tmp", "recursive": True})
            else:
                size = {"size": (80, 24)} if kind == "terminal" else {}
                stream = another.start("/usr/bin/head", "-c", "80000", "/dev/urandom", **size)
            messages = iter(stream)
            for _ in range(dice.randrange(5) if kind != "watch" else 1):
                next(messages, None)
            stream.drop(reset)
        hang_up(another.connection, reset)

    def leave(seed: int) -> None:
        dice = random.Random(seed)
        try:
            for _ in range(DISCONNECTS // 8):
                leave_once(dice)
        except Exception as error:  # the test's own thread must hear of it
            errors.append(error)

    threads = [threading.Thread(target=leave, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agent.kill(pid)
    assert errors == []
    assert agent.run("/bin/echo", "well").stdout == b"well\n"
    assert agent.download("/proc/1/stat")[1].split()[21] == started, "the agent is another one"
    assert server.process.poll() is None
    eventually(lambda: agent.pids() == [] and agent.open_files() <= files + 40, 60)
    eventually(lambda: open_files(server.process.pid) <= server_files + 40, 60)
    assert box.commands.run("ls -A /tmp/x9").stdout == "big\n", "unfinished uploads are taken away"
    box.files.remove("/tmp/x9")
