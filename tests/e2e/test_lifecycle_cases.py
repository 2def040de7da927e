# SPDX-License-Identifier: Apache-2.0
"""Cases from the field about pausing, resuming, snapshots and forks, S: one scenario a row, named by its id. What test_survival.py,
test_restart.py, test_fault_storm.py and test_disk_full_cases.py show of them is not repeated."""
import datetime
import http.client
import os
import pty
import random
import select
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import eventually
from e2b import Sandbox
from outside import outside
from raw_agent import Agent, Failed
from test_faults import cgroups_of, host_links, machines_of, nft_tables
from test_lifecycle import health, make, state  # noqa: F401 (a fixture)
from test_official_cli import CLI, node
from test_restart import OwnServer

MANY = """
[plans.hobby]
max_sandboxes = 40
creates_per_second = 1000
"""


@pytest.fixture(scope="module")
def internet_host():
    with outside() as there:
        yield there


@pytest.fixture
def many(tmp_path):
    """A server of one's own with a large plan, at whose end nothing may be left on this machine."""
    tables = nft_tables()
    (tmp_path / "config.toml").write_text(MANY)
    server = OwnServer("--config", str(tmp_path / "config.toml"), "--pool", "0")  # machines are counted
    instance = server.instance
    [table] = nft_tables() - tables  # its links have the same tag
    links = f"gb{table.removeprefix('glovebox_')}-"
    yield server
    server.close()
    assert machines_of(instance) == [] and cgroups_of(instance) == []
    eventually(lambda: not [name for name in host_links() if name.startswith(links)], 60)
    assert table not in nft_tables()


def copies(source: Sandbox, **options):
    """Both kinds of copies of a sandbox, each when it is asked for; they are ended when the next one is."""
    snapshot = source.create_snapshot().snapshot_id
    try:
        with Sandbox.create(snapshot, timeout=300, **options) as copy:
            yield "snapshot", copy
        [copy] = source.fork(count=1, timeout=300)
        with copy:
            yield "fork", copy
    finally:
        assert Sandbox.delete_snapshot(snapshot)


def pause_and_resume(source: Sandbox) -> Sandbox:
    assert source.pause()
    return Sandbox.connect(source.sandbox_id, timeout=300)


def pages(server) -> list[dict]:
    return server.request("GET", "/v2/sandboxes")[1]


def snapshots_of(server, sandbox_id: str) -> list[dict]:
    return server.request("GET", f"/snapshots?sandboxID={sandbox_id}")[1]


def template(ref: str) -> str:
    """Its place; a snapshot's id has characters that mean something in paths."""
    return f"/templates/{quote(ref, safe='')}"


def builds(server) -> set[str]:
    return {entry.name for entry in (server.data / "snapshots").iterdir()}


# --- S2

@pytest.mark.parametrize("by", ["call", "lifetime"])
def test_s2_a_pause_without_memory_writes_what_is_not_on_the_disk(server, make, by):  # noqa: F811
    options = {} if by == "call" else {"autoPause": True, "autoPauseMemory": False}
    made = make(**options)
    sandbox = Sandbox.connect(made["sandboxID"])
    sandbox.commands.run("sysctl -qw vm.dirty_writeback_centisecs=0; head -c 3000000 /dev/urandom > /home/user/kept; "
                         "sha256sum < /home/user/kept > /home/user/hash", user="root")
    path = f"/sandboxes/{made['sandboxID']}"
    if by == "call":
        assert server.request("POST", f"{path}/pause", {"memory": False})[0] == 204
    else:
        assert server.request("POST", f"{path}/timeout", {"timeout": 0})[0] == 204
        eventually(lambda: state(server, made["sandboxID"]) == "paused")
    again = Sandbox.connect(made["sandboxID"])
    assert again.commands.run("sha256sum < /home/user/kept | cmp - /home/user/hash").exit_code == 0


# --- S3

SAMPLER = """
import time
while True:
    print(time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_REALTIME), flush=True)
    time.sleep(0.1)
"""
AWAY = 5  # seconds
TLS_SERVER = """
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def check_clock(sandbox: Sandbox) -> None:
    """The first program that is started sees the host's time."""
    before = time.time()
    guest = float(sandbox.commands.run("date +%s.%N").stdout)
    assert before - 0.5 < guest < time.time() + 0.5


