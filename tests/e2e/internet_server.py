"""The stand-in for the internet: names, TLS, HTTP, echoes and a SOCKS5 proxy, in a network namespace that has the addresses.

    internet_server.py CERTIFICATE KEY LOG

Every question and every request is a line of JSON in LOG."""
import asyncio
import base64
import hashlib
import json
import socket
import ssl
import struct
import sys
import time

from internet_server_password import PASSWORD

NAMES = {
    "ok.example.com": ["203.0.113.10"],
    "api.example.com": ["203.0.113.14"],
    "deep.sub.example.com": ["203.0.113.10"],
    "other.example.com": ["203.0.113.11"],
    "evil.example.net": ["203.0.113.12"],
    "wrong.example.org": ["203.0.113.10"],  # the certificate is not for it
    "private.example.com": ["10.0.0.5"],
    "meta.example.com": ["169.254.169.254"],
    "mixed.example.com": ["10.0.0.5", "203.0.113.10"],
    "proxy.example.com": ["203.0.113.20"],
    "connectivitycheck.gstatic.com": ["203.0.113.13"],
}
REBIND = "rebind.example.com"  # public the first time, private from then on
REDIRECTS = {"1.1.1.1": 301, "8.8.8.8": 302}
log_file = open(sys.argv[3], "a", buffering=1)
asked: dict[str, int] = {}


def log(**what) -> None:
    log_file.write(json.dumps({"time": time.time(), **what}) + "\n")


# DNS: one question, A records.

def answer(query: bytes) -> bytes:
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += query[at] + 1
    question = query[12:at + 5]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    name = ".".join(labels).lower()
    asked[name] = asked.get(name, 0) + 1
    log(kind="dns", name=name, type=kind)
    addresses = NAMES.get(name)
    if name == REBIND:
        addresses = ["203.0.113.10"] if asked[name] == 1 else ["127.0.0.1"]
    if name == "cname.example.com":
        addresses = NAMES["ok.example.com"]
    rcode = 0 if addresses else 3
    records = [socket.inet_aton(a) for a in addresses or []] if kind == 1 else []
    out = query[:2] + struct.pack(">HHHHH", 0x8180 | rcode, 1, len(records), 0, 0) + question
    for record in records:
        out += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1 if name == REBIND else 60, 4) + record
    return out


class Dns(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        self.transport.sendto(answer(data), peer)


class Echo(Dns):
    def datagram_received(self, data, peer):
        log(kind="udp", port=self.transport.get_extra_info("sockname")[1])
        self.transport.sendto(data, peer)


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
    address = writer.get_extra_info("sockname")[0]
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
            if path == "/slow":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                for _ in range(1000):
                    writer.write(b"x" * 100)
                    await writer.drain()
                    await asyncio.sleep(0.1)
                return
            status, kind, payload = 200, "application/json", json.dumps({"headers": headers, "host": host, "path": target}).encode()
            if path == "/generate_204":
                status, payload = 204, b""
            elif path == "/bytes":
                kind, payload = "application/octet-stream", bytes(range(256)) * 4096
            elif path == "/echo":
                kind, payload = "application/octet-stream", body
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


async def dns_tcp(reader, writer):
    try:
        while True:
            size = struct.unpack(">H", await reader.readexactly(2))[0]
            out = answer(await reader.readexactly(size))
            writer.write(struct.pack(">H", len(out)) + out)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def socks(reader, writer):
    """User "guest" with the password; it resolves names by the table above."""
    try:
        count = (await reader.readexactly(2))[1]
        if 2 not in await reader.readexactly(count):
            writer.write(b"\x05\xff")
            return
        writer.write(b"\x05\x02")
        user = await reader.readexactly((await reader.readexactly(2))[1])
        password = await reader.readexactly((await reader.readexactly(1))[0])
        good = user == b"guest" and password.decode() == PASSWORD
        writer.write(b"\x01" + (b"\0" if good else b"\1"))
        if not good:
            return
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            target = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            target = socket.inet_ntoa(await reader.readexactly(4))
        port = struct.unpack(">H", await reader.readexactly(2))[0]
        log(kind="socks", target=target, port=port)
        upstream, out = await asyncio.open_connection(NAMES.get(target, [target])[0], port)
        writer.write(b"\x05\0\0\x01" + bytes(6))

        async def pump(source, sink):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(pump(reader, out), pump(upstream, writer))
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])

    def on_name(connection, name, _):
        connection.sni = name

    context.sni_callback = on_name
    loop = asyncio.get_running_loop()
    for protocol, port in ((Dns, 53), (Echo, 123), (Echo, 443)):
        for address in ("203.0.113.53", "1.1.1.1", "8.8.8.8", "203.0.113.12"):
            await loop.create_datagram_endpoint(protocol, local_addr=(address, port))
    await asyncio.start_server(http, "0.0.0.0", 443, ssl=context, backlog=1024)
    await asyncio.start_server(http, "0.0.0.0", 80, backlog=1024)
    await asyncio.start_server(dns_tcp, "0.0.0.0", 53)
    await asyncio.start_server(socks, "0.0.0.0", 1080)
    for port in (22, 853, 8443):
        await asyncio.start_server(echo, "0.0.0.0", port, backlog=1024)
    log(kind="ready")
    await asyncio.Event().wait()


asyncio.run(main())
