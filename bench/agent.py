# SPDX-License-Identifier: Apache-2.0
"""The guest agent beside bare programs in the same guest, in one run: processes, files, output, many at once."""
import ctypes
import os
import re
import socket
import threading
import time

from measure import show, timed

MIB = 1 << 20
SIZE = int(os.environ.get("BENCH_FILE_MIB", "1024")) * MIB
GUEST = "10.11.0.2"

# What starting a program costs when nothing is in between.
SPAWN = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    started = time.perf_counter()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    print((time.perf_counter() - started) * 1000)
"""
# One transfer over bare TCP: into a file, or out of it.
COPY = """
import os, socket, sys
listener = socket.create_server(("0.0.0.0", 7777))
print("ready", flush=True)
peer, _ = listener.accept()
if sys.argv[1] == "in":
    view = memoryview(bytearray(1 << 20))
    with open("/home/user/bare", "wb", buffering=0) as out:
        while n := peer.recv_into(view):
            out.write(view[:n])
else:
    with open("/home/user/bare", "rb", buffering=0) as source:
        peer.sendfile(source)
peer.shutdown(socket.SHUT_WR)
"""


class Blocks:
    """SIZE bytes to read, without having them."""

    def __init__(self):
        self.left, self.block = SIZE, os.urandom(MIB)

    def read(self, count: int = MIB) -> bytes:
        piece = self.block[:min(self.left, count, MIB)]
        self.left -= len(piece)
        return piece


def inside(namespace_of: int, action):
    """action() on a thread that is in the network namespace of that process."""
    result = []

    def run() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/proc/{namespace_of}/ns/net") as namespace:
            if libc.setns(namespace.fileno(), 0x40000000) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        result.append(action())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def bare_copy(agent, vmm: int, direction: str) -> float:
    with agent.another() as control:
        stream = control.start("/usr/bin/python3", "-c", COPY, direction)
        done = stream.until(stream.process(), lambda d: b"ready" in d.stdout)

        def transfer() -> float:
            peer = socket.create_connection((GUEST, 7777))
            started = time.perf_counter()
            if direction == "in":
                source = Blocks()
                while piece := source.read():
                    peer.sendall(piece)
                peer.shutdown(socket.SHUT_WR)
                peer.recv(1)
            else:
                view, total = memoryview(bytearray(MIB)), 0
                while n := peer.recv_into(view):
                    total += n
                assert total == SIZE, total
            return (time.perf_counter() - started) * 1000

        took = inside(vmm, transfer)
        assert stream.rest(done).exit_code == 0, done.stderr
    return took


def upload(agent) -> float:
    def send() -> None:
        status, answer, _ = agent.upload("/home/user/ours", Blocks(), **{"Content-Length": str(SIZE)})
        assert status == 200, answer

    return timed(send)


def download(agent) -> float:
    def receive() -> None:
        agent.connection.request("GET", "/files?path=/home/user/ours", headers=agent.headers())
        answer, view, total = agent.connection.getresponse(), memoryview(bytearray(MIB)), 0
        while n := answer.readinto(view):
            total += n
        assert total == SIZE, total

    return timed(receive)


def peak_kib(agent) -> int:
    return int(re.search(rb"VmHWM:\s+(\d+)", agent.download("/proc/1/status")[1]).group(1))


def bench_transfers(agent, vmm: int) -> None:
    bare_in, bare_out, ours_in, ours_out = [], [], [], []
    for _ in range(3):
        bare_in.append(bare_copy(agent, vmm, "in"))
        bare_out.append(bare_copy(agent, vmm, "out"))
        agent.run("/bin/rm", "-f", "/home/user/bare")
        ours_in.append(upload(agent))
        ours_out.append(download(agent))
        agent.run("/bin/rm", "-f", "/home/user/ours")
    size = f"{SIZE // MIB} MiB"
    show(f"bare TCP into a file of the guest, {size}", bare_in)
    show(f"POST /files, {size}", ours_in, bare_in, "bare TCP")
    show(f"bare TCP out of a file of the guest, {size}", bare_out)
    show(f"GET /files, {size}", ours_out, bare_out, "bare TCP")
    print(f"{'agent, largest resident size so far':<52} {peak_kib(agent) / 1024:8.1f} MiB")


def bench_starts(agent, runs: int) -> None:
    bare, ours = [], []
    for _ in range(5):
        done = agent.run("/usr/bin/python3", "-c", SPAWN, str(runs))
        bare += [float(line) for line in done.stdout.split()][1:]
        ours += [timed(lambda: agent.run("/bin/true")) for _ in range(runs)][1:]
    show("fork, exec and wait for true in the guest", bare)
    show("Start of true on an open connection", ours, bare, "bare")


def bench_output(agent) -> None:
    """Linear when a MiB costs the same whatever went before it."""
    for mib in (25, 50, 100, 200):
        def read() -> None:
            count = 0  # of the text: every 4 characters are 3 bytes
            for message in agent.start("/usr/bin/head", "-c", str(mib * MIB), "/dev/zero"):
                text = message["event"].get("data", {}).get("stdout", "")
                count += len(text) // 4 * 3 - text.count("=")
            assert count == mib * MIB, count

        took = timed(read)
        print(f"{f'{mib} MiB of standard output':<52}     {took:8.1f} ms   {took / mib:8.2f} ms a MiB", flush=True)


def bench_many(agent, count: int = 1000) -> None:
    """All of them run at the same time; then none is left."""
    streams, failed = [], []

    def start(share: range) -> None:
        for _ in share:
            connection = agent.another()
            try:
                stream = connection.start("/bin/sleep", "1000")
                streams.append((connection, stream.process().pid))
            except Exception as error:  # noqa: BLE001: counted and shown
                failed.append(repr(error))

    started = time.perf_counter()
    threads = [threading.Thread(target=start, args=(range(i, count, 8),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    running = len(agent.pids())
    print(f"{f'{count} processes at once':<52} {running} run, {len(failed)} failed, "
          f"{time.perf_counter() - started:.1f} s, agent {agent.resident_kib() / 1024:.1f} MiB {failed[:1]}", flush=True)
    for connection, pid in streams:
        agent.kill(pid)
        connection.connection.close()


def bench_short(agent, count: int = 10_000) -> None:
    path, before = agent.install_true(), agent.open_files()

    def run(share: int) -> None:
        with agent.another() as mine:
            for _ in range(share):
                mine.run(path)

    started = time.perf_counter()
    threads = [threading.Thread(target=run, args=(count // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    time.sleep(1)
    print(f"{f'{count} short commands':<52} {took:.1f} s, zombies {agent.zombies()!r}, descriptors {before} -> {agent.open_files()}, "
          f"agent {agent.resident_kib() / 1024:.1f} MiB", flush=True)


# A line every 10 ms, until it is killed.
TICKS = "import time\nwhile True:\n    print('some line of output', flush=True)\n    time.sleep(0.01)"
FLOOD = "while :; do echo some line of output; done"


def bench_streams(agent, name: str, *command: str, count: int = 60, seconds: int = 10) -> None:
    """What following many programs that print costs the agent itself, and what a short command waits beside them."""
    followed, lines = [], [0] * count

    def follow(index: int, stream) -> None:
        try:
            for message in stream:
                text = message["event"].get("data", {}).get("stdout", "")
                lines[index] += len(text) * 3 // 4 // 21
        except Exception:  # noqa: BLE001: its program was killed
            pass

    for index in range(count):
        connection = agent.another()
        stream = connection.start(*command)
        pid = stream.process().pid
        threading.Thread(target=follow, args=(index, stream), daemon=True).start()
        followed.append((connection, pid))
    before, seen, started = agent.processor_s(), sum(lines), time.perf_counter()
    commands = []
    while len(commands) < 30 or time.perf_counter() - started < seconds:
        commands.append(timed(lambda: agent.run("/bin/true")))
    took, spent, read = time.perf_counter() - started, agent.processor_s() - before, sum(lines) - seen
    show(f"Start of true beside {count} streams, {name}", commands)
    print(f"{f'{count} streams, {name}':<52} {read / took:8.0f} lines/s, agent {spent / took * 100:5.1f} % of a processor, "
          f"{spent / max(read, 1) * 1e6:6.1f} us a line", flush=True)
    for connection, pid in followed:
        agent.kill(pid)


def bench_agent(server, runs: int, vmm_of) -> None:
    from e2b import Sandbox
    from raw_agent import Agent

    with Sandbox.create("base", timeout=3600) as sandbox, Agent(server, sandbox, timeout=600) as agent:
        bench_starts(agent, runs)
        bench_transfers(agent, vmm_of(server, sandbox.sandbox_id))
        bench_output(agent)
        bench_short(agent)
        bench_many(agent)
        bench_streams(agent, "a line every 10 ms", "/usr/bin/python3", "-u", "-c", TICKS)
        bench_streams(agent, "as fast as they can", "/bin/sh", "-c", FLOOD)