def check_samples(sandbox: Sandbox, away: float) -> None:
    """Real time has moved on by the time away, monotonic time has not."""
    length = len(sandbox.files.read("/dev/shm/clocks"))
    eventually(lambda: len(sandbox.files.read("/dev/shm/clocks")) > length + 200)
    samples = [tuple(map(float, line.split())) for line in sandbox.files.read("/dev/shm/clocks").splitlines()[:-1]]
    steps = [(after[0] - before[0], after[1] - before[1]) for before, after in zip(samples, samples[1:])]
    assert all(0 <= monotonic < away / 2 for monotonic, _ in steps), max(steps)
    assert max(real - monotonic for monotonic, real in steps) > away - 1, max(steps, key=lambda step: step[1])


def test_s3_the_clock_is_the_hosts_and_monotonic_time_stood_still(server, internet_host, tmp_path):
    with Sandbox.create("base", timeout=600) as source:
        source.files.write("/tmp/sampler.py", SAMPLER)
        source.commands.run("exec python3 /tmp/sampler.py > /dev/shm/clocks", background=True, timeout=0)
        eventually(lambda: source.files.exists("/dev/shm/clocks") and len(source.files.read("/dev/shm/clocks")) > 500)
        snapshot = source.create_snapshot().snapshot_id
        assert source.pause()
        time.sleep(AWAY)
        # a certificate that nobody could know when the memory was saved
        certificate = tmp_path / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-days", "2",
                        "-addext", f"subjectAltName=IP:{internet_host.address}", "-keyout", str(certificate) + ".key",
                        "-out", str(certificate)], check=True, capture_output=True)
        both = tmp_path / "both.pem"
        both.write_text(certificate.read_text() + Path(str(certificate) + ".key").read_text())
        internet_host.run(TLS_SERVER, str(both), port=4433)

        def check(sandbox: Sandbox) -> None:
            check_clock(sandbox)
            sandbox.files.write("/tmp/ca.pem", certificate.read_text())
            got = sandbox.commands.run(f"curl -sS --max-time 20 --cacert /tmp/ca.pem https://{internet_host.address}:4433/")
            assert got.stdout == "secret"
            check_samples(sandbox, AWAY)

        with Sandbox.create(snapshot, timeout=300) as copy:
            check(copy)
        assert Sandbox.delete_snapshot(snapshot)
        resumed = Sandbox.connect(source.sandbox_id, timeout=300)
        check(resumed)
        [fork] = resumed.fork(count=1, timeout=300)
        with fork:
            check_clock(fork)


SENDER = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    out.sendto(str(time.time()).encode(), (sys.argv[1], int(sys.argv[2])))
    time.sleep(0.005)
"""
RECEIVER = """
import socket, sys, time
ready = socket.create_server((sys.argv[1], int(sys.argv[2])))
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind((sys.argv[1], int(sys.argv[2])))
while True:
    text = heard.recv(100).decode()
    print(time.time(), text)
