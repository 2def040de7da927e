# SPDX-License-Identifier: Apache-2.0
"""The names of the stand-in internet (RFC 1035), on UDP and TCP 53. Every question is told to `log`."""
import asyncio
import socket
import struct

ADDRESSES = {
    "ok.example.com": ["203.0.113.10"],
    "api.example.com": ["203.0.113.14"],
    "sub.example.com": ["203.0.113.10"],
    "other.example.com": ["203.0.113.11"],
    "evil.example.net": ["203.0.113.12"],
    "wrong.example.org": ["203.0.113.10"],  # the certificate is not for it
    "private.example.com": ["10.0.0.5"],
    "meta.example.com": ["169.254.169.254"],
    "mixed.example.com": ["10.0.0.5", "203.0.113.10"],
    "slow.example.com": ["203.0.113.10"],
    "proxy.example.com": ["203.0.113.20"],
    "connectivitycheck.gstatic.com": ["203.0.113.13"],
}
BELOW = {"sub.example.com": ["203.0.113.10"]}  # every name below it
# Every name below it has these answers one after the other, and the last from then on; they are good for a second.
IN_TURN = {"rebind.example.com": [["203.0.113.10"], ["10.0.0.5", "127.0.0.1"]],
           "moves.example.com": [["203.0.113.10"], ["203.0.113.11"]]}
ALIASES = {"alias.example.com": "ok.example.com", "inward.example.com": "private.example.com", "loop.example.com": "loop.example.com"}
TEXTS = {"ok.example.com": b"hello"}
DELAYS = {"slow.example.com": 3.0}
A, CNAME, TXT, AAAA, HTTPS = 1, 5, 16, 28, 65
asked: dict[str, int] = {}


def addresses_of(name: str) -> tuple[list[str], int]:
    """And for how many seconds."""
    parent = name.partition(".")[2]
    if parent in IN_TURN:
        turns = IN_TURN[parent]
        return turns[min(asked[name], len(turns)) - 1], 1
    return ADDRESSES.get(name) or BELOW.get(parent) or [], 60


def wire_name(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def answer(query: bytes, log) -> tuple[bytes, float]:
    """To one question, and after how many seconds."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += query[at] + 1
    question = query[12:at + 5]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    name = ".".join(labels).lower()
    asked[name] = asked.get(name, 0) + 1
    log(kind="dns", name=name, type=kind)
    records, owner, final = [], b"\xc0\x0c", name
    if name in ALIASES:
        final = ALIASES[name]
        records.append((owner, CNAME, 60, wire_name(final)))
        owner = wire_name(final)
    found, ttl = addresses_of(final)
    if kind == A:
        records += [(owner, A, ttl, socket.inet_aton(address)) for address in found]
    elif kind == AAAA and found:
        records.append((owner, AAAA, ttl, socket.inet_pton(socket.AF_INET6, "2001:db8::10")))
    elif kind == HTTPS and found:
        records.append((owner, HTTPS, ttl, b"\0\1\0\0\1\0\3\2h2"))
    elif kind == TXT and final in TEXTS:
        records.append((owner, TXT, ttl, bytes([len(TEXTS[final])]) + TEXTS[final]))
    rcode = 0 if found or name in ALIASES else 3
    out = query[:2] + struct.pack(">HHHHH", 0x8180 | rcode, 1, len(records), 0, 0) + question
    for owner, kind, ttl, data in records:
        out += owner + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data
    return out, DELAYS.get(name, 0)


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, log):
        self.log = log

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        out, delay = answer(data, self.log)
        asyncio.get_running_loop().call_later(delay, self.transport.sendto, out, peer)


async def serve_tcp(reader, writer, log):
    try:
        while True:
            size = struct.unpack(">H", await reader.readexactly(2))[0]
            out, delay = answer(await reader.readexactly(size), log)
            await asyncio.sleep(delay)
            writer.write(struct.pack(">H", len(out)) + out)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
