# SPDX-License-Identifier: Apache-2.0
"""Cases from the field that show only after a minute or two, X and F: hidden limits of time, and what piles up. With
GLOVEBOX_LONG_TESTS=1 silence and slow transfers last twelve minutes, transfers have 2 GiB, and short commands are /bin/true."""
import threading
import time
from pathlib import Path

import pytest
from conftest import eventually
from e2b import CommandExitException, Sandbox, TimeoutException
from e2b.exceptions import NotFoundException, SandboxNotRunningException
from elders import MIB, MINUTE, SILENCE, SLOW_PIECES
from raw_agent import Failed


def served(server, sandbox, port: int) -> bool:
    headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": str(port)}
    return server.request("GET", "/index.html", headers=headers)[:2] == (200, "served\n")


def test_x20_the_lifetime_ends_on_time_whatever_runs(server):
    """The contract's sandboxes have a lifetime that is fixed when it is set (7.1): a command does not prolong it, silence does not
    shorten it."""
    idle, busy = (Sandbox.create("base", timeout=300) for _ in range(2))
    try:
        handle = busy.commands.run("sleep 1000", background=True, timeout=0)
        begin = time.monotonic()
        for sandbox in (idle, busy):
            sandbox.set_timeout(6)
        while time.monotonic() < begin + 5:
            assert idle.is_running() and busy.is_running()
            time.sleep(0.5)
        eventually(lambda: not idle.is_running() and not busy.is_running(), 15)
        with pytest.raises(SandboxNotRunningException):
            handle.wait()
    finally:
        idle.kill()
        busy.kill()


def test_x20_a_long_silent_command_is_not_taken_for_idle(elders):
    done = elders.silent.result(SILENCE + 60)
    assert (done.stdout, done.exit_code) == (b"awake\n", 0)


def test_x3_without_a_limit_a_command_lives_until_it_is_killed(server, elders):
    """The default of 60 s is the client's own, which it sends as Connect-Timeout-Ms; 0 and no header mean none."""
    sandbox = elders.sandbox
    with pytest.raises(TimeoutException) as late:  # the limit is named where it strikes
        sandbox.commands.run("sleep 100", timeout=1)
    assert "'timeout'" in str(late.value)
    with pytest.raises(Failed) as told:
        elders.agent.run("/bin/sleep", "100", timeout_ms=500)
    assert told.value.code == "deadline_exceeded" and "time limit" in told.value.message
    elders.wait_for_age(MINUTE)
    pids = [process.pid for process in sandbox.commands.list()]
    assert {elders.watched.pid, elders.left.pid, elders.bare} <= set(pids)
    for port, handle in ((8001, elders.watched), (8002, elders.left)):
        assert served(server, sandbox, port)
        assert sandbox.commands.kill(handle.pid)
        eventually(lambda: not served(server, sandbox, port), 20)
        eventually(lambda: not sandbox.commands.kill(handle.pid), 20)
    with pytest.raises(CommandExitException) as killed:
        elders.watched.wait()
    assert killed.value.error == "signal: killed"


def test_x4_a_command_can_be_followed_as_long_as_it_lives_and_a_moment_longer(elders):
    commands = elders.sandbox.commands
    ended = commands.run("exit 7", background=True)
    eventually(lambda: ended.pid not in [process.pid for process in commands.list()], 20)
    with pytest.raises(CommandExitException) as late:
        commands.connect(ended.pid).wait()
    assert late.value.exit_code == 7
    elders.wait_for_age(125)
    with pytest.raises(NotFoundException):
        commands.connect(elders.short)
    handle = commands.connect(elders.waiting)
    commands.send_stdin(elders.waiting, "go on\n")
    with pytest.raises(CommandExitException) as now:
        handle.wait()
    assert now.value.exit_code == 5


def test_x14_ten_thousand_short_commands_leave_no_zombie(elders):
    """A quarter of them have terminals."""
    agent, files = elders.short_commands.result(1800)
    agent = agent.another()  # the server has closed the old connection if it was silent for long
    eventually(lambda: agent.zombies() == "", 20)
    assert agent.pids() == []
    eventually(lambda: agent.open_files() <= files + 40, 20)  # the ingress keeps a few connections


def test_f15_only_the_callers_own_deadline_ends_a_slow_transfer(elders):
    digest, took = elders.slow_download.result(SILENCE + 120)
    assert digest == elders.slow_hash() and took > 60
    assert elders.slow_upload.result(SILENCE + 120) > 60
    assert elders.sandbox.commands.run("sha256sum < slow-target", timeout=600).stdout.split()[0] == elders.slow_hash()
    assert elders.sandbox.files.get_info("slow-target").size == SLOW_PIECES * MIB

    with pytest.raises(Exception) as cut:
        with elders.sandbox.files.read("slow-source", format="stream", request_timeout=2) as stream:
            for _ in stream:
                time.sleep(0.1)
    assert "time" in (type(cut.value).__name__ + str(cut.value)).lower()


def test_f15_a_large_transfer_does_not_fill_the_memory(server, elders):
    size = (2048 if SLOW_PIECES > 1000 else 192) * MIB
    highest = {"server": 0, "agent": 0}
    over = threading.Event()

    def watch():
        with elders.agent.another() as agent:
            while not over.wait(0.2):
                status = Path(f"/proc/{server.process.pid}/status").read_text()
                highest["server"] = max(highest["server"], int(status.split("VmRSS:")[1].split()[0]))
                highest["agent"] = max(highest["agent"], agent.resident_kib())

    before = {"server": int(Path(f"/proc/{server.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]),
              "agent": elders.agent.resident_kib()}
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        files = elders.sandbox.files
        files.write("/home/user/large", (bytes(MIB) for _ in range(size // MIB)))
        with files.read("/home/user/large", format="stream") as stream:
            assert sum(map(len, stream)) == size
    finally:
        over.set()
        watcher.join()
        elders.sandbox.files.remove("/home/user/large")
    for who, top in highest.items():
        assert 0 < top < before[who] + (32 << 10), (who, before, highest)