"""


def test_s3_a_program_that_runs_never_sees_the_old_time(server, internet_host):
    """What it says of the time is compared when it arrives, from the first thing it says after a pause or in a copy."""
    log = internet_host.run(RECEIVER, port=4500)

    def heard() -> list[tuple[float, float]]:
        return [tuple(map(float, line.split())) for line in log.read_text().splitlines()[:-1]]

    with Sandbox.create("base", timeout=600) as source:
        source.files.write("/tmp/sender.py", SENDER)
        source.commands.run(f"exec python3 /tmp/sender.py {internet_host.address} 4500", background=True, timeout=0)
        eventually(lambda: len(heard()) > 100)
        snapshot = source.create_snapshot().snapshot_id
        before = len(heard())
        eventually(lambda: len(heard()) > before + 50)  # it goes on after it was copied
        assert source.pause()
        before = len(heard())
        time.sleep(AWAY)
        assert len(heard()) == before
        with Sandbox.create(snapshot, timeout=300):
            eventually(lambda: len(heard()) > before + 100)
        assert Sandbox.delete_snapshot(snapshot)
        before = len(heard())
        Sandbox.connect(source.sandbox_id, timeout=300)
        eventually(lambda: len(heard()) > before + 100)
    behind = max(arrived - said for arrived, said in heard())
    assert behind < AWAY / 2, behind


# --- S4

def test_s4_no_log_entry_is_older_than_the_run_it_is_of(server):
    def entries(sandbox: Sandbox) -> list[dict]:
        return server.request("GET", f"/v2/sandboxes/{sandbox.sandbox_id}/logs?direction=forward")[1]["logs"]

    def at(text: str) -> datetime.datetime:
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))

    with Sandbox.create("base", timeout=300) as source:
        mark = uuid.uuid4().hex
        source.commands.run(f"echo {mark}")
        time.sleep(2)
        for way, copy in copies(source):
            copy.commands.run("echo first")
            began = at(server.request("GET", f"/sandboxes/{copy.sandbox_id}")[1]["startedAt"])
            told = entries(copy)
            assert any("echo first" in entry["message"] for entry in told), way
            assert not any(mark in entry["message"] for entry in told), (way, told)
            assert all(at(entry["timestamp"]) >= began - datetime.timedelta(milliseconds=500) for entry in told), (way, told)
        before = entries(source)
        assert source.pause()
        paused = datetime.datetime.now(datetime.timezone.utc)
        time.sleep(2)
        resumed = Sandbox.connect(source.sandbox_id, timeout=300)
        resumed.commands.run("echo again")
        told = entries(resumed)
        assert [entry["message"] for entry in told[:len(before)]] == [entry["message"] for entry in before]
        later = [entry for entry in told if "echo again" in entry["message"] or entry["message"] == "identity taken"][1:]
        assert len(later) >= 2
        assert all(at(entry["timestamp"]) > paused + datetime.timedelta(seconds=1) for entry in later), told


# --- S7

def test_s7_a_chunked_body_of_a_pause_counts(server, make):  # noqa: F811
    made = make()
    host, port = server.url.removeprefix("http://").split(":")

    def post(path: str, *pieces: bytes) -> int:
        connection = http.client.HTTPConnection(host, int(port), timeout=900)
        connection.request("POST", path, iter(pieces), {"X-API-Key": server.key, "Content-Type": "application/json"}, encode_chunked=True)
        status = connection.getresponse().status
        connection.close()
        return status

    sandbox = Sandbox.connect(made["sandboxID"])
    boot = sandbox.commands.run("cat /proc/sys/kernel/random/boot_id").stdout
    path = f"/sandboxes/{made['sandboxID']}"
    assert post(f"{path}/pause", b'{"mem', b'ory":"no"}') == 400  # it was read
    assert post(f"{path}/pause") == 204  # and an empty one is an empty one
    assert post(f"/v2{path}/connect", b'{"timeout"', b":60}") == 201
    assert sandbox.commands.run("cat /proc/sys/kernel/random/boot_id").stdout == boot
    assert post(f"{path}/pause", b'{"memory"', b":false}") == 204
    assert post(f"/v2{path}/connect") == 201
    assert sandbox.commands.run("cat /proc/sys/kernel/random/boot_id").stdout != boot


# --- S9

def test_s9_connect_keeps_the_policy_and_never_shortens(server, make):  # noqa: F811
    made = make(timeout=600, autoPause=True, autoResume={"enabled": True})
    path = f"/sandboxes/{made['sandboxID']}"
    before = server.request("GET", path)[1]
    for version in ("", "/v2"):
        assert server.request("POST", f"{version}{path}/connect", {"timeout": 5})[0] == 200
        after = server.request("GET", path)[1]
        assert after["endAt"] == before["endAt"] and after["lifecycle"] == before["lifecycle"]
    assert server.request("POST", f"{path}/pause", {})[0] == 204
    assert server.request("POST", f"/v2{path}/connect", {"timeout": 2})[0] == 201
    assert server.request("GET", path)[1]["lifecycle"] == before["lifecycle"]
    eventually(lambda: state(server, made["sandboxID"]) == "paused")  # its policy holds after the connect too


# --- S10

def test_s10_timeouts_that_end_at_once_are_refused_where_they_begin_something(server, make):  # noqa: F811
    made = make()
    path = f"/sandboxes/{made['sandboxID']}"
    begins = [("POST", "/sandboxes", {"templateID": "base"}), ("POST", "/v2/sandboxes", {"templateID": "base"}),
              ("POST", f"{path}/connect", {}), ("POST", f"/v2{path}/connect", {}), ("POST", f"{path}/fork", {"count": 1})]
    before = len(pages(server))
    for wrong in (0, -1, -(1 << 40), 25 * 3600, 1 << 62):
        for method, place, body in begins:
            status, answer, _ = server.request(method, place, body | {"timeout": wrong})
            assert status == 400 and answer["code"] == 400, (place, wrong, answer)
    assert server.request("POST", f"{path}/timeout", {"timeout": 25 * 3600})[0] == 400
    assert server.request("POST", f"{path}/pause", {})[0] == 204
    for wrong in (0, -1, 25 * 3600):
        assert server.request("POST", f"{path}/resume", {"timeout": wrong})[0] == 400
        assert server.request("POST", f"/v2{path}/connect", {"timeout": wrong})[0] == 400
    assert state(server, made["sandboxID"]) == "paused" and len(pages(server)) == before
    assert server.request("POST", f"{path}/resume", {"timeout": 60})[0] == 201
    # The contract's exception: a lifetime that runs may be told to end now (2.6).
    assert server.request("POST", f"{path}/timeout", {"timeout": -5})[0] == 204
    eventually(lambda: state(server, made["sandboxID"]) is None)


# --- S12

def test_s12_connect_while_it_is_being_paused_gets_it_running(server, make):  # noqa: F811
    made = make()
    path = f"/sandboxes/{made['sandboxID']}"
    with ThreadPoolExecutor(2) as pool:
        pause = pool.submit(server.request, "POST", f"{path}/pause", {})
        connect = pool.submit(server.request, "POST", f"/v2{path}/connect", {})
        assert connect.result()[0] in (200, 201)
        assert pause.result()[0] in (204, 409)
    if state(server, made["sandboxID"]) == "paused":  # the connect came first
        assert server.request("POST", f"/v2{path}/connect", {})[0] == 201
    assert health(server, made)[0] == 204


def test_s12_kills_at_once_all_succeed_and_then_it_is_gone(server, make):  # noqa: F811
    made = make()
    path = f"/sandboxes/{made['sandboxID']}"
    with ThreadPoolExecutor(4) as pool:
        killed = [f.result()[0] for f in [pool.submit(server.request, "DELETE", path) for _ in range(4)]]
    assert set(killed) <= {204, 404} and 204 in killed
    assert server.request("DELETE", path)[0] == 404
    assert health(server, made)[1]["message"] == "The sandbox was not found"


UNDER_WAY = {"pause": ("pause", {}, {204, 404, 409}), "pause without memory": ("pause", {"memory": False}, {204, 404, 409}),
             "snapshot": ("snapshots", {}, {201, 404, 409}), "fork": ("fork", {"count": 2, "timeout": 300}, {201, 404, 409}),
             "connect": ("connect", {"timeout": 300}, {200, 201, 404, 409})}


def test_s12_a_kill_in_the_middle_leaves_nothing(many):
    """Of a create, a pause, a resume, a snapshot, a fork."""
    chance = random.Random(12)
    for what, (call, body, allowed) in UNDER_WAY.items():
        for _ in range(2):
            status, made, _ = many.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300})
            assert status == 201
            path = f"/sandboxes/{made['sandboxID']}"
            if what == "connect":
                assert many.request("POST", f"{path}/pause", {})[0] == 204
            with ThreadPoolExecutor(2) as pool:
                begun = pool.submit(many.request, "POST", f"{path}/{call}", body)
                time.sleep(chance.uniform(0, 0.2))
                assert pool.submit(many.request, "DELETE", path).result()[0] == 204, what
                status, answer, _ = begun.result()
            assert status in allowed, (what, answer)
            assert many.request("GET", path)[0] == 404 and many.request("DELETE", path)[0] == 404
            if what == "snapshot" and status == 201:
                assert many.request("DELETE", template(answer['snapshotID']))[0] == 204
            if what == "fork" and status == 201:
                for fork in answer:
                    if "sandbox" in fork:
                        assert many.request("DELETE", f"/sandboxes/{fork['sandbox']['sandboxID']}")[0] == 204
                    else:
                        assert fork["error"]["code"] in (404, 409), fork
    with ThreadPoolExecutor(3) as pool:
        creates = [pool.submit(many.request, "POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300}) for _ in range(3)]
        while not all(create.done() for create in creates):
            for listed in pages(many):
                assert many.request("DELETE", f"/sandboxes/{listed['sandboxID']}")[0] in (204, 404)
        for create in creates:
            status, answer, _ = create.result()
            assert status == 201 or status in (404, 409), answer
    for listed in pages(many):
        assert many.request("DELETE", f"/sandboxes/{listed['sandboxID']}")[0] == 204
    assert many.machines() == [] and pages(many) == []
    eventually(lambda: not list((many.data / "sandboxes").iterdir()) and not builds(many))
    eventually(lambda: not cgroups_of(many.instance))


# --- S13

def test_s13_every_fork_is_somebody_of_its_own(server):
    from e2b_code_interpreter import Sandbox as Interpreter

    draws = ("import os, random, uuid, numpy\n"
             "' '.join(map(str, [random.getrandbits(64), numpy.random.randint(1 << 60), uuid.uuid4(), os.urandom(8).hex(), "
             "uuid.uuid1().hex]))")
    shell = ("hostname; echo $E2B_SANDBOX_ID; cat /proc/sys/kernel/random/uuid; head -c 8 /dev/urandom | od -An -tx1; "
             "python3 -c 'import random; print(random.getrandbits(64))'; mktemp -u")
    with Interpreter.create(timeout=300, envs={"KEPT": "by all"}) as source:
        source.run_code("import random, numpy\nrandom.random(), numpy.random.random()")
        forks = source.fork(count=2, timeout=300)
        family = [source, *forks]
        try:
            assert all(isinstance(one, Interpreter) for one in family), family
            told = [one.commands.run(shell).stdout.split("\n") for one in family]
            drawn = [one.run_code(draws).text.split() for one in family]
            for values in zip(*(a[:-1] + b for a, b in zip(told, drawn))):
                assert len(set(values)) == 3, values
            assert [one[1] for one in told] == [one.sandbox_id for one in family]
            assert all(one.commands.run("echo $KEPT").stdout == "by all\n" for one in family)
            kernel = [one.run_code("import os; os.environ['E2B_SANDBOX_ID']").text for one in family]
            assert kernel == [one.sandbox_id for one in family]

            tokens = [server.request("GET", f"/sandboxes/{one.sandbox_id}")[1]["envdAccessToken"] for one in family]
            assert len(set(tokens)) == 3
            for one in family:
                for token, owner in zip(tokens, family):
                    with Agent(server, one, token=token) as agent:
                        if owner is one:
                            assert agent.run("/bin/true").exit_code == 0
                        else:
                            with pytest.raises(Failed) as refused:
                                agent.run("/bin/true")
                            assert refused.value.code == "401"
        finally:
            for fork in forks:
                if isinstance(fork, Interpreter):
                    fork.kill()


# --- S15

ECHO_SERVER = """
import socketserver, sys
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(100):
            print(self.client_address, data.decode(), flush=True)
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
HOLDER = """
import http.server, socket, sys
peer = (sys.argv[1], int(sys.argv[2]))
kept = socket.create_connection(peer, timeout=10)
def use(connection, word):
    try:
        connection.sendall(word)
        return connection.recv(100).decode() or "closed"
    except OSError as error:
        return type(error).__name__
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        what, word = self.path[1:].split("/")
        if what == "kept":
            told = use(kept, word.encode())
        else:
            # A first packet that is lost is sent again after a second.
            try:
                with socket.create_connection(peer, timeout=0.9) as new:
                    new.settimeout(10)
                    told = use(new, word.encode())
            except OSError as error:
                told = type(error).__name__
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told.encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("", 8000), Handler).serve_forever()
"""


