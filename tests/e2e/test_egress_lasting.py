# SPDX-License-Identifier: Apache-2.0
"""What of a sandbox's network lasts, and what the operator's ceiling is worth: contract 7.6, row N30 of the field cases."""
from pathlib import Path

from conftest import eventually, is_vmm_of
from e2b import Sandbox
from egress_rig import ALL, REFUSED, curl, decided, now, run, status


def test_rules_last_over_pause_restart_and_fork(net):
    server = net.serve()
    sandbox = Sandbox.create("base", network={"allow_out": ["ok.example.com"], "deny_out": [ALL]}, timeout=900, **server.connection)
    try:
        def holds(one: Sandbox) -> bool:
            return ("ok.example.com" in curl(one, "https://ok.example.com/").stdout and curl(one, "https://other.example.com/").exit_code == 6
                    and curl(one, "https://1.1.1.1/").exit_code in REFUSED)

        assert holds(sandbox)
        sandbox.pause()
        sandbox = Sandbox.connect(sandbox.sandbox_id, **server.connection)
        assert holds(sandbox)
        sandbox.commands.run("(while sleep 0.2; do curl -sk -m 2 https://other.example.com/leak; curl -sk -m 2 https://1.1.1.1/leak; "
                             "curl -sk -m 2 http://203.0.113.11:8443/leak; done)", background=True, timeout=0)
        mark = net.mark()
        server.kill_hard()
        lost = net.mark()
        assert net.from_host("sleep", "2").returncode == 0
        assert net.mark() == lost, "without a server nothing is resolved or proxied"
        server.start()
        sandbox = Sandbox.connect(sandbox.sandbox_id, **server.connection)
        assert holds(sandbox)
        assert not net.log(mark, target="/leak") and not net.log(mark, kind="tcp")
        fork = Sandbox.connect(sandbox.fork()[0].sandbox_id, **server.connection)
        assert holds(fork)
        fork.update_network({})
        assert status(fork, "https://1.1.1.1/") == "301"
        assert holds(sandbox), "each has its own"
        fork.kill()
        sandbox.kill()
        lines = server.decisions(sandbox.sandbox_id)
        assert any(d.get("verdict") == "deny" and d.get("name") == "other.example.com" for d in lines), "kept after it is gone"
    finally:
        server.close()


def test_connections_by_name_end_with_the_server_and_those_by_address_go_on(net):
    server = net.serve()
    sandbox = Sandbox.create("base", timeout=600, **server.connection, network={
        "deny_out": [ALL], "allow_out": ["203.0.113.11", "ok.example.com"]})
    try:
        sandbox.files.write("/tmp/hold.py", """
import os, socket, ssl, time
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
named = c.wrap_socket(socket.create_connection(('203.0.113.10', 443), 10), server_hostname='ok.example.com')
named.send(b'GET /slow HTTP/1.1\\r\\nHost: ok.example.com\\r\\n\\r\\n'); named.settimeout(0.05)
s = socket.create_connection(('203.0.113.11', 22), 5); s.settimeout(10)
rounds, state = 0, 'named'
while True:
    s.send(b'x'); s.recv(1); rounds += 1
    try:
        if state == 'named' and not named.recv(4096): state = 'ended'
    except TimeoutError: pass
    except OSError: state = 'ended'
    open('/tmp/new', 'w').write(f'{state} {rounds}'); os.rename('/tmp/new', '/tmp/held'); time.sleep(0.05)
""")
        sandbox.commands.run("python3 /tmp/hold.py", background=True, timeout=0)

        def held() -> tuple[str, int]:
            state, rounds = (run(sandbox, "cat /tmp/held").stdout or "none 0").split()
            return state, int(rounds)

        assert eventually(lambda: held()[1] > 10)
        assert held()[0] == "named"
        server.kill_hard()
        server.start()
        sandbox = Sandbox.connect(sandbox.sandbox_id, **server.connection)
        assert eventually(lambda: held()[0] == "ended")
        rounds = held()[1]
        assert eventually(lambda: held()[1] > rounds + 10)
        assert status(sandbox, "https://ok.example.com/") == "200"
        sandbox.kill()
    finally:
        server.close()


