# SPDX-License-Identifier: Apache-2.0
"""A bare relay: takes TCP connections and moves the bytes to another port and back with splice(2), never touching them.

    splice_relay.py TO_PORT      prints the port that it listens on
"""
import os
import socket
import sys
import threading

PIECE = 1 << 20


def move(source: socket.socket, sink: socket.socket) -> None:
    read, write = os.pipe()
    try:
        while n := os.splice(source.fileno(), write, PIECE):
            while n:
                n -= os.splice(read, sink.fileno(), n)
    except OSError:
        pass
    finally:
        os.close(read)
        os.close(write)
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        service = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        for pair in ((client, service), (service, client)):
            threading.Thread(target=move, args=pair, daemon=True).start()


main()
