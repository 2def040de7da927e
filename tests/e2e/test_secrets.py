# SPDX-License-Identifier: Apache-2.0
"""Secrets of a team, with the official client: write-only values that header rules of sandboxes name (contract 2.4, 7.6)."""
import json
import stat
import uuid

import pytest
from e2b import Sandbox, Secret
from e2b.exceptions import SandboxException, SecretException, SecretNotFoundException

VALUE = "sk-" + uuid.uuid4().hex  # in no answer, log or file


@pytest.fixture
def name():
    """A name that no other test has; the secret is removed afterwards."""
    own = "key-" + uuid.uuid4().hex[:12]
    yield own
    Secret.destroy(own)


def test_create_update_look_up_and_destroy(server, name):
    made = Secret.create(name, VALUE, metadata={"env": "test"})
    assert made.secret_id.startswith("sec_") and made.name == name
    assert made.version == 1 and made.metadata == {"env": "test"}
    assert Secret.get_info(made.secret_id).name == name
    assert Secret.get_info(name).secret_id == made.secret_id
    assert Secret.exists(name) and Secret.exists(made.secret_id)
    updated = Secret.update(made.secret_id, VALUE + "2")
    assert (updated.secret_id, updated.version, updated.metadata) == (made.secret_id, 2, {"env": "test"})
    assert Secret.update(name, VALUE + "3", metadata={}).metadata == {}
    assert updated.created_at == made.created_at and updated.updated_at >= made.updated_at
    assert Secret.destroy(made.secret_id)
    assert not Secret.destroy(made.secret_id) and not Secret.exists(name)


def test_what_is_missing_is_not_found(server):
    missing = "missing-" + uuid.uuid4().hex
    with pytest.raises(SecretNotFoundException):
        Secret.get_info(missing)
    with pytest.raises(SecretNotFoundException):
        Secret.update(missing, "value")
    assert not Secret.destroy(missing)


def test_names_are_unique_and_not_case_sensitive(server, name):
    assert Secret.create(name.upper(), VALUE).name == name
    with pytest.raises(SecretException) as refused:
        Secret.create(name, VALUE)
    assert "409" in str(refused.value) and VALUE not in str(refused.value)
    assert Secret.get_info(name.upper()).name == name


def test_lists_come_in_pages(server):
    made = {Secret.create(f"page-{uuid.uuid4().hex[:12]}", VALUE).secret_id for _ in range(3)}
    try:
        paginator, seen, pages = Secret.list(limit=2), [], 0
        while paginator.has_next:
            page = paginator.next_items()
            assert len(page) <= 2
            seen += [secret.secret_id for secret in page]
            pages += 1
        assert made <= set(seen) and len(seen) == len(set(seen)) and pages >= 2
        assert server.request("GET", "/secrets?limit=0")[0] == 400
        assert server.request("GET", "/secrets?nextToken=nonsense")[0] == 400
    finally:
        for secret_id in made:
            Secret.destroy(secret_id)


@pytest.mark.parametrize("body", [
    {}, {"name": "a"}, {"name": "a", "value": ""}, {"name": "a b", "value": VALUE}, {"name": "sec_a", "value": VALUE},
    {"name": "a" * 129, "value": VALUE}, {"name": "a", "value": VALUE + "\n"}, {"name": "a", "value": [VALUE]},
    {"name": "a", "value": VALUE, "metadata": {"k": "x" * 1025}}, {"name": "a", "value": VALUE, "metadata": {"k": 1}}])
def test_what_is_no_secret_is_400_without_the_value(server, body):
    status, answer, _ = server.request("POST", "/secrets", body)
    assert status == 400 and answer["code"] == 400 and VALUE not in json.dumps(answer)


def test_another_team_sees_nothing(server, name):
    made = Secret.create(name, VALUE)
    team = json.loads(server.cli("team", "create", f"other-{uuid.uuid4().hex[:8]}", "--json").stdout)
    key = json.loads(server.cli("key", "create", "k", "--team", team["slug"], "--json").stdout)["key"]
    headers = {"X-API-Key": key}
    for path in (f"/secrets/{made.secret_id}", f"/secrets/{name}"):
        assert server.request("GET", path, headers=headers, key=False)[0] == 404
        assert server.request("POST", path, {"value": "x"}, headers=headers, key=False)[0] == 404
        assert server.request("DELETE", path, headers=headers, key=False)[0] == 404
    assert server.request("GET", "/secrets", headers=headers, key=False)[1] == []
    rules = {"api.example.com": [{"transform": {"headers": {"A": Secret.fill(name)}}}]}
    status, answer, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base", "network": {"rules": rules}},
                                       headers=headers, key=False)
    assert status == 400 and name in answer["message"]


def test_a_rule_names_only_secrets_that_there_are(server, base, name):
    rules = {"api.example.com": [{"transform": {"headers": {"Authorization": "Bearer " + Secret.fill(name)}}}]}
    before = server.request("GET", "/v2/sandboxes")[1]
    for call in (lambda: Sandbox.create("base", network={"rules": rules}),
                 lambda: base.update_network({"rules": rules})):
        with pytest.raises(SandboxException) as refused:
            call()
        assert name in str(refused.value)
    assert server.request("GET", "/v2/sandboxes")[1] == before
    Secret.create(name, VALUE)
    base.update_network({"rules": rules})
    shown = server.request("GET", f"/sandboxes/{base.sandbox_id}")[1]["network"]
    assert shown["rules"] == rules
    # A secret may be removed while rules name it; requests fail then, and the rules stay as they were.
    assert Secret.destroy(name)
    assert server.request("GET", f"/sandboxes/{base.sandbox_id}")[1]["network"]["rules"] == rules


def test_the_value_is_nowhere_in_clear(server, name):
    Secret.create(name, VALUE, metadata={"env": "test"})
    Secret.update(name, VALUE + "-two")
    mode = (server.data / "secret-key").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    for file in server.data.iterdir():
        if file.is_file():
            assert VALUE.encode() not in file.read_bytes(), file
    for path in ("/secrets", f"/secrets/{name}", "/events/sandboxes"):
        assert VALUE not in json.dumps(server.request("GET", path)[1])
