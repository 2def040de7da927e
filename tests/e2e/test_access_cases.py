# SPDX-License-Identifier: Apache-2.0
"""Cases from the field about who may reach what, and how it is answered, N: one scenario a row, named by its id. What tests of the same
id in test_operator.py, test_control_plane.py, test_domain_mode.py and test_network.py show of them is not repeated."""
import hashlib
import http.client
import json
import os
import re
import resource
import socket
import threading
import uuid

import pytest
from conftest import ROOT, eventually
from e2b import Sandbox
from egress_rig import LISTED, decided, python, status

AGENT = 49983


def team(server) -> dict:
    """A new team with a key: its slug, the key and the key's id."""
    slug = json.loads(server.cli("team", "create", f"n-{uuid.uuid4().hex[:10]}", "--json").stdout)["slug"]
    return {"slug": slug} | json.loads(server.cli("key", "create", "k", "--team", slug, "--json").stdout)


def at(sandbox_id: str, port: int, **more: str) -> dict[str, str]:
    return {"E2b-Sandbox-Id": sandbox_id, "E2b-Sandbox-Port": str(port), "Content-Type": "application/json"} | more


def test_n24_without_descriptors_it_waits_and_goes_on(net):
    server = net.serve("", "--pool", "0")
    try:
        sandbox = Sandbox.create("base", network=LISTED, timeout=600, **server.connection)
        assert status(sandbox, "https://ok.example.com/") == "200"
        pid = server.process.pid
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = max(int(name) for name in os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 8, limits[1]))
        address = (net.api, int(server.url.rsplit(":", 1)[1]))
        held = [socket.create_connection(address, 10) for _ in range(60)]
        eventually(lambda: "accept failed" in server.log())
        probe = http.client.HTTPConnection(*address, timeout=2)
        with pytest.raises(OSError):  # it does not say that it is well
            probe.request("GET", "/health")
            probe.getresponse()
        probe.close()
        for connection in held:
            connection.close()
        eventually(lambda: server.request("GET", "/health", key=False)[0] == 200)
        # The way out runs out of them too; what comes then waits for its turn and is not lost.
        assert python(sandbox, """
import socket
held = [socket.create_connection(('203.0.113.10', 443), 10) for _ in range(60)]
print(len(held))
""").stdout == "60\n"
        eventually(lambda: status(sandbox, "https://ok.example.com/") == "200")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert "a sandbox's connection cannot be accepted" in server.log()
        sandbox.kill()
    finally:
        server.close()


def test_n24_silent_connections_of_one_sandbox_leave_room_for_all_others(net):
    server = net.serve("", "--pool", "0", prefix=("prlimit", "--nofile=1024:1024"))
    try:
        greedy, quiet = (Sandbox.create("base", network=LISTED, timeout=600, **server.connection) for _ in range(2))
        greedy.files.write("/tmp/probe.py", """
import socket, time
held = []
for _ in range(400):
    try: held.append(socket.create_connection(('203.0.113.10', 443), 20))
    except OSError: pass
time.sleep(8)
""")
        held = greedy.commands.run("python3 /tmp/probe.py", background=True)
        assert decided(server, greedy, rule="too-many-connections")
        # Those that have a place are silent for seconds yet.
        descriptors = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        assert 128 <= descriptors < 512, "half of what the gateways have, which is half of all"
        for _ in range(3):
            assert server.request("GET", "/health", key=False)[0] == 200
            assert status(quiet, "https://ok.example.com/") == "200"
        held.kill()
        eventually(lambda: status(greedy, "https://ok.example.com/") == "200")
        greedy.kill()
        quiet.kill()
    finally:
        server.close()


def test_n26_a_foreign_token_opens_nothing(server, base):
    """Whoever knows the id of a sandbox, and has sandboxes of their own, has nothing of it."""
    own = team(server)
    theirs = Sandbox.create("base", timeout=120, api_key=own["key"], api_url=server.url, sandbox_url=server.url)
    try:
        foreign = server.request("GET", f"/sandboxes/{theirs.sandbox_id}", headers={"X-API-Key": own["key"]}, key=False)[1]
        tokens = (None, foreign["envdAccessToken"], own["key"], "", "x" * 64)
        calls = (("POST", "/process.Process/List"), ("POST", "/process.Process/Start"), ("POST", "/filesystem.Filesystem/ListDir"),
                 ("GET", "/files?path=/etc/hostname&username=root"), ("GET", "/metrics"), ("GET", "/envs"))
        for token in tokens:
            for method, path in calls:
                headers = at(base.sandbox_id, AGENT) | ({} if token is None else {"X-Access-Token": token})
                code, body, _ = server.request(method, path, {} if method == "POST" else None, headers, key=False)
                assert code in (401, 404) and body["message"], (token, path, code, body)
        for path in ("/init", "/hold", "/freeze", "/trust", "/loopback", "/telemetry"):
            for method in ("GET", "POST"):
                code, body, _ = server.request(method, path, {} if method == "POST" else None, at(base.sandbox_id, AGENT), key=False)
                assert code == 404, (path, code, body)
        signed = theirs.download_url("/etc/hostname").split("/files?")[1]
        code, body, _ = server.request("GET", f"/files?{signed}", headers=at(base.sandbox_id, AGENT), key=False)
        assert code == 401, body
        assert base.is_running() and theirs.is_running()
    finally:
        theirs.kill()


