# SPDX-License-Identifier: Apache-2.0
"""Python values as those that JSON has: what IPython's message can carry without a loss that nobody sees."""

import dataclasses
import datetime
import enum
import math
import sys
import uuid

# One result travels as one line and is held whole by everybody on its way. A million values are some 10 to 20 MB of
# JSON and take a second or two; what has more, or as much text, goes without this representation, never with a part of
# it that looks like the whole.
MAX_VALUES = 1_000_000
MAX_CHARACTERS = 20_000_000
_MAX_DEPTH = 100
_MAX_BITS = 10_000  # of an integer: Python itself writes none of more than 4300 digits


class NotJson(Exception):
    """There is no honest way to write this value."""


class TooLarge(NotJson):
    """More than one result may hold."""


def plain(value):
    return Conversion().of(value)


def key(value):
    """A dict's key as JSON's text."""
    value = plain(value)
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise NotJson


def is_missing(value):
    """NaT and NA, the two of pandas that are no numbers."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and value is not None and (
        value is getattr(pandas, "NaT", None) or value is getattr(pandas, "NA", None)
    )


class Conversion:
    """Values that become parts of one result, and share its limits."""

    def __init__(self):
        self._values = MAX_VALUES
        self._characters = MAX_CHARACTERS
        self._path = []  # identities of the containers around the current value: one that comes again is a cycle

    def of(self, value):
        kind = type(value)
        if kind is float:
            return value if math.isfinite(value) else None
        if kind is bool or value is None:
            return value
        if kind is str:
            return self.text(value)
        if kind is int:
            return self._integer(value)
        if isinstance(value, enum.Enum):
            return self.of(value.value)
        if isinstance(value, str):
            return self.text(str.__str__(value))
        if isinstance(value, int):
            return self._integer(int(value))
        if isinstance(value, float):
            return self.of(float(value))
        if is_missing(value):
            return None
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, uuid.UUID):
            return str(value)
        if isinstance(value, dict):
            return self._inside(value, self._dict)
        if isinstance(value, (list, tuple)):
            return self._inside(value, self._list)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._inside(value, self._dataclass)
        return self._of_numpy(value)

    def _inside(self, container, convert):
        if id(container) in self._path or len(self._path) >= _MAX_DEPTH:
            raise NotJson
        self._path.append(id(container))
        try:
            return convert(container)
        finally:
            self._path.pop()

    def count(self, values):
        # What is shared is written once for every place it stands in, so a small structure can be an endless text.
        self._values -= values
        if self._values < 0:
            raise TooLarge

    def text(self, text):
        self._characters -= len(text)
        if self._characters < 0:
            raise TooLarge
        return text

    def _integer(self, value):
        if value.bit_length() > _MAX_BITS:
            raise NotJson
        return value

    def _list(self, values):
        self.count(len(values))
        return [self.of(value) for value in values]

    def _dict(self, values):
        self.count(len(values))
        converted = {key(name): self.of(value) for name, value in values.items()}
        if len(converted) != len(values):  # 1 and "1" are two keys in Python and one in JSON
            raise NotJson
        return converted

    def _dataclass(self, value):
        return self._dict({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})

    def _of_numpy(self, value):
        # The user may call a module of his own numpy: then there is nothing of the kind to be found in it.
        numpy = sys.modules.get("numpy")
        generic, array = getattr(numpy, "generic", ()), getattr(numpy, "ndarray", ())
        if isinstance(value, array):
            if value.size > self._values:  # before there are as many objects
                raise TooLarge
            # As lists, dates would become numbers.
            return self._inside(value, self._array if value.dtype.kind in "Mm" and value.ndim else self._tolist)
        if isinstance(value, generic):
            if value.dtype.kind == "M":
                return None if numpy.isnat(value) else str(value)
            if value.dtype.kind == "f":
                return self.of(float(value))
            plain_value = value.item()
            if not isinstance(plain_value, generic):
                return self.of(plain_value)
        raise NotJson

    def _array(self, array):
        self.count(len(array))
        return [self.of(value) for value in array]

    def _tolist(self, array):
        return self.of(array.tolist() if array.ndim else array[()])
