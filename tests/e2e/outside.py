# SPDX-License-Identifier: Apache-2.0
"""A machine of the internet for tests that need more than one answer from it: a network namespace at an address that sandboxes may
reach, in which programs run."""
import contextlib
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from control_server import free_pair, ip, wait_for


class Outside:
    def __init__(self, namespace: str, address: str, folder: Path):
        self.namespace, self.address, self.folder = namespace, address, folder
        self.processes: list[subprocess.Popen] = []

    def run(self, program: str, *arguments: str, port: int) -> Path:
        """Starts a Python program there, which must listen on the port soon. The file that it prints to."""
        output = self.folder / f"{port}.log"
        with open(output, "w") as out:
            self.processes.append(subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, sys.executable, "-uc", program, self.address, str(port), *arguments],
                stdout=out, stderr=out))
        wait_for(self.address, port)
        return output


@contextlib.contextmanager
def outside():
    tag = secrets.token_hex(3)
    namespace, outer, inner = f"out-{tag}", f"out{tag}h", f"out{tag}n"
    host, address = free_pair()
    ip("netns", "add", namespace)
    with tempfile.TemporaryDirectory() as folder:
        there = Outside(namespace, address, Path(folder))
        try:
            ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace)
            ip("addr", "add", f"{host}/30", "dev", outer)
            ip("link", "set", outer, "up")
            ip("-n", namespace, "addr", "add", f"{address}/30", "dev", inner)
            ip("-n", namespace, "link", "set", inner, "up")
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "route", "add", "default", "via", host)
            yield there
        finally:
            for process in there.processes:
                process.terminate()
                process.wait()
            ip("netns", "del", namespace)
