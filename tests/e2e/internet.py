"""A host with an internet behind it, both made of network namespaces: the server under test runs on that host, and everything
that it, its sandboxes and its clients can reach is here.

    test process ── api link ── [ host: glovebox serve ] ── wan ── [ net: internet_server.py, 1.1.1.1, 8.8.8.8, 203.0.113.x ]
"""
import contextlib
import json
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conftest import Server
from control_server import free_pair, ip
from domain_mode import Authority

ADDRESSES = ["1.1.1.1", "8.8.8.8", *[f"203.0.113.{n}" for n in (10, 11, 12, 13, 14, 20, 53)]]
RESOLVER = "203.0.113.53"
CERTIFIED = ("DNS:ok.example.com,DNS:api.example.com,DNS:other.example.com,DNS:*.sub.example.com,DNS:cname.example.com,"
             "DNS:rebind.example.com,DNS:evil.example.net,DNS:connectivitycheck.gstatic.com,IP:1.1.1.1,IP:8.8.8.8")


class Internet:
    def __init__(self, folder: Path):
        self.folder = folder
        tag = secrets.token_hex(3)
        self.host, self.net = f"gih-{tag}", f"gin-{tag}"
        self.outer, self.api = free_pair()
        self.processes: list[subprocess.Popen] = []
        self.authority = Authority(folder)
        for namespace in (self.host, self.net):
            ip("netns", "add", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")
        ip("link", "add", f"gi{tag}", "type", "veth", "peer", "name", "api0", "netns", self.host)
        ip("addr", "add", f"{self.outer}/30", "dev", f"gi{tag}")
        ip("link", "set", f"gi{tag}", "up")
        ip("-n", self.host, "addr", "add", f"{self.api}/30", "dev", "api0")
        ip("-n", self.host, "link", "set", "api0", "up")
        ip("-n", self.host, "link", "add", "wan0", "type", "veth", "peer", "name", "wan0", "netns", self.net)
        for namespace, address in ((self.host, "198.51.100.1"), (self.net, "198.51.100.2")):
            ip("-n", namespace, "addr", "add", f"{address}/30", "dev", "wan0")
            ip("-n", namespace, "link", "set", "wan0", "up")
        ip("-n", self.host, "route", "add", "default", "via", "198.51.100.2")
        for address in ADDRESSES:
            ip("-n", self.net, "addr", "add", f"{address}/32", "dev", "lo")
        certificate, key = self.authority.sign("internet", CERTIFIED)
        self.log_path = folder / "internet.log"
        self.log_path.touch()
        self.processes.append(subprocess.Popen(
            [*self.enter(self.net), sys.executable, str(Path(__file__).with_name("internet_server.py")), str(certificate), str(key),
             str(self.log_path)]))
        deadline = time.monotonic() + 30
        while not self.log(kind="ready"):
            assert time.monotonic() < deadline and self.processes[0].poll() is None, "the internet does not start"
            time.sleep(0.05)

    @staticmethod
    def enter(namespace: str) -> tuple[str, ...]:
        # Not `ip netns exec`: that hides the mounts of control groups.
        return ("nsenter", f"--net=/run/netns/{namespace}")

    def serve(self, egress: str = "", *arguments: str, data: Path | None = None) -> Server:
        """A server on the host; `egress` is more of that section of its configuration."""
        config = self.folder / f"config-{secrets.token_hex(3)}.toml"
        config.write_text(f'[egress]\nresolvers = ["{RESOLVER}"]\ntrusted_ca = "{self.authority.certificate}"\n{egress}')
        return Server("--listen", self.api, "--config", str(config), *arguments, data=data, prefix=self.enter(self.host))

    def log(self, **wanted) -> list[dict]:
        """What reached the internet, oldest first."""
        lines = [json.loads(line) for line in self.log_path.read_text().splitlines()]
        return [line for line in lines if all(line.get(k) == v for k, v in wanted.items())]

    def from_host(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run([*self.enter(self.host), *command], capture_output=True, text=True, timeout=60)

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait()
        for namespace in (self.host, self.net):
            subprocess.run(["ip", "netns", "del", namespace], check=False)


@contextlib.contextmanager
def internet():
    with tempfile.TemporaryDirectory() as folder:
        there = Internet(Path(folder))
        try:
            yield there
        finally:
            there.close()
