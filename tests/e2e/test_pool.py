# SPDX-License-Identifier: Apache-2.0
"""Sandboxes from the warm pool, as clients and operators see them."""
import contextlib
import json

import pytest
from conftest import Server, eventually
from e2b import Sandbox


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    config = tmp_path_factory.mktemp("pool") / "config.toml"
    config.write_text("[pool]\nmost = 0\n[pool.templates.base]\nleast = 1\nmost = 1\n")
    server = Server("--config", str(config))
    yield server
    server.close()


def node(server: Server) -> dict:
    return json.loads(server.cli("node", "list", "--json").stdout)[0]


def counted(server: Server, line: str) -> int:
    token = (server.data / "admin-token").read_text().strip()
    text = server.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"}, key=False)[1]
    return int(float(next(found.split()[-1] for found in text.splitlines() if found.startswith(line + " "))))


def test_one_that_waits_is_nobodys_and_then_somebodys(pooled):
    eventually(lambda: node(pooled)["warm"] == {"base": 1}, 60)
    assert "base 1" in pooled.cli("node", "list").stdout
    assert counted(pooled, 'glovebox_warm_sandboxes{template="base"}') == 1
    assert pooled.request("GET", "/v2/sandboxes")[1] == [] and node(pooled)["sandboxCount"] == 0
    before = counted(pooled, 'glovebox_creates_total{from="pool"}')
    sandbox = Sandbox.create("base", timeout=60, envs={"MINE": "yes"}, api_key=pooled.key, api_url=pooled.url, sandbox_url=pooled.url)
    try:
        assert counted(pooled, 'glovebox_creates_total{from="pool"}') == before + 1
        assert counted(pooled, 'glovebox_creates_total{from="restore"}') == 0
        said = sandbox.commands.run("echo $MINE $E2B_SANDBOX_ID; hostname; ls -A /tmp | wc -l").stdout.split()
        assert said == ["yes", sandbox.sandbox_id, sandbox.sandbox_id, "0"]
        assert [row["sandboxID"] for row in pooled.request("GET", "/v2/sandboxes")[1]] == [sandbox.sandbox_id]
        logs = pooled.request("GET", f"/sandboxes/{sandbox.sandbox_id}/logs")[1]
        assert not any("/tmp/" in json.dumps(entry) for entry in logs["logEntries"]), "nothing of the exercise"
        eventually(lambda: node(pooled)["warm"] == {"base": 1}, 60)
    finally:
        sandbox.kill()


def test_no_pool_at_all():
    with contextlib.closing(Server("--pool", "0")) as server:
        status, made, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60})
        assert status == 201 and node(server)["warm"] == {}
        assert [entry.name for entry in (server.data / "sandboxes").iterdir()] == [made["sandboxID"]]
