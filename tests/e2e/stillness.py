# SPDX-License-Identifier: Apache-2.0
"""A limit that counts only the time in which nothing moves, as src/base/stall.h has it: a slow machine is not a broken one.
Movement is work of this process and of all that it started: they use a processor, wait for one or for a disk, or begin
new processes. As a pytest plugin it ends a test in which nothing has moved for long, or that moves for ever."""
import faulthandler
import os
import signal
import threading
import time
from pathlib import Path

import pytest

STILL = 600.0      # seconds of a test in which nothing may move
CEILING = 7200.0   # of a whole test
SLOWNESS = float(os.environ.get("GLOVEBOX_TEST_SLOWNESS", "1"))
LEAST = 0.2        # of one processor; idle machines need a little for their timers
ESCAPE = 60.0      # a test that does not take its end is the end of the run


def sample(root: int) -> dict[int, tuple[float, bool]]:
    """Busy seconds, and whether it waits for a disk, of a process and all its descendants."""
    parents, states = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry)] = int(fields[1])
        states[int(entry)] = fields[0]
    family, changed = {root}, True
    while changed:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        changed = bool(more)
    found = {}
    for pid in family:
        busy = 0.0
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                ran, waited = Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[:2]
                busy += (int(ran) + int(waited)) / 1e9
        except (OSError, ValueError):
            continue
        found[pid] = (busy, states.get(pid) == "D")
    return found


def moved(before: dict, after: dict, elapsed: float) -> bool:
    if any(disk for _, disk in after.values()) or after.keys() - before.keys():
        return True
    busy = sum(max(now - before[pid][0], 0.0) for pid, (now, _) in after.items())
    return busy >= LEAST * elapsed


class Stillness:
    """How long nothing has moved, and how long all takes. Looked at every few seconds; who does not look cannot tell."""

    def __init__(self, still: float, ceiling: float, root: int | None = None):
        self.still, self.ceiling, self.root = still * SLOWNESS, ceiling * SLOWNESS, root or os.getpid()
        self.begun = self.looked = time.monotonic()
        self.quiet, self.seen = 0.0, {}

    def over(self) -> str | None:
        """Why it is over."""
        now = time.monotonic()
        elapsed = now - self.looked
        if elapsed >= 1 or not self.seen:
            after = sample(self.root)
            self.quiet = 0.0 if self.seen and moved(self.seen, after, elapsed) else self.quiet + min(elapsed, 15.0)
            self.looked, self.seen = now, after
        if self.quiet >= self.still:
            return f"nothing moved for {self.still:.0f} s"
        if now - self.begun >= self.ceiling:
            return f"not done within {self.ceiling:.0f} s, though something moved"
        return None


class Watchdog:
    """Interrupts the test that runs; a thread of its own looks."""

    def __init__(self):
        self.lock, self.test, self.limit, self.why = threading.Lock(), None, None, ""
        self.out = os.fdopen(os.dup(2), "w")  # the run's own, whatever of a test is captured
        signal.signal(signal.SIGALRM, self.interrupt)
        threading.Thread(target=self.watch, daemon=True).start()

    def interrupt(self, *_):
        pytest.fail(f"{self.why}; see the threads above", pytrace=True)

    def watch(self):
        while True:
            time.sleep(5)
            with self.lock:
                test, limit = self.test, self.limit
            why = limit.over() if limit else None
            if not why:
                continue
            self.why = why
            print(f"\n{test}: {why}", file=self.out, flush=True)
            faulthandler.dump_traceback(self.out, all_threads=True)
            os.kill(os.getpid(), signal.SIGALRM)
            time.sleep(ESCAPE)
            with self.lock:
                if self.test == test and self.limit is limit:
                    os._exit(3)

    def begin(self, test: str):
        with self.lock:
            self.test, self.limit = test, Stillness(STILL, CEILING)

    def end(self):
        with self.lock:
            self.test = self.limit = None


def pytest_configure(config):
    config.stash[WATCHDOG] = Watchdog()


WATCHDOG = pytest.StashKey[Watchdog]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.config.stash[WATCHDOG].begin(item.nodeid)
    try:
        return (yield)
    finally:
        item.config.stash[WATCHDOG].end()
