# SPDX-License-Identifier: Apache-2.0
"""Restores a template's snapshot with QEMU alone: no jail, no slot, no server. Run inside a network namespace of its own, given
the command line of a machine that Glovebox runs, with its paths replaced. Prints milliseconds as JSON: until the machine runs,
and until its guest answers the first request."""
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 0x0002, 0x1000, 0x4000


class Qmp:
    def __init__(self, connection: socket.socket):
        self.file = connection.makefile("rw")
        self.read()
        self.call("qmp_capabilities")

    def read(self) -> dict:
        while True:
            message = json.loads(self.file.readline())
            if "event" not in message:
                return message

    def call(self, name: str, **arguments) -> dict:
        self.file.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.file.flush()
        answer = self.read()
        assert "error" not in answer, answer
        return answer.get("return", {})


def run_once(job: dict) -> dict:
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", job["disk"], job["overlay"]], check=True)
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"tap0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    for command in ("addr add 10.11.0.1/30 dev tap0", "link set tap0 address 02:67:62:00:00:01", "link set tap0 up",
                    "neigh replace 10.11.0.2 lladdr 02:67:62:00:00:02 dev tap0 nud permanent"):
        subprocess.run(["ip", *command.split()], check=True)
    ours, theirs = socket.socketpair()
    argv = [part.replace("{qmp}", str(theirs.fileno())).replace("{tap}", str(tap)) for part in job["argv"]]
    started = time.perf_counter()
    process = subprocess.Popen(argv, pass_fds=(theirs.fileno(), tap), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        theirs.close()
        qmp = Qmp(ours)
        qmp.call("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])
        qmp.call("migrate-incoming", uri=f"exec:cat {job['state']}")
        while qmp.call("query-status")["status"] == "inmigrate":
            time.sleep(0.001)
        qmp.call("cont")
        running = time.perf_counter() - started
        with socket.create_connection(("10.11.0.2", 49983), timeout=30) as guest:
            guest.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert guest.recv(4096).startswith(b"HTTP/1.1 204")
        answered = time.perf_counter() - started
        return {"running_ms": running * 1000, "answered_ms": answered * 1000}
    finally:
        process.kill()
        process.wait()
        os.close(tap)
        os.unlink(job["overlay"])


if __name__ == "__main__":
    print(json.dumps(run_once(json.loads(sys.stdin.read()))))
