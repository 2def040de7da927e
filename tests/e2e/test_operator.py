# SPDX-License-Identifier: Apache-2.0
"""The commands of an operator and of a team: teams, keys, plans, the bill, events, webhooks, the doctor."""
import csv
import io
import json
import subprocess

import pytest
from conftest import GLOVEBOX, Server
from e2b import Sandbox

CONFIG = """
[plans.tiny]
max_sandboxes = 1
creates_per_second = 1000
[plans.slow]
max_sandboxes = 1
creates_per_second = 0.01
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    config = tmp_path_factory.mktemp("config") / "config.toml"
    config.write_text(CONFIG)
    running = Server("--config", str(config))
    yield running
    running.close()


def told(server, *arguments):
    """What a command prints as JSON."""
    done = server.cli(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def make_team(server, slug, plan="hobby"):
    team = told(server, "team", "create", slug.title(), "--slug", slug, "--plan", plan)
    assert team["slug"] == slug and team["plan"] == plan
    key = told(server, "key", "create", "tests", "--team", slug)
    return team, key


def create(server, key):
    return Sandbox.create("base", timeout=60, api_key=key, api_url=server.url, sandbox_url=server.url)


def as_team(server, key, *arguments, stdin=None):
    """A command with a team's key, as a client's machine runs it: no data folder."""
    return subprocess.run([GLOVEBOX, *arguments], capture_output=True, text=True, timeout=1800, input=stdin,
                          env={"E2B_API_URL": server.url, "E2B_API_KEY": key, "PATH": "/usr/bin:/bin"})


def test_n27_a_key_works_until_it_is_revoked(server):
    _, key = make_team(server, "alpha")
    assert key["key"].startswith("e2b_") and len(key["key"]) == 44
    sandbox = create(server, key["key"])
    try:
        assert sandbox.commands.run("echo hello").stdout == "hello\n"
        listed = told(server, "key", "list", "--team", "alpha")
        assert [item["id"] for item in listed] == [key["id"]] and key["key"] not in json.dumps(listed)
        table = server.cli("key", "list", "--team", "alpha").stdout
        assert key["id"] in table and key["key"] not in table
    finally:
        sandbox.kill()
    assert server.cli("key", "revoke", key["id"], "--team", "alpha").returncode == 0
    status, body, _ = server.request("GET", "/v2/sandboxes", headers={"X-API-Key": key["key"]}, key=False)
    assert status == 401 and "Invalid API key" in body["message"]
    again = server.cli("key", "revoke", key["id"], "--team", "alpha")
    assert again.returncode == 3 and "no such API key" in again.stderr
    shown = server.cli("key", "create", "shown", "--team", "alpha").stdout
    assert shown.splitlines()[0].startswith("key  e2b_")


def test_n26_teams_do_not_see_each_other(server):
    (_, one), (_, two) = make_team(server, "one"), make_team(server, "two")
    mine, other = create(server, one["key"]), create(server, two["key"])
    try:
        for key, own, foreign in ((one, mine, other), (two, other, mine)):
            headers = {"X-API-Key": key["key"]}
            listed = server.request("GET", "/v2/sandboxes", headers=headers, key=False)[1]
            assert [item["sandboxID"] for item in listed] == [own.sandbox_id]
            for method in ("GET", "DELETE"):
                assert server.request(method, f"/sandboxes/{foreign.sandbox_id}", headers=headers, key=False)[0] == 404
            events = as_team(server, key["key"], "event", "list", "--json")
            assert {event["sandboxId"] for event in json.loads(events.stdout)} == {own.sandbox_id}
    finally:
        mine.kill()
        other.kill()


def test_a_plan_limits_and_is_named(server):
    _, key = make_team(server, "small", "tiny")
    headers = {"X-API-Key": key["key"]}
    sandbox = create(server, key["key"])
    try:
        status, body, answered = server.request("POST", "/v2/sandboxes", {"templateID": "base"}, headers, key=False)
        assert status == 429 and "(1)" in body["message"] and "'tiny'" in body["message"]
        assert int(answered["Retry-After"]) >= 1
    finally:
        sandbox.kill()
    assert told(server, "team", "set-plan", "small", "slow")["plan"] == "slow"  # from the next request on
    status, body, answered = server.request("POST", "/v2/sandboxes", {"templateID": "base"}, headers, key=False)
    assert status == 429 and "'slow'" in body["message"] and int(answered["Retry-After"]) > 1
    wrong = server.cli("team", "set-plan", "small", "nonsense")
    assert wrong.returncode == 2 and "tiny" in wrong.stderr
    plans = {plan["name"]: plan for plan in told(server, "plan", "list")}
    assert plans["tiny"]["maxSandboxes"] == 1 and plans["hobby"]["maxSandboxes"] == 20


def test_the_bill_has_a_row_for_each_sandbox(server):
    team, key = make_team(server, "billed")
    ids = []
    for _ in range(2):
        sandbox = create(server, key["key"])
        ids.append(sandbox.sandbox_id)
        sandbox.kill()
    done = server.cli("usage", "--team", "billed", "--csv")
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == ["team_id", "sandbox_id", "template_id", "runs", "seconds", "vcpu_seconds", "gib_seconds",
                             "vcpu_usd", "memory_usd", "total_usd"]
    assert [row["sandbox_id"] for row in rows] == ids and {row["team_id"] for row in rows} == {team["teamID"]}
    assert all(float(row["seconds"]) > 0 and float(row["total_usd"]) > 0 for row in rows)
    usage = told(server, "usage", "--team", "billed")
    assert [row["sandboxID"] for row in usage["sandboxes"]] == ids and usage["total"]["runs"] == 2
    assert told(server, "usage", "--team", "billed", "--start", "2020-01-01", "--end", "2020-02-01")["sandboxes"] == []
    assert ids[0] in server.cli("usage", "--team", "billed").stdout
    assert server.cli("usage", "--start", "soon").returncode == 2
    assert server.cli("usage", "--team", "nobody").returncode == 3


def test_webhooks_are_made_with_a_secret_that_no_command_line_shows(server, tmp_path):
    _, key = make_team(server, "hooked")
    url = "https://hooks.example.com/x"
    made = as_team(server, key["key"], "webhook", "create", "--name", "h", "--url", url, "--event", "killed", "--json",
                   stdin="piped secret\n")
    webhook = json.loads(made.stdout)
    assert webhook["url"] == url and webhook["events"] == ["sandbox.lifecycle.killed"] and "piped" not in made.stdout
    (tmp_path / "secret").write_text("from a file\n")
    second = as_team(server, key["key"], "webhook", "create", "--name", "all", "--url", url, "--secret-file",
                     str(tmp_path / "secret"))
    assert second.returncode == 0 and "sandbox.lifecycle.paused" in second.stdout
    assert as_team(server, key["key"], "webhook", "create", "--name", "h", "--url", url, stdin="").returncode == 2
    assert len(json.loads(as_team(server, key["key"], "webhook", "list", "--json").stdout)) == 2
    assert told(server, "webhook", "list") == []  # of the default team
    assert as_team(server, key["key"], "webhook", "delete", webhook["id"]).returncode == 0
    assert webhook["id"] not in as_team(server, key["key"], "webhook", "list").stdout
    assert as_team(server, key["key"], "webhook", "delete", webhook["id"]).returncode == 3


def test_lists_are_tables_and_json(server):
    for command, title in ((["team", "list"], "SLUG"), (["plan", "list"], "MEMORY MIB"), (["node", "list"], "RUNNING"),
                           (["event", "list"], "SANDBOX"), (["webhook", "list"], "URL"), (["usage"], "USD"),
                           (["sandbox", "list"], "TEMPLATE")):
        plain = server.cli(*command)
        assert plain.returncode == 0 and title in plain.stdout.splitlines()[0], plain.stderr
        assert isinstance(told(server, *command), (list, dict))


def test_without_the_token_nobody_is_the_operator(server):
    (server.data / "admin-token").rename(server.data / "hidden")
    try:
        done = server.cli("team", "list")
        assert done.returncode == 3 and "token" in done.stderr
    finally:
        (server.data / "hidden").rename(server.data / "admin-token")
    assert server.request("GET", "/glovebox/teams")[0] == 401


def test_the_doctor_looks_at_the_configuration(server, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(f"port = {server.url.rsplit(':', 1)[1]}\n")
    found = {check["name"]: check for check in told_anyway(server, "doctor", "--config", str(config))}
    assert found["config"]["finding"] == "ok" and "running server" in found["port"]["text"]
    assert {"disk", "cache", "open files", "firewall", "conntrack", "clock", "cgroups", "kvm"} <= set(found)
    config.write_text("prot = 1\n")
    found = {check["name"]: check for check in told_anyway(server, "doctor", "--config", str(config))}
    assert found["config"]["finding"] == "BAD" and "'prot' is no setting" in found["config"]["text"]


def told_anyway(server, *arguments):
    """The JSON of a command that may find something wrong with this machine."""
    done = server.cli(*arguments, "--json")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)
