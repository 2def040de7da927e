# SPDX-License-Identifier: Apache-2.0
"""The agent's protocol as bytes, through the server's ingress: for what the official clients cannot express. Connect over
HTTP/1.1 with JSON, contract sections 3.1 to 3.6."""
import base64
import http.client
import json
import socket
import struct
from dataclasses import dataclass, field
from urllib.parse import urlencode

END_OF_STREAM = 2
# A program that only says exit(0): ELF header, one program header, xor edi, edi; mov eax, 60; syscall. An emulated guest needs four
# times as long for /bin/true, because of its dynamic linker.
_CODE = bytes.fromhex("31ffb83c0000000f05")
TRUE = (b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<2HI3QI6H", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        + struct.pack("<2I6Q", 1, 5, 0, 0x400000, 0x400000, 120 + len(_CODE), 120 + len(_CODE), 4096) + _CODE)


class Failed(Exception):
    """The agent said no: a Connect code and its message."""

    def __init__(self, code: str, message: str):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class Cut(Exception):
    """A stream that ended without saying so."""


@dataclass
class Done:
    """What a command did, in bytes."""
    pid: int
    stdout: bytes = b""
    stderr: bytes = b""
    pty: bytes = b""
    end: dict = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return self.end.get("exitCode", 0)

    def take(self, event: dict) -> None:
        for name, data in event.get("data", {}).items():
            setattr(self, name, getattr(self, name) + base64.b64decode(data))
        self.end = event.get("end", self.end)


class Stream:
    """Messages of a server stream, as they come."""

    def __init__(self, connection: http.client.HTTPConnection):
        self.connection = connection
        self.response = connection.getresponse()
        self.headers = self.response.headers
        if self.response.status != 200:
            body = json.loads(self.response.read())
            raise Failed(str(body["code"]), body["message"])

    def __iter__(self):
        while True:
            flags, length = struct.unpack(">BI", self._exactly(5))
            message = json.loads(self._exactly(length) or b"{}")
            if flags & END_OF_STREAM:
                assert self.response.read() == b""
                if "error" in message:
                    raise Failed(message["error"]["code"], message["error"].get("message", ""))
                return
            yield message

    def _exactly(self, count: int) -> bytes:
        try:
            data = self.response.read(count)
        except (OSError, http.client.HTTPException) as error:
            raise Cut(str(error)) from error
        if len(data) < count:
            raise Cut("the stream ended early")
        return data

    def process(self) -> Done:
        """Reads the start event, which must be the first."""
        return Done(next(iter(self))["event"]["start"]["pid"])

    def rest(self, done: Done) -> Done:
        """Reads to the end."""
        for message in self:
            done.take(message["event"])
        return done

    def until(self, done: Done, enough) -> Done:
        """Reads until enough(done)."""
        messages = iter(self)
        while not enough(done):
            done.take(next(messages)["event"])
        return done

    def drop(self, reset: bool = False) -> None:
        """Goes away in the middle, by a reset if asked for."""
        self.response.close()
        hang_up(self.connection, reset)


def hang_up(connection: http.client.HTTPConnection, reset: bool = False) -> None:
    if connection.sock and reset:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Agent:
    """One connection to the agent of one sandbox, kept alive. For one thread; another() is for the next."""

    def __init__(self, server, sandbox, timeout: float = 120, token: str | None = None):
        self.server, self.sandbox, self.timeout = server, sandbox, timeout
        self.token = token or server.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]["envdAccessToken"]
        host, port = server.url.removeprefix("http://").split(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=timeout)

    def another(self) -> "Agent":
        return Agent(self.server, self.sandbox, self.timeout, self.token)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def headers(self, user: str | None = None, **more: str) -> dict[str, str]:
        basic = {"Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()} if user else {}
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"E2b-Sandbox-Id": self.sandbox.sandbox_id, "E2b-Sandbox-Port": "49983", "X-Access-Token": self.token,
                **basic, **named}

    def send(self, method: str, path: str, body=None, headers: dict[str, str] | None = None):
        """Status, body and headers of one HTTP request."""
        self.connection.request(method, path, body, headers or self.headers())
        answer = self.connection.getresponse()
        return answer.status, answer.read(), answer.headers

    def call(self, method: str, message: dict | None = None, user: str | None = None) -> dict:
        """A unary call of "process.Process/…" or "filesystem.Filesystem/…"."""
        headers = self.headers(user, Content_Type="application/json")
        status, body, _ = self.send("POST", "/" + method, json.dumps(message or {}), headers)
        answer = json.loads(body)
        if status != 200:
            raise Failed(answer["code"], answer["message"])
        return answer

    def status(self, method: str, message: dict | None = None) -> tuple[int, dict]:
        """HTTP status and body of a unary call."""
        status, body, _ = self.send("POST", "/" + method, json.dumps(message or {}),
                                    self.headers(Content_Type="application/json"))
        return status, json.loads(body)

    def ask(self, method: str, message: dict, user: str | None = None, **headers: str) -> None:
        """Sends the request of a server stream and waits for nothing."""
        payload = json.dumps(message).encode()
        sent = self.headers(user, Content_Type="application/connect+json", Connect_Protocol_Version="1", **headers)
        self.connection.request("POST", "/" + method, struct.pack(">BI", 0, len(payload)) + payload, sent)

    def stream(self, method: str, message: dict, user: str | None = None, **headers: str) -> Stream:
        self.ask(method, message, user, **headers)
        return Stream(self.connection)

    def start(self, cmd: str, *args: str, user: str | None = None, timeout_ms: int | None = None, **request) -> Stream:
        """Starts a program. Of `request`, envs and cwd go into the process, the rest beside it."""
        headers = {} if timeout_ms is None else {"Connect_Timeout_Ms": str(timeout_ms)}
        return self.stream("process.Process/Start", start_request(cmd, *args, **request), user, **headers)

    def run(self, cmd: str, *args: str, **options) -> Done:
        stream = self.start(cmd, *args, **options)
        return stream.rest(stream.process())

    def connect(self, pid: int) -> Stream:
        return self.stream("process.Process/Connect", {"process": {"pid": pid}})

    def input(self, pid: int, data: bytes, kind: str = "stdin") -> None:
        self.call("process.Process/SendInput",
                  {"process": {"pid": pid}, "input": {kind: base64.b64encode(data).decode()}})

    def install_true(self) -> str:
        """Puts TRUE into the sandbox and says where."""
        self.upload("/tmp/true", TRUE)
        assert self.run("/bin/chmod", "755", "/tmp/true").exit_code == 0
        return "/tmp/true"

    def kill(self, pid: int) -> None:
        self.call("process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})

    def pids(self) -> list[int]:
        return [process["pid"] for process in self.call("process.Process/List").get("processes", [])]

    def download(self, path: str, **headers: str):
        """Status, body and headers of GET /files."""
        return self.send("GET", "/files?" + urlencode({"path": path}), headers=self.headers(**headers))

    def upload(self, path: str, data, **headers: str):
        """Status, decoded answer and headers of POST /files with the bare bytes as its body."""
        sent = self.headers(Content_Type="application/octet-stream") | headers
        status, body, got = self.send("POST", "/files?" + urlencode({"path": path}), data, sent)
        return status, json.loads(body), got

    # PID 1 is the agent itself.

    def resident_kib(self) -> int:
        return int(self.download("/proc/1/status")[1].split(b"VmRSS:")[1].split()[0])

    def processor_s(self) -> float:
        """What the agent itself has used, without the programs that it started."""
        fields = self.download("/proc/1/stat")[1].rsplit(b")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def open_files(self) -> int:
        return len(self.call("filesystem.Filesystem/ListDir", {"path": "/proc/1/fd"})["entries"])

    def zombies(self) -> str:
        return self.run("/bin/sh", "-c", "grep -s '^State:.Z' /proc/[0-9]*/status").stdout.decode()


def start_request(cmd: str, *args: str, envs: dict | None = None, cwd: str | None = None, size: tuple[int, int] | None = None,
                  **beside) -> dict:
    process = {"cmd": cmd, "args": list(args), "envs": envs or {}} | ({"cwd": cwd} if cwd else {})
    terminal = {"pty": {"size": {"cols": size[0], "rows": size[1]}}} if size else {}
    return {"process": process, **terminal, **beside}
