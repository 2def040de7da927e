# SPDX-License-Identifier: Apache-2.0
"""A client's own proxy (contract 7.6): all TCP goes there, names as names, and nothing goes around it."""
import pytest
from e2b import Sandbox
from egress_rig import ALL, REFUSED, curl, decided, now, python, status
from internet_socks import PASSWORD, WITHOUT


def create(host, address: str, **more) -> Sandbox:
    return Sandbox.create("base", timeout=600, network={"egress_proxy": {"address": address, **more}}, **host.connection)


def test_a_proxy_of_the_clients_own(net, host):
    sandbox = create(host, "proxy.example.com:1080", username="guest", password=PASSWORD)
    try:
        mark, start = net.mark(), now()
        assert "ok.example.com" in curl(sandbox, "https://ok.example.com/proxied").stdout
        assert {"target": "ok.example.com", "port": 443}.items() <= net.log(kind="socks")[-1].items(), "it resolves the name"
        assert status(sandbox, "https://1.1.1.1/") == "301"
        assert net.log(kind="socks")[-1]["target"] == "1.1.1.1"
        assert {q["name"] for q in net.log(mark, kind="dns")} <= {"proxy.example.com"}, "names are not asked for here"
        assert python(sandbox, """
import socket
s = socket.create_connection(('203.0.113.10', 22), 10); s.settimeout(10); s.send(b'any port'); print(s.recv(100))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect(('1.1.1.1', 123))
try: s.send(b'x'); print(s.recv(1))
except OSError: print('closed')
""").stdout == "b'any port'\nclosed\n"
        assert net.log(kind="socks")[-1]["port"] == 22
        assert not net.log(mark, kind="udp") and decided(host, sandbox, start, protocol="udp", rule="proxy-only")
        assert decided(host, sandbox, start, name="ok.example.com", verdict="allow", port=443)
        assert PASSWORD not in str(host.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]) + host.log()
        sandbox.pause()
        sandbox = Sandbox.connect(sandbox.sandbox_id, **host.connection)
        assert "ok.example.com" in curl(sandbox, "https://ok.example.com/proxied").stdout
        # The rules judge before the proxy sees anything.
        sandbox.update_network({"deny_out": [ALL], "allow_out": ["ok.example.com"], "egress_proxy": {
            "address": "203.0.113.20:1081"}})
        mark = net.mark()
        assert curl(sandbox, "https://other.example.com/").exit_code == 6
        assert curl(sandbox, "https://1.1.1.1/").exit_code in REFUSED
        assert net.mark() == mark
        assert "ok.example.com" in curl(sandbox, "https://ok.example.com/without").stdout
        assert {"target": "ok.example.com", "method": WITHOUT}.items() <= net.log(kind="socks")[-1].items()
    finally:
        sandbox.kill()


@pytest.mark.parametrize("address, more", [
    ("proxy.example.com:1080", {"username": "guest", "password": "not it"}), ("proxy.example.com:1080", {}),
    ("nowhere.example.com:1080", {}), ("private.example.com:1080", {}), ("203.0.113.12:1081", {}), ("203.0.113.20:8443", {})],
    ids=["wrong-password", "no-password", "unknown", "private", "closed-by-the-operator", "no-proxy"])
def test_a_proxy_that_does_not_do_it_is_no_way_out(net, host, address, more):
    sandbox = create(host, address, **more)
    try:
        mark = net.mark()
        for url in ("https://ok.example.com/", "https://8.8.8.8/"):
            assert curl(sandbox, url).exit_code in REFUSED, url
        assert curl(sandbox, "telnet://1.1.1.1:22").exit_code != 0
        kinds = {line["kind"] for line in net.log(mark)} - {"dns"}
        assert kinds <= {"socks-connection", "tcp"} and not net.log(mark, kind="tcp", port=22), net.log(mark)
        assert not net.log(mark, kind="dns", name="ok.example.com")
    finally:
        sandbox.kill()
