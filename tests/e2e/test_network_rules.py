# SPDX-License-Identifier: Apache-2.0
"""Replacing the network of a sandbox, what of it lasts, and reading what was decided (contract 2.6, 7.6)."""
import http.client
import json
import threading
import uuid

import pytest
from conftest import eventually
from e2b import Sandbox
from e2b.exceptions import InvalidArgumentException, SandboxException, SandboxNotFoundException
from test_network import TCP, host_of, reaches

REFUSED = [
    {"denyOut": ["example.com"]}, {"denyOut": ["not-an-ip"]}, {"denyOut": ["300.0.0.1"]},
    {"denyOut": ["0.0.0.0/0", "example.com"]}, {"denyOut": ["0.0.0.0/0", "x"]},
    {"allowOut": ["example.com"]}, {"allowOut": ["*.example.com"]}, {"allowOut": ["*"]},
    {"allowOut": ["example.com"], "denyOut": ["8.8.8.8"]}, {"allowOut": ["*.example.com"], "denyOut": ["8.8.8.0/24"]},
    {"allowOut": ["example.com", "1.1.1.1"], "denyOut": ["8.8.8.8"]},
    {"rules": {"a.com": [{"transform": {"headers": {"A": "${e2b.identity.tokens.x}"}}}]}},
    {"rules": {"a.com": [{"transform": {"headers": {"A": "b\r\nC: d"}}}]}},
    {"rules": {"a.com": [{"transform": {"body": "x"}}]}}, {"egressProxy": {"address": "no-port"}},
]
ACCEPTED = [
    {}, {"allowOut": ["1.1.1.1"]}, {"allowOut": ["1.1.1.0/24"]}, {"allowOut": ["1.1.1.1"], "denyOut": ["8.8.8.8"]},
    {"denyOut": ["0.0.0.0/0"]}, {"allowOut": ["1.1.1.1"], "denyOut": ["0.0.0.0/0"]},
    {"allowOut": ["example.com"], "denyOut": ["0.0.0.0/0"]}, {"allowOut": ["*.example.com"], "denyOut": ["0.0.0.0/0"]},
    {"allowOut": ["*"], "denyOut": ["0.0.0.0/0"]}, {"allowOut": ["example.com", "1.1.1.1"], "denyOut": ["0.0.0.0/0"]},
    {"denyOut": ["1.1.1.0/24", "8.8.8.0/24", "9.9.9.9"]}, {"denyOut": ["8.8.8.8"], "allow_internet_access": True},
    {"allow_internet_access": False},
]


def put(server, sandbox_id: str, body, **more):
    return server.request("PUT", f"/sandboxes/{sandbox_id}/network", body, **more)


def in_force(server, sandbox_id: str) -> dict:
    status, body, _ = server.request("GET", f"/glovebox/sandboxes/{sandbox_id}/network")
    assert status == 200, body
    return body


def detail(server, sandbox_id: str) -> dict:
    return server.request("GET", f"/sandboxes/{sandbox_id}")[1]


def test_the_matrix_of_the_contract(server, base):
    last = {"allowOut": ["1.1.1.1"], "denyOut": ["0.0.0.0/0"]}
    assert put(server, base.sandbox_id, last)[0] == 204
    for body in REFUSED:
        status, answer, _ = put(server, base.sandbox_id, body)
        assert status == 400 and answer["code"] == 400, (body, answer)
        assert in_force(server, base.sandbox_id)["denyOut"] == ["0.0.0.0/0"], body
    assert detail(server, base.sandbox_id)["network"] == last
    for body in ACCEPTED:
        status, answer, _ = put(server, base.sandbox_id, body)
        assert status == 204, (body, answer)
        shown = in_force(server, base.sandbox_id)
        assert shown["inForce"] and len(shown["allowOut"]) == len(body.get("allowOut", [])), (body, shown)
    assert put(server, base.sandbox_id, "")[0] == 204


def test_unknown_and_other_teams_sandboxes_are_not_found(server, base):
    with pytest.raises(SandboxNotFoundException):
        Sandbox.update_network("inone", {"deny_out": ["8.8.8.8"]})
    team = json.loads(server.cli("team", "create", f"other-{uuid.uuid4().hex[:8]}", "--json").stdout)
    key = json.loads(server.cli("key", "create", "k", "--team", team["slug"], "--json").stdout)["key"]
    for method, path in (("PUT", "/sandboxes/{}/network"), ("GET", "/glovebox/sandboxes/{}/network"),
                         ("GET", "/glovebox/sandboxes/{}/egress"), ("GET", "/glovebox/sandboxes/{}/egress?follow=true")):
        status, body, _ = server.request(method, path.format(base.sandbox_id), {} if method == "PUT" else None,
                                         headers={"X-API-Key": key}, key=False)
        assert status == 404 and body["code"] == 404, path
    gone = Sandbox.create("base", timeout=60)
    gone.kill()
    assert put(server, gone.sandbox_id, {})[0] == 404


