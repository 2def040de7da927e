# SPDX-License-Identifier: Apache-2.0
"""Measures a running installation. Everything that is compared is measured in turn within one run, several times; figures are
medians with the 99th percentile where there are enough of them. The machine is shared: read the ratios, not the times.

    bench.py [RUNS] [AREA...]      15 runs of every area unless told; areas: memory, create, commands, agent, control,
                                   pause, restart, egress, interpreter; interpreter:PART,PART for some of its parts
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
import snapshots  # noqa: E402
from agent import bench_agent  # noqa: E402
from control import bench_control  # noqa: E402
from conftest import TEMPLATES, Server, is_vmm_of  # noqa: E402
from egress import bench_egress  # noqa: E402
from interpreter import bench_interpreter  # noqa: E402
from measure import show, timed  # noqa: E402
from pool import bench_pool  # noqa: E402
from restart import bench_restart  # noqa: E402

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 15


def vmm_of(server: Server, sandbox_id: str) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        if is_vmm_of(entry.name, sandbox_id):
            return int(entry.name)
    raise RuntimeError("no VMM")


def bare_job(server: Server, sandbox_id: str, name: str, folder: Path, templates: Path = Path(TEMPLATES)) -> dict:
    """The command line of a running machine, with the host's paths in it."""
    manifest = next(m for m in (json.loads(p.read_text()) for p in templates.glob("*/manifest.json")) if m["name"] == name)
    build = templates / manifest["build_id"]
    argv = Path(f"/proc/{vmm_of(server, sandbox_id)}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    places = {"/vm/memory": str(build / "memory.img"), "/vm/disk": str(folder / "bare.qcow2"), "/vm/base": str(build / "disk.img")}
    out = []
    for part in argv:
        for inside, outside in places.items():
            part = part.replace(inside, outside)
        part = re.sub(r"socket,id=(\w+),fd=\d+[^ ]*", r"socket,id=\1,fd={qmp}", part)
        part = re.sub(r"tap,id=(\w+),fd=\d+", r"tap,id=\1,fd={tap}", part)
        out.append(part.replace("spawn=deny", "spawn=allow"))
    out[0] = "qemu-system-x86_64"
    return {"argv": out, "disk": str(build / "disk.img"), "state": str(build / "state.bin"), "overlay": str(folder / "bare.qcow2")}


def bare_restore(job: dict) -> dict:
    namespace = f"bench-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    try:
        done = subprocess.run(["ip", "netns", "exec", namespace, sys.executable, str(ROOT / "bench/bare_restore.py")],
                              input=json.dumps(job), capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)
    finally:
        subprocess.run(["ip", "netns", "del", namespace], check=True)


def bench_create(server: Server, name: str) -> None:
    from e2b import Sandbox

    def create() -> float:
        before = time.perf_counter()
        status, made, _ = server.request("POST", "/v2/sandboxes", {"templateID": name, "timeout": 120})
        took = (time.perf_counter() - before) * 1000
        assert status == 201, made
        server.request("DELETE", f"/sandboxes/{made['sandboxID']}")
        return took

    with tempfile.TemporaryDirectory() as folder, Sandbox.create(name) as example:
        job = bare_job(server, example.sandbox_id, name, Path(folder))
        create(), bare_restore(job)  # warms the page cache
        ours, running, answered = [], [], []
        for _ in range(RUNS):
            ours.append(create())
            bare = bare_restore(job)
            running.append(bare["running_ms"])
            answered.append(bare["answered_ms"])
    show(f"QEMU alone, {name}: runs", running)
    show(f"QEMU alone, {name}: its guest answers", answered)
    show(f"POST /v2/sandboxes, {name}, no warm pool", ours, answered, "QEMU alone, guest answers")
    show(f"   the same against the earlier mark", ours, running, "QEMU alone, runs")


def bench_pause_and_copies() -> None:
    snapshots.prepare_templates()
    with snapshots.bench_server() as server, tempfile.TemporaryDirectory() as folder:
        example = snapshots.Machine(server, "base")
        job = bare_job(server, example.id, "base", Path(folder), snapshots.TEMPLATES)
        example.kill()
        bare_restore(job)  # warms the page cache
        snapshots.bench_pause(server, RUNS, lambda: bare_restore(job)["answered_ms"])
        snapshots.bench_cycles(server)
        snapshots.bench_copies(server, RUNS)
        snapshots.bench_sharing(server)


def bench_commands(server: Server) -> None:
    from e2b import Sandbox
    from e2b_code_interpreter import Sandbox as Interpreter

    with Sandbox.create("base") as sandbox:
        sandbox.commands.run("echo warm")
        show("commands.run('echo') on an open connection", [timed(lambda: sandbox.commands.run("echo hi")) for _ in range(RUNS * 4)])
        headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
        show("GET /health through the ingress", [timed(lambda: server.request("GET", "/health", headers=headers)) for _ in range(RUNS * 4)])
    with Interpreter.create() as sandbox:
        sandbox.run_code("1+1")
        show("run_code('1+1')", [timed(lambda: sandbox.run_code("1+1")) for _ in range(RUNS * 4)])
        first = []
        for _ in range(max(3, RUNS // 3)):
            with Interpreter.create() as fresh:
                first.append(timed(lambda: fresh.run_code("import pandas as pd; pd.DataFrame({'a': [1]}).shape")))
        show("first run_code with pandas in a new sandbox", first)


def resident(pid: int, field: str) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(field)) // 1024


def bench_memory(server: Server) -> None:
    from e2b import Sandbox

    print(f"{'server, idle: resident':<52} {resident(server.process.pid, 'Rss:'):5} MiB, {resident(server.process.pid, 'Private_'):4} MiB private")
    for name in ("base", "code-interpreter-v1"):
        made = [Sandbox.create(name, timeout=300) for _ in range(3)]
        time.sleep(5)
        sizes = [server.request("GET", f"/glovebox/sandboxes/{s.sandbox_id}/isolation")[1]["privateBytes"] >> 20 for s in made]
        print(f"{'idle sandbox of ' + name + ': private':<52} {statistics.median(sizes):5} MiB, n={len(sizes)}")
        for sandbox in made:
            sandbox.kill()


def main() -> None:
    server = Server("--pool", "0")
    os.environ.update(server.variables())
    try:
        accelerator = {json.loads(p.read_text())["accelerator"] for p in Path(TEMPLATES).glob("*/manifest.json")}
        print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, machines run on {', '.join(sorted(accelerator))}, {RUNS} runs")
        areas = {
            "memory": lambda: bench_memory(server),
            "create": lambda: [(bench_create(server, name), bench_pool(name, RUNS)) for name in ("base", "code-interpreter-v1")],
            "commands": lambda: bench_commands(server),
            "agent": lambda: bench_agent(server, RUNS, vmm_of),
            "control": lambda: bench_control(RUNS),
            "pause": bench_pause_and_copies,
            "restart": lambda: bench_restart(RUNS),
            "egress": lambda: bench_egress(server, RUNS),
            "interpreter": lambda: bench_interpreter(server, RUNS, vmm_of),
        }
        for name in sys.argv[2:] or areas:
            area, _, parts = name.partition(":")
            if parts:
                bench_interpreter(server, RUNS, vmm_of, parts)
            else:
                areas[area]()
    finally:
        server.close()


if __name__ == "__main__":
    main()
