# SPDX-License-Identifier: Apache-2.0
"""The outside world of the demo: an HTTP server in a network namespace of its own, at an address from the range that is
reserved for examples (RFC 5737). It stands for the internet, and proves that there is a way to it."""
import contextlib
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

ADDRESS = "203.0.113.{}"
PORT = 8080
SERVER = r"""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"the outside world answers\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        print(self.client_address[0], self.requestline, flush=True)
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def free_pair() -> tuple[str, str]:
    """Host's and server's address of a /30 that no other run uses."""
    used = subprocess.run(["ip", "-4", "-o", "addr"], check=True, capture_output=True, text=True).stdout
    for n in range(0, 256, 4):
        if ADDRESS.format(n + 1) + "/" not in used:
            return ADDRESS.format(n + 1), ADDRESS.format(n + 2)
    raise RuntimeError("no free address pair in 203.0.113.0/24")


def wait_for(address: str, port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection((address, port), timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@contextlib.contextmanager
def control_server(log: Path):
    """Yields the URL of the server."""
    tag = secrets.token_hex(3)
    namespace, outer, inner = f"demo-{tag}", f"demo{tag}h", f"demo{tag}n"
    host, server = free_pair()
    ip("netns", "add", namespace)
    process = None
    try:
        ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace)
        ip("addr", "add", f"{host}/30", "dev", outer)
        ip("link", "set", outer, "up")
        ip("-n", namespace, "addr", "add", f"{server}/30", "dev", inner)
        ip("-n", namespace, "link", "set", inner, "up")
        ip("-n", namespace, "link", "set", "lo", "up")
        ip("-n", namespace, "route", "add", "default", "via", host)
        with open(log, "w") as out:
            process = subprocess.Popen(["ip", "netns", "exec", namespace, sys.executable, "-c", SERVER, server, str(PORT)],
                                       stdout=out, stderr=out)
        wait_for(server, PORT)
        yield f"http://{server}:{PORT}/"
    finally:
        if process:
            process.terminate()
            process.wait()
        ip("netns", "del", namespace)
