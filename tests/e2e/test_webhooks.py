# SPDX-License-Identifier: Apache-2.0
"""Webhooks: what happens to sandboxes arrives at a receiver, signed, in order, once each (contract section 7.10)."""
import base64
import hashlib
import json
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import Server, eventually
from e2b import Sandbox

SECRET = "not for the log 5f3a"


class Receiver:
    """A web server that keeps what it is sent."""

    def __init__(self):
        self.requests = []
        self.statuses = {}  # path to a list of answers; then 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), body))
                waiting = outer.statuses.get(self.path)
                self.send_response(waiting.pop(0) if waiting else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def of(self, path):
        return [(headers, body) for where, headers, body in list(self.requests) if where == path]

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def receiver():
    running = Receiver()
    yield running
    running.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    config = tmp_path_factory.mktemp("config") / "config.toml"
    config.write_text("[webhooks]\nallow_private = true\n")
    running = Server("--config", str(config), "--log-level", "debug")
    yield running
    running.close()


def add_webhook(server, url, events=("created", "killed")):
    status, made, _ = server.request("POST", "/events/webhooks", {
        "name": "test", "url": url, "enabled": True, "signatureSecret": SECRET,
        "events": [f"sandbox.lifecycle.{event}" for event in events]})
    assert status == 201 and "signatureSecret" not in made and SECRET not in json.dumps(made)
    return made["id"]


def create(server, **more):
    return Sandbox.create("base", timeout=60, api_key=server.key, api_url=server.url, sandbox_url=server.url, **more)


def sign(body):
    return base64.urlsafe_b64encode(hashlib.sha256(SECRET.encode() + body).digest()).decode().rstrip("=")


def test_created_and_killed_arrive_signed_in_order_and_once(server, receiver):
    webhook = add_webhook(server, receiver.url + "/hook")
    sandbox = create(server, metadata={"job": "7"})
    sandbox.kill()
    eventually(lambda: len(receiver.of("/hook")) >= 2)
    arrived = receiver.of("/hook")
    events = [json.loads(body) for _, body in arrived]
    assert [event["type"] for event in events] == ["sandbox.lifecycle.created", "sandbox.lifecycle.killed"]
    for headers, body in arrived:
        assert headers["Content-Type"] == "application/json"
        assert headers["e2b-webhook-id"] == webhook and headers["e2b-signature-version"] == "v1"
        assert headers["e2b-signature"] == sign(body)
    assert len({headers["e2b-delivery-id"] for headers, _ in arrived}) == 2
    assert {event["sandboxId"] for event in events} == {sandbox.sandbox_id}
    assert events[0]["eventData"]["sandbox_metadata"] == {"job": "7"}

    status, listed, _ = server.request("GET", f"/events/sandboxes/{sandbox.sandbox_id}?orderAsc=true")
    assert status == 200 and listed == events
    assert server.request("GET", "/events/sandboxes?limit=2")[1] == events[::-1]
    assert server.request("DELETE", f"/events/webhooks/{webhook}")[0] == 200
    create(server).kill()
    other = add_webhook(server, receiver.url + "/other")
    create(server).kill()
    eventually(lambda: len(receiver.of("/other")) == 2)
    assert len(receiver.of("/hook")) == 2
    server.request("DELETE", f"/events/webhooks/{other}")
    assert SECRET not in server.log()


def test_what_fails_comes_again(server, receiver):
    receiver.statuses["/hook"] = [500]
    webhook = add_webhook(server, receiver.url + "/hook", ["created"])
    create(server).kill()
    eventually(lambda: len(receiver.of("/hook")) == 2)
    first, second = receiver.of("/hook")
    assert first[1] == second[1] and first[0]["e2b-delivery-id"] == second[0]["e2b-delivery-id"]
    server.request("DELETE", f"/events/webhooks/{webhook}")


def test_what_is_on_its_way_outlives_a_restart(server, receiver):
    receiver.statuses["/hook"] = [503]
    webhook = add_webhook(server, receiver.url + "/hook", ["killed"])
    create(server).kill()
    eventually(lambda: receiver.of("/hook"))
    server.kill_hard()
    server.start()
    eventually(lambda: len(receiver.of("/hook")) == 2)
    first, second = receiver.of("/hook")
    assert first[1] == second[1] and first[0]["e2b-delivery-id"] == second[0]["e2b-delivery-id"]
    server.request("DELETE", f"/events/webhooks/{webhook}")


def test_private_receivers_are_refused_unless_the_operator_allows_them(receiver, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[webhooks]\nallow_private = true\n")
    server = Server("--config", str(config))
    try:
        kept = add_webhook(server, receiver.url + "/hook", ["created"])
        server.stop()
        config.write_text("")
        server.start()
        for host in ("127.0.0.1", "localhost", "[::1]"):
            hook = {"name": "x", "url": receiver.url.replace("127.0.0.1", host), "enabled": True,
                    "signatureSecret": SECRET, "events": ["sandbox.lifecycle.created"]}
            for method, path in (("POST", "/events/webhooks"), ("PATCH", f"/events/webhooks/{kept}")):
                status, body, _ = server.request(method, path, hook)
                assert status == 400 and "allow_private" in body["message"] and "[webhooks]" in body["message"], body
        # What was taken before can be disabled, but not enabled again.
        assert server.request("PATCH", f"/events/webhooks/{kept}", {"name": "y", "enabled": False})[0] == 200
        status, body, _ = server.request("PATCH", f"/events/webhooks/{kept}", {"enabled": True})
        assert status == 400 and "allow_private" in body["message"], body
        server.stop()
        config.write_text("[webhooks]\nallow_private = true\n")
        server.start()
        assert server.request("PATCH", f"/events/webhooks/{kept}", {"enabled": True})[0] == 200
        server.stop()
        config.write_text("")
        server.start()
        # It goes nowhere, and says so.
        create(server).kill()
        path = f"/events/webhooks/{kept}/deliveries"
        eventually(lambda: server.request("GET", path)[1][0]["attempts"] > 0)
        (delivery,) = server.request("GET", path)[1]
        assert delivery["state"] == "failing" and "not public" in delivery["lastError"] and delivery["nextAttemptAt"]
        assert delivery["eventType"] == "sandbox.lifecycle.created" and SECRET not in json.dumps(delivery)
        table = server.cli("webhook", "deliveries", kept).stdout
        assert "not public" in table and "failing" in table
        # Pages of the list, one after the other; the command reads them all.
        create(server).kill()
        rows = json.loads(server.cli("webhook", "deliveries", kept, "--json").stdout)
        status, page, headers = server.request("GET", path + "?limit=1")
        assert status == 200 and [row["id"] for row in page] == [rows[0]["id"]] and len(rows) == 2
        status, page, headers = server.request("GET", f"{path}?limit=1&nextToken={headers['X-Next-Token']}")
        assert [row["id"] for row in page] == [rows[1]["id"]] and "X-Next-Token" not in headers
        assert server.request("GET", path + "?nextToken=x")[0] == 400
        assert not receiver.requests and receiver.url not in server.log()
    finally:
        server.close()


def test_a_name_that_cannot_be_resolved_is_said(server):
    hook = {"name": "x", "url": "http://no-such-name.invalid/", "enabled": True, "signatureSecret": SECRET,
            "events": ["sandbox.lifecycle.created"]}
    status, made, _ = server.request("POST", "/events/webhooks", hook)
    assert status == 201 and "'no-such-name.invalid' cannot be resolved" in made["warning"], made
    path = f"/events/webhooks/{made['id']}"
    status, changed, _ = server.request("PATCH", path, {"url": "http://nor-this-one.invalid/"})
    assert status == 200 and "'nor-this-one.invalid' cannot be resolved" in changed["warning"], changed
    assert "warning" not in server.request("PATCH", path, {"name": "y"})[1]
    assert server.request("DELETE", path)[0] == 200


def test_a_certificate_that_nobody_vouches_for_gets_nothing(server, receiver, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(tmp_path / "key"),
                    "-out", str(tmp_path / "certificate")], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    receiver.http.socket = context.wrap_socket(receiver.http.socket, server_side=True)
    webhook = add_webhook(server, f"https://localhost:{receiver.http.server_port}/hook", ["created"])
    create(server).kill()
    eventually(lambda: f'"{webhook}"' in server.log() and "SSL peer certificate" in server.log())
    assert not receiver.requests
    server.request("DELETE", f"/events/webhooks/{webhook}")
