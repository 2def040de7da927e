# SPDX-License-Identifier: Apache-2.0
"""Headers that the host sets on requests of a sandbox, and secrets that never enter it: contract 7.6, rows N8, N20, N21, N23."""
import secrets as randomness
from pathlib import Path

import pytest
from conftest import eventually, is_vmm_of
from e2b import Sandbox
from egress_rig import ALL, REFUSED, curl, decided, now, python, run

SECRET = "s3cr3t-" + randomness.token_hex(8)


def rule(**headers: str) -> list[dict]:
    return [{"transform": {"headers": headers}}]


RULES = {"api.example.com": rule(Authorization="Bearer ${e2b.secrets.key}", **{"X-Fixed": "one"})}


@pytest.fixture(scope="module", autouse=True)
def secret(host):
    status, body, _ = host.request("POST", "/secrets", {"name": "key", "value": SECRET})
    assert status == 201, body


@pytest.fixture(scope="module")
def shared(host, secret):
    sandbox = Sandbox.create("base", network={"rules": RULES}, timeout=1800, **host.connection)
    yield sandbox
    sandbox.kill()


@pytest.fixture
def box(shared):
    shared.update_network({"rules": RULES})
    return shared


def trusting(sandbox: Sandbox, *arguments: str):
    """The guest trusts the sandbox's authority: no -k."""
    return run(sandbox, "curl -s -m 20 " + " ".join(arguments))


def test_the_header_is_set_for_exactly_that_host(net, host, box):
    start = now()
    seen = trusting(box, "-H 'Authorization: mine' -H 'authorization: again' https://api.example.com/headers")
    assert seen.exit_code == 0 and '"X-Fixed": ["one"]' in seen.stdout, seen
    arrived = net.log(kind="https", host="api.example.com", target="/headers")[-1]
    assert arrived["headers"]["Authorization"] == ["Bearer " + SECRET] and arrived["sni"] == "api.example.com"
    assert decided(host, box, start, verdict="allow", name="api.example.com", port=443)
    ended = decided(host, box, start, verdict="end", name="api.example.com", port=443)
    assert ended[0]["sent"] > 100 and ended[0]["received"] > 100
    for command in ("https://ok.example.com/headers", "-H 'Host: api.example.com' https://ok.example.com/fronted",
                    "--resolve api.example.com:443:203.0.113.10 https://api.example.com/headers"):
        mark = net.mark()
        answer = curl(box, command)
        assert SECRET not in answer.stdout and "X-Fixed" not in answer.stdout, command
        assert not [line for line in net.log(mark) if SECRET in str(line)], command
    # Another host on a connection whose TLS ends here.
    mark = net.mark()
    assert '"code":403' in trusting(box, "-H 'Host: ok.example.com' https://api.example.com/turned").stdout
    assert not net.log(mark, target="/turned")


def test_n8_wildcards_of_rules_are_names_below(net, host, box):
    box.update_network({"rules": {"*.SUB.example.com": rule(Wild="yes"), "deep.sub.example.com": rule(Exact="too")}})
    for name, wild, exact in (("some.sub.example.com", True, False), ("SOME.Sub.Example.Com", True, False), ("deep.sub.example.com", True, True),
                              ("sub.example.com", False, False), ("ok.example.com", False, False)):
        shown = curl(box, f"https://{name}/headers").stdout
        assert ('"Wild": ["yes"]' in shown, '"Exact": ["too"]' in shown) == (wild, exact), (name, shown)


def test_a_rule_opens_nothing(net, box):
    box.update_network({"rules": RULES, "deny_out": [ALL], "allow_out": ["ok.example.com"]})
    mark = net.mark()
    assert curl(box, "https://api.example.com/headers").exit_code == 6
    assert curl(box, "--resolve api.example.com:443:203.0.113.14 https://api.example.com/headers").exit_code in REFUSED
    assert net.mark() == mark
    box.update_network({"rules": RULES, "deny_out": [ALL], "allow_out": ["api.example.com"]})
    assert '"X-Fixed": ["one"]' in trusting(box, "https://api.example.com/headers").stdout


