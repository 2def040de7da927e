# SPDX-License-Identifier: Apache-2.0
"""Names decide: rows N1, N3, N4, N8, N15, N16, N21 of the field cases, contract 7.6. What the guest sees, what reaches the internet
behind the host, and what the decision log says must agree."""
import pytest
from conftest import eventually
from egress_rig import ALL, REFUSED, box, curl, decided, listed, now, python, run, status  # noqa: F401 (fixtures)

# query(name, type, server, tcp) of a guest that asks by itself: the code of the answer and what it has of each type.
ASK = """
import socket, struct
def skip(a, at):
    while a[at] and a[at] < 192: at += 1 + a[at]
    return at + (2 if a[at] else 1)
def query(name, kind=1, server='1.1.1.1', tcp=False):
    q = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b''.join(bytes([len(p)]) + p.encode() for p in name.split('.')) + b'\\0' + struct.pack('>HH', kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM); s.settimeout(12); s.connect((server, 53))
    s.send((struct.pack('>H', len(q)) if tcp else b'') + q)
    a = s.recv(1400)[2 if tcp else 0:]
    at, kinds = skip(a, 12) + 4, []
    for _ in range(struct.unpack('>H', a[6:8])[0]):
        at = skip(a, at); kinds.append(struct.unpack('>H', a[at:at + 2])[0]); at += 10 + struct.unpack('>H', a[at + 8:at + 10])[0]
    return a[3] & 15, kinds
"""


def test_n1_denied_names_are_not_asked_for(net, host, listed):
    start, mark = now(), net.mark()
    program = "import socket\ntry: print(socket.gethostbyname('secret.evil.example.net'))\nexcept OSError as e: print('none')"
    assert python(listed, program, "user").stdout == "none\n"
    # Whatever server is asked directly, over UDP and TCP, it is ours that answers.
    answer = python(listed, ASK + """
for server in ('1.1.1.1', '203.0.113.99', '192.168.0.1'):
    for tcp in (False, True):
        print(query('exfil.evil.example.net', 1, server, tcp), query('ok.example.com', 1, server, tcp))
""").stdout
    assert answer == "(3, []) (0, [1])\n" * 6
    assert not [q for q in net.log(mark, kind="dns") if "evil" in q["name"]], "no question about it has left"
    lines = decided(host, listed, start, protocol="dns", name="exfil.evil.example.net")
    assert len(lines) == 6
    assert {d["rule"] for d in lines} == {"deny 0.0.0.0/0"} and {d["verdict"] for d in lines} == {"deny"}
    allowed = decided(host, listed, start, protocol="dns", name="ok.example.com")
    assert {(d["verdict"], d["rule"], d["question"]) for d in allowed} == {("allow", "allow ok.example.com", "A")}


def test_what_kinds_of_questions_are_answered(net, host, listed):
    """Hints of HTTPS records and IPv6 addresses would lead around the rules; whole zones are nobody's business."""
    start, mark = now(), net.mark()
    seen = python(listed, ASK + """
for name, kind in (('ok.example.com', 16), ('ok.example.com', 28), ('ok.example.com', 65), ('ok.example.com', 255), ('ok.example.com', 252),
                   ('alias.example.com', 1), ('loop.example.com', 1), ('any.sub.example.com', 1)):
    print(kind, query(name, kind, tcp=kind == 252))
""").stdout.splitlines()
    assert seen[:6] == ["16 (0, [16])", "28 (0, [])", "65 (0, [])", "255 (5, [])", "252 (5, [])", "1 (0, [5, 1])"], seen
    assert seen[6] in ("1 (2, [])", "1 (3, [])"), seen
    assert seen[7] == "1 (0, [1])"
    assert {q["type"] for q in net.log(mark, kind="dns")} <= {1, 16}
    assert decided(host, listed, start, name="ok.example.com", question="TXT", verdict="allow")


def test_a_slow_name_keeps_no_other_waiting(listed):
    seen = python(listed, ASK + """
import threading, time
ended = {}
def ask(name):
    ended[name] = None
    answer = query(name)
    ended[name] = (time.monotonic(), answer)
slow = threading.Thread(target=ask, args=('slow.example.com',)); slow.start()
time.sleep(0.3); ask('other-%d.sub.example.com' % time.time_ns()); slow.join()
(_, (code, kinds)), (at_quick, quick) = ended.pop('slow.example.com'), next(iter(ended.values()))
print(quick, code in (0, 2))
print('before' if at_quick < time.monotonic() - 1 else 'after')
""").stdout
    assert seen == "(0, [1]) True\nbefore\n"


