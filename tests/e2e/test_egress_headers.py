"""Headers that the host sets on requests of a sandbox, and secrets that never enter it: contract 7.6, rows N8, N20, N21, N23."""
import secrets as randomness
from pathlib import Path

import pytest
from conftest import eventually, is_vmm_of
from e2b import Sandbox
from egress_rig import box, curl, decided, now, python, run  # noqa: F401 (a fixture)


def test_the_header_is_set_for_exactly_that_host(net, host, box):
    box.update_network({"rules": RULES})
    # The guest trusts the sandbox's authority: no -k.
    seen = run(box, "curl -s -m 20 -H 'Authorization: mine' -H 'authorization: again' https://api.example.com/headers")
    assert seen.exit_code == 0 and '"X-Fixed": ["one"]' in seen.stdout, seen
    arrived = net.log(kind="https", host="api.example.com", target="/headers")[-1]["headers"]
    assert arrived["Authorization"] == ["Bearer " + SECRET]
    assert "Authorization" not in curl(box, "https://ok.example.com/headers").stdout
    assert "X-Fixed" not in curl(box, "https://ok.example.com/headers").stdout
    assert curl(box, "-H 'Host: api.example.com' https://ok.example.com/fronted").exit_code == 0
    assert net.log(target="/fronted")[-1]["headers"].get("Authorization") is None


def test_programs_of_every_kind_trust_it(box):
    program = "import urllib.request; print(urllib.request.urlopen('https://api.example.com/headers', timeout=20).status)"
    assert box.commands.run(f'python3 -c "{program}"', timeout=60).stdout == "200\n"
    assert "glovebox" in run(box, "openssl x509 -noout -issuer -in /usr/local/share/ca-certificates/glovebox-egress.crt").stdout.lower() or \
        run(box, "test -s /usr/local/share/ca-certificates/glovebox-egress.crt").exit_code == 0


def test_the_secret_is_nowhere_but_on_the_wire(host, box):
    sought = f"s3cr3t''-{SECRET.removeprefix('s3cr3t-')}"  # quoted so that the command does not find itself
    found = run(box, f"p=$(printf '%s' {sought}); env | grep -c \"$p\"; grep -rl \"$p\" /etc /home /run /tmp 2>/dev/null | grep -v probe.py | wc -l")
    assert found.stdout.split() == ["0", "0"], found.stdout
    assert SECRET not in host.log()
    for path in host.data.rglob("*"):
        if path.is_file() and path.suffix not in (".img", ".qcow2") and path.stat().st_size < 50 << 20:
            assert SECRET.encode() not in path.read_bytes(), path
    detail = host.request("GET", f"/sandboxes/{box.sandbox_id}")[1]
    assert SECRET not in str(detail) and "${e2b.secrets.key}" in str(detail)
    assert SECRET not in str(host.decisions(box.sandbox_id))


def test_what_cannot_be_done_safely_is_not_done(net, host, box):
    start = now()
    refused = run(box, "curl -s -m 10 http://api.example.com/plain")
    assert '"code":403' in refused.stdout and "header-rule" in refused.stdout, "a secret in plain text"
    box.update_network({"rules": {"wrong.example.org": [{"transform": {"headers": {"A": "b"}}}]}})
    wrong = run(box, "curl -s -m 20 https://wrong.example.org/wrong")
    assert '"code":502' in wrong.stdout and "certificate" in wrong.stdout, wrong
    assert decided(host, box, start, rule="upstream-tls", name="wrong.example.org")
    host.request("POST", "/secrets", {"name": "short-lived", "value": "x"})
    box.update_network({"rules": {"api.example.com": [{"transform": {"headers": {"A": "${e2b.secrets.short-lived}"}}}]}})
    assert run(box, "curl -s -m 20 https://api.example.com/lived").exit_code == 0 and net.log(target="/lived")
    secret = next(s for s in host.request("GET", "/secrets")[1] if s["name"] == "short-lived")
    host.request("DELETE", f"/secrets/{secret['secretID']}")
    assert '"code":403' in run(box, "curl -s -m 20 https://api.example.com/gone").stdout
    assert not net.log(target="/gone") and not net.log(target="/plain") and not net.log(target="/wrong")
    assert decided(host, box, start, rule="header-rule", name="api.example.com")
    box.update_network({"rules": RULES})


def test_n20_n21_streams_and_bodies_pass_as_they_are(net, box):
    box.update_network({"rules": RULES})
    seen = python(box, """
import hashlib, socket, ssl, time
c = ssl.create_default_context(cafile='/etc/ssl/certs/ca-certificates.crt')
def connect():
    return c.wrap_socket(socket.create_connection(('api.example.com', 443), 10), server_hostname='api.example.com')
s = connect(); start = time.time()
s.send(b'GET /sse HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n')
got = b''
while b'data: 0' not in got: got += s.recv(4096)
first = time.time() - start
while b'data: 4' not in got: got += s.recv(4096)
print('early' if first < time.time() - start - 1 else 'late')
s = connect(); body = bytes(range(256)) * 4000
s.send(b'POST /echo HTTP/1.1\\r\\nHost: api.example.com\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')
for at in range(0, len(body), 64000): s.sendall(b'%x\\r\\n' % len(body[at:at+64000]) + body[at:at+64000] + b'\\r\\n')
s.sendall(b'0\\r\\n\\r\\n'); got = b''
while b'\\r\\n\\r\\n' not in got or len(got.split(b'\\r\\n\\r\\n', 1)[1]) < len(body): got += s.recv(65536)
print(got.split(b'\\r\\n\\r\\n', 1)[1] == body)
s = connect()
s.send(b'GET /ws HTTP/1.1\\r\\nHost: api.example.com\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n')
got = b''
while b'\\r\\n\\r\\n' not in got: got += s.recv(4096)
s.send(b'\\x81\\x82abcd\\x00\\x00'); print(got[9:12], s.recv(8))
""").stdout.splitlines()
    assert seen == ["early", "True", r"b'101' b'\x81\x82abcd\x00\x00'"], seen
    assert net.log(target="/ws")[-1]["headers"]["Authorization"] == ["Bearer " + SECRET]


def test_rules_come_and_go_on_a_running_sandbox(box):
    box.update_network({})
    assert run(box, "test -e /usr/local/share/ca-certificates/glovebox-egress.crt").exit_code == 1
    assert "X-Fixed" not in curl(box, "https://api.example.com/headers").stdout
    assert run(box, "curl -s -m 20 https://api.example.com/headers").exit_code == 60, "nobody stands in between"
    box.update_network({"rules": RULES})
    assert '"X-Fixed": ["one"]' in run(box, "curl -s -m 20 https://api.example.com/headers").stdout
