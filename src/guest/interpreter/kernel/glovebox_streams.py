# SPDX-License-Identifier: Apache-2.0
"""What child processes and libraries write to file descriptors 1 and 2. ipykernel reads it a thousand bytes at a time and its
reader ends for good where a chunk is no UTF-8: at a byte of something else, or in the middle of a character."""

import codecs
import os
import select
import threading

_readers = []
_PIECE = 1 << 20  # characters that may wait to be published, and the most that one message holds
_QUEUE = 64  # messages that may wait in the kernel


class _Reader:
    def __init__(self, stream):
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lock = threading.Lock()  # two threads read, and characters must stay in order

    def run(self):
        poll = select.poll()
        poll.register(self._stream._fid, select.POLLIN)
        while self._stream._should_watch:
            poll.poll()
            if not self.take():
                return

    def take(self, final=False):
        """Publishes what is there; what is left of a character too when nothing follows. False at the end."""
        poll = select.poll()
        poll.register(self._stream._fid, select.POLLIN)
        with self._lock:
            while poll.poll(0):
                data = os.read(self._stream._fid, 1 << 16)
                if not data:
                    return False
                self._write(self._decoder.decode(data))
            if final:
                self._write(self._decoder.decode(b"", True))
        return True

    def _write(self, text):
        if text:
            self._stream.write(text)


def _watch(stream):
    reader = _Reader(stream)
    _readers.append(reader)
    reader.run()


def replace_readers():
    """Before the kernel makes its streams."""
    from ipykernel.iostream import OutStream

    OutStream._watch_pipe_fd = _watch
    OutStream.write = _bounded(OutStream.write)


def _bounded(write):
    """ipykernel takes what a cell prints faster than it publishes it: without a bound that is all of the memory."""

    def bounded(stream, string):
        if not isinstance(string, str) or not stream._is_master_process():
            return write(stream, string)
        for start in range(0, len(string), _PIECE):
            piece = string[start : start + _PIECE]
            write(stream, piece)
            stream.__dict__["_glovebox_waiting"] = stream.__dict__.get("_glovebox_waiting", 0) + len(piece)
            if stream._glovebox_waiting >= _PIECE:
                stream.__dict__["_glovebox_waiting"] = 0
                stream.flush()
        return len(string)

    return bounded


def bound_output(shell):
    """ZeroMQ drops what a publisher has queued beyond its limit unless told to wait; output must not be lost."""
    import zmq

    socket = shell.kernel.iopub_thread.socket
    socket.setsockopt(zmq.XPUB_NODROP, 1)
    socket.setsockopt(zmq.SNDHWM, _QUEUE)


def install(shell):
    """A cell's output is complete when the cell is: a reader may not have had its turn yet."""

    def complete(_result):
        for reader in _readers:
            reader.take(final=True)

    shell.events.register("post_run_cell", complete)
