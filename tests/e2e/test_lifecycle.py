# SPDX-License-Identifier: Apache-2.0
"""Pausing, waking, ends of lifetimes, and what is told of them, over the bare API (contract 2.6, 7.1 to 7.4). Both generations of the API: case T12."""
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import eventually


@pytest.fixture
def make(server):
    made = []

    def create(**options) -> dict:
        status, body, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 120} | options)
        assert status == 201, body
        made.append(body["sandboxID"])
        return body

    yield create
    for sandbox_id in made:
        server.request("DELETE", f"/sandboxes/{sandbox_id}")


def state(server, sandbox_id: str) -> str | None:
    status, body, _ = server.request("GET", f"/sandboxes/{sandbox_id}")
    return body["state"] if status == 200 else None


def health(server, sandbox: dict, **headers):
    return server.request("GET", "/health", headers={"E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "49983"} | headers)


def test_of_several_pauses_resumes_and_connects_at_once_all_win(server, make):
    sandbox = make()
    path = f"/sandboxes/{sandbox['sandboxID']}"
    at_once = threading.Barrier(5)

    def five(call):
        def one():
            at_once.wait()
            return call()
        return [f.result() for f in [pool.submit(one) for _ in range(5)]]

    def resume():
        status = server.request("POST", f"{path}/resume", {"timeout": 60})[0]
        return status, state(server, sandbox["sandboxID"])

    with ThreadPoolExecutor(5) as pool:
        assert [status for status, _, _ in five(lambda: server.request("POST", f"{path}/pause", {}))] == [204] * 5
        assert server.request("POST", f"{path}/pause", {})[0] == 409
        assert five(resume) == [(201, "running")] * 5
        assert server.request("POST", f"{path}/resume", {"timeout": 60})[0] == 409
        assert server.request("POST", f"{path}/pause", {})[0] == 204
        assert state(server, sandbox["sandboxID"]) == "paused"
        assert health(server, sandbox)[0] == 502
        connected = [f.result() for f in [pool.submit(server.request, "POST", f"/v2{path}/connect", {"timeout": 60}) for _ in range(5)]]
    assert sorted(status for status, _, _ in connected) == [200, 200, 200, 200, 201]
    assert {body["envdAccessToken"] for _, body, _ in connected} == {sandbox["envdAccessToken"]}
    assert health(server, sandbox)[0] == 204


def test_a_lifetime_that_pauses_and_traffic_that_wakes(server, make):
    sandbox = make(timeout=3, autoPause=True, autoResume={"enabled": True})
    detail = server.request("GET", f"/sandboxes/{sandbox['sandboxID']}")[1]
    assert detail["lifecycle"] == {"autoResume": True, "onTimeout": "pause"}
    eventually(lambda: state(server, sandbox["sandboxID"]) == "paused", 20)
    assert health(server, sandbox)[0] == 502  # without the token
    assert state(server, sandbox["sandboxID"]) == "paused"
    assert health(server, sandbox, **{"X-Access-Token": sandbox["envdAccessToken"]})[0] == 204
    assert state(server, sandbox["sandboxID"]) == "running"


def test_events_tell_the_whole_life(server, make):
    sandbox = make(metadata={"kind": "event test"})
    path = f"/sandboxes/{sandbox['sandboxID']}"
    server.request("POST", f"{path}/timeout", {"timeout": 60})
    server.request("POST", f"{path}/pause", {})
    server.request("POST", f"{path}/resume", {"timeout": 60})
    server.request("DELETE", path)
    status, events, _ = server.request("GET", f"/events/sandboxes/{sandbox['sandboxID']}?orderAsc=true&limit=100")
    assert status == 200
    assert [event["type"].rsplit(".")[-1] for event in events] == ["created", "updated", "paused", "resumed", "killed"]
    assert events[0]["eventData"]["sandbox_metadata"] == {"kind": "event test"}
    assert events[4]["eventData"]["execution"]["vcpu_count"] >= 1
    assert len({event["sandboxExecutionId"] for event in events}) == 2
    assert server.request("GET", "/events/sandboxes?types=nonsense")[0] == 400


def test_the_team_sees_how_much_it_ran(server, make):
    make()
    [team] = server.request("GET", "/teams")[1]
    assert team["apiKey"] == server.key and team["isDefault"]
    points = server.request("GET", f"/teams/{team['teamID']}/metrics")[1]
    assert points and max(point["concurrentSandboxes"] for point in points) >= 1
    most = server.request("GET", f"/teams/{team['teamID']}/metrics/max?metric=concurrent_sandboxes")[1]
    assert most["value"] >= 1 and most["timestampUnix"] <= time.time()
    assert server.request("GET", f"/teams/{team['teamID']}/metrics/max?metric=sandbox_start_rate")[1]["value"] > 0
    assert server.request("GET", f"/teams/{team['teamID']}/metrics?start=notadate")[0] == 400
    assert server.request("GET", "/teams/other/metrics")[0] == 403
    usage = server.request("GET", "/glovebox/usage")[1]
    assert usage["total"]["vcpuSeconds"] > 0 and float(usage["total"]["totalUSD"]) >= 0


def test_prometheus_reads_with_the_operators_token(server, make):
    make()
    token = (server.data / "admin-token").read_text().strip()
    assert server.request("GET", "/metrics")[0] == 401
    status, text, headers = server.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"}, key=False)
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    assert 'glovebox_sandboxes{state="running"}' in text and "glovebox_api_requests_total{" in text
    assert "/sandboxes/{id}" in text or "/v2/sandboxes" in text
    assert token not in text and server.key not in text


def test_answers_and_the_log_share_an_id_and_no_secret(server, make):
    sandbox = make(envVars={"SECRET": "s3cr3t-4712"})
    status, body, headers = server.request("GET", "/sandboxes/inever")
    assert status == 404 and len(headers["X-Request-Id"]) == 16
    log = server.log()
    assert sandbox["sandboxID"] in log
    for secret in (server.key, sandbox["envdAccessToken"], "4712", (server.data / "token-seed").read_text().strip()):
        assert secret not in log
