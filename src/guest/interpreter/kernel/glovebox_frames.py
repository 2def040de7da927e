"""A pandas DataFrame as a dict of column lists (contract 4.4). The index is not part of it."""

import datetime

from glovebox_plain import MAX_VALUES, NotJson, is_missing, plain


def describe(frame):
    """Raises NotJson for a frame of more than MAX_VALUES cells: text and HTML, which pandas shortens, remain."""
    rows, columns = frame.shape
    if rows * columns > MAX_VALUES:
        raise NotJson
    names = _distinct([_name(label) for label in frame.columns])
    # By position: a label that stands twice would give both columns at once.
    return {name: [_cell(value) for value in frame.iloc[:, at].tolist()] for at, name in enumerate(names)}


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


def _cell(value):
    try:
        return plain(value)
    except NotJson:
        return str(value)
