# SPDX-License-Identifier: Apache-2.0
"""Case X27: terminals keep the order of what is typed, every byte of it, and their size."""
import hashlib
import random

import pytest
from e2b import PtySize

BOX = "┌──┬──┐\n│ é│日本│ ✓\n└──┴──┘"


@pytest.fixture
def started(agent):
    """Starts programs with terminals, follows them, and ends what is left of them."""
    opened = []

    def start(command: str, size=(80, 24)):
        another = agent.another()
        stream = another.start("/bin/sh", "-c", command, size=size)
        done = stream.process()
        opened.append((another, done))
        return stream, done

    yield start
    for another, done in opened:
        another.connection.close()
        if done.pid in agent.pids():
            agent.kill(done.pid)


def test_x27_input_keeps_its_order_over_many_requests(agent, started):
    pieces = [f"{n}:{BOX[n % len(BOX)]};".encode() for n in range(300)]
    whole = b"".join(pieces)
    stream, done = started(f"stty raw -echo; echo ready; head -c {len(whole)} > /tmp/typed; echo done")
    stream.until(done, lambda d: b"ready" in d.pty)
    others = [agent.another() for _ in range(4)]
    for n, piece in enumerate(pieces):
        others[n % 4].input(done.pid, piece, "pty")
    stream.rest(done)
    for other in others:
        other.connection.close()
    assert agent.download("/tmp/typed")[1] == whole


def test_x27_input_keeps_its_order_in_a_stream_of_the_client(box, agent, started):
    pieces = [f"{n}:{BOX[n % len(BOX)]};" for n in range(300)]
    whole = "".join(pieces).encode()
    stream, done = started(f"stty raw -echo; echo ready; head -c {len(whole)} > /tmp/streamed; echo done")
    stream.until(done, lambda d: b"ready" in d.pty)
    box.pty.stream_input(done.pid, pieces)
    stream.rest(done)
    assert agent.download("/tmp/streamed")[1] == whole


@pytest.mark.parametrize("size", [4095, 4096, 4097, 100_000])
def test_x27_a_raw_terminal_takes_lines_of_any_length(agent, started, size):
    line = bytes(random.Random(size).choices(range(32, 127), k=size - 1)) + b"\n"
    stream, done = started(f"stty raw -echo; echo ready; head -c {size} | sha256sum")
    stream.until(done, lambda d: b"ready" in d.pty)
    agent.input(done.pid, line, "pty")
    stream.rest(done)
    assert hashlib.sha256(line).hexdigest() in done.pty.decode()


def test_x27_a_raw_terminal_passes_every_byte_both_ways(agent, started):
    data = bytes(range(256)) * 40 + b"\x00\x03\x04\x1a\x1c\r\n\xff\xe2\x94"
    stream, done = started(f"stty raw -echo; printf ready; head -c {len(data)}")
    stream.until(done, lambda d: d.pty == b"ready")
    agent.input(done.pid, data, "pty")
    assert stream.rest(done).pty == b"ready" + data


def test_x27_a_login_terminal_speaks_utf8(box):
    box.files.write("/tmp/shown", f"locale charmap; printf %s '{BOX}' | wc -m; cat <<< '{BOX}'; tput cols\n")
    terminal = box.pty.create(PtySize(24, 200))
    seen = bytearray()
    box.pty.send_stdin(terminal.pid, "echo '│'; . /tmp/shown; exit\n".encode())
    terminal.wait(on_pty=seen.extend)
    text = seen.decode().replace("\x1b[?2004l\r", "")  # decodes at all: nothing is garbled
    assert "\r\n".join(["│", "UTF-8", str(len(BOX)), *BOX.split("\n"), "200"]) in text


def test_x27_one_erased_character_is_one_character(agent, started):
    """In a line that the kernel edits, erase takes a whole UTF-8 character, not its last byte."""
    stream, done = started("stty -echo; echo ready; read line; printf %s \"$line\" > /tmp/edited")
    stream.until(done, lambda d: b"ready" in d.pty)
    agent.input(done.pid, "a日\x7fb\n".encode(), "pty")
    stream.rest(done)
    assert agent.download("/tmp/edited")[1] == b"ab"


def test_x27_a_new_size_reaches_the_program(box, agent, started):
    stream, done = started("trap 'stty size' WINCH; stty size; echo ready; while :; do sleep 0.1; done", size=(100, 30))
    stream.until(done, lambda d: b"ready" in d.pty)
    assert b"30 100\r\n" in done.pty
    box.pty.resize(done.pid, PtySize(rows=41, cols=142))
    stream.until(done, lambda d: b"41 142\r\n" in d.pty)
