# SPDX-License-Identifier: Apache-2.0
"""A pandas DataFrame as a dict of column lists (contract 4.4). The index is not part of it."""

import datetime
import sys

from glovebox_plain import MAX_VALUES, Conversion, NotJson, TooLarge, is_missing

MAX_COLUMNS = 20_000  # a column costs pandas as much time as many values


def describe(frame):
    """Raises TooLarge for a frame of more than MAX_VALUES cells: text and HTML, which pandas shortens, remain."""
    rows, columns = frame.shape
    if rows * columns > MAX_VALUES or columns > MAX_COLUMNS:
        raise TooLarge
    conversion = Conversion()
    names = _distinct([_name(label) for label in frame.columns])
    # By position: a label that stands twice would give both columns at once.
    return {name: _column(frame.iloc[:, at], conversion) for at, name in enumerate(names)}


def _name(label):
    if isinstance(label, tuple):  # levels of a MultiIndex, written as in the legends of pandas' plots
        return "(" + ", ".join(_name(level) for level in label) + ")"
    if isinstance(label, (datetime.datetime, datetime.date)) and not is_missing(label):
        return label.isoformat()
    return str(label)


def _distinct(names):
    """The second "a" becomes "a.1", as when pandas reads a file with such columns."""
    taken = set(names)
    seen = set()
    result = []
    for name in names:
        one, number = name, 0
        while one in seen or (number and one in taken):
            number += 1
            one = f"{name}.{number}"
        seen.add(one)
        result.append(one)
    return result


def _column(column, conversion):
    conversion.count(len(column))
    if column.dtype.kind == "M":
        return _times(column)
    return [_cell(value, conversion) for value in column.tolist()]


def _times(column):
    """ISO 8601 as Timestamp.isoformat writes it."""
    numpy = sys.modules["numpy"]
    if isinstance(column.dtype, numpy.dtype):  # no time zone
        values = column.to_numpy()
        seconds = values.astype("datetime64[s]")
        missing = numpy.isnat(values)
        if (missing | (seconds == values)).all():  # all at once, in a tenth of the time
            texts = numpy.datetime_as_string(seconds, unit="s").tolist()
            return [None if gone else text for text, gone in zip(texts, missing.tolist())]
    return [None if is_missing(value) else value.isoformat() for value in column.tolist()]


def _cell(value, conversion):
    try:
        return conversion.of(value)
    except TooLarge:
        raise
    except NotJson:
        return conversion.text(str(value))
