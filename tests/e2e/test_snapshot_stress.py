# SPDX-License-Identifier: Apache-2.0
"""Pauses, resumes, snapshots, forks and kills at random and in parallel. Every sandbox carries a program with a secret of its line in
its memory, a file in memory and a file on its disk; whatever happened to it and to those it comes from, they are intact at the end,
and when all is killed nothing is left. 30 s, or ten minutes with GLOVEBOX_LONG_TESTS=1."""
import collections
import hashlib
import os
import random
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from types import SimpleNamespace

from conftest import eventually
from raw_agent import Agent
from test_faults import cgroups_of
from test_lifecycle_cases import many, template  # noqa: F401 (a fixture)
from test_restart import OwnServer

SECONDS = 600 if os.environ.get("GLOVEBOX_LONG_TESTS") == "1" else 30
WORKERS = 4
MOST_RUNNING = 10
MOST_GUESTS = 24
MOST_SNAPSHOTS = 6
# Its buffer is the program's own memory and nobody else's; a signal makes it tell the hash.
HOLDER = """
import hashlib, signal, sys
name = open("/dev/shm/name").read()
buffer = hashlib.shake_128(b"program" + name.encode()).digest(8 << 20)
def tell(*_):
    open("/dev/shm/told", "w").write(hashlib.sha256(buffer).hexdigest() + "\\n")
signal.signal(signal.SIGUSR1, tell)
tell()
while True: signal.pause()
"""


def content(kind: str, name: str, size: int) -> bytes:
    return hashlib.shake_128((kind + name).encode()).digest(size)


def hash_of(kind: str, name: str, size: int) -> str:
    return hashlib.sha256(content(kind, name, size)).hexdigest()


@dataclass(eq=False)
class Guest:
    """What a client knows of a sandbox: its line is what it must hold, and grows by a letter at every change of its files."""
    id: str
    token: str
    line: str
    pid: int
    paused: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(eq=False)
class Snapshot:
    id: str
    line: str
    pid: int
    users: int = 0


