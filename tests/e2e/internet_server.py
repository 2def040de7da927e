# SPDX-License-Identifier: Apache-2.0
"""The stand-in for the internet: names, TLS, HTTP, echoes and a SOCKS5 proxy, in a network namespace that has the addresses.

    internet_server.py CERTIFICATE KEY LOG

Every question and every request is a line of JSON in LOG. HTTP, the same on port 80 and by TLS on 443, has /sse, /slow, /chunked,
/bytes (1 MiB), /zeros/N (N MiB), /echo (of the body), /packages/… (files beside LOG), /generate_204 and websockets; every other path
shows the request's headers. Port 1080 is SOCKS5 with a password, 1081 without; 22, 853 and 8443 (TCP), 123 and 443 (UDP) echo."""
import asyncio
import base64
import functools
import hashlib
import json
import ssl
import sys
import time
from pathlib import Path

import internet_dns
import internet_socks

REDIRECTS = {"1.1.1.1": 301, "8.8.8.8": 302}
log_file = open(sys.argv[3], "a", buffering=1)


def log(**what) -> None:
    log_file.write(json.dumps({"time": time.time(), **what}) + "\n")


class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        log(kind="udp", port=self.transport.get_extra_info("sockname")[1])
        self.transport.sendto(data, peer)


def packages(path: str) -> tuple[int, str, bytes]:
    """Status, type and content of a file; the page of a folder is its index.html."""
    file = Path(sys.argv[3]).with_name("packages") / path.removeprefix("/packages/")
    if file.is_dir():
        file /= "index.html"
    if not file.is_file():
        return 404, "text/plain", b"no such package"
    kinds = {".html": "text/html", ".json": "application/json", "": "application/json"}
    return 200, kinds.get(file.suffix, "application/octet-stream"), file.read_bytes()


# HTTP/1.1, in plain and over TLS.

async def read_head(reader):
    raw = await reader.readuntil(b"\r\n\r\n")
    lines = raw.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers: dict[str, list[str]] = {}
    for line in lines[1:]:
        if line:
            name, value = line.split(":", 1)
            headers.setdefault(name.strip().title(), []).append(value.strip())
    return method, target, headers


async def read_body(reader, headers) -> bytes:
    if "Content-Length" in headers:
        return await reader.readexactly(int(headers["Content-Length"][0]))
    body = b""
    if headers.get("Transfer-Encoding") == ["chunked"]:
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    return body


async def http(reader, writer):
    tls = writer.get_extra_info("ssl_object")
    address, port = writer.get_extra_info("sockname")
    log(kind="connection", address=address, port=port)
    try:
        while True:
            method, target, headers = await read_head(reader)
            body = await read_body(reader, headers)
            host = headers.get("Host", [""])[0]
            log(kind="https" if tls else "http", address=address, host=host, method=method, target=target, headers=headers,
                sha256=hashlib.sha256(body).hexdigest(), sni=getattr(tls, "sni", None))
            path = target.split("?")[0]
            if headers.get("Upgrade", [""])[0].lower() == "websocket":
                return await websocket(reader, writer, headers)
            if path == "/sse":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
                for n in range(5):
                    writer.write(f"data: {n}\n\n".encode())
                    await writer.drain()
                    await asyncio.sleep(0.5)
                return
            if path == "/chunked":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for piece in (b"one ", b"\xff\0two ", b"three"):
                    writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
                continue
            if path == "/slow":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                for _ in range(1000):
                    writer.write(b"x" * 100)
                    await writer.drain()
                    await asyncio.sleep(0.1)
                return
            if path.startswith("/zeros/"):
                mib = int(path.removeprefix("/zeros/"))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (mib << 20))
                for _ in range(mib):
                    writer.write(bytes(1 << 20))
                    await writer.drain()
                continue
            status, kind, payload = 200, "application/json", json.dumps({"headers": headers, "host": host, "path": target}).encode()
            if path == "/generate_204":
                status, payload = 204, b""
            elif path == "/bytes":
                kind, payload = "application/octet-stream", bytes(range(256)) * 4096
            elif path == "/echo":
                kind, payload = "application/octet-stream", body
            elif path.startswith("/packages/"):
                status, kind, payload = packages(path)
            elif address in REDIRECTS:
                status = REDIRECTS[address]
            extra = "Location: https://elsewhere.example/\r\n" if status in (301, 302) else ""
            length = "" if status == 204 else f"Content-Length: {len(payload)}\r\n"
            writer.write(f"HTTP/1.1 {status} Yes\r\nContent-Type: {kind}\r\n{length}{extra}\r\n".encode())
            if method != "HEAD":
                writer.write(payload)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def websocket(reader, writer, headers):
    key = headers["Sec-Websocket-Key"][0] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    writer.write(f"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    while data := await reader.read(4096):
        writer.write(data)  # frames of a client come back as they are
        await writer.drain()


async def echo(reader, writer):
    log(kind="tcp", port=writer.get_extra_info("sockname")[1])
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])

    def on_name(connection, name, _):
        connection.sni = name
        log(kind="hello", sni=name)

    context.sni_callback = on_name
    loop = asyncio.get_running_loop()
    for protocol, port in ((lambda: internet_dns.Datagrams(log), 53), (Echo, 123), (Echo, 443)):
        for address in ("203.0.113.53", "1.1.1.1", "8.8.8.8", "203.0.113.12"):  # answers come from where the question went
            await loop.create_datagram_endpoint(protocol, local_addr=(address, port))
    await asyncio.start_server(http, "0.0.0.0", 443, ssl=context, backlog=1024)
    await asyncio.start_server(http, "0.0.0.0", 80, backlog=1024)
    await asyncio.start_server(functools.partial(internet_dns.serve_tcp, log=log), "0.0.0.0", 53)
    for method, port in ((internet_socks.WITH_PASSWORD, 1080), (internet_socks.WITHOUT, 1081)):
        await asyncio.start_server(functools.partial(internet_socks.serve, log=log, method=method), "0.0.0.0", port)
    for port in (22, 853, 8443):
        await asyncio.start_server(echo, "0.0.0.0", port, backlog=1024)
    log(kind="ready")
    await asyncio.Event().wait()


asyncio.run(main())