def test_a_closed_server_opens_what_its_operator_lists(net):
    server = net.serve("mode = 'closed'\nopen = ['ok.example.com', '8.8.8.8']\nclosed = ['*.sub.example.com']\n")
    try:
        sandbox = Sandbox.create("base", network={"allow_out": [ALL]}, timeout=600, **server.connection)
        assert "ok.example.com" in curl(sandbox, "https://ok.example.com/").stdout
        assert status(sandbox, "https://8.8.8.8") == "302"
        mark, start = net.mark(), now()
        assert curl(sandbox, "https://1.1.1.1/").exit_code in REFUSED
        for name in ("other.example.com", "deep.sub.example.com"):
            assert curl(sandbox, f"https://{name}/").exit_code == 6
        assert net.mark() == mark
        assert decided(server, sandbox, start, name="other.example.com", rule="closed")
        sandbox.update_network({"deny_out": ["8.8.8.8"]})
        assert curl(sandbox, "https://8.8.8.8").exit_code in REFUSED, "clients choose among what is open"
        sandbox.kill()
    finally:
        server.close()


def test_a_server_that_is_closed_lets_nothing_out_whatever_clients_say(net):
    server = net.serve("", "--egress", "closed")
    try:
        networks = ({"allow_out": [ALL, "ok.example.com"], "deny_out": [ALL]}, {}, {"allow_out": [ALL, "1.1.1.1"]},
                    {"egress_proxy": {"address": "203.0.113.20:1081"}},
                    {"rules": {"ok.example.com": [{"transform": {"headers": {"A": "b"}}}]}})
        sandbox = Sandbox.create("base", network=networks[0], timeout=600, **server.connection)
        start, mark = now(), net.mark()
        for network in networks:
            sandbox.update_network(network)
            assert curl(sandbox, "https://ok.example.com/").exit_code == 6, network
            for url in ("https://8.8.8.8/", "http://203.0.113.10:8443/"):
                assert curl(sandbox, url).exit_code in REFUSED, (url, network)
            assert curl(sandbox, "--resolve ok.example.com:443:203.0.113.10", "https://ok.example.com/").exit_code in REFUSED, network
            udp = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'x', ('1.1.1.1', 123)); s.sendto(b'x', ('8.8.8.8', 443))"
            run(sandbox, f'python3 -c "{udp}"')
        assert net.mark() == mark, net.log(mark)
        rules = {d["rule"] for d in decided(server, sandbox, start, verdict="deny")}
        assert rules <= {"closed", "no-name", "proxy-only"} and "closed" in rules, rules
        sandbox.kill()
    finally:
        server.close()


def test_n30_nothing_of_a_client_reaches_what_decides(net, host):
    """Environments of a sandbox are of its programs; neither the server nor the machine has any of it."""
    envs = {"SSL_CERT_FILE": "/none", "HTTPS_PROXY": "http://203.0.113.12:80", "ALL_PROXY": "socks5://203.0.113.12:1081",
            "LD_PRELOAD": "", "RES_OPTIONS": "attempts:9", "OPENSSL_CONF": "/none", "GLOVEBOX_TENANT_MARK": "mine"}
    rules = {"wrong.example.org": [{"transform": {"headers": {"A": "b"}}}], "api.example.com": [{"transform": {"headers": {"A": "b"}}}]}
    sandbox = Sandbox.create("base", envs=envs, network={"rules": rules}, timeout=600, **host.connection)
    try:
        assert "mine" in run(sandbox, "env").stdout
        bundle = "--noproxy '*' --cacert /etc/ssl/certs/ca-certificates.crt"
        assert '"A": ["b"]' in run(sandbox, f"curl -s -m 20 {bundle} https://api.example.com/").stdout
        assert '"code":502' in run(sandbox, f"curl -s -m 20 {bundle} https://wrong.example.org/").stdout, "verified all the same"
        # Another program of the sandbox's own choice of proxy is judged like any connection.
        mark = net.mark()
        assert run(sandbox, "curl -sk -m 10 https://ok.example.com/").exit_code != 0
        assert not [line for line in net.log(mark) if line["kind"] != "dns"]
        machines = [p.name for p in Path("/proc").glob("[0-9]*") if is_vmm_of(p.name, sandbox.sandbox_id)]
        assert machines
        for pid in (str(host.process.pid), *machines):
            assert b"GLOVEBOX_TENANT_MARK" not in Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
    finally:
        sandbox.kill()
