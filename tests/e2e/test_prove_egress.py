# SPDX-License-Identifier: Apache-2.0
"""glovebox prove-egress on the host of internet.py: what it says of policies that hold, and of one that does not."""
import json
import subprocess

import pytest
from conftest import GLOVEBOX, is_vmm_of
from e2b import Sandbox
from egress_rig import ALL
from internet import enter

ADDRESSES = ("--address", "1.1.1.1", "--address", "8.8.8.8", "--name", "evil.example.net", "--name", "other.example.com")


def prove(net, host, subject: str, *arguments: str):
    return subprocess.run([*enter(net.host), GLOVEBOX, "prove-egress", subject, "--data-dir", str(host.data), *arguments],
                          capture_output=True, text=True, timeout=1800)


def rows_of(done: subprocess.CompletedProcess) -> list[dict]:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def of(rows: list[dict], **wanted) -> list[dict]:
    return [row for row in rows if all(row[k] == v for k, v in wanted.items())]


@pytest.fixture
def sandbox(host):
    made = Sandbox.create("base", timeout=600, **host.connection)
    yield made
    made.kill()


def test_a_closed_sandbox_is_proved_closed(net, host, sandbox):
    sandbox.update_network({"deny_out": [ALL]})
    mark = net.mark()
    done = prove(net, host, sandbox.sandbox_id, *ADDRESSES, "--json")
    rows = rows_of(done)
    assert done.returncode == 0, rows
    assert not of(rows, expected="allow")
    unproved = [f"{row['what']} {row['destination']} {row['seen']} {row['log']}" for row in rows if row["result"] != "proved"]
    assert not unproved, unproved
    # Every one of these was answered from the host at the same time.
    for what in ("TCP", "HTTP without a name", "TLS without a name", "DNS over TLS", "UDP, time", "QUIC", "ICMP echo"):
        assert of(rows, what=what, control="open", seen="closed", result="proved"), what
    for what in ("IPv6", "UDP with another's source", "IP protocol 47 (GRE)", "cloud metadata", "private range", "the host",
                 "the proxy itself", "another sandbox"):
        assert of(rows, what=what, result="proved"), what
    # What reached the internet came from the host itself.
    assert not [line for line in net.log(mark) if line.get("peer", "").startswith("10.")]


def test_names_open_what_they_say(net, host, sandbox):
    sandbox.update_network({"deny_out": [ALL], "allow_out": ["ok.example.com", "8.8.8.8"]})
    done = prove(net, host, sandbox.sandbox_id, *ADDRESSES, "--json")
    rows = rows_of(done)
    assert done.returncode == 0, [row for row in rows if row["result"] in ("BREACH", "BLOCKED")]
    for what in ("HTTP", "TLS"):
        assert of(rows, what=what, destination=f"ok.example.com port {443 if what == 'TLS' else 80}", result="as allowed")
        assert of(rows, what=what, destination=f"evil.example.net port {443 if what == 'TLS' else 80}", result="proved")
    assert of(rows, what="DNS", destination="1.1.1.1 for ok.example.com", result="as allowed")
    assert of(rows, what="DNS over TCP", destination="1.1.1.1 for other.example.com", result="proved")
    assert of(rows, what="TLS, name of another", destination="1.1.1.1 as ok.example.com", result="proved", log="deny not-of-name")
    assert of(rows, what="TCP", destination="8.8.8.8 port 22", result="as allowed")
    assert of(rows, what="QUIC", destination="8.8.8.8 port 443", result="proved", log="deny udp-closed")


def test_an_open_template_opens_what_is_public_and_nothing_else(net, host):
    done = prove(net, host, "base", *ADDRESSES, "--json")
    rows = rows_of(done)
    assert done.returncode == 0, [row for row in rows if row["result"] in ("BREACH", "BLOCKED")]
    assert of(rows, what="UDP, time", destination="1.1.1.1 port 123", result="as allowed")
    assert of(rows, what="TCP", destination="1.1.1.1 port 22", result="as allowed")
    assert of(rows, what="the host", expected="deny") and not of(rows, what="the host", seen="open")
    assert host.request("GET", "/v2/sandboxes")[1] == [] or "base" not in done.stderr, "its sandbox is gone"


def test_a_template_with_rules_of_its_own_and_a_table(net, host, tmp_path):
    (tmp_path / "network.json").write_text(json.dumps({"denyOut": [ALL]}))
    before = {s["sandboxID"] for s in host.request("GET", "/v2/sandboxes")[1]}
    done = prove(net, host, "base", *ADDRESSES, "--network", str(tmp_path / "network.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["RESULT", "WHAT"] and "proved" in lines[-1] and "as allowed" not in lines[-1]
    assert {s["sandboxID"] for s in host.request("GET", "/v2/sandboxes")[1]} == before, "its sandbox is gone"


def test_a_hole_is_found(net, host, sandbox):
    sandbox.update_network({"deny_out": [ALL]})
    machines = subprocess.run(["pgrep", "-f", "qemu-system"], capture_output=True, text=True).stdout.split()
    machine = next(pid for pid in machines if is_vmm_of(pid, sandbox.sandbox_id))
    # Somebody tampers with the rules of its slot, behind the server's back.
    subprocess.run(["nsenter", "-t", machine, "-n", "nft", "add", "element", "inet", "glovebox", "allow4", "{ 1.1.1.1 }"], check=True)
    done = prove(net, host, sandbox.sandbox_id, *ADDRESSES, "--json")
    rows = rows_of(done)
    assert done.returncode == 10
    found = of(rows, result="BREACH")
    assert {row["destination"].split()[0] for row in found} == {"1.1.1.1"}
    assert {"TCP", "UDP, time", "ICMP echo"} <= {row["what"] for row in found}


def test_what_cannot_be_proved_is_one_clear_error(net, host, sandbox, tmp_path):
    for arguments, text in ((("no-such-thing",), "no-such-thing"), ((sandbox.sandbox_id, "--address", "x"), "no IPv4 address"),
                            ((sandbox.sandbox_id, "--name", "a b"), "no name"),
                            ((sandbox.sandbox_id, "--network", str(tmp_path / "none")), "made from a template")):
        done = prove(net, host, *arguments)
        assert done.returncode not in (0, 10) and text in done.stderr and done.stdout == "", done.stderr
    sandbox.pause()
    done = prove(net, host, sandbox.sandbox_id)
    assert done.returncode not in (0, 10) and "does not run" in done.stderr
    sandbox.connect(timeout=600)
