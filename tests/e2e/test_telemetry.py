# SPDX-License-Identifier: Apache-2.0
"""Metrics and logs of sandboxes, from the guest to the answer (contract 2.4, 2.6, 6)."""
import datetime
import json
import subprocess
import time
import uuid

import pytest
from conftest import ROOT, eventually
from e2b import CommandExitException, Sandbox


def lines(server, sandbox_id: str, query: str = "", headers=None) -> list[dict]:
    """The log as the command line reads it: each line is a JSON document."""
    status, body, _ = server.request("GET", f"/sandboxes/{sandbox_id}/logs{query}", headers=headers, key=headers is None)
    assert status == 200, body
    assert [json.loads(item["line"])["message"] for item in body["logs"]] == [item["message"] for item in body["logEntries"]]
    return [json.loads(item["line"]) for item in body["logs"]]


@pytest.fixture(scope="module")
def other_team(server):
    """Headers with a key of another team."""
    admin = {"X-Admin-Token": (server.data / "admin-token").read_text().strip()}
    status, team, _ = server.request("POST", "/glovebox/teams", {"name": uuid.uuid4().hex}, admin, key=False)
    assert status == 201, team
    status, key, _ = server.request("POST", f"/glovebox/teams/{team['teamID']}/keys", {"name": "k"}, admin, key=False)
    assert status == 201, key
    return {"X-API-Key": key["key"]}


def test_metrics_appear_within_seconds_and_are_plausible(server, base):
    first = eventually(base.get_metrics, 30)[0]
    assert first.cpu_count == base.get_info().cpu_count
    assert 0 <= first.cpu_used_pct <= 100 * first.cpu_count
    assert 0 < first.mem_used < first.mem_total and 0 < first.disk_used < first.disk_total
    base.commands.run("timeout 8 sh -c 'while :; do :; done' || true")
    points = eventually(lambda: [p for p in base.get_metrics() if p.cpu_used_pct > 20], 20)
    assert all(p.timestamp >= first.timestamp for p in points)
    times = [p.timestamp for p in base.get_metrics()]
    assert times == sorted(times)


def test_metrics_of_a_range(server, base):
    eventually(base.get_metrics, 30)
    now = datetime.datetime.now(datetime.timezone.utc)
    before = now - datetime.timedelta(hours=3)
    assert base.get_metrics(start=before, end=before + datetime.timedelta(hours=1)) == []
    assert base.get_metrics(start=now - datetime.timedelta(minutes=5), end=now + datetime.timedelta(minutes=1))
    path = f"/sandboxes/{base.sandbox_id}/metrics"
    assert server.request("GET", path + "?start=5&end=1")[0] == 400
    assert server.request("GET", path + "?start=yesterday")[0] == 400


def test_latest_metrics_of_several(server, base, other_team):
    eventually(base.get_metrics, 30)
    for query in (f"?sandbox_ids={base.sandbox_id},nosuch", f"?sandbox_ids=nosuch&sandbox_ids={base.sandbox_id}-6532622b"):
        status, body, _ = server.request("GET", "/sandboxes/metrics" + query)
        assert status == 200 and list(body["sandboxes"]) == [base.sandbox_id]
        assert body["sandboxes"][base.sandbox_id]["cpuCount"] >= 1
    assert server.request("GET", "/sandboxes/metrics")[0] == 400
    status, body, _ = server.request("GET", f"/sandboxes/metrics?sandbox_ids={base.sandbox_id}", headers=other_team, key=False)
    assert (status, body) == (200, {"sandboxes": {}})