def test_n18_an_update_replaces_everything_and_leaves_the_way_in(server, internet):
    sandbox = Sandbox.create("base", timeout=300, network={"mask_request_host": "masked", "deny_out": ["9.9.9.9"]})
    try:
        assert reaches(sandbox, TCP.format(internet))
        sandbox.update_network({"deny_out": [host_of(internet)]})
        assert not reaches(sandbox, TCP.format(internet))
        shown = detail(server, sandbox.sandbox_id)
        assert shown["network"] == {"maskRequestHost": "masked", "denyOut": [host_of(internet)]}
        sandbox.update_network({"allow_internet_access": False, "allow_out": [host_of(internet)]})
        assert reaches(sandbox, TCP.format(internet))
        assert not reaches(sandbox, TCP.format("http://198.51.100.250:80/").replace("10", "3"))
        assert detail(server, sandbox.sandbox_id)["allowInternetAccess"] is False
        sandbox.update_network({})
        assert reaches(sandbox, TCP.format(internet))
        shown = detail(server, sandbox.sandbox_id)
        assert shown["network"] == {"maskRequestHost": "masked"} and shown["allowInternetAccess"] is None
        told = server.request("GET", f"/events/sandboxes/{sandbox.sandbox_id}?types=sandbox.lifecycle.updated")[1]
        assert len(told) == 3 and told[1]["eventData"]["set_network"]["allow_internet_access"] is False
        logs = server.request("GET", f"/v2/sandboxes/{sandbox.sandbox_id}/logs")[1]["logs"]
        assert sum(entry["message"] == "sandbox network rules replaced" for entry in logs) == 3
    finally:
        sandbox.kill()


def test_a_paused_sandbox_takes_it_and_has_it_at_its_resume(server, internet):
    sandbox = Sandbox.create("base", timeout=300)
    try:
        sandbox.update_network({"deny_out": [host_of(internet)]})
        sandbox.pause()
        shown = in_force(server, sandbox.sandbox_id)
        assert shown["inForce"] is False and shown["denyOut"] == [host_of(internet)]
        sandbox.connect(timeout=300)
        assert not reaches(sandbox, TCP.format(internet)), "it is kept over a pause"
        sandbox.pause()
        sandbox.update_network({"deny_out": ["198.51.100.0/24"]})
        sandbox.connect(timeout=300)
        assert reaches(sandbox, TCP.format(internet))
        assert in_force(server, sandbox.sandbox_id)["denyOut"] == ["198.51.100.0/24"]
    finally:
        sandbox.kill()


def test_of_several_at_once_store_and_machine_have_the_same(server, base):
    bodies = [{"denyOut": [f"198.51.100.{n}"]} for n in range(1, 9)]
    answers = []
    threads = [threading.Thread(target=lambda body=body: answers.append(put(server, base.sandbox_id, body)[0]))
               for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [204] * len(bodies)
    assert in_force(server, base.sandbox_id)["denyOut"] == detail(server, base.sandbox_id)["network"]["denyOut"]


def test_forks_have_the_network_of_their_source_and_snapshots_have_none(server, internet):
    sandbox = Sandbox.create("base", timeout=300)
    others = []
    try:
        sandbox.update_network({"deny_out": [host_of(internet)]})
        status, forks, _ = server.request("POST", f"/sandboxes/{sandbox.sandbox_id}/fork", {"count": 1, "timeout": 120})
        assert status == 201, forks
        others.append(forks[0]["sandbox"]["sandboxID"])
        assert in_force(server, others[0])["denyOut"] == [host_of(internet)]
        snapshot = sandbox.create_snapshot()
        started = Sandbox.create(snapshot.snapshot_id, timeout=120)
        others.append(started.sandbox_id)
        assert in_force(server, started.sandbox_id)["denyOut"] == []
    finally:
        for sandbox_id in [sandbox.sandbox_id, *others]:
            Sandbox.kill(sandbox_id)


def test_the_proxys_password_is_in_no_answer_and_no_file(server, base):
    password = "pw-" + uuid.uuid4().hex
    base.update_network({"egress_proxy": {"address": "198.51.100.7:1080", "username": "user", "password": password}})
    shown = detail(server, base.sandbox_id)
    assert shown["network"]["egressProxy"] == {"address": "198.51.100.7:1080", "username": "user"}
    answers = [shown, in_force(server, base.sandbox_id), server.request("GET", f"/events/sandboxes/{base.sandbox_id}")[1],
               server.request("GET", f"/v2/sandboxes/{base.sandbox_id}/logs")[1]]
    assert password not in json.dumps(answers) and password not in server.log()
    for file in [*server.data.iterdir(), *(server.data / "sandboxes" / base.sandbox_id).glob("*.json")]:
        if file.is_file():
            assert password.encode() not in file.read_bytes(), file


def test_the_commands_show_and_replace(server, base, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"denyOut": ["198.51.100.9"]}))
    assert server.cli("sandbox", "network", base.sandbox_id, "--set", str(rules)).returncode == 0
    assert json.loads(server.cli("sandbox", "network", base.sandbox_id, "--json").stdout)["denyOut"] == ["198.51.100.9"]
    assert "198.51.100.9" in server.cli("sandbox", "network", base.sandbox_id).stdout
    rules.write_text('{"denyOut": ["example.com"]}')
    refused = server.cli("sandbox", "network", base.sandbox_id, "--set", str(rules))
    assert refused.returncode == 2 and "example.com" in refused.stderr


