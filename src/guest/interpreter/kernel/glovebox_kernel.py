# SPDX-License-Identifier: Apache-2.0
"""What the server asks of a kernel in hidden requests. Arguments are JSON text."""

import json
import os
import random
import sys


class _Overlay:
    """Environment variables laid over the process's own; laying others takes the earlier ones back."""

    def __init__(self):
        self._before = {}

    def lay(self, variables):
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
        for name, value in variables.items():
            before = os.environ.get(name)
            try:
                os.environ[name] = value
            except (ValueError, UnicodeError) as error:  # a name or value that no process can have
                print(f"environment variable {name!r} not set: {error}", file=sys.stderr)
            else:
                self._before[name] = before


_sandbox_env = _Overlay()
_call_env = _Overlay()


def _reseed():
    random.seed(os.urandom(64))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed([int.from_bytes(os.urandom(4), "little") for _ in range(16)])
    ssl = sys.modules.get("_ssl")
    if ssl is not None:
        # OpenSSL looks for fresh bytes after minutes only: until then copies would make the same keys.
        ssl.RAND_add(os.urandom(64), 64)
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile._name_sequence = None  # the next name comes from a new generator


def enter_generation(text):
    """The machine was restored, or its environment changed."""
    state = json.loads(text)
    if state["reseed"]:
        _reseed()
    _sandbox_env.lay(state["env"])


def set_call_env(text):
    """Variables of one execution; an empty object ends it."""
    _call_env.lay(json.loads(text))


def publish_any_text(shell):
    """A string with half of a surrogate pair cannot be encoded; a message that holds one would be lost whole."""
    session = shell.kernel.session
    pack = session.pack

    def pack_any(obj):
        try:
            return pack(obj)
        except UnicodeEncodeError:
            return pack(_encodable(obj))

    session.pack = pack_any


def _encodable(obj):
    if isinstance(obj, str):
        return obj.encode("utf-8", "replace").decode("utf-8")
    if isinstance(obj, dict):
        return {_encodable(key): _encodable(value) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [_encodable(item) for item in obj]
    return obj
