# SPDX-License-Identifier: Apache-2.0
"""The code interpreter under load, and under none: contexts made at once, much output, large results, and what it costs to wait."""
import base64
import concurrent.futures
import hashlib
import json
import os
import statistics
import time
from pathlib import Path

from conftest import Server
from measure import timed

MIB = 1 << 20
CONTEXTS = 10
IDLE_SECONDS = 20
# Peak sizes are asked for anew before each measurement.
FORGET = "for p in /proc/[0-9]*; do echo 5 > $p/clear_refs; done 2>/dev/null; true"
PROCESSES = r"""
import json, pathlib, re
found = []
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        tasks = [task.read_text() for task in folder.glob("task/*/status")]
    except OSError:
        continue
    found.append({"pid": int(folder.name), "name": status["Name"].strip(), "command": command,
                  "ticks": int(fields[11]) + int(fields[12]),
                  "switches": sum(int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", task).group(1)) for task in tasks),
                  "kib": {name: int(status.get(name, "0").split()[0]) for name in ("VmHWM", "VmRSS")}})
print(json.dumps(found))
"""
CELL_100_MIB = """
import hashlib, os, pathlib, sys
seed, told = os.urandom(48).hex(), hashlib.sha256()
for number in range(100):
    line = f"{number:015d} " + (seed * 10923)[:(1 << 20) - 17] + "\\n"
    told.update(line.encode())
    n = sys.stdout.write(line)
pathlib.Path("/tmp/told").write_text(told.hexdigest());
"""
CELL_LINES = """
import hashlib, pathlib
told = hashlib.sha256()
for number in range(COUNT):
    line = f"{number:015d} " + "x" * 83
    told.update(line.encode() + b"\\n")
    print(line)
pathlib.Path("/tmp/told").write_text(told.hexdigest());
"""
CELL_PNG = """
import hashlib, os, pathlib
from IPython.display import Image, display
data = b"\\x89PNG\\r\\n\\x1a\\n" + os.urandom((20 << 20) - 8)
pathlib.Path("/tmp/told").write_text(hashlib.sha256(data).hexdigest())
display(Image(data=data, format="png"))
del data
"""


def row(name: str, text: str) -> None:
    print(f"{name:<52} {text}", flush=True)


def processes(sandbox) -> list[dict]:
    return json.loads(sandbox.commands.run(f"python3 - <<'EOF'\n{PROCESSES}\nEOF", user="root", timeout=120).stdout)


def role(process: dict) -> str:
    """What a process of the guest is for, by its command line."""
    line = " ".join(process["command"])
    for part, name in (("glovebox-interpreter", "interpreter"), ("glovebox_zygote.py", "zygote"), ("glovebox_kernel.mjs", "javascript"),
                       ("glovebox.bash", "bash"), ("glovebox.R", "r"), ("glovebox.Kernel", "java")):
        if part in line:
            return name if "--no-supervise" in line or name != "interpreter" else "supervisor"
    return process["name"]


def host_kib(pid: int, name: str) -> int:
    return next(int(line.split()[1]) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(name))


def bench_contexts(template: str) -> None:
    from e2b_code_interpreter import Sandbox

    for language in ("python", "javascript"):
        single, together, ready, failures = [], [], [], []
        for _ in range(2):
            with Sandbox.create(template, timeout=3600) as sandbox:
                def make(_: int):
                    try:
                        return sandbox.create_code_context(language=language, request_timeout=1800)
                    except Exception as error:  # noqa: BLE001: counted and shown
                        failures.append(str(error))

                def run(code: str, context) -> str:
                    done = sandbox.run_code(code, context=context, timeout=1800)
                    assert done.error is None, done.error
                    return done.text or ""

                alone = []
                for _ in range(3):
                    single.append(timed(lambda: alone.append(make(0))))
                    sandbox.remove_code_context(alone.pop())
                with concurrent.futures.ThreadPoolExecutor(CONTEXTS) as threads:
                    started = time.perf_counter()
                    made = [context for context in threads.map(make, range(CONTEXTS)) if context]
                    together.append((time.perf_counter() - started) * 1000)
                    list(threads.map(lambda i: run(f"x = {1000 + i}", made[i]), range(len(made))))
                    values = list(threads.map(lambda i: run("x", made[i]), range(len(made))))
                    ready.append((time.perf_counter() - started) * 1000)
                assert len({context.id for context in made}) == len(made)
                assert values == [str(1000 + i) for i in range(len(made))], values
        one, ten = statistics.median(single), statistics.median(together)
        row(f"a context of {language}", f"    {one:8.0f} ms   n={len(single)}")
        row(f"{CONTEXTS} contexts of {language} at once", f"    {ten:8.0f} ms   {ten / one:5.1f} x one, {statistics.median(ready):.0f} ms until "
            f"all have run two cells and kept their own variable; {len(failures)} failed {failures[:1]}")


