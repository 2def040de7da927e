# SPDX-License-Identifier: Apache-2.0
"""Pause, resume, snapshots and forks, against the disk and against QEMU alone."""
import json
import os
import re
import shutil
import statistics
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import conftest
from conftest import GLOVEBOX, Server
from measure import show, timed

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "build/bench-templates"
MIB = 1 << 20
LARGE = "base-2048"


def prepare_templates() -> None:
    """`base` as it is and the same with 2 GiB of memory, in a folder of the benchmark's own."""
    images = ROOT / "build/bench-images"
    shutil.rmtree(images, ignore_errors=True)
    shutil.copytree(ROOT / "images/base", images / "base", symlinks=True)
    shutil.copytree(ROOT / "images/base", images / LARGE, symlinks=True)
    definition = images / LARGE / "template.toml"
    text = definition.read_text()
    text = re.sub(r'(?m)^name = .*$', f'name = "{LARGE}"', text)
    definition.write_text(re.sub(r"(?m)^memory_mib = .*$", "memory_mib = 2048", text))
    subprocess.run([GLOVEBOX, "template", "prepare", "--images-dir", images, "--templates-dir", TEMPLATES], check=True)


@contextmanager
def bench_server():
    conftest.TEMPLATES = str(TEMPLATES)
    server = Server("--log-level", "debug", "--pool", "0")
    try:
        yield server
    finally:
        server.close()


class Machine:
    def __init__(self, server: Server, template: str):
        self.server = server
        status, made, _ = server.request("POST", "/v2/sandboxes", {"templateID": template, "timeout": 3000})
        assert status == 201, made
        self.id, self.token = made["sandboxID"], made["envdAccessToken"]

    def put(self, path: str, data: bytes) -> None:
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "X-Access-Token": self.token,
                   "Content-Type": "application/octet-stream"}
        status, answer, _ = self.server.request("POST", f"/files?username=root&path={path}", data, headers)
        assert status == 200, answer

    def do(self, method: str, path: str, body=None, wanted=(200, 201, 204)):
        status, answer, _ = self.server.request(method, f"/sandboxes/{self.id}{path}", body)
        assert status in wanted, (status, answer)
        return answer

    def pause(self) -> float:
        return timed(lambda: self.do("POST", "/pause"))

    def resume(self) -> float:
        return timed(lambda: self.do("POST", "/connect", {"timeout": 3000}))

    def kill(self) -> None:
        self.server.request("DELETE", f"/sandboxes/{self.id}")


def write_to_disk(folder: Path, data: bytes) -> None:
    path = folder / "floor"
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    path.unlink()


def logged(server: Server, message: str, field: str) -> list[float]:
    return [entry[field] for entry in map(json.loads, server.log().splitlines()) if entry["message"] == message]


def create_and_kill(server: Server, template: str) -> float:
    before = time.perf_counter()
    machine = Machine(server, template)
    took = (time.perf_counter() - before) * 1000
    machine.kill()
    return took


def bench_pause(server: Server, runs: int, bare_answers) -> None:
    data = os.urandom(64 * MIB)
    small, large = Machine(server, "base"), Machine(server, LARGE)
    for machine in (small, large):
        machine.put("/dev/shm/written", data)
        machine.pause(), machine.resume()
    floor, bare = [], []
    paused = {"base": [], LARGE: []}
    resumed = {"base": [], LARGE: []}
    for _ in range(runs):
        floor.append(timed(lambda: write_to_disk(server.data, data)))
        for name, machine in (("base", small), (LARGE, large)):
            paused[name].append(machine.pause())
            resumed[name].append(machine.resume())
        bare.append(bare_answers())
    show("64 MiB written and synced to the same disk", floor)
    show("pause, 64 MiB written, 512 MiB of memory", paused["base"], floor, "the disk alone")
    show("pause, 64 MiB written, 2 GiB of memory", paused[LARGE], paused["base"], "that of 512 MiB")
    show("QEMU alone: a restored guest answers", bare)
    show("resume of the same, 512 MiB", resumed["base"], bare, "QEMU alone")
    show("resume of the same, 2 GiB", resumed[LARGE], bare, "QEMU alone")
    small.kill(), large.kill()


def bench_cycles(server: Server) -> None:
    machine = Machine(server, "base")
    machine.put("/dev/shm/written", os.urandom(16 * MIB))
    pauses, resumes = [], []
    for _ in range(20):
        pauses.append(machine.pause())
        resumes.append(machine.resume())
    show("pause, the first 5 of 20 cycles", pauses[:5])
    show("pause, the last 5", pauses[-5:], pauses[:5], "the first")
    show("resume, the first 5", resumes[:5])
    show("resume, the last 5", resumes[-5:], resumes[:5], "the first")
    machine.kill()


def bench_copies(server: Server, runs: int) -> None:
    machine = Machine(server, "base")
    machine.put("/dev/shm/written", os.urandom(16 * MIB))
    taken, ids = [], []
    for _ in range(50):
        before = time.perf_counter()
        ids.append(machine.do("POST", "/snapshots", {})["snapshotID"])
        taken.append((time.perf_counter() - before) * 1000)
    show("snapshot, 16 MiB written, the first 10 of 50", taken[:10])
    show("snapshot, the last 10", taken[-10:], taken[:10], "the first")
    show("the source stands still for a snapshot", logged(server, "machine copied", "stopped_ms"))
    started, plain, forks = [], [], []
    for _ in range(runs):
        plain.append(create_and_kill(server, "base"))
        started.append(create_and_kill(server, ids[0]))
        before = time.perf_counter()
        made = machine.do("POST", "/fork", {"count": 10, "timeout": 300})
        forks.append((time.perf_counter() - before) * 1000)
        for one in made:
            server.request("DELETE", f"/sandboxes/{one['sandbox']['sandboxID']}")
    show("create of base, no warm pool", plain)
    show("create from a snapshot, 16 MiB written", started, plain, "that of base")
    slot = [value / 1000 for value in logged(server, "machine started", "place_us")]
    allowed = [2 * statistics.median(started) + 10 * statistics.median(slot)]
    show("   of it, slot and files", slot)
    show("fork of 10", forks, allowed, "2 restores and 10 slots")
    for snapshot in ids:
        server.request("DELETE", "/templates/" + snapshot)
    machine.kill()


def available_mib() -> float:
    text = Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable:\s+(\d+)", text).group(1)) / 1024


def bench_sharing(server: Server) -> None:
    def private(machine: Machine) -> int:
        return server.request("GET", f"/glovebox/sandboxes/{machine.id}/isolation")[1]["privateBytes"]

    before = available_mib()
    machines = [Machine(server, "base")]
    time.sleep(3)
    one = before - available_mib()
    machines += [Machine(server, "base") for _ in range(19)]
    time.sleep(5)
    all_of_them = before - available_mib()
    sizes = [private(machine) / MIB for machine in machines]
    print(f"{'20 sandboxes of base: private memory':<52} {sum(sizes):8.0f} MiB in all, {statistics.median(sizes):.1f} each, of 20 x 512 that they have")
    print(f"{'the same as the host sees it':<52} {all_of_them:8.0f} MiB for 20, {one:.0f} for the first")
    for machine in machines:
        machine.kill()
