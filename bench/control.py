# SPDX-License-Identifier: Apache-2.0
"""The control plane and the ingress alone, above sandboxes that cost nothing (build/release/src/cli/control_bench_server).

Needs wrk and nginx (apt-get install wrk nginx-light), which the project itself does not.
"""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from measure import show

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "build/release/src/cli/control_bench_server"
GIB = 1 << 30
PROXY_CPU, OTHER_CPU = "0", "1"


@contextlib.contextmanager
def bench_server(sandboxes: int, engine_ms: int, pinned: bool = False):
    with tempfile.TemporaryDirectory(prefix="glovebox-bench-") as data:
        command = ["taskset", "-c", PROXY_CPU] if pinned else []
        process = subprocess.Popen([*command, SERVER, data, str(sandboxes), str(engine_ms)], stdout=subprocess.PIPE, text=True)
        try:
            facts = json.loads(process.stdout.readline())
            facts["url"] = f"http://127.0.0.1:{facts['port']}"
            facts["pid"] = process.pid
            yield facts
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextlib.contextmanager
def nginx(name: str, server: str, extra: str, cpu: str, folder: Path):
    """One worker with this server block."""
    home = folder / name
    home.mkdir()
    config = home / "nginx.conf"
    config.write_text(f"""
        worker_processes 1; daemon off; pid {home}/pid; error_log {home}/error.log;
        events {{ worker_connections 20000; }}
        http {{ access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000000; client_body_temp_path {home}/b;
                proxy_temp_path {home}/p; fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
                proxy_max_temp_file_size 0;
                {extra}
                server {{ {server} }} }}""")
    process = subprocess.Popen(["taskset", "-c", cpu, "nginx", "-c", config], stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield
    finally:
        process.terminate()
        process.wait()


def wrk(url: str, connections: int, seconds: int, headers: dict[str, str], script: str = "", pinned: bool = False) -> dict:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(script)
        lua.write("""
            done = function(summary, latency, requests)
              local e = summary.errors
              io.write(string.format('RESULT {"requests":%d,"us":%d,"p50":%f,"p99":%f,"errors":%d}\\n', summary.requests,
                summary.duration, latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
            end""")
        lua.flush()
        command = [*(["taskset", "-c", OTHER_CPU] if pinned else []), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", lua.name]
        for name, value in headers.items():
            command += ["-H", f"{name}: {value}"]
        out = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    result = json.loads(re.search(r"RESULT (.*)", out).group(1))
    assert result["errors"] == 0, out
    return result


def bench_create(runs: int) -> None:
    engine_ms = 100
    script = 'wrk.method = "POST"; wrk.body = \'{"templateID":"base","timeout":600}\'; wrk.headers["Content-Type"] = "application/json"'
    middles, worst, alone = [], [], []
    for _ in range(runs):
        with bench_server(1, engine_ms) as server:
            headers = {"X-API-Key": server["key"]}
            one = wrk(server["url"] + "/v2/sandboxes", 1, 2, headers, script)
            alone.append(one["p50"] / 1000 - engine_ms)
            many = wrk(server["url"] + "/v2/sandboxes", 50, 5, headers, script)
            middles.append(many["p50"] / 1000 - engine_ms)
            worst.append(many["p99"] / 1000 - engine_ms)
    print(f"{'create without the engine, one at a time: p50':<52} {statistics.median(alone):8.1f} ms")
    print(f"{'create without the engine, 50 in parallel':<52} p50 {statistics.median(middles):8.1f} ms   p99 {statistics.median(worst):8.1f} ms")


def bench_list(runs: int) -> None:
    with bench_server(1000, 0) as server:
        def get(path: str):
            request = urllib.request.Request(server["url"] + path, headers={"X-API-Key": server["key"]})
            with urllib.request.urlopen(request) as answer:
                return json.load(answer), answer.headers

        def timed_get(path: str) -> float:
            before = time.perf_counter()
            with urllib.request.urlopen(urllib.request.Request(server["url"] + path, headers={"X-API-Key": server["key"]})) as answer:
                answer.read()
            return (time.perf_counter() - before) * 1000

        assert len(get("/sandboxes")[0]) == 1000
        show("list of 1,000 sandboxes in one answer", [timed_get("/sandboxes") for _ in range(runs * 4)])
        show("first page of 100 of 1,000", [timed_get("/v2/sandboxes") for _ in range(runs * 4)])


def bench_ingress(runs: int) -> None:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glovebox-bench-")))
        folder.chmod(0o755)
        backend, peer = free_port(), free_port()
        with open(folder / "large", "wb") as file:
            file.truncate(GIB)
        stack.enter_context(nginx("backend", f"listen 127.0.0.1:{backend}; root {folder}; location = /small {{ return 200 hello; }}",
                                  "", OTHER_CPU, folder))
        stack.enter_context(nginx("peer", f"listen 127.0.0.1:{peer}; location / {{ proxy_pass http://up; proxy_http_version 1.1; "
                                          'proxy_set_header Connection ""; proxy_buffering off; }',
                                  f"upstream up {{ server 127.0.0.1:{backend}; keepalive 64; }}", PROXY_CPU, folder))
        relay = subprocess.Popen(["taskset", "-c", PROXY_CPU, sys.executable, ROOT / "bench/splice_relay.py", str(backend)],
                                 stdout=subprocess.PIPE, text=True)
        stack.callback(relay.wait)
        stack.callback(relay.kill)
        relay_port = int(relay.stdout.readline())
        server = stack.enter_context(bench_server(1, 0, pinned=True))
        route = {"E2b-Sandbox-Id": server["sandbox"], "E2b-Sandbox-Port": str(backend)}

        def download(port: int, headers: dict[str, str]) -> float:
            arguments = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
            done = subprocess.run(["taskset", "-c", OTHER_CPU, "curl", "-sS", "-o", "/dev/null", "-w", "%{time_total} %{size_download}",
                                   *arguments, f"http://127.0.0.1:{port}/large"], capture_output=True, text=True, check=True)
            took, size = done.stdout.split()
            assert int(size) == GIB, done.stdout
            return float(took) * 1000

        ways = {"relay": (relay_port, {}), "nginx": (peer, {}), "ours": (server["port"], route)}
        large = {name: [] for name in ways}
        small = {name: [] for name in ("nginx", "ours")}
        for _ in range(runs):
            for name, way in ways.items():
                large[name].append(download(*way))
            for name in small:
                port, headers = ways[name]
                result = wrk(f"http://127.0.0.1:{port}/small", 32, 3, headers, pinned=True)
                small[name].append(result["requests"] / result["us"] * 1e6)
        show("1 GiB through a bare relay (splice)", large["relay"])
        show("1 GiB through nginx", large["nginx"], large["relay"], "bare relay")
        show("1 GiB through the ingress", large["ours"], large["relay"], "bare relay")
        ours, theirs = statistics.median(small["ours"]), statistics.median(small["nginx"])
        print(f"{'small requests through nginx, one core':<52} {theirs:8.0f} /s")
        print(f"{'small requests through the ingress, one core':<52} {ours:8.0f} /s   {ours / theirs:5.2f} x nginx")


def resident_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Rss:")) / 1024


def bench_idle() -> None:
    count = 10_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 1000, max(count + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with bench_server(1, 0) as server:
        before = resident_mib(server["pid"])
        connections = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", server["port"]))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            connections.append(connection)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        after = resident_mib(server["pid"])
        for connection in connections:
            connection.close()
        time.sleep(1)
        print(f"{'10,000 idle connections: memory of the server':<52} {after:8.1f} MiB, {(after - before) * 1024 / count:.1f} KiB each")


def bench_control(runs: int) -> None:
    missing = [name for name in ("wrk", "nginx") if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") is None]
    if missing:
        print(f"control: skipped, {' and '.join(missing)} not installed: apt-get install wrk nginx-light")
        return
    bench_create(max(3, runs // 5))
    bench_list(runs)
    bench_ingress(max(3, runs // 3))
    bench_idle()


