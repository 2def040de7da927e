# SPDX-License-Identifier: Apache-2.0
"""How long paused sandboxes are kept, and what they take of the disk."""
import json

import pytest
from conftest import Server, eventually

# Removed 8 s after the pause, told of it 4 s before.
CONFIG = f"[retention]\npaused_days = {8 / 86400}\nwarn_days = {4 / 86400}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    config = tmp_path_factory.mktemp("config") / "config.toml"
    config.write_text(CONFIG)
    running = Server("--config", str(config))
    yield running
    running.close()


def create(server) -> str:
    status, body, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300})
    assert status == 201, body
    return body["sandboxID"]


def events(server, sandbox_id):
    return [(e["type"].rsplit(".", 1)[1], e["eventData"]) for e in
            server.request("GET", f"/events/sandboxes/{sandbox_id}?orderAsc=true&limit=100")[1]]


def test_a_paused_sandbox_is_announced_and_removed_and_a_resumed_one_is_not(server):
    gone, woken = create(server), create(server)
    for sandbox_id in (gone, woken):
        assert server.request("POST", f"/sandboxes/{sandbox_id}/pause", {})[0] == 204
    eventually(lambda: any(kind == "expiring" for kind, _ in events(server, woken)))
    assert server.request("POST", f"/v2/sandboxes/{woken}/connect", {"timeout": 300})[0] == 201
    eventually(lambda: server.request("GET", f"/sandboxes/{gone}")[0] == 404)
    told = eventually(lambda: [event for event in events(server, gone) if event[0] in ("expiring", "killed")][1:]
                      and events(server, gone))
    assert [kind for kind, _ in told] == ["created", "paused", "expiring", "killed"]
    assert told[2][1]["remove_at"] and "paused for longer" in told[3][1]["reason"]
    assert server.request("GET", f"/sandboxes/{woken}")[1]["state"] == "running"
    logs = server.request("GET", f"/v2/sandboxes/{woken}/logs")[1]["logs"]
    warnings = [entry for entry in logs if entry["level"] == "warn"]
    assert len(warnings) == 1 and "will be removed at" in warnings[0]["message"]
    assert warnings[0]["fields"]["logger"] == "sandbox"
    server.request("DELETE", f"/sandboxes/{woken}")


def test_the_event_can_be_subscribed_to(server):
    hook = {"name": "h", "url": "https://hooks.example.com/x", "enabled": True, "signatureSecret": "s",
            "events": ["sandbox.lifecycle.expiring"]}
    status, body, _ = server.request("POST", "/events/webhooks", hook)
    assert status == 201 and body["events"] == hook["events"]
    assert server.request("GET", "/events/sandboxes?types=sandbox.lifecycle.expiring")[0] == 200
    server.request("DELETE", f"/events/webhooks/{body['id']}")


def test_the_disk_is_counted_by_team(server):
    sandbox_id = create(server)
    try:
        folder = server.data / "sandboxes" / sandbox_id

        def blocks():
            own = [path for path in folder.rglob("*") if path.is_dir() or path.lstat().st_nlink == 1]
            return sum(path.lstat().st_blocks * 512 for path in [folder, *own])

        def team():
            done = server.cli("disk", "--team", "default", "--json")
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)[0]

        row = team()
        assert row["runningCount"] == 1 and row["pausedCount"] == 0 and row["runningBytes"] > 0
        assert server.request("POST", f"/sandboxes/{sandbox_id}/pause", {})[0] == 204
        row = team()
        assert (row["runningCount"], row["pausedCount"], row["runningBytes"]) == (0, 1, 0)
        assert row["pausedBytes"] == row["totalBytes"] == blocks() > 0  # nothing writes there now
        assert row["largest"] == [{"sandboxID": sandbox_id, "alias": "base", "state": "paused", "bytes": row["pausedBytes"]}]
        everyone = json.loads(server.cli("disk", "--json").stdout)
        assert [team["slug"] for team in everyone] == ["default"] and "largest" not in everyone[0]
        assert sandbox_id in server.cli("disk", "--team", "default").stdout
        assert "TOTAL" in server.cli("disk").stdout.splitlines()[0]
        assert server.cli("disk", "--team", "nobody").returncode == 3
        # A team sees its own, and nobody else's.
        own = eventually(lambda: [body for body in [server.request("GET", "/disk")[1]] if body["pausedCount"]])[0]
        assert own["pausedBytes"] == row["pausedBytes"] and own["slug"] == "default"
        server.cli("team", "create", "other", "--slug", "other")
        key = json.loads(server.cli("key", "create", "k", "--team", "other", "--json").stdout)["key"]
        other = server.request("GET", "/disk", headers={"X-API-Key": key}, key=False)[1]
        assert other["slug"] == "other" and other["totalBytes"] == 0 and other["largest"] == []
        assert server.request("GET", "/admin/disk")[0] == 401
        assert server.request("GET", "/disk", key=False)[0] == 401
        token = (server.data / "admin-token").read_text().strip()
        metrics = server.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"}, key=False)[1]
        assert 'glovebox_disk_bytes{team="default"}' in metrics
    finally:
        server.request("DELETE", f"/sandboxes/{sandbox_id}")
