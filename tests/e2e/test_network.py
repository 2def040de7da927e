# SPDX-License-Identifier: Apache-2.0
"""Where code may go: closed sandboxes reach nothing, open ones only the outside, and every attempt is one line."""
import ipaddress
import socket
import subprocess

import pytest
from conftest import eventually
from e2b import CommandExitException, Sandbox


def reaches(sandbox, command: str) -> bool:
    try:
        return sandbox.commands.run(command, timeout=60, user="root").exit_code == 0
    except CommandExitException:
        return False


def host_of(url: str) -> str:
    return url.split("/")[2].split(":")[0]


TCP = "curl -sS --max-time 10 {}"
# each way out, and what its line must say
WAYS = {
    "tcp": ("curl -sS --max-time 10 http://{host}:8080/", "tcp"),
    "udp": ("python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3); "
            "s.connect(('{host}', 9)); s.send(b'x'); s.recv(1)\"", "udp"),
    "icmp": ("ping -c 1 -W 2 {host}", "icmp"),
    "dns": ("python3 -c \"import socket; socket.gethostbyname('example.com')\"", "dns"),
    "ipv6": ("ip -6 addr add 2001:db8::2/64 dev eth0 nodad; ip -6 route add default dev eth0; "
             "ip -6 neigh add 2001:db8::9 lladdr 02:67:62:00:00:01 dev eth0; "
             "curl -6 -sS --max-time 3 'http://[2001:db8::9]:80/'", "tcp"),
}


@pytest.mark.parametrize("options", [{"allow_internet_access": False}, {"network": {"deny_out": ["0.0.0.0/0"]}}],
                         ids=["no-internet-access", "deny-all"])
def test_n13_a_closed_sandbox_reaches_nothing_and_each_attempt_is_a_line(server, internet, options):
    sandbox = Sandbox.create("base", timeout=300, **options)
    try:
        host = host_of(internet)
        for way, (command, protocol) in WAYS.items():
            before = len(server.decisions(sandbox.sandbox_id))
            assert not reaches(sandbox, command.replace("{host}", host)), way
            lines = eventually(lambda: server.decisions(sandbox.sandbox_id)[before:], 10)
            assert all(line["verdict"] == "deny" for line in lines), (way, lines)
            assert any(line["protocol"] == protocol for line in lines), (way, lines)
        blocked = [line for line in server.decisions(sandbox.sandbox_id)
                   if line["protocol"] == "tcp" and line["address"] == host]
        assert len(blocked) == 1 and blocked[0]["port"] == 8080
    finally:
        sandbox.kill()


def test_n12_an_open_sandbox_reaches_the_outside_and_nothing_private(server, internet, base):
    host = host_of(internet)
    assert reaches(base, TCP.format(internet))
    assert reaches(base, f"ping -c 1 -W 2 {host}")
    # the host itself, at the address that it has on the way to the internet, with somebody listening there
    host_side = host.rsplit(".", 1)[0] + "." + str(int(host.rsplit(".", 1)[1]) - 1)
    sibling = Sandbox.create("base", timeout=300)
    try:
        with socket.create_server((host_side, 0)) as listener:
            port = listener.getsockname()[1]
            socket.create_connection((host_side, port), timeout=5).close()
            # a sibling's slot is the other end of one of the host's links
            ends = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True).stdout
            siblings = [str(ipaddress.ip_interface(line.split()[3]).ip + 1) for line in ends.splitlines()
                        if line.split()[1].startswith("gb")]
            assert len(siblings) >= 2
            places = ["10.11.0.1:22", "169.254.169.254:80", "192.168.1.1:80", "172.16.0.1:80", "100.64.0.1:80",
                      f"{host_side}:{port}", *(f"{address}:49983" for address in siblings)]
            for place in places:
                assert not reaches(base, TCP.replace("--max-time 10", "--max-time 4").format(f"http://{place}/")), place
        lines = server.decisions(base.sandbox_id)
        closed = {line["address"] for line in lines if line["verdict"] == "deny"}
        assert {place.split(":")[0] for place in places} <= closed
        assert any(line["verdict"] == "allow" and line["address"] == host for line in lines)
    finally:
        sibling.kill()


def test_n18_allow_beats_deny_and_needs_no_name(server, internet):
    host = host_of(internet)
    sandbox = Sandbox.create("base", timeout=300, network={"allow_out": [f"{host}/32"], "deny_out": ["0.0.0.0/0"]})
    try:
        assert reaches(sandbox, TCP.format(internet))
        assert not reaches(sandbox, TCP.format("http://203.0.113.250:80/"))
    finally:
        sandbox.kill()


def test_what_cannot_be_enforced_is_refused(server):
    before = server.request("GET", "/v2/sandboxes")[1]
    for network, status in (({"denyOut": ["example.com"]}, 400), ({"allowOut": ["*.example.com"]}, 400),
                            ({"denyOut": ["0.0.0.0/0", "x"]}, 400), ({"dnsServers": ["8.8.8.8"]}, 400),
                            ({"rules": {"a.com": [{"transform": {"body": "x"}}]}}, 400)):
        got, body, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base", "network": network})
        assert got == status and body["code"] == status, (network, body)
    assert server.request("GET", "/v2/sandboxes")[1] == before