def test_s15_a_copy_has_no_part_in_the_connections_of_its_source(server, internet_host):
    said = internet_host.run(ECHO_SERVER, port=7000)

    def ask(sandbox: Sandbox, path: str):
        return server.request("GET", f"/{path}", headers={"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "8000"})[1]

    with Sandbox.create("base", timeout=300) as source:
        source.files.write("/tmp/holder.py", HOLDER)
        source.commands.run(f"exec python3 /tmp/holder.py {internet_host.address} 7000", background=True, timeout=0)
        assert eventually(lambda: ask(source, "kept/one") == "one")
        for way, copy in copies(source):
            assert ask(copy, f"new/first-of-{way}") == f"first-of-{way}", way  # the listener lives, and packets leave at once
            assert ask(copy, f"kept/stolen-{way}") == "ConnectionResetError", way
            assert ask(source, f"kept/after-{way}") == f"after-{way}", way
        assert "stolen" not in said.read_text()
        # What was open when it was paused is not open afterwards.
        resumed = pause_and_resume(source)
        assert ask(resumed, "new/resumed") == "resumed"
        assert ask(resumed, "kept/late") == "ConnectionResetError"
        assert "late" not in said.read_text()


# --- S17, S18

def test_s17_twenty_sandboxes_are_all_taken_over(many):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: Sandbox.create("base", timeout=900, **many.connection), range(17)))
    assert made[0].pause()
    snapshot = made[1].create_snapshot()
    copy = Sandbox.create(snapshot.snapshot_id, timeout=900, **many.connection)
    forks = made[2].fork(count=2, timeout=900)
    everybody = [*made, copy, *forks]
    for sandbox in (copy, *forks, *made[1:4]):
        sandbox.files.write("/dev/shm/kept", sandbox.sandbox_id)
    machines = many.machines()
    assert len(machines) == 19
    many.kill_hard()
    time.sleep(1)
    many.start()
    assert many.machines() == machines
    states = {item["sandboxID"]: item["state"] for item in pages(many)}
    assert states == {sandbox.sandbox_id: "running" for sandbox in everybody} | {made[0].sandbox_id: "paused"}
    for sandbox in (copy, *forks, *made[1:4]):
        again = Sandbox.connect(sandbox.sandbox_id, **many.connection)
        assert again.files.read("/dev/shm/kept") == sandbox.sandbox_id
    assert [item["snapshotID"] for item in snapshots_of(many, made[1].sandbox_id)] == [snapshot.snapshot_id]
    with ThreadPoolExecutor(4) as pool:
        killed = list(pool.map(lambda s: many.request("DELETE", f"/sandboxes/{s.sandbox_id}")[0], everybody))
    assert killed == [204] * 20
    assert many.machines() == [] and cgroups_of(many.instance) == []
    assert not list((many.data / "sandboxes").iterdir())
    assert Sandbox.delete_snapshot(snapshot.snapshot_id, **many.connection)
    assert not builds(many)


