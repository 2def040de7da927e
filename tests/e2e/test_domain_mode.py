# SPDX-License-Identifier: Apache-2.0
"""Names and TLS: what official clients, curl and WebSockets see of an installation with a domain of its own."""
import json
import sys
import textwrap
import time

import pytest
from conftest import ROOT, eventually
from domain_mode import DOMAIN, DomainMode


@pytest.fixture(scope="module")
def domain():
    mode = DomainMode()
    yield mode
    mode.close()


def python(domain, code: str, timeout: float = 300):
    done = domain.run(sys.executable, "-c", textwrap.dedent(code), timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()


@pytest.fixture
def sandbox(domain):
    """Id and tokens of a sandbox whose port 8000 serves HTTP on the guest's loopback only."""
    status, made, _ = domain.server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300})
    assert status == 201, made
    assert made["domain"] == DOMAIN
    yield made
    domain.server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def curl(domain, *arguments: str):
    return domain.run("curl", "-sS", "--max-time", "30", *arguments)


def test_the_python_client_works_by_names_alone(domain):
    lines = python(domain, """
        from e2b import Sandbox
        with Sandbox.create("base") as sandbox:
            print(sandbox.commands.run("echo over TLS").stdout.strip())
            sandbox.files.write("/tmp/x", "by name")
            print(sandbox.files.read("/tmp/x"))
            print(sandbox.get_host(8000))
            import urllib.request
            print(urllib.request.urlopen(sandbox.download_url("/tmp/x")).read().decode())
            assert sandbox.is_running()
        assert not sandbox.is_running()
    """)
    assert lines[:2] == ["over TLS", "by name"]
    assert lines[2].startswith("8000-i") and lines[2].endswith("." + DOMAIN)
    assert lines[3] == "by name"


def test_the_javascript_client_works_by_names_alone(domain):
    own = ROOT / "build/npm/node_modules/.bin/node"
    node = str(own) if own.exists() else "node"
    code = """
        import { Sandbox } from 'e2b'
        const sandbox = await Sandbox.create('base')
        console.log((await sandbox.commands.run('echo over TLS')).stdout.trim())
        await sandbox.commands.run('cd /tmp && echo served > index.html && python3 -m http.server 8000 --bind 127.0.0.1', { background: true })
        let text = ''
        for (let i = 0; i < 60 && text !== 'served'; i++) {
            const answer = await fetch(`https://${sandbox.getHost(8000)}`)
            text = (await answer.text()).trim()
            if (text !== 'served') await new Promise((resolve) => setTimeout(resolve, 500))
        }
        console.log(text)
        const host = sandbox.getHost(3000)
        await sandbox.kill()
        const gone = await fetch(`https://${host}`)
        console.log(gone.status, JSON.stringify(await gone.json()))
    """
    done = domain.run(node, "--input-type=module", "-e", textwrap.dedent(code), cwd=ROOT / "build/npm")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.strip().splitlines()
    assert lines[:2] == ["over TLS", "served"]
    assert lines[2].startswith('502 {"sandboxId":"i')
    assert "The sandbox was not found" in lines[2]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_any_method_and_both_versions_of_http(domain, sandbox, version):
    agent = f"https://49983-{sandbox['sandboxID']}.{DOMAIN}"
    token = f"X-Access-Token: {sandbox['envdAccessToken']}"
    body = domain.folder / "body"
    body.write_text("x" * 300_000)
    written = curl(domain, version, "-X", "POST", "-H", token, "--data-binary", f"@{body}", "-H",
                   "Content-Type: application/octet-stream", "-w", "%{http_code} %{http_version}",
                   f"{agent}/files?path=/tmp/big&username=root")
    assert written.stdout.endswith("200 2" if version == "--http2" else "200 1.1"), written.stdout + written.stderr
    read = curl(domain, version, "-H", token, f"{agent}/files?path=/tmp/big&username=root")
    assert read.stdout == "x" * 300_000
    control = curl(domain, version, "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", f"{agent}/init")
    assert control.stdout == "404"
    api = curl(domain, version, "-H", f"X-API-Key: {domain.server.key}", f"https://api.{DOMAIN}/sandboxes/{sandbox['sandboxID']}")
    assert json.loads(api.stdout)["state"] == "running"


def test_headers_do_not_redirect_a_name_to_another_sandbox(domain, sandbox):
    answer = curl(domain, "-H", "E2b-Sandbox-Id: iother", "-H", "E2b-Sandbox-Port: 49983", "-w", " %{http_code}",
                  f"https://49983-{sandbox['sandboxID']}.{DOMAIN}/health")
    assert answer.stdout == " 204"
    answer = curl(domain, "-H", f"E2b-Sandbox-Id: {sandbox['sandboxID']}", "-H", "E2b-Sandbox-Port: 49983", "-w", " %{http_code}",
                  f"https://sandbox.{DOMAIN}/health")
    assert answer.stdout == " 204"


