# SPDX-License-Identifier: Apache-2.0
"""The code interpreter as its users meet it, beside what the kernel inside the guest needs alone: one cell there and back, the first
one of a sandbox, what is imported ahead of time, and a new sandbox with its first cell."""
import statistics
import tempfile
import time
from pathlib import Path

from conftest import Server
from interpreter_load import bench_contexts, bench_idle, bench_output
from measure import show, timed
from pool import wait_for_warm

TEMPLATE = "code-interpreter-v1"
ROUNDS = 5
# Of each language: the cell, and the text of its result.
CELLS = {"python": ("1+1", "2"), "javascript": ("1+1", "2"), "bash": ("echo $((1+1))", None), "r": ("1+1", "[1] 2"), "java": ("1+1", "2")}
FLOOR = "/tmp/interpreter_floor.py"
# curl times each request of one run by itself, on one connection.
CURL = ("curl -fsS -o /dev/null -w '%{time_total}\\n' -H 'Content-Type: application/json' -d '{\"code\":\"1+1\"}' "
        "'http://localhost:49999/execute?[1-COUNT]'")
FRESH = "import time; t = time.perf_counter(); import NAME; print((time.perf_counter() - t) * 1000)"


def cell(sandbox, language: str = "python") -> None:
    code, wanted = CELLS[language]
    done = sandbox.run_code(code, language=language)
    assert done.error is None, (language, done.error)
    if wanted is None:
        assert "".join(done.logs.stdout) == "2\n", done.logs
    else:
        assert [result.text for result in done.results] == [wanted], (language, done.results)


def inside(sandbox, command: str, timeout: float = 300) -> str:
    return sandbox.commands.run(command, user="root", timeout=timeout).stdout


def numbers(text: str) -> list[float]:
    return [float(line) for line in text.split()]


def bench_round_trips(server: Server, runs: int) -> None:
    from e2b_code_interpreter import Sandbox

    count = max(10, runs * 4 // ROUNDS)
    times: dict[str, list[float]] = {name: [] for name in ("health", "kernel", "curl", *CELLS)}
    with Sandbox.create(TEMPLATE, timeout=3600) as sandbox:
        sandbox.files.write(FLOOR, (Path(__file__).parent / "interpreter_floor.py").read_text(), user="root")
        assert inside(sandbox, f"python3 {FLOOR} start") == "ready\n"
        headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49999"}

        def health() -> None:
            status, answer, _ = server.request("GET", "/health", headers=headers)
            assert (status, answer) == (200, "OK"), (status, answer)

        for language in CELLS:
            for _ in range(10):
                cell(sandbox, language)
        for _ in range(ROUNDS):
            times["kernel"] += numbers(inside(sandbox, f"python3 {FLOOR} measure {count}"))
            times["python"] += [timed(lambda: cell(sandbox)) for _ in range(count + 3)][3:]
            times["curl"] += [s * 1000 for s in numbers(inside(sandbox, CURL.replace("COUNT", str(count + 3))))][3:]
            times["health"] += [timed(health) for _ in range(count + 3)][3:]
            for language in list(CELLS)[1:]:
                times[language] += [timed(lambda: cell(sandbox, language)) for _ in range(count + 3)][3:]
    show("GET /health of the interpreter through the ingress", times["health"])
    show("a kernel alone in the guest, 1+1", times["kernel"])
    show("POST /execute of 1+1 inside the guest, curl", times["curl"], times["kernel"], "kernel alone")
    show("run_code('1+1')", times["python"], times["kernel"], "kernel alone (wanted 2)")
    for language in list(CELLS)[1:]:
        show(f"run_code of 1+1, {language}", times[language], times["health"], "GET /health")


def bench_first(make, runs: int, how: str) -> None:
    """`make()` is a new sandbox. The languages that wait unseen are asked for less often."""
    first: dict[str, list[float]] = {language: [] for language in CELLS}
    later: dict[str, list[float]] = {language: [] for language in CELLS}
    for number in range(max(20, runs)):
        for language in CELLS if number % 4 == 0 else ("python", "javascript"):
            with make() as sandbox:
                first[language].append(timed(lambda: cell(sandbox, language)))
                later[language] += [timed(lambda: cell(sandbox, language)) for _ in range(10)]
    for language in CELLS:
        show(f"cells 2 to 11 of a sandbox, {language}, {how}", later[language])
        show("   their first cell", first[language], later[language], "later ones (wanted 3)")


def bench_imports(runs: int) -> None:
    from e2b_code_interpreter import Sandbox

    for name in ("numpy", "pandas", "matplotlib.pyplot"):
        code = FRESH.replace("NAME", name)
        cells, fresh = [], []
        for number in range(max(5, runs // 2)):
            with Sandbox.create(TEMPLATE, timeout=600) as sandbox:
                done = sandbox.run_code(code)
                assert done.error is None, done.error
                cells += numbers("".join(done.logs.stdout))
                # The second start: the file system's cache is warm, as it was for the kernel.
                fresh.append(numbers(inside(sandbox, f"python3 -c '{code}'; python3 -c '{code}'"))[-1])
        show(f"import {name} in a new process", fresh)
        share = statistics.median(cells) / statistics.median(fresh) * 100
        print(f"{f'import {name} in the first cell':<52} p50 {statistics.median(cells):8.3f} ms   max {max(cells):8.3f} ms   "
              f"n={len(cells)}   {share:.3f} % of that (wanted 5)", flush=True)


def bench_create(server: Server, runs: int) -> None:
    from e2b_code_interpreter import Sandbox

    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(f"[pool.templates.{TEMPLATE}]\nleast = 1\nmost = 1\n")
        pooled = Server("--config", str(config))
        times = {"pool": ([], []), "cold": ([], [])}
        try:
            for _ in range(max(20, runs)):
                for key, one in (("cold", server), ("pool", pooled)):
                    wait_for_warm(pooled, TEMPLATE, 1)
                    started = time.perf_counter()
                    with Sandbox.create(TEMPLATE, timeout=300, **one.connection) as sandbox:
                        created = time.perf_counter()
                        cell(sandbox)
                        ended = time.perf_counter()
                        times[key][0].append((created - started) * 1000)
                        times[key][1].append((ended - started) * 1000)

            def from_pool():
                wait_for_warm(pooled, TEMPLATE, 1)
                return Sandbox.create(TEMPLATE, timeout=300, **pooled.connection)

            for key, how in (("cold", "without the pool"), ("pool", "from the pool")):
                show(f"Sandbox.create {how}", times[key][0])
                show(f"Sandbox.create and the first cell {how}", times[key][1])
            bench_first(from_pool, runs, "from the pool")
        finally:
            pooled.close()


def bench_interpreter(server: Server, runs: int, vmm_of, only: str = "") -> None:
    from e2b_code_interpreter import Sandbox

    parts = {
        "round-trips": lambda: bench_round_trips(server, runs),
        "first": lambda: bench_first(lambda: Sandbox.create(TEMPLATE, timeout=300), runs, "no pool"),
        "imports": lambda: bench_imports(runs),
        "contexts": lambda: bench_contexts(TEMPLATE),
        "output": lambda: bench_output(server, TEMPLATE),
        "create": lambda: bench_create(server, runs),
        "idle": lambda: bench_idle(server, TEMPLATE, vmm_of),
    }
    for name, part in parts.items():
        if not only or name in only.split(","):
            part()
