# SPDX-License-Identifier: Apache-2.0
"""The server is killed at random moments under load, again and again: what it answered holds, and nothing else is left."""
import contextlib
import http.client
import os
import random
import sqlite3
import threading
import time

from conftest import eventually
from test_restart import OwnServer, own  # noqa: F401 (a fixture)

ROUNDS = 200 if os.environ.get("GLOVEBOX_LONG_TESTS") else 8
RUNNING, PAUSED, GONE = "running", "paused", "gone"


class Ledger:
    """What clients know: of each sandbox the states it may be in. Answered changes leave one, unanswered ones both."""

    def __init__(self):
        self.lock = threading.Lock()
        self.may_be: dict[str, set[str]] = {}
        self.ends: dict[str, float] = {}  # when the short-lived ones must be gone

    def begins(self, sandbox_id: str, target: str) -> None:
        with self.lock:
            self.may_be[sandbox_id].add(target)

    def settled(self, sandbox_id: str, *states: str) -> None:
        with self.lock:
            self.may_be[sandbox_id] = set(states)


class Client(threading.Thread):
    """Works on sandboxes of its own until the server is gone."""

    def __init__(self, server: OwnServer, ledger: Ledger, mine: set[str], seed: int):
        super().__init__(daemon=True)
        self.server, self.ledger, self.mine = server, ledger, mine
        self.random = random.Random(seed)
        self.stopping = False
        self.surprises: list[str] = []

    def run(self) -> None:
        while not self.stopping:
            try:
                self.step()
            except (OSError, http.client.HTTPException):
                return  # the server was killed

    def step(self) -> None:
        choice = self.random.random()
        if not self.mine or (choice < 0.4 and len(self.mine) < 2):
            self.create(short=choice < 0.1)
        else:
            sandbox_id = self.random.choice(sorted(self.mine))
            self.change(sandbox_id, choice)

    def create(self, short: bool) -> None:
        timeout = 2 if short else 3000
        status, body, _ = self.server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": timeout})
        if status != 201:
            return self.surprise("create", status, body)
        sandbox_id = body["sandboxID"]
        with self.ledger.lock:
            self.ledger.may_be[sandbox_id] = {RUNNING}
        if short:
            self.ledger.settled(sandbox_id, GONE)
            self.ledger.ends[sandbox_id] = time.time() + timeout
        else:
            self.mine.add(sandbox_id)

    def change(self, sandbox_id: str, choice: float) -> None:
        was_paused = PAUSED in self.ledger.may_be[sandbox_id]
        if choice < 0.6:
            method, path, body, target = "DELETE", f"/sandboxes/{sandbox_id}", None, GONE
        elif choice < 0.8 and not was_paused:
            method, path, body, target = "POST", f"/sandboxes/{sandbox_id}/pause", {}, PAUSED
        else:
            method, path, body, target = "POST", f"/v2/sandboxes/{sandbox_id}/connect", {"timeout": 3000}, RUNNING
        self.ledger.begins(sandbox_id, target)
        status, answer, _ = self.server.request(method, path, body)
        if status in (200, 201, 204):
            self.ledger.settled(sandbox_id, target)
        elif not (status == 404 and GONE in self.ledger.may_be[sandbox_id]):
            self.surprise(f"{method} {path}", status, answer)
        if target == GONE:
            self.mine.discard(sandbox_id)

    def surprise(self, what: str, status: int, body) -> None:
        # No memory left and limits are answers; anything else is not.
        if status not in (409, 429, 503):
            self.surprises.append(f"{what}: {status} {body}")


def states(server: OwnServer) -> dict[str, str]:
    found, token = {}, ""
    while True:
        status, items, headers = server.request("GET", f"/v2/sandboxes?limit=100{token}")
        assert status == 200
        found |= {item["sandboxID"]: item["state"] for item in items}
        if "X-Next-Token" not in headers:
            return found
        token = f"&nextToken={headers['X-Next-Token']}"


def check(server: OwnServer, ledger: Ledger) -> None:
    ready = time.time()
    overdue = [i for i, end in ledger.ends.items() if end < ready]
    eventually(lambda: not set(overdue) & set(states(server)), 5)
    seen = states(server)
    for sandbox_id, allowed in ledger.may_be.items():
        if sandbox_id in ledger.ends and ledger.ends[sandbox_id] >= ready:
            continue
        assert seen.get(sandbox_id, GONE) in allowed, (sandbox_id, seen.get(sandbox_id, GONE), allowed, server.log()[-3000:])
    unknown = set(seen) - set(ledger.may_be)  # created and never answered: they live, and end by their lifetime
    for sandbox_id in unknown:
        assert server.request("DELETE", f"/sandboxes/{sandbox_id}")[0] == 204
    running = [i for i, state in states(server).items() if state == RUNNING]
    eventually(lambda: len(server.machines()) == len([i for i, s in states(server).items() if s == RUNNING]), 20)
    eventually(lambda: {entry.name for entry in (server.data / "sandboxes").iterdir()} == set(states(server)), 20)
    assert len(running) <= len(seen)


def test_killed_at_random_moments_under_load(own):  # noqa: F811
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    ledger, mine = Ledger(), [set() for _ in range(3)]
    print("seed", seed)
    for number in range(ROUNDS):
        clients = [Client(own, ledger, mine[i], chance.randrange(1 << 30)) for i in range(3)]
        for client in clients:
            client.start()
        time.sleep(chance.uniform(0.05, 1.5))
        own.kill_hard()
        for client in clients:
            client.stopping = True
        for client in clients:
            client.join(60)
            assert client.surprises == [], (number, client.surprises)
        own.start()
        check(own, ledger)
        # From here on what was unanswered is known.
        seen = states(own)
        for owned in mine:
            for sandbox_id in list(owned):
                state = seen.get(sandbox_id, GONE)
                ledger.settled(sandbox_id, state)
                if state == GONE:
                    owned.discard(sandbox_id)
    for sandbox_id in states(own):
        assert own.request("DELETE", f"/sandboxes/{sandbox_id}")[0] == 204
    assert own.machines() == []
    assert not list((own.data / "sandboxes").iterdir())
    with contextlib.closing(sqlite3.connect(own.data / "glovebox.db")) as store:
        assert store.execute("SELECT count(*) FROM run WHERE ended_ms = 0").fetchone() == (0,)
        assert store.execute("SELECT count(*) FROM sandbox").fetchone() == (0,)
        created, killed = (store.execute("SELECT count(DISTINCT sandbox_id) FROM event WHERE type = ?",
                                         (f"sandbox.lifecycle.{what}",)).fetchone()[0] for what in ("created", "killed"))
        assert created == killed >= len(ledger.may_be)