def test_logs_name_what_happened_and_no_secret(server):
    secret, mark = uuid.uuid4().hex, uuid.uuid4().hex
    sandbox = Sandbox.create("base", timeout=120, envs={"GLOBAL_SECRET": secret})
    try:
        sandbox.commands.run(f"echo {mark}", envs={"COMMAND_SECRET": secret})
        with pytest.raises(CommandExitException):
            sandbox.commands.run(f"exit 7 # {mark}")
        sandbox.files.write("/home/user/uploaded.txt", "12345")
        sandbox.files.remove("/home/user/uploaded.txt")
        seen = lines(server, sandbox.sandbox_id)  # at once: what was done before is in it
        text = json.dumps(seen)
        messages = [line["message"] for line in seen]
        started = next(line for line in seen if f"echo {mark}" in line["message"] and "started" in line["message"])
        assert started["logger"] == "process" and started["level"] == "info"
        assert started["user"] == "user" and started["cwd"] == "/home/user" and int(started["pid"]) > 1
        assert any("ended with exit code 0" in m and f"echo {mark}" in m for m in messages)
        ended = next(line for line in seen if line.get("exit_code") == "7")
        assert mark in ended["message"] and int(ended["duration_ms"]) >= 0
        uploaded = next(line for line in seen if line["message"] == "uploaded: /home/user/uploaded.txt")
        assert uploaded["logger"] == "filesystem" and uploaded["size"] == "5"
        assert "removed: /home/user/uploaded.txt" in messages
        assert any(line["logger"] == "sandbox" and line["message"] == "sandbox created" for line in seen)
        token = server.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]["envdAccessToken"]
        assert secret not in text and token not in text and server.key not in text
        # S4: nothing of the time when the template was made.
        created = datetime.datetime.fromisoformat(server.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]["startedAt"].replace("Z", "+00:00"))
        for line in seen:
            at = datetime.datetime.fromisoformat(line["timestamp"].replace("Z", "+00:00"))
            assert abs((at - created).total_seconds()) < 90, line
        assert sum(line["message"] == "identity taken" for line in seen) == 1
    finally:
        sandbox.kill()


def test_a_process_killed_for_memory_is_told(server, base):
    with pytest.raises(CommandExitException):
        base.commands.run("python3 -c 'kept = [b\"x\" * (1 << 25) for _ in range(100)]'", timeout=120)
    told = eventually(lambda: [line for line in lines(server, base.sandbox_id) if line["level"] == "error"], 20)
    assert "out of memory" in told[0]["message"] and int(told[0]["killed"]) >= 1


def test_logs_are_searched_paged_and_followed(server, base):
    base.commands.run("echo needle-one")
    base.commands.run("echo needle-two")
    path = f"/v2/sandboxes/{base.sandbox_id}/logs"
    status, body, _ = server.request("GET", path + "?search=needle&direction=forward")
    assert status == 200
    found = [entry["message"] for entry in body["logs"]]
    assert len(found) == 4 and "needle-one" in found[0] and "needle-two" in found[3]
    newest = server.request("GET", path + "?search=needle&limit=1")[1]["logs"]
    assert [entry["message"] for entry in newest] == [found[3]]
    assert set(newest[0]) == {"timestamp", "level", "message", "fields"} and newest[0]["fields"]["logger"] == "process"
    assert server.request("GET", path + "?level=error")[1] == {"logs": []}
    at = datetime.datetime.fromisoformat(body["logs"][2]["timestamp"].replace("Z", "+00:00"))
    cursor = round(at.timestamp() * 1000)
    forward = server.request("GET", path + f"?search=needle&direction=forward&cursor={cursor}")[1]["logs"]
    assert [entry["message"] for entry in forward][-2:] == found[2:]
    for bad in ("direction=up", "level=loud", "limit=1001", "cursor=x"):
        assert server.request("GET", f"{path}?{bad}")[0] == 400, bad
    # As the command line follows: from after the last line.
    last = lines(server, base.sandbox_id)[-1]
    start = round(datetime.datetime.fromisoformat(last["timestamp"].replace("Z", "+00:00")).timestamp() * 1000) + 1
    base.commands.run("echo needle-three")
    assert all("needle-three" in line["message"] for line in lines(server, base.sandbox_id, f"?start={start}"))
    assert lines(server, base.sandbox_id, f"?start={start}")


