# SPDX-License-Identifier: Apache-2.0
"""Pausing and copying sandboxes from the program's own command line."""
import json

import pytest


@pytest.fixture
def sandbox(server):
    _, made, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base"})
    yield made["sandboxID"]
    server.request("DELETE", f"/sandboxes/{made['sandboxID']}")


def asked(server, *arguments: str):
    done = server.cli(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


def state(server, sandbox_id: str) -> str:
    return server.request("GET", f"/sandboxes/{sandbox_id}")[1]["state"]


def test_pause_resume_and_fork(server, sandbox):
    asked(server, "sandbox", "pause", sandbox)
    assert state(server, sandbox) == "paused"
    again = server.cli("sandbox", "pause", sandbox)
    assert again.returncode != 0 and "already paused" in again.stderr
    assert server.cli("sandbox", "fork", sandbox).returncode != 0
    assert asked(server, "sandbox", "resume", sandbox, "--timeout", "120")["sandboxID"] == sandbox
    forks = asked(server, "sandbox", "fork", sandbox, "--count", "2", "--timeout", "60")
    ids = {fork["sandbox"]["sandboxID"] for fork in forks}
    assert len(ids | {sandbox}) == 3
    for one in ids:
        asked(server, "sandbox", "kill", one)
    table = server.cli("sandbox", "fork", sandbox).stdout.splitlines()
    assert table[0].split() == ["ID", "ERROR"] and len(table) == 2
    asked(server, "sandbox", "kill", table[1].split()[0])


def test_the_list_of_sandboxes_says_their_state(server, sandbox):
    def listed(*options: str) -> dict:
        return {item["sandboxID"]: item["state"] for item in asked(server, "sandbox", "list", *options)}

    assert listed()[sandbox] == listed("--state", "running")[sandbox] == "running"
    asked(server, "sandbox", "pause", sandbox)
    assert listed()[sandbox] == listed("--state", "paused")[sandbox] == "paused"
    assert sandbox not in listed("--state", "running")
    table = server.cli("sandbox", "list").stdout.splitlines()
    assert table[0].split() == ["ID", "TEMPLATE", "STATE", "STARTED", "ENDS"]
    assert "paused" in next(line for line in table if sandbox in line)
    assert server.cli("sandbox", "list", "--state", "asleep").returncode != 0


def test_snapshots(server, sandbox):
    made = asked(server, "snapshot", "create", sandbox, "--name", "kept:v1")
    assert made["snapshotID"] == "default/kept:v1"
    assert made["snapshotID"] in server.cli("snapshot", "list").stdout
    assert [item["snapshotID"] for item in asked(server, "snapshot", "list", "--sandbox", sandbox)] == [made["snapshotID"]]
    refused = server.cli("snapshot", "create", sandbox, "--name", "no name")
    assert refused.returncode != 0 and "invalid template name" in refused.stderr
    asked(server, "snapshot", "delete", "kept:v1")
    gone = server.cli("snapshot", "delete", "kept:v1")
    assert gone.returncode != 0 and "not found" in gone.stderr
