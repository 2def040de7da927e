# SPDX-License-Identifier: Apache-2.0
"""What must grow old before a test can say anything about it: limits that nobody wrote down strike after a minute or two, and ten
thousand commands take one. Everything is begun together, when the first test asks, and looked at late (test_time_cases.py), so
that waiting costs little."""
import hashlib
import os
import threading
import time
from concurrent.futures import Future

from e2b import Sandbox
from raw_agent import Agent

LONG = os.environ.get("GLOVEBOX_LONG_TESTS") == "1"
MINUTE = 65  # seconds: a little more
SILENCE = 700 if LONG else MINUTE
MIB = 1 << 20
SLOW_PIECES = 2048 if LONG else 66  # of 1 MiB
PAUSE = SILENCE / SLOW_PIECES        # between two of them


SHORT_COMMANDS = 10_000


def in_background(work) -> Future:
    result = Future()

    def run():
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result


class Elders:
    def __init__(self, server):
        self.server = server
        self.sandbox = Sandbox.create("code-interpreter-v1" if LONG else "base", timeout=3600)  # the larger disk
        self.busy = None
        self.agent = Agent(server, self.sandbox)
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        commands = self.sandbox.commands
        commands.run("mkdir -p /tmp/www && echo served > /tmp/www/index.html")
        serve = "exec python3 -m http.server {} --directory /tmp/www > /dev/null 2>&1"
        # three ways to ask for a command without a limit of time
        self.watched = commands.run(serve.format(8001), background=True, timeout=0)
        self.left = commands.run(serve.format(8002), background=True, timeout=0)
        self.left.disconnect()
        with self.agent.another() as another:
            stream = another.start("/bin/sleep", "3600")
            self.bare = stream.process().pid
            stream.drop()
        self.waiting = commands.run("read line; exit 5", background=True, stdin=True, timeout=0).pid
        self.short = commands.run("exit 7", background=True).pid
        self.born = time.monotonic()
        self.busy = Sandbox.create("base", timeout=3600)
        self.short_commands = in_background(self._short_commands)
        self.silent = in_background(self._silence)
        self.piece = os.urandom(MIB)
        self.slow_download = in_background(self._download)
        self.slow_upload = in_background(self._upload)

    def _short_commands(self) -> tuple[Agent, int]:
        """An agent whose sandbox has run all of them, and how many files its own agent held open before."""
        agent = Agent(self.server, self.busy)
        true = "/bin/true" if LONG else agent.install_true()
        files = agent.open_files()

        def work(count: int, **request) -> None:
            with agent.another() as another:
                for n in range(count):
                    # now and then one that leaves an orphan to whoever is PID 1
                    command = ("/bin/sh", "-c", f"{true} &") if n % 100 == 99 else (true,)
                    done = another.run(*command, **request)
                    assert done.exit_code == 0 and done.end["exited"], done

        parts = [in_background(lambda: work(SHORT_COMMANDS // 4)) for _ in range(3)]
        parts.append(in_background(lambda: work(SHORT_COMMANDS // 4, size=(80, 24))))
        for part in parts:
            part.result()
        return agent, files

    def _silence(self):
        agent = Agent(self.server, self.sandbox, timeout=SILENCE + 120)
        return agent.run("/bin/sh", "-c", f"sleep {SILENCE}; echo awake")

    def _download(self) -> tuple[str, float]:
        self.sandbox.files.write("piece", self.piece)
        self.sandbox.commands.run(f"""python3 -c "
piece = open('piece', 'rb').read()
with open('slow-source', 'wb') as whole:
    for _ in range({SLOW_PIECES}): whole.write(piece)" """, timeout=0)
        start, seen, got = time.monotonic(), hashlib.sha256(), 0
        with self.sandbox.files.read("/home/user/slow-source", format="stream") as stream:
            for piece in stream:
                seen.update(piece)
                time.sleep(PAUSE * ((got + len(piece)) // MIB - got // MIB))
                got += len(piece)
        return seen.hexdigest(), time.monotonic() - start

    def _upload(self) -> float:
        def pieces():
            for _ in range(SLOW_PIECES):
                yield self.piece
                time.sleep(PAUSE)

        start = time.monotonic()
        self.sandbox.files.write("/home/user/slow-target", pieces())
        return time.monotonic() - start

    def slow_hash(self) -> str:
        whole = hashlib.sha256()
        for _ in range(SLOW_PIECES):
            whole.update(self.piece)
        return whole.hexdigest()

    def wait_for_age(self, seconds: float) -> None:
        time.sleep(max(0.0, self.born + seconds - time.monotonic()))

    def close(self) -> None:
        for sandbox in (self.sandbox, self.busy):
            if sandbox:
                sandbox.kill()
