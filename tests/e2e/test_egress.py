# SPDX-License-Identifier: Apache-2.0
"""Where the code of a sandbox can go by address, tried from inside with real sockets: rows N6, N10, N12, N13, N18 of the field cases,
contract 7.6. What the guest sees, what reaches the internet behind the host, and what the decision log says must agree."""
import json
import os
import threading
import time

from conftest import eventually
from e2b import Sandbox
from egress_rig import ALL, LISTED, REFUSED, box, curl, decided, listed, now, python, run, status  # noqa: F401 (fixtures)
from internet import WAN


def test_the_internet_answers_the_host(net):
    """The control: without it, what fails in a sandbox would prove nothing."""
    for url, code in (("https://1.1.1.1", "301"), ("https://8.8.8.8", "302")):
        assert net.from_host("curl", "-sk", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", url).stdout == code
    evil = net.from_host("curl", "-sk", "-m", "5", "--resolve", "evil.example.net:443:203.0.113.12", "https://evil.example.net/")
    assert "evil.example.net" in evil.stdout
    echo = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(5); s.sendto(b'x', ('1.1.1.1', 123)); print(s.recv(1))"
    assert net.from_host("python3", "-c", echo).stdout == "b'x'\n"


def test_an_open_sandbox_reaches_it(net, host, box):
    box.update_network({})
    start, mark = now(), net.mark()
    assert status(box, "https://1.1.1.1") == "301" and status(box, "https://8.8.8.8") == "302"
    assert status(box, "https://connectivitycheck.gstatic.com/generate_204") == "204"
    assert "evil.example.net" not in curl(box, "https://evil.example.net/").stdout, "the operator's word is above an open policy"
    assert python(box, """
import socket
s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(5); s.connect(('1.1.1.1', 123)); s.send(b'udp'); print(s.recv(9))
s = socket.create_connection(('203.0.113.11', 853), 5); s.send(b'tcp'); print(s.recv(9))
s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(5); s.connect(('1.1.1.1', 443))
try: s.send(b'quic'); print(s.recv(9))
except OSError: print('closed')
""").stdout == "b'udp'\nb'tcp'\nclosed\n"
    assert net.log(mark, kind="udp", port=123) and net.log(mark, kind="tcp", port=853)
    # The operator has closed a name, and QUIC does not say names.
    assert decided(host, box, start, protocol="udp", address="1.1.1.1", port=443)[0]["rule"] == "udp-closed"
    assert decided(host, box, start, verdict="allow", address="203.0.113.11", port=853)[0]["rule"] == "default"
    assert decided(host, box, start, verdict="allow", protocol="udp", address="1.1.1.1", port=123)[0]["rule"] == "default"


def test_n6_udp_and_quic_under_name_rules(net, host, listed):
    start, mark = now(), net.mark()
    seen = python(listed, """
import socket
for address, port in (('203.0.113.12', 443), ('8.8.8.8', 443), ('203.0.113.10', 443), ('1.1.1.1', 123)):
    s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(2); s.connect((address, port))
    try: s.send(b'x'); print(s.recv(5))
    except OSError as e: print(type(e).__name__)
# TCP that is denied by its address is refused at once, and never looks open.
for address, port in (('203.0.113.10', 22), ('203.0.113.10', 8443), ('203.0.113.12', 443)):
    try: socket.create_connection((address, port), 5); print('open')
    except OSError as e: print(type(e).__name__)
""").stdout.splitlines()
    assert "b'x'" not in seen and seen[4:] == ["ConnectionRefusedError"] * 3, seen
    assert net.mark() == mark
    assert decided(host, listed, start, protocol="udp", address="8.8.8.8")[0]["rule"] == "udp-closed"
    assert decided(host, listed, start, protocol="tcp", port=8443)[0]["rule"] == "deny 0.0.0.0/0"


def test_n10_no_second_family(host, box):
    box.update_network({})
    start = now()
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
    for address in ("10.0.0.1", "169.254.169.254"):
        assert decided(host, box, start, address=address, port=80)[0]["rule"] == "private"


def test_n10_mapped_addresses_are_what_they_map_to(net, host, listed):
    start, mark = now(), net.mark()
    assert python(listed, """
import socket
for address, port in (('::ffff:1.1.1.1', 22), ('::ffff:203.0.113.12', 8443), ('::ffff:8.8.8.8', 22)):
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM); s.settimeout(5)
    try: s.connect((address, port)); print('open')
    except OSError: print('closed')
""").stdout.split() == ["closed", "closed", "open"]
    assert decided(host, listed, start, address="1.1.1.1", port=22)[0]["verdict"] == "deny"
    assert len(net.log(mark, kind="tcp")) == 1


def test_n12_what_nobody_opens(net, host, box):
    box.update_network({"allow_out": [ALL, "10.0.0.0/8", "169.254.169.254"]})
    other = Sandbox.create("base", timeout=300, **host.connection)
    try:
        links = json.loads(net.from_host("ip", "-4", "-j", "addr").stdout)
        slots = [a["local"] for link in links if link["ifname"].startswith("gb") for a in link["addr_info"]]
        assert len(slots) >= 2, "of this sandbox and of the other"
        siblings = [".".join([*slot.split(".")[:3], str(int(slot.split(".")[3]) + 1)]) for slot in slots]
        start, mark = now(), net.mark()
        private = ["169.254.169.254", "10.0.0.1", "10.11.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.2", "224.0.0.1", "240.0.0.1"]
        port_of_the_api = int(host.url.rsplit(":", 1)[1])
        assert python(box, f"""
import socket
tried = [(address, port) for address in {[*private, *WAN, net.api, "203.0.113.12"]} for port in (80, 443, 22)]
tried += [(address, 49983) for address in {[*slots, *siblings]}] + [(address, {port_of_the_api}) for address in {[*slots, net.api, WAN[0]]}]
for address, port in tried:
    s = socket.socket(); s.settimeout(1)
    try: s.connect((address, port)); print(address, port)
    except OSError: pass
""").stdout.split("\n") == [f"{WAN[1]} {port}" for port in (80, 443, 22)] + [""], "the internet's own end of the wire is public"
        assert {line["address"] for line in net.log(mark, kind="connection")} <= {WAN[1]}
        assert decided(host, box, start, address="169.254.169.254", port=80)[0]["rule"] == "private"
        assert decided(host, box, start, address="203.0.113.12", port=443)[0]["rule"] == "closed 203.0.113.12"
        assert decided(host, box, start, address=siblings[0], port=49983)[0]["verdict"] == "deny"
    finally:
        other.kill()
    for name in ("private.example.com", "meta.example.com"):
        assert curl(box, f"http://{name}/").exit_code == 6, "names of private addresses have none"
        assert decided(host, box, start, name=name, verdict="deny")[0]["rule"] == "private"
    assert curl(box, "https://x.closed.example.com/").exit_code == 6
    assert decided(host, box, start, name="x.closed.example.com", verdict="deny")[0]["rule"] == "closed *.closed.example.com"
    assert not net.log(mark, kind="dns", name="x.closed.example.com")


def test_n13_nothing_leaves_a_closed_sandbox(net, host, box):
    box.update_network({"allow_internet_access": False})
    start, mark = now(), net.mark()
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
for protocol in (47, 50, 132):
    g = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
    quiet(lambda: g.sendto(b'\\0' * 12, ('1.1.1.1', 0)))
for cid in (0, 1, 2):
    def vsock():
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((cid, 49983)); print('vsock', cid)
    quiet(vsock)
quiet(lambda: socket.gethostbyname('ok.example.com'))
""").stdout == ""
    decided(host, box, start, protocol="icmp", verdict="deny")
    for port in (22, 853, 8443):
        assert decided(host, box, start, protocol="tcp", port=port, address="1.1.1.1")[0]["rule"] == "deny 0.0.0.0/0"
    assert "allow" not in {d["verdict"] for d in decided(host, box, start)}
    assert net.mark() == mark, net.log(mark)


HOLD = """
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
        s.settimeout(0.1)
        try:
            if name == 'plain': s.send(b'x')
            if not s.recv(4096): raise OSError
        except TimeoutError: pass
        except OSError: print('gone', name, flush=True); del held[name]
"""


def test_n18_an_update_replaces_and_cuts(net, host, box):
    box.update_network({})
    box.files.write("/tmp/slow.py", HOLD)
    out = []
    handle = box.commands.run("python3 -u /tmp/slow.py", background=True, timeout=0)
    reader = threading.Thread(target=lambda: [out.append((time.monotonic(), o or "")) for o, _, _ in handle], daemon=True)
    reader.start()
    assert eventually(lambda: any("ready" in text for _, text in out), 30)
    start, changed = now(), time.monotonic()
    box.update_network({"allow_out": ["203.0.113.10"], "deny_out": [ALL]})
    assert eventually(lambda: sum(text.count("gone") for _, text in out) >= 2, 10)
    gone = "".join(text for _, text in out)
    assert "gone cut" in gone and "gone plain" in gone and "gone kept" not in gone
    print("cut after", max(at for at, text in out if "gone" in text) - changed, "s")
    assert decided(host, box, start, verdict="deny", address="203.0.113.11", port=22)[0]["rule"] == "deny 0.0.0.0/0"
    # Name rules cut what was not carried by name, and the name that is allowed can be reached again.
    box.update_network({"allow_out": ["other.example.com"], "deny_out": [ALL]})
    assert eventually(lambda: "gone kept" in "".join(text for _, text in out), 10)
    assert "other.example.com" in curl(box, "https://other.example.com/").stdout
    handle.kill()
    box.update_network({"deny_out": ["203.0.113.10"]})
    assert curl(box, "https://ok.example.com/").exit_code in REFUSED and "other" in curl(box, "https://other.example.com/").stdout
    box.update_network({"allow_out": ["203.0.113.10"], "deny_out": ["203.0.113.0/24"]})
    assert status(box, "https://203.0.113.10/") == "200", "allow wins over deny"
    assert curl(box, "https://203.0.113.11/").exit_code in REFUSED
    box.update_network({})
    assert status(box, "https://1.1.1.1") == "301"


def test_n18_an_update_cuts_what_is_carried_by_name(net, host, box):
    """A running download and an open tunnel, both by name: the one that is no longer allowed is cut, the other goes on."""
    names = {"deny_out": [ALL], "allow_out": ["ok.example.com", "other.example.com", "203.0.113.11"]}
    box.update_network(names)
    box.files.write("/tmp/slow.py", HOLD)
    handle = box.commands.run("python3 -u /tmp/slow.py > /tmp/slow.log", background=True, timeout=0)

    def log() -> str:
        return run(box, "cat /tmp/slow.log").stdout

    for name in ("ok.example.com", "other.example.com"):  # so that both are known to have their addresses
        assert status(box, f"https://{name}/") == "200"
    assert eventually(lambda: "ready" in log(), 30)
    start = now()
    box.update_network(names | {"allow_out": ["ok.example.com", "203.0.113.0/29"]})
    assert eventually(lambda: "gone cut" in log() and "gone plain" in log(), 10)
    time.sleep(1)
    assert "kept" not in log()
    ended = decided(host, box, start, verdict="end", name="other.example.com")
    assert ended[0]["received"] > 100
    assert decided(host, box, start, verdict="deny", name="other.example.com", protocol="tcp")
    box.update_network({"deny_out": [ALL]})
    assert eventually(lambda: "gone kept" in log(), 10)
    handle.kill()


def test_bytes_are_counted(host, box):
    box.update_network({})
    start = now()
    assert curl(box, "https://ok.example.com/bytes -o /dev/null -w '%{size_download}'").stdout == str(1 << 20)
    assert decided(host, box, start, verdict="end", address="203.0.113.10", port=443)[-1]["received"] > 1 << 20
    box.update_network(LISTED)
    assert curl(box, "https://ok.example.com/bytes -o /dev/null -w '%{size_download}'").stdout == str(1 << 20)
    ends = decided(host, box, start, verdict="end", name="ok.example.com")
    assert ends[-1]["received"] > 1 << 20 and 300 < ends[-1]["sent"] < 100_000
    assert curl(box, "--data-binary @/usr/bin/python3 https://ok.example.com/echo -o /dev/null").exit_code == 0
    size = int(box.commands.run("stat -Lc %s /usr/bin/python3").stdout)
    assert eventually(lambda: host.decisions(box.sandbox_id)[-1].get("sent", 0) > size, 10)


def test_a_sandbox_is_as_fast_as_the_operator_lets_it_be(net):
    server = net.serve("upload_mbit = 4\ndownload_mbit = 8\n", "--pool", "0")
    try:
        sandbox = Sandbox.create("base", timeout=600, **server.connection)
        sandbox.commands.run("head -c 524288 /dev/zero > /tmp/half")
        for network in ({}, LISTED):  # by the address alone, and by the name
            sandbox.update_network(network)
            # Half a MiB up or a whole one down are a second's worth and more; what may pass at once is far less.
            for what in ("https://ok.example.com/bytes", "--data-binary @/tmp/half https://ok.example.com/echo"):
                assert float(curl(sandbox, what + " -o /dev/null -w '%{time_total}'").stdout) > 0.6, what
        sandbox.kill()
    finally:
        server.close()


def test_half_open_and_many_connections_leave_nothing(net):
    server = net.serve("", "--pool", "0")  # descriptors are counted
    try:
        sandbox = Sandbox.create("base", network=LISTED, timeout=600, **server.connection)

        def descriptors() -> int:
            return len(os.listdir(f"/proc/{server.process.pid}/fd"))

        assert status(sandbox, "https://ok.example.com/") == "200"
        before = descriptors()
        many = 10_000 if os.environ.get("GLOVEBOX_LONG_TESTS") else 2_000
        seen = python(sandbox, f"""
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
held = [socket.create_connection(('203.0.113.10', 443), 10) for _ in range(1000)]
print(len(held)); time.sleep(1); del held
refused = 0
for _ in range({many}):
    try: socket.create_connection(('203.0.113.10', 443), 10).close()
    except ConnectionRefusedError: refused += 1; time.sleep(0.01)
print('done', refused)
""").stdout
        assert seen.startswith("1000\ndone "), seen
        eventually(lambda: descriptors() <= before + 5, 60)
        assert eventually(lambda: "ok.example.com" in curl(sandbox, "https://ok.example.com/").stdout, 60)
        sandbox.kill()
    finally:
        server.close()