def test_programs_of_every_kind_trust_it(host, box):
    program = "import urllib.request; print(urllib.request.urlopen('https://api.example.com/headers', timeout=20).status)"
    assert box.commands.run(f'python3 -c "{program}"', timeout=60).stdout == "200\n"
    assert box.commands.run("wget -q -O - https://api.example.com/headers", timeout=60).stdout
    git = run(box, "GIT_CURL_VERBOSE=1 git ls-remote https://api.example.com/x.git").stderr
    assert "HTTP/1.1 200" in git and "certificate problem" not in git, git
    # What a program finds by its own means: the bundle, OpenSSL's folder, and the variable of Node.js.
    for variables in ("-u SSL_CERT_FILE -u CURL_CA_BUNDLE", "-u CURL_CA_BUNDLE SSL_CERT_FILE=/none SSL_CERT_DIR=/etc/ssl/certs"):
        assert run(box, f"env {variables} python3 -c \"{program}\"").stdout == "200\n", variables
    assert run(box, "test -s $NODE_EXTRA_CA_CERTS && grep -c BEGIN $NODE_EXTRA_CA_CERTS").exit_code == 0


def test_clients_of_a_bigger_template_trust_it(host):
    sandbox = Sandbox.create("code-interpreter-v1", network={"rules": RULES}, timeout=600, **host.connection)
    try:
        program = "import requests; print(requests.get('https://api.example.com/headers', timeout=30).json()['headers']['X-Fixed'])"
        assert run(sandbox, f'python3 -c "{program}"', 90).stdout == "['one']\n"
    finally:
        sandbox.kill()


def test_n23_the_certificate_is_valid_for_clocks_that_are_wrong(host, box):
    seen = python(box, """
import socket, ssl, subprocess, time
def leaf():
    c = ssl.create_default_context()
    s = c.wrap_socket(socket.create_connection(('api.example.com', 443), 10), server_hostname='api.example.com')
    return s.getpeercert()
now = time.time()
cert = leaf()
print(ssl.cert_time_to_seconds(cert['notBefore']) <= now - 3600, ssl.cert_time_to_seconds(cert['notAfter']) >= now + 3600)
print(cert['subjectAltName'])
for hours in (-20, 20, 0):
    subprocess.run(['date', '-s', '@%d' % (now + hours * 3600)], check=True, stdout=subprocess.DEVNULL)
    leaf(); print('trusted')
""").stdout.splitlines()
    assert seen == ["True True", "(('DNS', 'api.example.com'),)", "trusted", "trusted", "trusted"], seen


def test_n23_the_clock_is_right_before_anything_is_asked(host):
    sandbox = Sandbox.create("base", network={"rules": RULES}, timeout=600, **host.connection)
    try:
        run(sandbox, "sudo date -s '2020-01-01'")
        sandbox.pause()
        sandbox = Sandbox.connect(sandbox.sandbox_id, **host.connection)
        assert trusting(sandbox, "https://api.example.com/generate_204 -w '%{http_code}'").stdout == "204"
    finally:
        sandbox.kill()


