"""What child processes and libraries write to file descriptors 1 and 2. ipykernel reads it a thousand bytes at a time and its
reader ends for good where a chunk is no UTF-8: at a byte of something else, or in the middle of a character."""

import codecs
import os
import select
import threading

_readers = []


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


def install(shell):
    """A cell's output is complete when the cell is: a reader may not have had its turn yet."""

    def complete(_result):
        for reader in _readers:
            reader.take(final=True)

    shell.events.register("post_run_cell", complete)