def test_s18_what_nobody_knows_any_more_is_reclaimed_at_the_start(many):
    paused, *lost = [Sandbox.create("base", timeout=900, **many.connection) for _ in range(4)]
    assert paused.pause()
    snapshot = lost[0].create_snapshot()
    mounts = Path("/proc/self/mounts").read_text().count("\n")
    many.kill_hard()
    for sandbox in lost:
        (many.data / "sandboxes" / sandbox.sandbox_id / "machine.json").unlink()
    # a create, a snapshot and a fork that never came to their end
    (many.data / "sandboxes" / "ineverwas").mkdir()
    (many.data / "sandboxes" / "ineverwas" / "disk.qcow2").write_bytes(bytes(4096))
    unfinished = many.data / "snapshots" / f".new-{uuid.uuid4()}"
    unfinished.mkdir()
    whole = many.data / "snapshots" / str(uuid.uuid4())  # complete, and not in the store
    [known] = [entry for entry in (many.data / "snapshots").iterdir() if not entry.name.startswith(".") and entry != whole]
    subprocess.run(["cp", "-a", str(known), str(whole)], check=True)
    many.start()
    eventually(lambda: many.machines() == [])  # beside what is asked meanwhile
    eventually(lambda: not cgroups_of(many.instance))
    assert [(item["sandboxID"], item["state"]) for item in pages(many)] == [(paused.sandbox_id, "paused")]
    eventually(lambda: {entry.name for entry in (many.data / "sandboxes").iterdir()} == {paused.sandbox_id})
    eventually(lambda: builds(many) == {known.name})
    assert Path("/proc/self/mounts").read_text().count("\n") <= mounts
    for sandbox in (Sandbox.connect(paused.sandbox_id, **many.connection),
                    Sandbox.create(snapshot.snapshot_id, timeout=60, **many.connection)):
        assert sandbox.commands.run("echo whole").stdout == "whole\n"
        assert sandbox.kill()
    assert Sandbox.delete_snapshot(snapshot.snapshot_id, **many.connection)
    assert not builds(many)