def ranges(pid: str, name: str) -> list[tuple[int, int]]:
    """Where a process has that file in its memory, or anything of its own."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        where, mode, _, _, _, *path = line.split(maxsplit=5)
        if "r" in mode and "w" in mode and (not path or path[0] == name or path[0].startswith("[")):
            found.append(tuple(int(end, 16) for end in where.split("-")))
    return found


def memory_has(pid: str, *sought: str) -> list[bool]:
    """Whether the memory of a machine, guest and emulator, has each text."""
    found, size = [False] * len(sought), 16 << 20
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for first, last in ranges(pid, "/vm/memory"):
            for at in range(first, last, size):
                memory.seek(at)
                try:
                    piece = memory.read(min(size + 64, last - at))
                except OSError:
                    continue
                found = [was or text.encode() in piece for was, text in zip(found, sought)]
    return found


def test_the_secret_is_nowhere_but_on_the_wire(net, host):
    """Its value is made for this test: servers that repeat it bring it into a guest, and the one here does not."""
    value, marker = "v4lue-" + randomness.token_hex(16), "m4rker-" + randomness.token_hex(16)
    name = "quiet-" + randomness.token_hex(4)
    assert host.request("POST", "/secrets", {"name": name, "value": value})[0] == 201
    sandbox = Sandbox.create("base", timeout=600, network={"rules": {"api.example.com": rule(Key="k ${e2b.secrets.%s}" % name)}}, **host.connection)
    try:
        sandbox.files.write("/tmp/marker", marker)
        for _ in range(3):
            assert trusting(sandbox, "https://api.example.com/generate_204 -w '%{http_code}'").stdout == "204"
        assert net.log(host="api.example.com", target="/generate_204")[-1]["headers"]["Key"] == ["k " + value]
        [pid] = [p.name for p in Path("/proc").glob("[0-9]*") if is_vmm_of(p.name, sandbox.sandbox_id) and "qemu" in (p / "comm").read_text()]
        assert memory_has(pid, marker, value) == [True, False]
        detail = host.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]
        in_force = host.request("GET", f"/glovebox/sandboxes/{sandbox.sandbox_id}/network")[1]
        assert value not in str(detail) + str(in_force) and "${e2b.secrets.%s}" % name in str(detail)
        assert value not in str(host.decisions(sandbox.sandbox_id)) + host.log() + str(host.request("GET", "/secrets")[1])
        assert value not in str(host.request("GET", f"/events/sandboxes/{sandbox.sandbox_id}")[1])
        sandbox.pause()
        files = [p for p in host.data.rglob("*") if p.is_file() and "base" not in p.parts]
        own = [p for p in files if sandbox.sandbox_id in p.parts]
        assert any(marker.encode() in p.read_bytes() for p in own), "what is in the guest is found in its files"
        for path in files:
            assert value.encode() not in path.read_bytes(), path
    finally:
        sandbox.kill()


def test_what_cannot_be_done_safely_is_not_done(net, host, box):
    start = now()
    refused = trusting(box, "http://api.example.com/plain")
    assert '"code":403' in refused.stdout and "header-rule" in refused.stdout, "a secret in plain text"
    box.update_network({"rules": {"wrong.example.org": rule(A="b")}})
    wrong = trusting(box, "https://wrong.example.org/wrong")
    assert '"code":502' in wrong.stdout and "certificate" in wrong.stdout, wrong
    assert decided(host, box, start, rule="upstream-tls", name="wrong.example.org")
    host.request("POST", "/secrets", {"name": "short-lived", "value": "x"})
    box.update_network({"rules": {"api.example.com": rule(A="${e2b.secrets.short-lived}")}})
    assert trusting(box, "https://api.example.com/lived").exit_code == 0 and net.log(target="/lived")
    secret = next(s for s in host.request("GET", "/secrets")[1] if s["name"] == "short-lived")
    assert host.request("POST", f"/secrets/{secret['secretID']}", {"value": "y"})[0] == 200
    assert trusting(box, "https://api.example.com/newer").exit_code == 0
    assert net.log(target="/newer")[0]["headers"]["A"] == ["y"], "a new value counts from the next request on"
    host.request("DELETE", f"/secrets/{secret['secretID']}")
    assert '"code":403' in trusting(box, "https://api.example.com/gone").stdout
    assert not net.log(target="/gone") and not net.log(target="/plain") and not net.log(target="/wrong")
    assert decided(host, box, start, rule="header-rule", name="api.example.com")


def test_n20_n21_streams_and_bodies_pass_as_they_are(net, host, box):
    start = now()
    seen = python(box, """
import hashlib, socket, ssl, time
c = ssl.create_default_context(cafile='/etc/ssl/certs/ca-certificates.crt')
def connect():
    return c.wrap_socket(socket.create_connection(('api.example.com', 443), 10), server_hostname='api.example.com')
def send(s, line, more=b''): s.sendall(line + b' HTTP/1.1\\r\\nHost: api.example.com\\r\\n' + more + b'\\r\\n')
def until(s, end):
    got = b''
    while end not in got: got += s.recv(65536)
    return got