class Received:
    """Adds up what a cell prints."""

    def __init__(self):
        self.count, self.sum = 0, hashlib.sha256()

    def take(self, data: bytes) -> None:
        self.count += len(data)
        self.sum.update(data)


def measure_output(server: Server, template: str, name: str, code: str, size: int) -> None:
    from e2b_code_interpreter import Sandbox

    took, peaks, hosts = [], [], []
    for _ in range(3):
        with Sandbox.create(template, timeout=3600) as sandbox:
            kernel = int(sandbox.run_code("import os; os.getpid()").text)  # the process it was forked from has the same command line
            sandbox.commands.run(FORGET, user="root")
            before = {"python" if p["pid"] == kernel else role(p): p["kib"]["VmRSS"] for p in processes(sandbox)}
            Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
            host_before = host_kib(server.process.pid, "VmRSS")
            received = Received()
            shown = []
            started = time.perf_counter()
            done = sandbox.run_code(code, on_stdout=lambda message: received.take(message.line.encode()), on_result=shown.append, timeout=1800)
            took.append(time.perf_counter() - started)
            hosts.append((host_before, host_kib(server.process.pid, "VmHWM")))
            assert done.error is None, done.error
            for result in shown:
                received.take(base64.b64decode(result.png))
            told = sandbox.files.read("/tmp/told")
            assert (received.count, received.sum.hexdigest()) == (size, told), (received.count, size)
            after = {"python" if p["pid"] == kernel else role(p): p["kib"]["VmHWM"] for p in processes(sandbox)}
            peaks.append({name: (before[name], after[name]) for name in ("interpreter", "python")})
    middle = statistics.median(took)
    mib = [f"{statistics.median(p[part][0] for p in peaks) / 1024:.0f} -> {statistics.median(p[part][1] for p in peaks) / 1024:.0f} MiB"
           for part in ("interpreter", "python")]
    host = f"{statistics.median(h[0] for h in hosts) / 1024:.0f} -> {statistics.median(h[1] for h in hosts) / 1024:.0f} MiB"
    row(name, f"    {middle:8.1f} s    {size / MIB / middle:5.2f} MiB/s, every byte; largest size of the guest's server {mib[0]}, "
        f"kernel {mib[1]}, our server {host}")


def bench_output(server: Server, template: str) -> None:
    measure_output(server, template, "100 MiB of stdout, written by the MiB", CELL_100_MIB, 100 * MIB)
    count = 20 * MIB // 100
    measure_output(server, template, "20 MiB of stdout, lines of 100 bytes", CELL_LINES.replace("COUNT", str(count)), count * 100)
    measure_output(server, template, "a PNG of 20 MiB", CELL_PNG, 20 * MIB)


def bench_idle(server: Server, template: str, vmm_of) -> None:
    from e2b_code_interpreter import Sandbox

    shares = []
    for _ in range(3):
        with Sandbox.create(template, timeout=600) as sandbox:
            vmm = vmm_of(server, sandbox.sandbox_id)
            time.sleep(15)  # the restore and the first answers are over

            def ticks() -> int:
                fields = Path(f"/proc/{vmm}/stat").read_text().rsplit(")", 1)[1].split()
                return int(fields[11]) + int(fields[12])

            before = ticks()
            time.sleep(IDLE_SECONDS)
            shares.append((ticks() - before) / os.sysconf("SC_CLK_TCK") / IDLE_SECONDS * 100)
            if len(shares) < 3:
                continue
            earlier = {p["pid"]: p for p in processes(sandbox)}
            time.sleep(IDLE_SECONDS)
            later = {p["pid"]: p for p in processes(sandbox)}
    row("idle sandbox: host processor", f"    {statistics.median(shares):8.1f} % of one ({', '.join(f'{s:.1f}' for s in shares)})")
    busy = sorted(((p["switches"] - earlier[pid]["switches"], p["ticks"] - earlier[pid]["ticks"], role(p))
                   for pid, p in later.items() if pid in earlier), reverse=True)
    for switches, used, name in busy[:5]:
        row(f"   inside, {name}", f"    {switches / IDLE_SECONDS:8.1f} wake-ups a second, {used} ticks in {IDLE_SECONDS} s")