# --- S21

def test_s21_fifty_snapshots_of_one_parent_cost_the_same_and_need_no_other(server):
    """What makes the time flat is that no snapshot builds on another: each is whole, and of one size."""
    with Sandbox.create("base", timeout=900) as parent:
        parent.commands.run("true")  # what a guest does once is done
        ids, sizes = [], []
        for number in range(50):
            parent.files.write("/home/user/number", str(number))
            known = builds(server)
            ids.append(parent.create_snapshot().snapshot_id)
            [build] = builds(server) - known
            sizes.append(sum((server.data / "snapshots" / build / name).stat().st_blocks * 512
                             for name in ("memory.delta", "overlay.qcow2", "state.bin")))
        assert len(set(ids)) == 50
        assert max(sizes) < 2 * min(sizes), sizes
        listed, token = [], ""
        while True:
            status, items, headers = server.request("GET", f"/snapshots?sandboxID={parent.sandbox_id}&limit=20{token}")
            assert status == 200
            listed += [item["snapshotID"] for item in items]
            if "X-Next-Token" not in headers:
                break
            token = f"&nextToken={headers['X-Next-Token']}"
        assert sorted(listed) == sorted(ids)
    first, middle, last = ids[0], ids[24], ids[49]
    for snapshot in ids:
        if snapshot not in (first, middle, last):
            assert Sandbox.delete_snapshot(snapshot)
    for snapshot, number in ((last, 49), (middle, 24), (first, 0)):
        with Sandbox.create(snapshot, timeout=60) as copy:
            assert copy.files.read("/home/user/number") == str(number)
            # also one of a copy
            again = copy.create_snapshot().snapshot_id
        assert Sandbox.delete_snapshot(snapshot)
        with Sandbox.create(again, timeout=60) as second:
            assert second.files.read("/home/user/number") == str(number)
        assert Sandbox.delete_snapshot(again)
        assert not Sandbox.delete_snapshot(snapshot)