s = connect(); start = time.time()
send(s, b'GET /sse')
got = until(s, b'data: 0')
first = time.time() - start
if b'data: 4' not in got: until(s, b'data: 4')
print('early' if first < time.time() - start - 1 else 'late')
s = connect(); body = bytes(range(256)) * 4000
send(s, b'POST /echo', b'Transfer-Encoding: chunked\\r\\n')
for at in range(0, len(body), 64000): s.sendall(b'%x\\r\\n' % len(body[at:at+64000]) + body[at:at+64000] + b'\\r\\n')
s.sendall(b'0\\r\\n\\r\\n'); got = until(s, b'\\r\\n\\r\\n')
while len(got.split(b'\\r\\n\\r\\n', 1)[1]) < len(body): got += s.recv(65536)
print(got.split(b'\\r\\n\\r\\n', 1)[1] == body)
# The same connection goes on: pieces of an answer in chunks, then two requests at once, with a body that is no text.
send(s, b'GET /chunked'); got = until(s, b'\\r\\n0\\r\\n\\r\\n')
print(b'one ' in got and b'\\xff\\0two ' in got and b'three' in got)
send(s, b'POST /echo', b'Content-Length: 4\\r\\n'); s.sendall(b'\\xff\\xfe\\0\\x80')
send(s, b'GET /last'); got = until(s, b'/last')
print(b'\\r\\n\\r\\n\\xff\\xfe\\0\\x80HTTP/1.1 200' in got)
s = connect()
send(s, b'GET /ws', b'Upgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n')
got = until(s, b'\\r\\n\\r\\n')
s.send(b'\\x81\\x82abcd\\x00\\x00'); print(got[9:12], s.recv(8))
""").stdout.splitlines()
    assert seen == ["early", "True", "True", "True", r"b'101' b'\x81\x82abcd\x00\x00'"], seen
    for target in ("/ws", "/last", "/chunked"):
        assert net.log(target=target)[-1]["headers"]["Authorization"] == ["Bearer " + SECRET]
    assert len(decided(host, box, start, verdict="allow", protocol="tcp", name="api.example.com")) >= 3
    assert any(line["received"] > 256 * 4000 for line in decided(host, box, start, verdict="end", name="api.example.com"))


def test_rules_come_and_go_on_a_running_sandbox(net, host, box):
    box.update_network({})
    assert run(box, "test -e /usr/local/share/ca-certificates/glovebox-egress.crt").exit_code == 1
    assert "X-Fixed" not in curl(box, "https://api.example.com/headers").stdout
    assert trusting(box, "https://api.example.com/headers").exit_code == 60, "nobody stands in between"
    box.update_network({"rules": RULES})
    assert '"X-Fixed": ["one"]' in trusting(box, "https://api.example.com/headers").stdout
    # A tunnel through it is cut when its rules change.
    hold = ("import socket, ssl; s = ssl.create_default_context().wrap_socket(socket.create_connection(('api.example.com', 443), 10), "
            "server_hostname='api.example.com'); s.send(b'GET /slow HTTP/1.1\\r\\nHost: api.example.com\\r\\n\\r\\n')\n"
            "print('open', flush=True)\nwhile s.recv(4096): pass")
    box.files.write("/tmp/hold.py", hold)
    handle = box.commands.run("python3 -u /tmp/hold.py > /tmp/hold.log 2>&1; echo ended >> /tmp/hold.log", background=True, timeout=0)
    eventually(lambda: "open" in run(box, "cat /tmp/hold.log").stdout)
    box.update_network({"rules": {"api.example.com": rule(Other="x")}})
    eventually(lambda: "ended" in run(box, "cat /tmp/hold.log").stdout, 10)
    handle.kill()


def test_forks_and_resumed_sandboxes_keep_their_rules_under_their_own_authority(net, host):
    sandbox = Sandbox.create("base", network={"rules": RULES}, timeout=600, **host.connection)
    certificate = "/usr/local/share/ca-certificates/glovebox-egress.crt"
    fork = None
    try:
        before = sandbox.files.read(certificate)
        fork = Sandbox.connect(sandbox.fork()[0].sandbox_id, **host.connection)
        sandbox.pause()
        sandbox = Sandbox.connect(sandbox.sandbox_id, **host.connection)
        for one in (sandbox, fork):
            assert '"X-Fixed": ["one"]' in trusting(one, "https://api.example.com/headers").stdout
        assert sandbox.files.read(certificate) == before != fork.files.read(certificate)
    finally:
        sandbox.kill()
        if fork:
            fork.kill()
