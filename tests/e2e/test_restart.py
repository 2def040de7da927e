# SPDX-License-Identifier: Apache-2.0
"""Sandboxes outlive the server: it is killed, started again on the same data folder, and they have noticed nothing."""
import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import conftest
import pytest
from conftest import Server, eventually
from e2b import CommandExitException, Sandbox
from test_faults import cgroups_of, host_links, machines_of, nft_tables


class OwnServer(Server):
    """A server that may be killed; whatever a test leaves is ended."""

    @property
    def instance(self) -> str:
        return (self.data / "instance").read_text().strip()

    def machines(self) -> list[int]:
        return sorted(machines_of(self.instance))

    def close(self) -> None:
        for sandbox in self.request("GET", "/v2/sandboxes")[1]:
            self.request("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
        self.stop()
        super().close()


@pytest.fixture
def own():
    tables = nft_tables()
    server = OwnServer("--pool", "0")  # machines are counted
    [table] = nft_tables() - tables
    links = f"gb{table.removeprefix('glovebox_')}-"
    instance = server.instance
    yield server
    server.close()
    assert machines_of(instance) == [] and cgroups_of(instance) == []
    assert table not in nft_tables()
    eventually(lambda: not [name for name in host_links() if name.startswith(links)], 60)


def boot_id(sandbox: Sandbox) -> str:
    return sandbox.commands.run("cat /proc/sys/kernel/random/boot_id").stdout


def create(server: OwnServer, **options) -> Sandbox:
    return Sandbox.create("base", timeout=600, **options, **server.connection)


def test_machines_outlive_a_server_that_is_killed(own):
    status, made, _ = own.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600})
    assert status == 201
    [machine] = own.machines()
    own.kill_hard()
    time.sleep(1)
    assert own.machines() == [machine]
    own.start()
    assert own.machines() == [machine]
    eventually(lambda: "a sandbox of the previous run goes on" in own.log())
    assert (own.data / "sandboxes" / made["sandboxID"] / "machine.json").stat().st_mode & 0o777 == 0o600


def test_who_asks_a_server_that_has_just_started_waits_and_is_answered_rightly(own):
    made = [create(own) for _ in range(3)]
    for _ in range(3):
        own.kill_hard()
        own.start()
        paths = [f"{before}{sandbox.sandbox_id}{after}" for sandbox in made for before, after in
                 (("/sandboxes/", ""), ("/glovebox/sandboxes/", "/isolation"), ("/glovebox/sandboxes/", "/network"))]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            asked = [pool.submit(own.request, "GET", path) for path in paths]
            ran = [pool.submit(Sandbox.connect(sandbox.sandbox_id, **own.connection).commands.run, "echo here") for sandbox in made]
            listed = own.request("GET", "/v2/sandboxes")[1]
            assert {row["sandboxID"] for row in listed} == {sandbox.sandbox_id for sandbox in made}
            assert [answer.result()[0] for answer in asked] == [200] * len(paths)
            assert [command.result().stdout for command in ran] == ["here\n"] * len(made)


def test_a_sandbox_goes_on_as_if_nothing_had_happened(own, internet):
    denied = "203.0.113.250"
    sandbox = create(own, network={"deny_out": [denied]}, metadata={"kept": "yes"}, envs={"KEPT": "too"})
    tries = (f"while true; do curl -s -o /dev/null --max-time 2 http://{denied}/ && echo open || echo closed; "
             f"curl -s -o /dev/null --max-time 2 {internet} && echo reached || echo lost; sleep 0.1; done > /tmp/tries")
    process = sandbox.commands.run(tries, background=True)
    before = boot_id(sandbox)
    sandbox.files.write("/dev/shm/kept", "in memory")
    token = own.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]["envdAccessToken"]
    eventually(lambda: own.decisions(sandbox.sandbox_id), 20)

    for _ in range(2):
        lines = len(own.decisions(sandbox.sandbox_id))
        own.kill_hard()
        time.sleep(2)  # it runs alone
        own.start()
        [listed] = own.request("GET", "/v2/sandboxes")[1]
        assert listed["sandboxID"] == sandbox.sandbox_id and listed["metadata"] == {"kept": "yes"}
        again = Sandbox.connect(sandbox.sandbox_id, **own.connection)
        assert boot_id(again) == before
        assert again.files.read("/dev/shm/kept") == "in memory"
        assert again.commands.run("echo $KEPT").stdout == "too\n"
        assert process.pid in [p.pid for p in again.commands.list()]
        assert own.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]["envdAccessToken"] == token
        eventually(lambda: len(own.decisions(sandbox.sandbox_id)) > lines, 20)  # the log goes on behind the old lines
        assert own.decisions(sandbox.sandbox_id)[:1][0]["time"] < own.decisions(sandbox.sandbox_id)[-1:][0]["time"]
    seen = set(again.files.read("/tmp/tries").split())
    assert seen == {"closed", "reached"}, seen
    assert all(line["verdict"] == "deny" for line in own.decisions(sandbox.sandbox_id) if line.get("address") == denied)

    assert again.kill()
    assert own.machines() == [] and not list((own.data / "sandboxes").iterdir())
    fresh = create(own)
    assert fresh.commands.run("echo new").stdout == "new\n"