def test_n33_malformed_names_are_answered_in_json(domain):
    for host in (f"0-iabc.{DOMAIN}", f"99999-iabc.{DOMAIN}", f"80-UPPER_.{DOMAIN}"):
        answer = curl(domain, "-w", "\n%{http_code}", f"https://{host}/")
        body, status = answer.stdout.rsplit("\n", 1)
        assert status in ("400", "502"), answer.stdout
        assert json.loads(body)["message"]
    unknown = curl(domain, "-A", "Mozilla/5.0", f"https://80-inever.{DOMAIN}/").stdout
    assert unknown.startswith("<html") and unknown.endswith("</html>") and "inever" in unknown


def test_a_renewed_certificate_is_used_without_a_restart(domain):
    def subject() -> str:
        done = domain.run("sh", "-c", f"openssl s_client -connect api.{DOMAIN}:443 -servername api.{DOMAIN} </dev/null 2>/dev/null "
                          "| openssl x509 -noout -subject")
        return done.stdout.strip()

    pid = domain.server.process.pid
    before = subject()
    domain.install(*domain.authority.sign("renewed"))
    eventually(lambda: subject().endswith("renewed"), 30)
    assert before != subject()
    # A broken pair changes nothing.
    domain.key.write_text("nonsense")
    time.sleep(7)
    assert subject().endswith("renewed")
    assert domain.server.process.pid == pid and domain.server.process.poll() is None
    domain.install(*domain.authority.sign("first"))
    eventually(lambda: subject().endswith("first"), 30)


def test_n26_private_ports_ask_for_their_token(domain):
    lines = python(domain, """
        import time, urllib.request, urllib.error
        from e2b import Sandbox
        with Sandbox.create("base", network={"allow_public_traffic": False}) as sandbox:
            sandbox.commands.run("cd /tmp && echo private > index.html && python3 -m http.server 8000", background=True)
            url = "https://" + sandbox.get_host(8000)
            def ask(headers):
                for _ in range(60):
                    try:
                        return urllib.request.urlopen(urllib.request.Request(url, headers=headers)).read().decode().strip()
                    except urllib.error.HTTPError as error:
                        if error.code != 502:
                            return error.code
                        time.sleep(0.5)
            print(ask({}))
            print(ask({"e2b-traffic-access-token": "wrong"}))
            print(ask({"e2b-traffic-access-token": sandbox.traffic_access_token}))
    """)
    assert lines == ["403", "403", "private"]


def test_n20_server_sent_events_and_websockets_pass(domain, sandbox):
    code = """
        import base64, http.server, os, time
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                if self.headers.get("Upgrade") == "websocket":
                    self.send_response(101); self.send_header("Upgrade", "websocket"); self.send_header("Connection", "Upgrade"); self.end_headers()
                    data = self.connection.recv(100)
                    self.connection.sendall(b"<" + data + b">")
                    self.close_connection = True
                    return
                self.send_response(200); self.send_header("Content-Type", "text/event-stream"); self.end_headers()
                for i in range(3):
                    self.wfile.write(b"data: %d\\n\\n" % i); self.wfile.flush(); time.sleep(1)
                self.close_connection = True
        http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Handler).serve_forever()
    """
    lines = python(domain, f"""
        import socket, ssl, sys, textwrap, time
        from e2b import Sandbox
        sandbox = Sandbox.connect("{sandbox['sandboxID']}")
        sandbox.files.write("/tmp/service.py", textwrap.dedent({code!r}))
        sandbox.commands.run("python3 /tmp/service.py", background=True)
        host = sandbox.get_host(9000)
        def dial(extra):
            raw = ssl.create_default_context().wrap_socket(socket.create_connection((host, 443), 30), server_hostname=host)
            raw.sendall(f"GET / HTTP/1.1\\r\\nHost: {{host}}\\r\\n{{extra}}\\r\\n".encode())
            return raw
        for _ in range(60):
            events = dial("Accept: text/event-stream\\r\\n")
            first = events.recv(65536)
            if b" 200 " in first: break
            time.sleep(0.5)
        began = time.monotonic()
        seen = first
        while b"data: 0" not in seen: seen += events.recv(65536)
        at_first = time.monotonic() - began
        while b"data: 2" not in seen: seen += events.recv(65536)
        print(time.monotonic() - began - at_first > 1)  # the first event did not wait for the last
        ws = dial("Connection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\nSec-WebSocket-Version: 13\\r\\n")
        answer = ws.recv(65536)
        print(answer.split()[1].decode())
        ws.sendall(b"frame")
        print(ws.recv(100).decode())
    """)
    assert lines == ["True", "101", "<frame>"]
