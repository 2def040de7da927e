# SPDX-License-Identifier: Apache-2.0
"""A SOCKS5 proxy of the stand-in internet (RFC 1928, 1929), which resolves names by the stand-in's own table."""
import asyncio
import socket
import struct

from internet_dns import ADDRESSES

PASSWORD = "open sesame"  # of the user "guest"
WITHOUT, WITH_PASSWORD = 0, 2


async def identify(reader, writer, method: int) -> bool:
    offered = await reader.readexactly((await reader.readexactly(2))[1])
    if method not in offered:
        writer.write(b"\x05\xff")
        return False
    writer.write(bytes([5, method]))
    if method == WITHOUT:
        return True
    user = await reader.readexactly((await reader.readexactly(2))[1])
    password = await reader.readexactly((await reader.readexactly(1))[0])
    good = user == b"guest" and password.decode() == PASSWORD
    writer.write(b"\x01\x00" if good else b"\x01\x01")
    return good


async def serve(reader, writer, log, method: int):
    """`log` gets what is asked for, as it is: a name is a name."""
    log(kind="socks-connection", method=method)
    try:
        if not await identify(reader, writer, method):
            return
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            target = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            target = socket.inet_ntoa(await reader.readexactly(4))
        port = struct.unpack(">H", await reader.readexactly(2))[0]
        log(kind="socks", target=target, port=port, method=method)
        upstream, out = await asyncio.open_connection(ADDRESSES.get(target, [target])[0], port)
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
