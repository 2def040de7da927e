# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest: what a Python kernel needs for `1+1` when nothing is in between. A kernel as ipykernel starts it, spoken to
over ZeroMQ by pyzmq; milliseconds from the request to both its end of publishing and its reply.

    interpreter_floor.py start          starts the kernel and leaves it running; says "ready"
    interpreter_floor.py measure COUNT  one line for each execution
"""
import json
import subprocess
import sys
import time
from pathlib import Path

import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import DELIM, Session

WARM = 10  # executions that are not counted
FOLDER = Path("/tmp/floor")
FILE = str(FOLDER / "connection.json")


class Client:
    def __init__(self):
        connection = json.loads(Path(FILE).read_text())
        self.session = Session(key=connection["key"].encode())
        context = zmq.Context.instance()
        self.shell, self.iopub = context.socket(zmq.DEALER), context.socket(zmq.SUB)
        self.iopub.subscribe(b"")
        self.poller = zmq.Poller()
        for socket, name in ((self.shell, "shell_port"), (self.iopub, "iopub_port")):
            socket.linger = 0
            socket.connect(f"ipc://{connection['ip']}-{connection[name]}")
            self.poller.register(socket, zmq.POLLIN)
        # Heard once is subscribed: what a kernel publishes before that is lost.
        while True:
            self.session.send(self.shell, "kernel_info_request", {})
            if self.iopub.poll(1000):
                break
        while self.shell.poll(1000):
            self.session.recv(self.shell)

    def execute(self) -> float:
        content = {"code": "1+1", "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        started = time.perf_counter()
        wanted = self.session.send(self.shell, "execute_request", content)["header"]["msg_id"]
        replied = idle = False
        result = None
        while not (replied and idle):
            for socket, _ in self.poller.poll():
                frames = socket.recv_multipart()
                header, parent, _, content = frames[frames.index(DELIM) + 2:][:4]  # nothing is looked at that need not be
                if wanted.encode() not in parent:
                    continue
                kind = json.loads(header)["msg_type"]
                if kind == "execute_reply":
                    replied = True
                elif kind == "execute_result":
                    result = json.loads(content)["data"]["text/plain"]
                elif kind == "status":
                    idle = idle or json.loads(content)["execution_state"] == "idle"
        took = (time.perf_counter() - started) * 1000
        assert result == "2", result
        return took


def start() -> None:
    FOLDER.mkdir()
    write_connection_file(FILE, transport="ipc", ip=str(FOLDER / "s"))
    with open(FOLDER / "log", "wb") as log:
        subprocess.Popen([sys.executable, "-m", "ipykernel_launcher", "-f", FILE], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                         start_new_session=True)
    Client()
    print("ready")


def measure(count: int) -> None:
    client = Client()
    for _ in range(WARM):
        client.execute()
    for _ in range(count):
        print(client.execute())


if __name__ == "__main__":
    start() if sys.argv[1] == "start" else measure(int(sys.argv[2]))