# --- S23

def test_s23_an_old_address_wakes_nobody(server, make):  # noqa: F811
    for name in ("ineverwasherebefore0", "i" * 60):
        assert health(server, {"sandboxID": name}, Cookie="a=b")[0] == 502
    killed = make(autoPause=True, autoResume={"enabled": True})
    token = {"X-Access-Token": killed["envdAccessToken"]}
    assert server.request("POST", f"/sandboxes/{killed['sandboxID']}/pause", {})[0] == 204
    assert server.request("DELETE", f"/sandboxes/{killed['sandboxID']}")[0] == 204
    status, body, _ = health(server, killed, **token)
    assert status == 502 and body == {"sandboxId": killed["sandboxID"], "message": "The sandbox was not found", "code": 502}
    assert state(server, killed["sandboxID"]) is None

    asleep = make(autoPause=True)  # it may be paused, but not be woken
    assert server.request("POST", f"/sandboxes/{asleep['sandboxID']}/pause", {})[0] == 204
    for port in ("49983", "8000"):
        status, body, _ = health(server, asleep, **{"E2b-Sandbox-Port": port, "X-Access-Token": asleep["envdAccessToken"]})
        assert status == 502 and body["message"] == "The sandbox was not found"
    assert state(server, asleep["sandboxID"]) == "paused"

    private = make(autoPause=True, autoResume={"enabled": True}, network={"allowPublicTraffic": False})
    assert private["trafficAccessToken"]
    assert server.request("POST", f"/sandboxes/{private['sandboxID']}/pause", {})[0] == 204
    for sent in ({}, {"e2b-traffic-access-token": "wrong"}, {"e2b-traffic-access-token": asleep["envdAccessToken"]},
                 {"X-Access-Token": private["envdAccessToken"]}):
        status, body, _ = health(server, private, **{"E2b-Sandbox-Port": "8000"} | sent)
        assert status == 403 and "e2b-traffic-access-token" in body["message"], sent
        assert state(server, private["sandboxID"]) == "paused"
    health(server, private, **{"E2b-Sandbox-Port": "8000", "e2b-traffic-access-token": private["trafficAccessToken"]})
    assert state(server, private["sandboxID"]) == "running"


# --- S24

def test_s24_what_a_sandbox_came_from_stays_as_long_as_the_sandbox(server, make):  # noqa: F811
    parent = make()
    status, snapshot, _ = server.request("POST", f"/sandboxes/{parent['sandboxID']}/snapshots", {"name": "s24"})
    assert status == 201
    name = snapshot["snapshotID"]
    child = make(templateID=name)
    path = f"/sandboxes/{child['sandboxID']}"
    for place in (name, name.removesuffix(":default"), "s24"):
        status, body, _ = server.request("DELETE", template(place))
        assert status == 409 and "running or paused" in body["message"], place
    assert server.request("POST", f"{path}/pause", {})[0] == 204
    assert server.request("DELETE", template(name))[0] == 409
    assert server.request("POST", f"/v2{path}/connect", {"timeout": 60})[0] == 201
    fork = server.request("POST", f"{path}/fork", {"count": 1, "timeout": 60})[1][0]["sandbox"]
    assert health(server, fork, **{"X-Access-Token": fork["envdAccessToken"]})[0] == 204
    assert server.request("DELETE", f"/sandboxes/{fork['sandboxID']}")[0] == 204
    assert server.request("DELETE", path)[0] == 204
    assert server.request("DELETE", template(name))[0] == 204
    assert server.request("DELETE", template(name))[0] == 404
    assert server.request("POST", "/v2/sandboxes", {"templateID": name})[0] == 404
    status, body, _ = server.request("DELETE", "/templates/base")
    assert status == 403 and "operator" in body["message"]
    assert health(server, parent)[0] == 204


