# SPDX-License-Identifier: Apache-2.0
"""Creates from the warm pool against creates without one, to the first output of a first command; in bare HTTP, because the
clients' own start is as long as what is measured."""
import base64
import concurrent.futures
import http.client
import json
import statistics
import struct
import tempfile
import time
from pathlib import Path

from conftest import Server, eventually
from measure import percentile, show, timed

BURST = 20


def request_start(server: Server, sandbox: dict, command: str, arguments: list[str]) -> tuple:
    """The connection, to be closed, and the answer, which is followed by what the command prints."""
    host, port = server.url.removeprefix("http://").split(":")
    message = json.dumps({"process": {"cmd": command, "args": arguments}, "stdin": False}).encode()
    headers = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1",
               "Authorization": "Basic " + base64.b64encode(b"user:").decode(),
               "E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "49983",
               "X-Access-Token": sandbox.get("envdAccessToken") or ""}
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", "/process.Process/Start", struct.pack(">BI", 0, len(message)) + message, headers)
    return connection, connection.getresponse()


def start_echo(server: Server, sandbox: dict) -> None:
    """Returns at the first output of `echo hi`."""
    connection, answer = request_start(server, sandbox, "/bin/bash", ["-l", "-c", "echo hi"])
    try:
        assert answer.status == 200, answer.read()
        while True:
            _, length = struct.unpack(">BI", answer.read(5))
            event = json.loads(answer.read(length))["event"]
            assert "end" not in event, event
            if base64.b64decode(event.get("data", {}).get("stdout", "")) == b"hi\n":
                return
    finally:
        connection.close()


def create(server: Server, name: str, timeout: int = 300) -> tuple[float, dict]:
    """Milliseconds to the answer."""
    started = time.perf_counter()
    status, made, _ = server.request("POST", "/v2/sandboxes", {"templateID": name, "timeout": timeout})
    assert status == 201, made
    return (time.perf_counter() - started) * 1000, made


def create_and_echo(server: Server, name: str) -> tuple[float, float, dict]:
    """Milliseconds to the answer and to the first output."""
    answer, made = create(server, name)
    return answer, answer + timed(lambda: start_echo(server, made)), made


def end(server: Server, sandbox: dict) -> None:
    assert server.request("DELETE", f"/sandboxes/{sandbox['sandboxID']}")[0] == 204


def node(server: Server) -> dict:
    return json.loads(server.cli("node", "list", "--json").stdout)[0]


def wait_for_warm(server: Server, name: str, count: int) -> None:
    eventually(lambda: node(server)["warm"].get(name, 0) >= count, 240)
    time.sleep(0.5)  # for the host to be done with it


def served(server: Server) -> int:
    token = (server.data / "admin-token").read_text().strip()
    text = server.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"}, key=False)[1]
    return int(float(next(line.split()[-1] for line in text.splitlines() if line.startswith('glovebox_creates_total{from="pool"}'))))


def bench_pool(name: str, runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(f"[pool.templates.{name}]\nleast = 1\nmost = 1\n")
        pooled, cold = Server("--config", str(config)), Server("--pool", "0")
        times = {"pool": ([], []), "cold": ([], [])}
        try:
            end(cold, create_and_echo(cold, name)[2])  # warms the page cache
            for _ in range(runs):
                for key, server in (("cold", cold), ("pool", pooled)):
                    wait_for_warm(pooled, name, 1)
                    answer, output, made = create_and_echo(server, name)
                    end(server, made)
                    times[key][0].append(answer)
                    times[key][1].append(output)
            assert served(pooled) == runs, "the pool had one each time"
        finally:
            pooled.close()
            cold.close()
        show(f"create {name} without the pool: answer", times["cold"][0])
        show(f"create {name} without the pool: first output", times["cold"][1])
        show(f"create {name} from the pool: answer", times["pool"][0], times["cold"][0], "without")
        show(f"create {name} from the pool: first output", times["pool"][1], times["cold"][1], "without (wanted 0.35)")

        config.write_text(f"[pool.templates.{name}]\nleast = {BURST}\nmost = {BURST}\n")
        server = Server("--config", str(config))
        try:
            wait_for_warm(server, name, BURST)
            with concurrent.futures.ThreadPoolExecutor(BURST) as threads:
                done = list(threads.map(lambda _: create(server, name), range(BURST)))
                echoes = list(threads.map(lambda one: timed(lambda: start_echo(server, one[1])), done))
            from_pool = served(server)
            for _, made in done:
                end(server, made)
        finally:
            server.close()
        answers = [answer for answer, _ in done]
        show(f"{BURST} creates of {name} at once: answer", answers)
        print(f"   {from_pool} of them from the pool; p99 is {percentile(answers, 0.99) / statistics.median(times['pool'][0]):.1f} x the "
              "single one (wanted 3)", flush=True)
        show("   then a command in each at once: first output", echoes)
