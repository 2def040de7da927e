# SPDX-License-Identifier: Apache-2.0
"""The way out of a sandbox: alone, against plain NAT and a bare relay (build/release/src/egress/egress_bench, as root); a change of
policy and a create with one, through the API; downloads of a real guest from the stand-in internet."""
import collections
import statistics
import subprocess
import time
from pathlib import Path

from conftest import Server
from measure import percentile, show, timed

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/src/egress/egress_bench"
MIB = 1 << 20
SIZE = 256  # MiB that a guest downloads
ALL = "0.0.0.0/0"
NAME, ADDRESS = "ok.example.com", "203.0.113.10"  # the same server of the stand-in internet
WAYS = ("plain", "relay", "address", "name")  # of egress_bench
WANTED = {"address": 0.85, "name": 0.70}  # times the rate of plain NAT
HUNDRED = {"denyOut": [ALL], "allowOut": [*(f"203.0.113.{n}" for n in range(50)), *(f"host-{n}.example.com" for n in range(50))]}


def bench_alone(rounds: int) -> None:
    found = collections.defaultdict(list)
    for line in subprocess.run([PROGRAM, str(rounds)], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        name, value = line.split("\t")
        found[name].append(float(value))

    def middle(kind: str, way: str, rest: str) -> float:
        return statistics.median(found[f"{kind} {way} {rest}"])

    for count in (1, 8):
        for direction in ("up", "down"):
            rest = f"{direction} {count}"
            for way in WAYS:
                rate = middle("rate", way, rest)
                name, samples = f"TCP {direction}, connections: {count}, {way}", len(found[f"rate {way} {rest}"])
                line = f"{name:<52} p50 {rate / MIB:8.0f} MiB/s   n={samples}"
                if way != "plain":
                    work = middle("processor", way, rest) / middle("processor", "plain", rest)
                    line += f"   {rate / middle('rate', 'plain', rest):5.2f} x plain NAT, with {work:4.2f} x its processor time"
                if way in WANTED:
                    line += f" (wanted {WANTED[way]:.2f})"
                if way == "name":
                    line += f", {rate / middle('rate', 'relay', rest):5.2f} x a bare relay"
                print(line, flush=True)
    for way in WAYS:
        taken = found[f"new {way}"]
        show(f"new connection, {way}", taken, found["new plain"], "plain NAT")
        print(f"   of it p99 {percentile(taken, 0.99) / percentile(found['new plain'], 0.99):.2f} x plain NAT")
    for way in WANTED:
        show(f"change of policy, {way}: the call", found[f"policy {way} call"])
        show("   until a new connection is refused (wanted 20)", found[f"policy {way} refused"])
        show("   until a carried one is cut (wanted 20)", found[f"policy {way} cut"])


def create(server: Server, **options) -> tuple[float, str]:
    """Milliseconds, and whom to end."""
    started = time.perf_counter()
    status, made, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 1800, **options})
    assert status == 201, made
    return (time.perf_counter() - started) * 1000, made["sandboxID"]


def end(server: Server, sandbox: str) -> None:
    assert server.request("DELETE", f"/sandboxes/{sandbox}")[0] == 204


def put_network(server: Server, sandbox: str, network: dict) -> None:
    status, answer, _ = server.request("PUT", f"/sandboxes/{sandbox}/network", network)
    assert status == 204, answer


def bench_creates(server: Server, runs: int) -> None:
    kinds = {"no network options": {}, "an empty policy": {"network": {}}, "100 rules": {"network": HUNDRED}}
    took = {kind: [] for kind in kinds}
    end(server, create(server)[1])  # warms the page cache
    for _ in range(runs):
        for kind, options in kinds.items():
            one, sandbox = create(server, **options)
            end(server, sandbox)
            took[kind].append(one)
    for kind in kinds:
        show(f"create of base, {kind}, no pool", took[kind], took["no network options"], "no options")


def bench_changes(server: Server, runs: int) -> None:
    policies = {"closed": {"denyOut": [ALL]}, "100 rules": HUNDRED, "open": {}}
    took = {name: [] for name in policies}
    sandbox = create(server)[1]
    for _ in range(runs * 2):
        for name, policy in policies.items():
            time.sleep(0.1)  # one after the other, as a client would
            took[name].append(timed(lambda: put_network(server, sandbox, policy)))
    end(server, sandbox)
    for name in policies:
        show(f"PUT /sandboxes/{{id}}/network, {name}", took[name])


def bench_guest(runs: int) -> None:
    from e2b import Sandbox
    from internet import internet

    ways = {"open policy": ({}, ADDRESS), "by address": ({"allow_out": [ADDRESS], "deny_out": [ALL]}, ADDRESS),
            "by name": ({"allow_out": [NAME], "deny_out": [ALL]}, NAME)}
    ask = ["curl", "-sS", "-o", "/dev/null", "-w", "'%{time_total} %{size_download}'"]

    def milliseconds(output: str) -> float:
        took, size = output.strip("'").split()
        assert int(size) == SIZE * MIB, output
        return float(took) * 1000

    with internet() as net:
        server = net.serve("", "--pool", "0")
        try:
            sandbox = Sandbox.create("base", timeout=3600, **server.connection)
            host, guest = [], {way: [] for way in ways}
            for _ in range(runs):
                host.append(milliseconds(net.from_host(*ask, f"http://{ADDRESS}/zeros/{SIZE}").stdout))
                for way, (policy, target) in ways.items():
                    sandbox.update_network(policy)
                    done = sandbox.commands.run(" ".join([*ask, f"http://{target}/zeros/{SIZE}"]), timeout=300)
                    guest[way].append(milliseconds(done.stdout))
            sandbox.kill()
        finally:
            server.close()
    show(f"{SIZE} MiB of HTTP to a program of the host", host)
    for way in ways:
        show(f"{SIZE} MiB of HTTP to a guest, {way}", guest[way], guest["open policy"], "open policy")


def bench_egress(server: Server, runs: int) -> None:
    bench_alone(runs * 2)
    bench_creates(server, runs)
    bench_changes(server, runs)
    bench_guest(max(3, runs // 3))
