# SPDX-License-Identifier: Apache-2.0
"""A host with an internet behind it, both made of network namespaces: the server under test runs on that host, and everything
that it, its sandboxes and its clients can reach is here.

    test process ── api link ── [ host: glovebox serve ] ── wan ── [ net: internet_server.py, 1.1.1.1, 8.8.8.8, 203.0.113.x ]

Any number of them can be there at once."""
import contextlib
import fcntl
import json
import random
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conftest import Server
from control_server import ip
from domain_mode import Authority

ADDRESSES = ["1.1.1.1", "8.8.8.8", *[f"203.0.113.{n}" for n in (10, 11, 12, 13, 14, 20, 53)]]
RESOLVER = "203.0.113.53"
WAN = ("198.51.100.1", "198.51.100.2")  # of the host, of the internet
API_LINKS = "192.0.2.{}"  # of test processes and hosts, apart from all of the internet's
CERTIFIED = ",".join([*(f"DNS:{name}" for name in (
    "ok.example.com", "api.example.com", "other.example.com", "sub.example.com", "*.sub.example.com", "alias.example.com",
    "slow.example.com", "mixed.example.com", "*.rebind.example.com", "*.moves.example.com", "evil.example.net",
    "connectivitycheck.gstatic.com")), "IP:1.1.1.1", "IP:8.8.8.8"])


def enter(namespace: str) -> tuple[str, ...]:
    # Not `ip netns exec`: that hides the mounts of control groups.
    return ("nsenter", f"--net=/run/netns/{namespace}")


@contextlib.contextmanager
def namespace(name: str):
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


def api_link(link: str, host: str) -> str:
    """Joins this namespace with the host's; the host's address there."""
    with open(Path(tempfile.gettempdir()) / "glovebox-api-links.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # from looking for a free pair until it is taken
        used = subprocess.run(["ip", "-4", "-o", "addr"], check=True, capture_output=True, text=True).stdout
        first = random.choice([n for n in range(0, 256, 4) if API_LINKS.format(n + 1) + "/" not in used])
        ip("link", "add", link, "type", "veth", "peer", "name", "api0", "netns", host)
        ip("addr", "add", API_LINKS.format(first + 1) + "/30", "dev", link)
    ip("link", "set", link, "up")
    ip("-n", host, "addr", "add", API_LINKS.format(first + 2) + "/30", "dev", "api0")
    ip("-n", host, "link", "set", "api0", "up")
    return API_LINKS.format(first + 2)


class Internet:
    def __init__(self, folder: Path, authority: Authority, host: str, net: str, api: str):
        self.folder, self.authority, self.host, self.net, self.api = folder, authority, host, net, api
        ip("-n", host, "link", "add", "wan0", "type", "veth", "peer", "name", "wan0", "netns", net)
        for where, address in zip((host, net), WAN):
            ip("-n", where, "addr", "add", f"{address}/30", "dev", "wan0")
            ip("-n", where, "link", "set", "wan0", "up")
        ip("-n", host, "route", "add", "default", "via", WAN[1])
        for address in ADDRESSES:
            ip("-n", net, "addr", "add", f"{address}/32", "dev", "lo")
        certificate, key = authority.sign("internet", CERTIFIED, folder)
        self.log_path = folder / "internet.log"
        self.log_path.touch()
        self.process = subprocess.Popen([*enter(net), sys.executable, str(Path(__file__).with_name("internet_server.py")),
                                         str(certificate), str(key), str(self.log_path)])

    def wait(self) -> None:
        deadline = time.monotonic() + 30
        while not self.log(kind="ready"):
            assert time.monotonic() < deadline and self.process.poll() is None, "the internet does not start"
            time.sleep(0.05)

    def serve(self, egress: str = "", *arguments: str, data: Path | None = None,
              prefix: tuple[str, ...] = ()) -> Server:
        """A server on the host; `egress` is more of that section of its configuration."""
        config = self.folder / f"config-{secrets.token_hex(3)}.toml"
        config.write_text(f'[egress]\nresolvers = ["{RESOLVER}"]\ntrusted_ca = "{self.authority.certificate}"\n{egress}')
        return Server("--listen", self.api, "--config", str(config), *arguments, data=data, prefix=(*enter(self.host), *prefix))

    def log(self, since: int = 0, **wanted) -> list[dict]:
        """What reached the internet with these values, oldest first, after the first `since` lines."""
        lines = [json.loads(line) for line in self.log_path.read_text().splitlines()[since:]]
        return [line for line in lines if all(line.get(k) == v for k, v in wanted.items())]

    def mark(self) -> int:
        """For log(since)."""
        return len(self.log_path.read_text().splitlines())

    def from_host(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run([*enter(self.host), *command], capture_output=True, text=True, timeout=1800)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def internet(authority: Authority | None = None):
    """With an authority of its own, unless one is given that guests know already (trusting_template.py)."""
    tag = secrets.token_hex(3)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        host, net = stack.enter_context(namespace(f"gih-{tag}")), stack.enter_context(namespace(f"gin-{tag}"))
        there = Internet(folder, authority or Authority(folder), host, net, api_link(f"gi{tag}", host))
        stack.callback(there.close)
        there.wait()
        yield there
