# SPDX-License-Identifier: Apache-2.0
"""A guest may destroy itself and nothing else: after each attack the server and a neighbour answer on."""

import pytest
from conftest import eventually
from e2b import CommandExitException, Sandbox


@pytest.fixture(scope="module")
def neighbour(server):
    sandbox = Sandbox.create("base", timeout=1800)
    yield sandbox
    sandbox.kill()


@pytest.fixture
def victim(server):
    sandbox = Sandbox.create("base", timeout=600)
    yield sandbox
    sandbox.kill()


def attack(sandbox, command: str, seconds: float = 20) -> None:
    """As root, ignoring how it ends: the guest may be gone before it can say anything."""
    try:
        sandbox.commands.run(command, user="root", timeout=seconds, request_timeout=seconds + 5)
    except Exception:
        pass


def assert_others_live(server, neighbour) -> None:
    assert server.request("GET", "/health", key=False)[0] == 200
    assert neighbour.commands.run("echo alive", timeout=60).stdout == "alive\n"
    assert server.process.poll() is None


def test_rm_rf_destroys_that_sandbox_alone(server, neighbour, victim):
    attack(victim, "rm -rf --no-preserve-root / 2>/dev/null", 120)
    with pytest.raises(Exception):
        victim.commands.run("ls /usr/bin", timeout=20)
    assert victim.is_running(), "the agent should still answer: it does not live on that disk"
    assert_others_live(server, neighbour)
    fresh = Sandbox.create("base", timeout=60)
    assert fresh.commands.run("ls /usr/bin/python3").exit_code == 0
    fresh.kill()


def test_a_panic_ends_the_sandbox_and_is_noticed(server, neighbour, victim):
    attack(victim, "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger", 5)
    eventually(lambda: server.request("GET", f"/sandboxes/{victim.sandbox_id}")[0] == 404, 60)
    assert not victim.is_running()
    # It is not found from the moment its end is noticed; its files go a moment later.
    eventually(lambda: not list((server.data / "sandboxes").glob(f"{victim.sandbox_id}*")), 60)
    assert_others_live(server, neighbour)


def test_a_halt_ends_the_sandbox(server, neighbour, victim):
    attack(victim, "echo b > /proc/sysrq-trigger", 5)
    eventually(lambda: server.request("GET", f"/sandboxes/{victim.sandbox_id}")[0] == 404, 60)
    assert_others_live(server, neighbour)


def test_forking_without_end(server, neighbour, victim):
    attack(victim, "bomb() { bomb | bomb & }; bomb; sleep 10", 12)
    assert_others_live(server, neighbour)


def test_allocating_without_end(server, neighbour, victim):
    attack(victim, "python3 -c 'x = []\nwhile True: x.append(bytearray(16 << 20))'", 90)
    assert_others_live(server, neighbour)
    assert victim.commands.run("echo still here", timeout=60).stdout == "still here\n"


def test_filling_the_disk(server, neighbour, victim):
    with pytest.raises(CommandExitException) as full:
        victim.commands.run("head -c 20G /dev/zero > /home/user/big", user="user", timeout=300)
    assert "space" in full.value.stderr or full.value.exit_code != 0
    assert_others_live(server, neighbour)
    assert victim.commands.run("rm -f /home/user/big; echo ok", timeout=120).stdout == "ok\n"


def test_writing_to_every_device_node(server, neighbour, victim):
    attack(victim, "for d in $(find /dev -type b -o -type c); do timeout 1 head -c 1M /dev/urandom > $d 2>/dev/null; done", 90)
    assert_others_live(server, neighbour)


def test_flooding_console_and_network(server, neighbour, victim):
    attack(victim, "timeout 5 yes > /dev/console & timeout 5 ping -f -c 20000 10.11.0.1 > /dev/null 2>&1; "
                   "python3 - <<'E'\nimport socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                   "for n in range(20000): s.sendto(b'x', ('192.168.0.1', 1 + n % 60000))\nE", 60)
    assert_others_live(server, neighbour)
    log = server.data / "sandboxes" / victim.sandbox_id / "egress.log"
    assert log.stat().st_size < 32 << 20
