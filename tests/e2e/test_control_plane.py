# SPDX-License-Identifier: Apache-2.0
"""The control plane: keys, lists, lifetimes, and what it says when something is wrong (contract sections 2 and 7)."""
import datetime
import uuid

import pytest
from conftest import eventually
from e2b import Sandbox
from e2b.exceptions import AuthenticationException, NotFoundException


def test_a_wrong_key_is_401_and_is_not_repeated_in_the_answer(server):
    for key in ("e2b_" + "0" * 40, "nonsense", ""):
        status, body, _ = server.request("GET", "/v2/sandboxes", headers={"X-API-Key": key}, key=False)
        assert status == 401 and body["code"] == 401 and "Invalid API key" in body["message"]
        assert not key or key not in body["message"]
    with pytest.raises(AuthenticationException):
        Sandbox.create("base", api_key="e2b_" + "0" * 40)
    assert server.request("GET", "/health", key=False)[0] == 200


def test_an_unknown_template_is_404(server):
    status, body, _ = server.request("POST", "/v2/sandboxes", {"templateID": "no-such"})
    assert (status, body["code"], body["message"]) == (404, 404, "template 'no-such' not found")


@pytest.mark.parametrize("body, field", [
    ("{", "JSON"), ("[]", "object"), ({}, "templateID"), ({"templateID": "base", "timeout": "soon"}, "timeout"),
    ({"templateID": "base", "metadata": {"a": 1}}, "metadata.a"),
    ({"templateID": "base", "network": {"denyOut": ["example.com"]}}, "example.com"),
    ({"templateID": "base", "timeout": 0}, "Timeout"), ({"templateID": "base", "timeout": 10**9}, "Timeout")])
def test_bad_bodies_are_400_and_name_the_field(server, body, field):
    status, answer, _ = server.request("POST", "/v2/sandboxes", body)
    assert status == 400 and answer["code"] == 400 and field in answer["message"]


def test_n33_unknown_routes_and_methods_answer_json(server):
    assert server.request("GET", "/nope")[:2] == (404, {"code": 404, "message": "no such route: GET /nope"})
    status, body, _ = server.request("PUT", "/sandboxes")
    assert status == 405 and body["code"] == 405


def test_both_generations_create_and_kill(server):
    for path in ("/sandboxes", "/v2/sandboxes"):
        status, made, _ = server.request("POST", path, {"templateID": "base", "timeout": 60})
        assert status == 201 and made["clientID"] and made["envdVersion"]
        assert ("envdAccessToken" in made) == (path == "/v2/sandboxes")
        sandbox_id = made["sandboxID"]
        status, detail, _ = server.request("GET", f"/sandboxes/{sandbox_id}")
        assert status == 200 and detail["state"] == "running" and detail["memoryMB"] == 512
        assert server.request("GET", f"/sandboxes/{sandbox_id}-6532622b")[0] == 200
        assert server.request("DELETE", f"/sandboxes/{sandbox_id}")[0] == 204
        assert server.request("DELETE", f"/sandboxes/{sandbox_id}")[0] == 404


def test_lists_filter_order_and_page(server):
    tag = uuid.uuid4().hex
    made = [Sandbox.create("base", timeout=120, metadata={"tag": tag, "n": str(n), "odd": "a b&c=é"}) for n in range(3)]
    try:
        seen, token = [], ""
        while True:
            status, page, headers = server.request("GET", f"/v2/sandboxes?metadata=tag%3D{tag}&limit=1&nextToken={token}")
            assert status == 200 and len(page) == 1
            seen.append(page[0]["sandboxID"])
            token = headers.get("X-Next-Token", "")
            if not token:
                break
        assert seen == [sandbox.sandbox_id for sandbox in reversed(made)]
        from e2b import SandboxQuery
        found = Sandbox.list(query=SandboxQuery(metadata={"tag": tag, "odd": "a b&c=é"})).next_items()
        assert len(found) == 3
        assert server.request("GET", "/v2/sandboxes?limit=0")[0] == 400
        assert server.request("GET", "/v2/sandboxes?nextToken=x")[0] == 400
        assert server.request("GET", "/v2/sandboxes?state=paused")[1] == []
    finally:
        for sandbox in made:
            sandbox.kill()


def test_the_lifetime_ends_on_time_and_streams_are_cut(server):
    sandbox = Sandbox.create("base", timeout=8)
    handle = sandbox.commands.run("sleep 10000", background=True, timeout=0)
    with pytest.raises(Exception) as cut:
        handle.wait()  # comes back at all: the command itself would go on for longer than this test may take
    assert "timeout" in str(cut.value).lower() or "end of life" in str(cut.value).lower()
    assert not sandbox.is_running()
    status, body, _ = server.request("GET", "/health", headers={"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"})
    assert (status, body["message"]) == (502, "The sandbox was not found")


def test_timeouts_move_both_ways_and_connect_only_extends(server):
    sandbox = Sandbox.create("base", timeout=600)
    try:
        def left():
            return (sandbox.get_info().end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()

        Sandbox.connect(sandbox.sandbox_id, timeout=10)
        assert left() > 500
        Sandbox.connect(sandbox.sandbox_id, timeout=1200)
        assert left() > 1100
        sandbox.set_timeout(30)
        assert left() < 31
        sandbox.set_timeout(1)
        eventually(lambda: not sandbox.is_running(), 10)
        with pytest.raises(NotFoundException):
            Sandbox.connect(sandbox.sandbox_id, timeout=10)
    finally:
        sandbox.kill()


def test_n26_a_sandbox_needs_its_token(server, base):
    headers = {"E2b-Sandbox-Id": base.sandbox_id, "E2b-Sandbox-Port": "49983", "Content-Type": "application/json"}
    status, body, _ = server.request("POST", "/process.Process/List", {}, headers)
    assert status == 401
    assert server.request("POST", "/init", {"accessToken": "mine"}, headers)[0] == 404
    token = server.request("GET", f"/sandboxes/{base.sandbox_id}")[1]["envdAccessToken"]
    assert server.request("POST", "/process.Process/List", {}, headers | {"X-Access-Token": token})[0] == 200
    assert base.commands.run("curl -s -o /dev/null -w '%{http_code}' -X POST -d '{}' http://localhost:49983/init").stdout != "204"


def test_services_inside_are_reached_by_their_port(server, base):
    base.commands.run("mkdir -p /tmp/www && echo served > /tmp/www/index.html")
    base.commands.run("python3 -m http.server 8000 --directory /tmp/www", background=True, timeout=0)

    def get():
        return server.request("GET", "/index.html", headers={"E2b-Sandbox-Id": base.sandbox_id, "E2b-Sandbox-Port": "8000"})

    assert eventually(lambda: get()[0] == 200, 60)
    assert get()[1] == "served\n"
    closed = server.request("GET", "/", headers={"E2b-Sandbox-Id": base.sandbox_id, "E2b-Sandbox-Port": "8001"})
    assert closed[0] == 502 and "port is not open" in closed[1]["message"]


def test_the_command_line_shows_the_same(server, base):
    assert base.sandbox_id in server.cli("sandbox", "list").stdout
    assert base.sandbox_id in server.cli("sandbox", "list", "--json").stdout
    facts = server.cli("sandbox", "isolation", base.sandbox_id).stdout
    assert "microvm" in facts and "QEMU" in facts
    missing = server.cli("sandbox", "info", "inone")
    assert missing.returncode == 3 and "doesn't exist" in missing.stderr