# --- S27

def test_s27_long_names_are_taken_or_refused_and_break_no_boot(server, make):  # noqa: F811
    parent = make(metadata={"k" * 128: "v" * 128, "name": "n" * 100}, envVars={"E" * 128: "x" * 128})
    for length in (65, 128):
        status, snapshot, _ = server.request("POST", f"/sandboxes/{parent['sandboxID']}/snapshots", {"name": "s" * length})
        assert status == 201, snapshot
        made = make(templateID=snapshot["snapshotID"])
        copy = Sandbox.connect(made["sandboxID"])
        assert copy.commands.run("hostname").stdout.strip() != ""
        if length == 128:  # also through a boot of its own
            assert server.request("POST", f"/sandboxes/{made['sandboxID']}/pause", {"memory": False})[0] == 204
            assert Sandbox.connect(made["sandboxID"]).commands.run("hostname").stdout.strip() != ""
        copy.kill()
        assert server.request("DELETE", template(snapshot['snapshotID']))[0] == 204
    for name in ("s" * 129, "s" * 5000, "a:" + "t" * 129, "a" * 20 + ":" + "-" * 200, "dots.in.a.name", "sp ace", "", "a/b/c", "ä"):
        status, body, _ = server.request("POST", f"/sandboxes/{parent['sandboxID']}/snapshots", {"name": name})
        assert status == 400 and body["code"] == 400, (name, body)
        assert server.request("POST", "/v2/sandboxes", {"templateID": name or "x" * 200})[0] in (400, 404)
    assert snapshots_of(server, parent["sandboxID"]) == []
    assert health(server, parent)[0] == 204


# --- S28

def cli_of(server, home: Path):
    environment = os.environ | server.variables() | {"HOME": str(home), "NO_COLOR": "1", "TERM": "xterm"}
    program = node() if os.path.isabs(node()) else "/usr/bin/env"
    start = [program, *([] if os.path.isabs(node()) else [node()]), str(CLI)]
    return start, environment


def test_s28_snapshots_outlive_their_source_whoever_ends_it(server, tmp_path):
    """The official command line kills the sandbox that it made when its terminal ends; the snapshot of it stays."""
    command, environment = cli_of(server, tmp_path)
    known = {item["sandboxID"] for item in pages(server)}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], [*command, "sandbox", "create", "base"], environment)
    seen, snapshot = b"", None
    deadline = time.monotonic() + 120
    try:
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    seen += os.read(terminal, 65536)
                except OSError:
                    break
            if snapshot is None and b"$" in seen:
                [source] = {item["sandboxID"] for item in pages(server)} - known
                Sandbox.connect(source).files.write("/dev/shm/kept", "in memory")
                made = subprocess.run([*command, "sandbox", "snapshot", "create", source], env=environment, capture_output=True,
                                      text=True, timeout=1800, stdin=subprocess.DEVNULL)
                assert made.returncode == 0, made.stdout + made.stderr
                [snapshot] = [item["snapshotID"] for item in snapshots_of(server, source)]
                os.write(terminal, b"exit\n")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert snapshot, seen
    eventually(lambda: state(server, source) is None)  # the command line has ended it
    assert snapshots_of(server, source) == [{"snapshotID": snapshot, "names": []}]
    with Sandbox.create(snapshot, timeout=60) as copy:
        assert copy.files.read("/dev/shm/kept") == "in memory"
    listed = subprocess.run([*command, "sandbox", "snapshot", "list"], env=environment, capture_output=True, text=True, timeout=1800,
                            stdin=subprocess.DEVNULL)
    assert snapshot in listed.stdout
    assert Sandbox.delete_snapshot(snapshot)