def test_n26_a_service_that_is_private_asks_for_its_own_token(server):
    private = {"allow_public_traffic": False}
    mine, other = (Sandbox.create("base", timeout=120, network=private) for _ in range(2))
    try:
        mine.commands.run("cd /tmp && echo private > index.html && python3 -m http.server 8000", background=True, timeout=0)

        def ask(**headers: str):
            return server.request("GET", "/index.html", headers=at(mine.sandbox_id, 8000, **headers), key=False)

        eventually(lambda: ask(**{"e2b-traffic-access-token": mine.traffic_access_token})[:2] == (200, "private\n"))
        for headers in ({}, {"e2b-traffic-access-token": other.traffic_access_token}, {"X-API-Key": server.key},
                        {"X-Access-Token": server.request("GET", f"/sandboxes/{mine.sandbox_id}")[1]["envdAccessToken"]}):
            code, body, _ = ask(**headers)
            assert code == 403 and body["code"] == 403, headers
    finally:
        mine.kill()
        other.kill()


def test_n27_a_revoked_key_is_refused_at_once(server):
    """Also on a connection that it has used already, and its sandboxes cannot be reached through the control plane."""
    own = team(server)
    sandbox = Sandbox.create("base", timeout=120, api_key=own["key"], api_url=server.url, sandbox_url=server.url)
    connection = http.client.HTTPConnection(*server.url.removeprefix("http://").split(":"), timeout=900)

    def ask(method: str, path: str, body=None) -> int:
        connection.request(method, path, body, {"X-API-Key": own["key"], "Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    try:
        assert ask("GET", "/v2/sandboxes") == 200
        assert server.cli("key", "revoke", own["id"], "--team", own["slug"]).returncode == 0
        for method, path in (("GET", "/v2/sandboxes"), ("GET", f"/sandboxes/{sandbox.sandbox_id}"), ("DELETE", f"/sandboxes/{sandbox.sandbox_id}"),
                             ("POST", "/v2/sandboxes"), ("GET", f"/glovebox/sandboxes/{sandbox.sandbox_id}/egress?follow=true")):
            assert ask(method, path, '{"templateID": "base"}' if method == "POST" else None) == 401, path
    finally:
        connection.close()
        admin = json.loads(server.cli("key", "create", "k2", "--team", own["slug"], "--json").stdout)["key"]
        assert server.request("DELETE", f"/sandboxes/{sandbox.sandbox_id}", headers={"X-API-Key": admin}, key=False)[0] == 204


SERVICE = """
import http.server
body = bytes(range(256)) * (64 << 10)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        data = body if self.path == '/big' else b'small'
        self.send_response(200); self.send_header('Content-Length', str(len(data))); self.end_headers(); self.wfile.write(data)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('0.0.0.0', 8000), Handler).serve_forever()
"""


def test_n29_no_id_of_a_volume_leads_anywhere(server):
    """This server has no volumes: whatever a client calls one, nothing is read, copied or made."""
    admin = {"X-Admin-Token": (server.data / "admin-token").read_text().strip()}
    before = sorted(path.name for path in server.data.iterdir())
    for identifier in ("v1", "..", "..%2f..%2fetc", "%2e%2e/%2e%2e/glovebox.db", "a%00b", "x" * 5000):
        for method, path in (("GET", "/volumes/{}"), ("DELETE", "/volumes/{}"), ("GET", "/volumecontent/{}/file?path=/etc/passwd"),
                             ("POST", "/volumecontent/{}/copy?source=../../x&target=/y"), ("PUT", "/volumecontent/{}/file?path=../../../tmp/n29")):
            code, body, _ = server.request(method, path.format(identifier), b"x" if method in ("POST", "PUT") else None, admin)
            assert code in (400, 404, 405, 414, 431) and body["code"] == code, (method, path, identifier[:20], code, body)
    assert sorted(path.name for path in server.data.iterdir()) == before


def test_n32_who_does_not_read_holds_up_nobody_and_loses_nothing(server, base):
    base.files.write("/tmp/service.py", SERVICE)
    base.commands.run("python3 /tmp/service.py", background=True, timeout=0)
    headers, limit = at(base.sandbox_id, 8000), 15  # such stalls were of 15 to 20 s

    def dial() -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*server.url.removeprefix("http://").split(":"), timeout=limit)

    eventually(lambda: server.request("GET", "/", headers=headers)[0] == 200, 60)
    idle = []
    for _ in range(3):
        connection = dial()
        connection.request("GET", "/big", headers=headers)
        idle.append((connection, connection.getresponse()))
    for _ in range(20):  # a new connection each
        connection = dial()
        connection.request("GET", "/", headers=headers)
        assert connection.getresponse().read() == b"small"
        connection.close()
    expected = hashlib.sha256(bytes(range(256)) * (64 << 10)).hexdigest()
    sums: list[str] = []

    def read(answer) -> None:
        sums.append(hashlib.sha256(answer.read()).hexdigest())

    readers = [threading.Thread(target=read, args=(answer,)) for _, answer in idle]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(120)
    assert sums == [expected] * 3
    for connection, _ in idle:
        connection.close()


def routes() -> list[tuple[str, str]]:
    """All that the API has, from where they are added."""
    found = []
    for source in sorted((ROOT / "src/api").glob("*.cc")):
        if not source.stem.endswith(("_test", "_fuzz")):
            found += re.findall(r'add\("([A-Z]+)", "(/[^"]*)"', source.read_text())
    return found


def test_n33_every_route_says_in_json_what_is_wrong(server):
    known = routes()
    assert len(known) > 50
    admin = {"X-Admin-Token": (server.data / "admin-token").read_text().strip()}
    for method, path in known:
        if path in ("/health", "/metrics"):
            continue
        missing = re.sub(r"\{\w+\}", "inone", path)
        for headers, key in (({}, False), ({"X-API-Key": "e2b_" + "0" * 40, "X-Admin-Token": "no"}, False)):
            code, body, answered = server.request(method, missing, None, headers, key=key)
            assert code in (401, 403) and body["code"] == code and body["message"], (method, path, code, body)
            assert answered["Content-Type"].startswith("application/json"), path
        if "{" in path:
            code, body, _ = server.request(method, missing, {} if method in ("POST", "PUT", "PATCH") else None, admin)
            # An empty list of what nobody has is an answer, and nothing to remove is too.
            assert code < 300 or body["code"] == code, (method, path, code, body)
            assert code < 500, (method, path, body)
        if method in ("POST", "PUT", "PATCH"):
            for garbage in ("{", "[]", "\0", '"' * 3, "{" * 5000):
                code, body, answered = server.request(method, missing, garbage, admin)
                assert 400 <= code < 500 and body["code"] == code, (method, path, garbage[:4], code, body)
                assert answered["Content-Type"].startswith("application/json")
        code, body, answered = server.request("LINK", missing)
        assert code in (404, 405) and body["code"] == code, (path, code, body)


def test_n33_what_is_no_route_and_no_request_is_answered_in_json(server, base):
    for method, path in (("GET", "/"), ("GET", "/nope"), ("POST", "/v9/sandboxes"), ("GET", "/sandboxes/a/b/c"), ("DELETE", "/health"),
                         ("GET", "/%00"), ("GET", "/..%2f..%2fetc/passwd"), ("GET", "/" + "x" * 4000)):
        code, body, answered = server.request(method, path)
        assert code in (400, 404, 405) and body["code"] == code and body["message"], (path[:20], code, body)
        assert answered["Content-Type"].startswith("application/json")
    for sandbox_id, port, wanted in ((base.sandbox_id, 8009, 502), ("inever", 80, 502), (base.sandbox_id, 0, 400), (base.sandbox_id, 99999, 400)):
        code, body, answered = server.request("GET", "/", headers=at(sandbox_id, port))
        assert code == wanted and body["code"] == code and body["message"], (sandbox_id, port, code, body)
        assert answered["Content-Type"].startswith("application/json")
    host, port = server.url.removeprefix("http://").split(":")
    for raw in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
                b"POST /v2/sandboxes HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"):
        with socket.create_connection((host, int(port)), 20) as connection:
            connection.settimeout(20)
            answer = b""
            try:
                connection.sendall(raw)
                while piece := connection.recv(65536):
                    answer += piece
            except ConnectionError:
                pass
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505", b"HTTP/1.0 4")), (raw[:30], answer[:200])
        assert b"application/json" in head and json.loads(body)["message"], (raw[:30], answer[:300])