class Stress:
    def __init__(self, server: OwnServer, seed: int):
        self.server = server
        self.lock = threading.Lock()
        self.guests: list[Guest] = []
        self.snapshots: list[Snapshot] = []
        self.reserved = 0
        self.did = collections.Counter()
        self.problems: list[str] = []
        self.random = random.Random(seed)
        self.over = threading.Event()
        self.serial = 0

    def agent(self, guest: Guest) -> Agent:
        return Agent(self.server, SimpleNamespace(sandbox_id=guest.id), token=guest.token)

    # Places among the running ones.
    def take_places(self, count: int, new: bool) -> bool:
        with self.lock:
            running = sum(not guest.paused for guest in self.guests) + self.reserved
            if running + count > MOST_RUNNING or (new and len(self.guests) + self.reserved >= MOST_GUESTS):
                return False
            self.reserved += count
            return True

    def give_places(self, count: int) -> None:
        with self.lock:
            self.reserved -= count

    def request(self, method: str, path: str, body=None, allowed=(200, 201, 204)):
        status, answer, _ = self.server.request(method, path, body)
        if status not in allowed:
            raise AssertionError(f"{method} {path}: {status} {answer}")
        return answer

    # What can be done. Each is called with the guest's lock held, if it is about one.

    def create(self) -> None:
        with self.lock:
            self.serial += 1
            line = f"{self.serial}"
        body = self.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 3000, "metadata": {"line": line}})
        guest = Guest(body["sandboxID"], body["envdAccessToken"], line, 0)
        with self.agent(guest) as agent:
            agent.upload("/dev/shm/name", line.encode())
            agent.upload("/dev/shm/holder.py", HOLDER.encode())
            stream = agent.start("/usr/bin/python3", "/dev/shm/holder.py")
            guest.pid = stream.process().pid
            stream.drop()
        with self.agent(guest) as agent:
            wanted = f"{hash_of('program', line, 8 << 20)}\n".encode()
            eventually(lambda: agent.download("/dev/shm/told")[:2] == (200, wanted), 60)
            self.write(agent, line)
        with self.lock:
            self.guests.append(guest)

    @staticmethod
    def write(agent: Agent, line: str) -> None:
        assert agent.upload("/dev/shm/memory", content("memory", line, 1 << 20))[0] == 200
        assert agent.upload("/home/user/disk", content("disk", line, 2 << 20))[0] == 200

    def change(self, guest: Guest) -> None:
        with self.agent(guest) as agent:
            self.write(agent, guest.line + "x")
        guest.line += "x"

    def check(self, guest: Guest) -> None:
        name = guest.line.rstrip("x")
        with self.agent(guest) as agent:
            done = agent.run("/bin/sh", "-c", f"rm -f /dev/shm/told; kill -USR1 {guest.pid}; "
                             "sha256sum < /dev/shm/memory; sha256sum < /home/user/disk; cat /dev/shm/name; "
                             "for i in $(seq 600); do grep -qs . /dev/shm/told && break; sleep 0.05; done; echo; cat /dev/shm/told")
        told = [line.split()[0] for line in done.stdout.decode().splitlines()]
        wanted = [hash_of("memory", guest.line, 1 << 20), hash_of("disk", guest.line, 2 << 20), name, hash_of("program", name, 8 << 20)]
        assert told == wanted, (guest, told, wanted)

    def pause(self, guest: Guest) -> None:
        self.request("POST", f"/sandboxes/{guest.id}/pause", {})
        guest.paused = True

    def resume(self, guest: Guest) -> None:
        self.request("POST", f"/v2/sandboxes/{guest.id}/connect", {"timeout": 3000})
        guest.paused = False

    def snapshot(self, guest: Guest) -> None:
        body = self.request("POST", f"/sandboxes/{guest.id}/snapshots", {})
        with self.lock:
            self.snapshots.append(Snapshot(body["snapshotID"], guest.line, guest.pid))

    def start_from(self, snapshot: Snapshot) -> None:
        body = self.request("POST", "/v2/sandboxes", {"templateID": snapshot.id, "timeout": 3000})
        with self.lock:
            self.guests.append(Guest(body["sandboxID"], body["envdAccessToken"], snapshot.line, snapshot.pid))

    def fork(self, guest: Guest, count: int) -> None:
        made = self.request("POST", f"/sandboxes/{guest.id}/fork", {"count": count, "timeout": 3000})
        assert len(made) == count and all("sandbox" in one for one in made), made
        with self.lock:
            self.guests += [Guest(one["sandbox"]["sandboxID"], one["sandbox"]["envdAccessToken"], guest.line, guest.pid) for one in made]

    def kill(self, guest: Guest) -> None:
        self.request("DELETE", f"/sandboxes/{guest.id}")
        with self.lock:
            self.guests.remove(guest)

    def drop(self, snapshot: Snapshot) -> None:
        refused = self.request("DELETE", template(snapshot.id), allowed=(204, 409))  # while one who came from it is there
        if refused:
            with self.lock:
                self.snapshots.append(snapshot)

    def step(self, chance: random.Random) -> None:
        what = chance.choices(["create", "change", "check", "pause", "resume", "snapshot", "start", "fork", "kill", "drop"],
                              [2, 3, 3, 4, 5, 2, 3, 2, 2, 1])[0]
        if what in ("create", "start", "fork", "resume"):
            count = chance.randint(1, 2) if what == "fork" else 1
            if not self.take_places(count, what != "resume"):
                what = "kill" if chance.random() < 0.3 else "check"
        try:
            if what == "create":
                self.create()
            elif what in ("start", "drop"):
                with self.lock:
                    if not self.snapshots:
                        return
                    snapshot = chance.choice(self.snapshots)
                    if what == "drop":
                        if snapshot.users:
                            return
                        self.snapshots.remove(snapshot)
                    else:
                        snapshot.users += 1
                if what == "drop":
                    self.drop(snapshot)
                else:
                    try:
                        self.start_from(snapshot)
                    finally:
                        with self.lock:
                            snapshot.users -= 1
            else:
                with self.lock:
                    fitting = [guest for guest in self.guests if guest.paused == (what == "resume") or what == "kill"]
                    if not fitting or (what == "snapshot" and len(self.snapshots) >= MOST_SNAPSHOTS):
                        return
                    guest = chance.choice(fitting)
                if not guest.lock.acquire(blocking=False):
                    return  # somebody works on it
                try:
                    if guest not in self.guests or (guest.paused != (what == "resume") and what != "kill"):
                        return
                    self.fork(guest, count) if what == "fork" else getattr(self, what)(guest)
                finally:
                    guest.lock.release()
            self.did[what] += 1
        finally:
            if what in ("create", "start", "fork", "resume"):
                self.give_places(count)

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self.over.is_set():
            try:
                self.step(chance)
            except Exception as error:  # whatever it is, it is the result
                self.problems.append(repr(error))
                self.over.set()

    def run(self, seconds: float) -> None:
        threads = [threading.Thread(target=self.work, args=(self.random.randrange(1 << 30),)) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
        self.over.wait(seconds)
        self.over.set()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive()


def test_what_sandboxes_hold_survives_whatever_is_done_to_them(many):  # noqa: F811
    seed = int(os.environ.get("GLOVEBOX_TEST_SEED", random.randrange(1 << 30)))
    stress = Stress(many, seed)
    stress.run(SECONDS)
    print("seed", seed, dict(stress.did), len(stress.guests), "left, of them paused", sum(g.paused for g in stress.guests))
    assert stress.problems == [], (seed, stress.problems, many.log()[-3000:])
    listed = {item["sandboxID"]: item["state"] for item in many.request("GET", "/v2/sandboxes")[1]}
    assert listed == {guest.id: "paused" if guest.paused else "running" for guest in stress.guests}
    # one after the other: more than may run at once
    for guest in list(stress.guests):
        if guest.paused:
            stress.resume(guest)
        stress.check(guest)
        stress.kill(guest)
    for snapshot in stress.snapshots:
        stress.start_from(snapshot)
        stress.check(stress.guests[0])
        stress.kill(stress.guests[0])
        stress.request("DELETE", template(snapshot.id))
    assert stress.did["fork"] and stress.did["pause"] and stress.did["resume"] and stress.did["snapshot"], stress.did
    assert many.machines() == []
    for folder in ("sandboxes", "snapshots"):
        eventually(lambda: not list((many.data / folder).iterdir()))
    eventually(lambda: not cgroups_of(many.instance))
    assert many.request("GET", "/v2/sandboxes")[1] == [] and many.request("GET", "/snapshots")[1] == []
    with closing(sqlite3.connect(many.data / "glovebox.db")) as store:
        for table in ("sandbox", "template", "build", "tag"):
            assert store.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        assert store.execute("SELECT count(*) FROM run WHERE ended_ms = 0").fetchone() == (0,)