def lines_of(server, sandbox_id: str, query: str = "") -> tuple[list, dict]:
    status, body, headers = server.request("GET", f"/glovebox/sandboxes/{sandbox_id}/egress{query}")
    assert status == 200, body
    return body, headers


def test_decisions_are_read_in_parts_and_after_the_end(server, internet):
    sandbox = Sandbox.create("base", timeout=300, network={"deny_out": ["198.51.100.0/24"]})
    own = sandbox.sandbox_id
    try:
        assert reaches(sandbox, TCP.format(internet))
        for n in (1, 2, 3):
            assert not reaches(sandbox, f"curl -sS --max-time 4 http://198.51.100.{n}:80/")
        denied = eventually(lambda: (found := lines_of(server, own, "?verdict=deny")[0]) and len(found) >= 3 and found, 10)
        assert {line["verdict"] for line in denied} == {"deny"}
        assert lines_of(server, own, "?verdict=deny&limit=1")[0] == denied[-1:]
    finally:
        sandbox.kill()
    seen, after = [], ""
    while True:
        page, headers = lines_of(server, own, f"?verdict=deny&limit=2&after={after}")
        if not page:
            break
        seen += page
        after = headers["X-Next-After"]
    assert [line["address"] for line in seen] == [line["address"] for line in denied]
    assert any(line["verdict"] == "allow" for line in lines_of(server, own)[0])
    table = server.cli("sandbox", "egress", own, "--verdict", "deny").stdout
    assert "198.51.100.1" in table and "allow" not in table
    for bad in ("?limit=0", "?verdict=maybe", "?follow=perhaps"):
        assert server.request("GET", f"/glovebox/sandboxes/{own}/egress{bad}")[0] == 400


def test_a_log_is_followed_until_the_sandbox_is_gone(server, internet):
    sandbox = Sandbox.create("base", timeout=300, network={"deny_out": ["198.51.100.0/24"]})
    host, port = server.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=900)
    seen = []
    try:
        connection.request("GET", f"/glovebox/sandboxes/{sandbox.sandbox_id}/egress?follow=true&verdict=deny",
                           headers={"X-API-Key": server.key})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-ndjson"
        reader = threading.Thread(target=lambda: seen.extend(json.loads(line) for line in answer if line.strip()))
        reader.start()
        assert not reaches(sandbox, "curl -sS --max-time 4 http://198.51.100.1:80/")
        eventually(lambda: any(line["address"] == "198.51.100.1" for line in seen), 10)
        assert not reaches(sandbox, "curl -sS --max-time 4 http://198.51.100.2:80/")
        eventually(lambda: any(line["address"] == "198.51.100.2" for line in seen), 10)
    finally:
        sandbox.kill()
    reader.join(30)
    assert not reader.is_alive(), "the stream ends with the sandbox"
    connection.close()
    assert {line["verdict"] for line in seen} == {"deny"}
    # Of one that is gone it is the whole log, and then the end.
    followed = server.cli("sandbox", "egress", sandbox.sandbox_id, "--follow", "--json", "--verdict", "deny").stdout
    assert [json.loads(line) for line in followed.splitlines()] == seen


def test_who_stops_following_leaves_nothing_behind(server, base):
    token = (server.data / "admin-token").read_text().strip()

    def open_connections() -> float:
        text = server.request("GET", "/metrics", headers={"X-Admin-Token": token}, key=False)[1]
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith("glovebox_connections "))

    before = open_connections()
    host, port = server.url.removeprefix("http://").split(":")
    followers = []
    for _ in range(5):
        connection = http.client.HTTPConnection(host, int(port), timeout=900)
        connection.request("GET", f"/glovebox/sandboxes/{base.sandbox_id}/egress?follow=true",
                           headers={"X-API-Key": server.key})
        answer = connection.getresponse()
        assert answer.status == 200
        followers.append((connection, answer))
    assert open_connections() >= before + 5
    for connection, answer in followers:
        answer.close()
        connection.close()
    eventually(lambda: open_connections() <= before, 10)


def test_what_the_official_client_refuses_it_refuses_alone(server, base):
    with pytest.raises((InvalidArgumentException, SandboxException)):
        base.update_network({"egress_proxy": {}})
    with pytest.raises(SandboxException):
        base.update_network({"deny_out": ["example.com"]})