def test_a_start_beside_what_goes_on(own):
    """New sandboxes get slots and users of their own."""
    first = create(own)
    own.kill_hard()
    own.start()
    second = create(own)
    uids = {os.stat(f"/proc/{pid}").st_uid for pid in own.machines()}
    assert len(own.machines()) == 2 and len(uids) == 2
    first = Sandbox.connect(first.sandbox_id, **own.connection)
    for sandbox in (first, second):
        assert sandbox.commands.run("echo here").stdout == "here\n"
    # one does not reach the other
    for target in ("10.11.0.1", "10.192.0.1"):
        with pytest.raises(CommandExitException):
            first.commands.run(f"curl -sS --max-time 3 http://{target}:49983/health")


def test_killed_in_the_middle_of_creates_and_kills(own):
    """What the lists say and what runs are the same, whenever the server dies."""
    for delay in (0.05, 0.3, 0.7, 1.2):
        stopping = threading.Event()

        def churn():
            while not stopping.is_set():
                with contextlib.suppress(Exception):
                    made = own.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600})[1]
                    own.request("DELETE", f"/sandboxes/{made['sandboxID']}")

        threads = [threading.Thread(target=churn) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(delay)
        own.kill_hard()
        stopping.set()
        for thread in threads:
            thread.join()
        own.start()
        listed = {sandbox["sandboxID"] for sandbox in own.request("GET", "/v2/sandboxes")[1]}
        eventually(lambda: len(own.machines()) == len(listed), 20)
        eventually(lambda: {entry.name for entry in (own.data / "sandboxes").iterdir()} == listed, 20)
        for sandbox_id in listed:
            assert Sandbox.connect(sandbox_id, **own.connection).commands.run("echo alive").stdout == "alive\n"
            assert own.request("DELETE", f"/sandboxes/{sandbox_id}")[0] == 204


def test_a_damaged_record_ends_the_sandbox_and_nothing_else(own):
    damaged, whole = create(own), create(own)
    own.kill_hard()
    record = own.data / "sandboxes" / damaged.sandbox_id / "machine.json"
    text = json.loads(record.read_text())
    text["network"]["deny_out"] = "everything"
    record.write_text(json.dumps(text))
    own.start()
    assert [sandbox["sandboxID"] for sandbox in own.request("GET", "/v2/sandboxes")[1]] == [whole.sandbox_id]
    assert len(own.machines()) == 1
    assert own.request("GET", f"/sandboxes/{damaged.sandbox_id}")[0] == 404
    assert [entry.name for entry in (own.data / "sandboxes").iterdir()] == [whole.sandbox_id]


def test_the_end_of_an_adopted_machine_is_seen(own):
    sandbox = create(own)
    own.kill_hard()
    own.start()
    [machine] = own.machines()
    os.kill(machine, signal.SIGKILL)
    eventually(lambda: own.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[0] == 404, 20)
    eventually(lambda: not list((own.data / "sandboxes").iterdir()), 20)


def test_no_secret_is_kept_for_a_restart(own):
    sandbox = create(own, envs={"SECRET": "s3cr3t-value-4711"})
    token = own.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]["envdAccessToken"]
    for path in Path(own.data / "sandboxes" / sandbox.sandbox_id).glob("*.json"):
        assert token not in path.read_text() and "4711" not in path.read_text()


def test_an_upgraded_program_takes_over(own, tmp_path, monkeypatch):
    """The new version is another file; the old one is gone while its machines run."""
    sandbox = create(own)
    sandbox.files.write("/dev/shm/kept", "in memory")
    [machine] = own.machines()
    own.kill_hard()
    program = tmp_path / "glovebox"
    shutil.copy2(conftest.GLOVEBOX, program)
    monkeypatch.setattr(conftest, "GLOVEBOX", str(program))
    own.start()
    assert own.machines() == [machine]
    assert os.readlink(f"/proc/{own.process.pid}/exe") == str(program)
    assert Sandbox.connect(sandbox.sandbox_id, **own.connection).files.read("/dev/shm/kept") == "in memory"


def test_a_server_that_is_told_to_stop_leaves_its_sandboxes(own):
    sandbox = create(own)
    [machine] = own.machines()
    own.process.send_signal(signal.SIGTERM)
    assert own.process.wait(60) == 0
    assert own.machines() == [machine]
    own.start()
    assert Sandbox.connect(sandbox.sandbox_id, **own.connection).commands.run("echo still here").stdout == "still here\n"


def test_a_start_that_fails_ends_nothing(own):
    create(own)
    machines = own.machines()
    own.kill_hard()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run([conftest.GLOVEBOX, "serve", "--port", str(taken.getsockname()[1]), "--data-dir", str(own.data),
                               "--templates-dir", conftest.TEMPLATES], capture_output=True, text=True, timeout=1800)
    assert done.returncode != 0 and "is taken by another program" in done.stderr
    assert own.machines() == machines
    own.start()
    assert own.machines() == machines
