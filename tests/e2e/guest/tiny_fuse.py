# SPDX-License-Identifier: Apache-2.0
"""Runs inside a sandbox as root: a FUSE file system with one folder, in which folders can be made and removed. It needs no
library: linux/fuse.h, protocol 7.31. Says "mounted" when it is, ends when it is unmounted."""
import ctypes
import os
import stat
import struct
import sys

target = sys.argv[1]
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"tiny", target.encode(), b"fuse.tiny", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))

LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, RMDIR, STATFS, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, BATCH_FORGET = (
    1, 2, 3, 4, 9, 11, 17, 26, 27, 28, 29, 34, 42)
ENOENT, ENOSYS = 2, 38
folders = {}  # name to node; the root is node 1
last_node = 1


def attributes(node: int) -> bytes:
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, stat.S_IFDIR | 0o777, 2, 0, 0, 0, 4096, 0)


def entry(node: int) -> bytes:
    return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + attributes(node)


def answer(opcode: int, node: int, body: bytes):
    """The answer's body, an error number, or None for what needs no answer."""
    global last_node
    if opcode == INIT:
        sys.stdout.write("mounted\n")
        sys.stdout.flush()
        return struct.pack("<4I2H2I2HI7I", 7, 31, 65536, 0, 12, 9, 65536, 1, 1, 0, 0, *[0] * 7)
    if opcode in (FORGET, BATCH_FORGET):
        return None
    if opcode in (GETATTR, SETATTR):
        return struct.pack("<Q2I", 0, 0, 0) + attributes(node)
    if opcode == STATFS:
        return struct.pack("<5Q4I6I", 1000, 1000, 1000, 1000, 1000, 4096, 255, 4096, 0, *[0] * 6)
    if opcode == OPENDIR:
        return struct.pack("<Q2I", 0, 0, 0)
    if opcode in (READDIR, RELEASEDIR, ACCESS):
        return b""
    if opcode == MKDIR:
        last_node += 1
        folders[body[8:-1]] = last_node
        return entry(last_node)
    if opcode == LOOKUP:
        return entry(folders[body[:-1]]) if body[:-1] in folders else ENOENT
    if opcode == RMDIR:
        return b"" if folders.pop(body[:-1], None) else ENOENT
    return ENOSYS


while True:
    try:
        request = os.read(device, 1 << 20)
    except OSError:  # ENODEV: unmounted
        break
    opcode, unique, node = struct.unpack_from("<IQQ", request, 4)
    reply = answer(opcode, node, request[40:])
    if isinstance(reply, int):
        os.write(device, struct.pack("<IiQ", 16, -reply, unique))
    elif reply is not None:
        os.write(device, struct.pack("<IiQ", 16 + len(reply), 0, unique) + reply)