def test_n3_an_address_that_is_not_of_the_name(net, host, listed):
    start = now()
    ok = curl(listed, "https://ok.example.com/N3")
    assert '"path": "/N3"' in ok.stdout
    assert decided(host, listed, start, verdict="allow", name="ok.example.com", port=443)[0]["rule"] == "allow ok.example.com"
    for there in ("203.0.113.11", "1.1.1.1"):
        mark = net.mark()
        assert curl(listed, f"--resolve ok.example.com:443:{there}", "https://ok.example.com/N3-spoofed").exit_code in REFUSED
        assert "not-of-name" in curl(listed, f"--resolve ok.example.com:80:{there}", "http://ok.example.com/N3-spoofed").stdout
        assert len(decided(host, listed, start, address=there, rule="not-of-name", name="ok.example.com")) == 2
        assert not [line for line in net.log(mark) if line["kind"] != "dns"], "nobody was connected to"


def test_n4_no_name_is_a_reason(net, host, listed):
    start, mark = now(), net.mark()
    raw = """
import socket, sys
for port, data in ((443, b'SSH-2.0-x\\r\\n'), (80, b'hello there\\r\\n\\r\\n'), (80, b'GET / HTTP/1.1\\r\\n\\r\\n'), (80, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'),
                   (443, b''), (80, b'')):
    s = socket.create_connection(('203.0.113.10', port), 5); s.settimeout(40); s.send(data)
    if not data: s.shutdown(socket.SHUT_WR)
    try: got = s.recv(100)
    except ConnectionResetError: got = b'reset'
    print(got[:12])
"""
    seen = python(listed, raw).stdout.splitlines()
    assert seen[0] == "b'reset'"
    assert all(line in ("b'reset'", "b''") or line.startswith("b'HTTP/1.1 40") for line in seen[1:]) and len(seen) == 6, seen
    assert curl(listed, "https://203.0.113.10/").exit_code in REFUSED  # TLS without a name
    assert len(decided(host, listed, start, rule="no-name", address="203.0.113.10")) >= 5
    assert net.mark() == mark


def test_n8_wildcards(host, listed):
    start = now()
    assert "deep.sub.example.com" in curl(listed, "https://deep.sub.example.com/").stdout
    assert "DEEP.Sub.Example.COM" in curl(listed, "https://DEEP.Sub.Example.COM/").stdout
    assert curl(listed, "https://sub.example.com/").exit_code == 6
    assert decided(host, listed, start, verdict="allow", protocol="tcp", name="deep.sub.example.com")[0]["rule"] == "allow *.sub.example.com"
    assert decided(host, listed, start, verdict="deny", protocol="dns", name="sub.example.com")[0]["rule"] == "deny 0.0.0.0/0"
    listed.update_network({"deny_out": [ALL], "allow_out": ["*"]})
    assert "sub.example.com" in curl(listed, "https://sub.example.com/").stdout
    assert curl(listed, "https://1.1.1.1/").exit_code in REFUSED, "every name is not every address"


def test_n15_n16_one_spelling_decides(net, host, listed):
    """Paths are not judged, hosts are: whatever surrounds the name."""
    assert "/a/../b%2e%2e" in curl(listed, "--path-as-is http://ok.example.com/a/../b%2e%2e").stdout
    start, mark = now(), net.mark()
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
for host in hosts:
    attempt(b'GET /N16 HTTP/1.1\\r\\nHost: ' + host)
for line in (b'GET http://evil.example.net/N16', b'CONNECT evil.example.net:443'):
    attempt(line + b' HTTP/1.1\\r\\nHost: ok.example.com')
""").stdout.split()
    assert set(seen) <= {"400", "403", "reset"} and len(seen) == 14, seen
    assert net.mark() == mark
    assert decided(host, listed, start, rule="invalid-name")
    for argument in ("ok.example.com.", "b\u00fccher.example", "evil\u3002com", "1.2.3.256", "*.*.com"):
        with pytest.raises(Exception, match="invalid allowed"):
            listed.update_network({"allow_out": [argument], "deny_out": [ALL]})


def test_n16_names_in_tls_have_one_spelling_too(net, host, listed):
    """Hellos that say a name in an odd way, made by hand: no library sends them."""
    start, mark = now(), net.mark()
    seen = python(listed, """
import socket, struct
def hello(*names):
    listed = b''.join(b'\\0' + struct.pack('>H', len(n)) + n for n in names)
    sni = struct.pack('>HHH', 0, len(listed) + 2, len(listed)) + listed
    more = bytes.fromhex('000a000400020017' '000d0006000404030804' '002b0003020303')
    body = b'\\3\\3' + bytes(32) + b'\\0' + b'\\0\\2\\xc0\\x2b' + b'\\1\\0' + struct.pack('>H', len(sni + more)) + sni + more
    return b'\\x16\\3\\1' + struct.pack('>H', len(body) + 4) + b'\\1' + struct.pack('>I', len(body))[1:] + body
def attempt(data):
    s = socket.create_connection(('203.0.113.10', 443), 5); s.settimeout(20); s.send(data)
    try: return s.recv(1)
    except ConnectionResetError: return 'reset'
