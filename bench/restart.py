# SPDX-License-Identifier: Apache-2.0
"""How long a server that was killed with sandboxes running is away: from the start of the next one on until it answers, until all
sandboxes are said to run, and until a command has printed in the last of them. Idle guests and busy ones, with and without a pool whose
machines the next server has to end. Bare HTTP, so that no client's start is measured."""
import http.client
import time

from conftest import Server
from measure import show
from pool import create, request_start, start_echo

COUNTS = (0, 3, 8)
BUSY = "while :; do :; done & while :; do dd if=/dev/zero of=/tmp/busy bs=1M count=20 2> /dev/null; done"


def keep_busy(server: Server, sandbox: dict) -> http.client.HTTPConnection:
    """Until the sandbox ends; the connection is to be held."""
    connection, answer = request_start(server, sandbox, "/bin/sh", ["-c", BUSY])
    assert answer.status == 200, answer.read()
    return connection


def restart(server: Server, made: list[dict]) -> tuple[float, float, float]:
    """Milliseconds to the first answer, to the last sandbox that is said to run, to the first output of a command in it."""
    time.sleep(1)  # what begins after a start is done: ready slots, the pool
    server.kill_hard()
    began = time.perf_counter()
    server.start()
    assert server.request("GET", "/v2/sandboxes")[0] == 200
    first = time.perf_counter() - began
    for sandbox in made:
        status, seen, _ = server.request("GET", f"/sandboxes/{sandbox['sandboxID']}")
        assert status == 200 and seen["state"] == "running", seen
    there = time.perf_counter() - began
    if made:
        start_echo(server, made[-1])
    return first * 1000, there * 1000, (time.perf_counter() - began) * 1000


def bench_restart(runs: int) -> None:
    for guests, pool in (("idle", 0), ("idle", 4), ("busy", 0)):
        server = Server("--pool", str(pool))
        made: list[dict] = []
        held = []
        try:
            for count in COUNTS:
                more = [create(server, "base", 3600)[1] for _ in range(count - len(made))]
                made += more
                if guests == "busy":
                    held += [keep_busy(server, sandbox) for sandbox in more]
                figures = zip(*(restart(server, made) for _ in range(runs)))
                for what, values in zip(("answers", "all sandboxes", "a command in the last"), figures):
                    show(f"killed with {count} {guests}, pool {pool}: {what}", list(values))
        finally:
            server.close()