def test_what_has_ended_stays_readable_for_its_team_alone(server, other_team):
    sandbox = Sandbox.create("base", timeout=120)
    eventually(sandbox.get_metrics, 30)
    sandbox.commands.run("echo last-words")
    paths = [f"/sandboxes/{sandbox.sandbox_id}/metrics", f"/sandboxes/{sandbox.sandbox_id}/logs", f"/v2/sandboxes/{sandbox.sandbox_id}/logs"]
    for _ in range(2):  # while it runs, and when it has ended
        for path in paths:
            assert server.request("GET", path)[0] == 200
            status, body, _ = server.request("GET", path, headers=other_team, key=False)
            assert status == 404 and body["code"] == 404, path
        sandbox.kill()
    messages = [line["message"] for line in lines(server, sandbox.sandbox_id)]
    assert any("ended with exit code 0" in m and "last-words" in m for m in messages)
    assert messages[-1] == "sandbox killed: killed by a request"
    assert server.request("GET", paths[0])[1]
    for path in ("/sandboxes/inever0/metrics", "/sandboxes/inever0/logs", "/v2/sandboxes/inever0/logs"):
        assert server.request("GET", path)[0] == 404


def test_what_is_done_just_before_a_kill_is_logged(server):
    def logged(sandbox, mark):
        return any("exit code 0" in line["message"] and mark in line["message"] for line in lines(server, sandbox.sandbox_id))

    def try_once():
        # A guest that was asked within the second before its end is not asked again: then another one has to show it.
        sandbox, mark = Sandbox.create("base", timeout=120), uuid.uuid4().hex
        sandbox.commands.run(f"echo {mark}")
        sandbox.kill()
        time.sleep(0.5)  # for the disk
        return logged(sandbox, mark)

    assert any(try_once() for _ in range(5))


def test_the_agents_telemetry_is_not_reachable(server, base):
    token = server.request("GET", f"/sandboxes/{base.sandbox_id}")[1]["envdAccessToken"]
    headers = {"E2b-Sandbox-Id": base.sandbox_id, "E2b-Sandbox-Port": "49983", "X-Access-Token": token}
    assert server.request("GET", "/telemetry", headers=headers)[0] == 404
    assert base.commands.run("curl -s -o /dev/null -w '%{http_code}' http://localhost:49983/telemetry").stdout == "403"


def test_a_guest_that_does_not_answer_harms_only_itself(server, base):
    hung = Sandbox.create("base", timeout=120)
    # Takes its network device down: nobody reaches its agent any more.
    hung.commands.run("sleep 0.3; ip link set eth0 down", user="root", background=True)
    time.sleep(1)
    status, body, _ = server.request("GET", f"/sandboxes/{hung.sandbox_id}/logs")
    assert status == 200 and body["logs"]
    assert eventually(base.get_metrics, 30)
    assert server.request("DELETE", f"/sandboxes/{hung.sandbox_id}")[0] == 204
    assert server.request("GET", f"/sandboxes/{hung.sandbox_id}/logs")[0] == 200


def test_the_command_line_shows_logs_and_metrics(server, base):
    program = ROOT / "build/npm/node_modules/.bin/e2b"
    if not program.exists():
        pytest.skip("@e2b/cli is not installed in build/npm")
    eventually(base.get_metrics, 30)
    base.commands.run("echo from-the-cli")
    for arguments, expected in ((["logs", base.sandbox_id], "from-the-cli"), (["metrics", base.sandbox_id], "CPU")):
        node = ROOT / "build/npm/node_modules/.bin/node"
        done = subprocess.run([*([str(node)] if node.exists() else ["node"]), str(program.resolve()), "sandbox", *arguments], capture_output=True, text=True, timeout=1800, stdin=subprocess.DEVNULL)
        assert done.returncode == 0 and expected in done.stdout, (done.stdout, done.stderr)