print(attempt(hello(b'ok.example.com')))
for names in ((b'evil.example.net\\0.ok.example.com',), (b'ok.example.com\\0',), (b'ok.example.com.',), (b'evil.example.net', b'ok.example.com'),
              (b'',), (b'203.0.113.10',), ('b\\u00fccher.example'.encode(),), (b'*.sub.example.com',), (b'a' * 300 + b'.sub.example.com',)):
    print(attempt(hello(*names)))
""").stdout.splitlines()
    assert seen == [r"b'\x16'"] + ["reset"] * 9, seen
    assert [line["sni"] for line in net.log(mark, kind="hello")] == ["ok.example.com"]
    assert len(decided(host, listed, start, verdict="deny", protocol="tcp", address="203.0.113.10")) >= 9


def test_n21_h2c_and_pipelining_do_not_escape(net, host, listed):
    """As far as requests go: each is judged by its own Host and framed anew."""
    start = now()
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
    assert decided(host, listed, start, verdict="allow", protocol="tcp", name="ok.example.com", port=80)
    assert decided(host, listed, start, verdict="deny", protocol="tcp", name="evil.example.net", port=80)[0]["rule"] == "deny 0.0.0.0/0"


def test_n21_a_request_that_can_be_read_in_two_ways_is_not_sent(net, listed):
    mark = net.mark()
    seen = python(listed, """
import socket
hidden = b'GET /smuggled HTTP/1.1\\r\\nHost: evil.example.net\\r\\n\\r\\n'
n = str(len(hidden)).encode()
for head in (b'Content-Length: ' + n + b'\\r\\nTransfer-Encoding: chunked', b'Content-Length: 0\\r\\nContent-Length: ' + n, b'Transfer-Encoding: xchunked',
             b'Transfer-Encoding : chunked', b'X: a\\r\\n b: c', b'X: a\\nHost: evil.example.net', b'Content-Length: +' + n, b'Transfer-Encoding: chunked, identity'):
    s = socket.create_connection(('203.0.113.10', 80), 5); s.settimeout(20)
    s.send(b'POST /outer HTTP/1.1\\r\\nHost: ok.example.com\\r\\n' + head + b'\\r\\n\\r\\n' + hidden)
    try: print(s.recv(12)[9:12].decode() or 'reset')
    except OSError: print('reset')
""").stdout.split()
    assert set(seen) <= {"400", "reset"} and len(seen) == 8, seen
    assert not net.log(mark, target="/smuggled") and not net.log(mark, target="/outer")


def test_a_name_that_turns_private(net, host, listed):
    """Rebinding: what the name has become is not told to the guest and not gone to; what it was told stays usable."""
    name = "a1.rebind.example.com"
    assert "203.0.113.10" in run(listed, f"getent ahostsv4 {name}").stdout
    assert eventually(lambda: run(listed, f"getent ahostsv4 {name}").exit_code == 2, 20), "private from the second answer on"
    assert decided(host, listed, name=name, rule="private")
    mark = net.mark()
    for there in ("10.0.0.5", "127.0.0.1", "169.254.169.254"):
        assert curl(listed, f"--resolve {name}:443:{there}", f"https://{name}/rebound").exit_code in REFUSED
    assert decided(host, listed, address="10.0.0.5", port=443, verdict="deny")[0]["rule"] == "private"
    assert not [line for line in net.log(mark) if line["kind"] != "dns"]
    assert "/kept" in curl(listed, f"--resolve {name}:443:203.0.113.10", f"https://{name}/kept").stdout


def test_a_name_that_the_guest_did_not_ask_for_is_asked_for_by_the_host(net, host, listed):
    """The guest knows an address from elsewhere; between then and now the name has turned."""
    mark = net.mark()
    assert "/known" in curl(listed, "--resolve a2.rebind.example.com:443:203.0.113.10", "https://a2.rebind.example.com/known").stdout
    assert net.log(mark, kind="dns", name="a2.rebind.example.com")
    for turned in ("a3.rebind.example.com", "a3.moves.example.com"):
        for _ in range(2):  # as the world sees it, the name has turned
            net.from_host("python3", "-c", ASK + f"query('{turned}', 1, '203.0.113.53')")
        mark = net.mark()
        assert curl(listed, f"--resolve {turned}:443:203.0.113.10", f"https://{turned}/turned").exit_code in REFUSED
        assert not [line for line in net.log(mark) if line["kind"] != "dns"]
        assert decided(host, listed, name=turned, verdict="deny", port=443)[0]["rule"] == "not-of-name"
    assert "/moved" in curl(listed, "https://a3.moves.example.com/moved").stdout, "to where it is now"


def test_a_name_that_leads_to_a_private_one(host, listed):
    start = now()
    for name in ("private.example.com", "meta.example.com", "inward.example.com"):
        assert curl(listed, f"http://{name}/").exit_code == 6
        assert decided(host, listed, start, name=name, verdict="deny")[0]["rule"] == "private"
    assert status(listed, "https://mixed.example.com/") == "200", "by its public address"
