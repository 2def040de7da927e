# SPDX-License-Identifier: Apache-2.0
"""Reads box plots back from what was drawn: matplotlib keeps no record of them, but draws each in the same way: the box
as a closed line or a patch, two whiskers that begin at its quartiles, two caps (unless turned off), the median, a line
for the mean (if turned on), outliers."""

import sys

import glovebox_axes

# Vertices of a plain and of a notched box, to that which stands across from the first: those two are at the quartiles.
_OPPOSITE = {5: 2, 11: 5}


def read(axes, is_data):
    lines = [(line, line.get_xydata()) for line in axes.get_lines() if is_data(axes, line)]
    boxes = [
        patch.get_path().vertices[:-1]  # a patch repeats its last vertex
        for patch in axes.patches
        if type(patch) is sys.modules["matplotlib.patches"].PathPatch and is_data(axes, patch)
    ]
    if not boxes:
        boxes = [data for _, data in lines if len(data) in _OPPOSITE and _is_closed(data)]
    if not boxes or any(len(box) not in _OPPOSITE for box in boxes):
        return [], False
    numpy = sys.modules["numpy"]
    segments = [data for line, data in lines if len(data) == 2 and line.get_linestyle() != "None"]
    segments = numpy.array(segments).reshape(-1, 2, 2)
    loose = [data for line, data in lines if line.get_linestyle() == "None"]
    if len(loose) == 2 * len(boxes):  # of every box the mark of the mean, then the outliers, be there any or not
        loose = loose[1::2]
    loose = numpy.concatenate([numpy.empty((0, 2)), *loose])
    for value, axis in ((1, axes.xaxis), (0, axes.yaxis)):  # vertical, horizontal
        found = [_box(box, segments, loose, value) for box in boxes]
        if all(found):
            places = [(box[:, 1 - value].min() + box[:, 1 - value].max()) / 2 for box in boxes]
            labels = glovebox_axes.names(axis, places, may_share=True)
            return [{"label": label, **one} for label, one in zip(labels, found)], axis is axes.yaxis
    return [], False


def _is_closed(data):
    return all(a == b or (a != a and b != b) for a, b in zip(data[0], data[-1]))


def _box(box, segments, loose, value):
    """None if it is no box whose values are in column `value` of the coordinates."""
    place = 1 - value
    low, high = box[:, place].min(), box[:, place].max()
    if not low < high:
        return None
    middle = (low + high) / 2
    first, third = box[0, value], box[_OPPOSITE[len(box)], value]
    if first != first:  # drawn from no values at all
        empty = dict.fromkeys(("min", "first_quartile", "median", "third_quartile", "max"))
        return {**empty, "outliers": []}

    places, values = segments[:, :, place], segments[:, :, value]
    along = (places[:, 0] == places[:, 1]) & (abs(places[:, 0] - middle) < (high - low) / 1000)
    whiskers = values[along].tolist()
    lower = [end for start, end in whiskers if start == first and end <= first]
    upper = [end for start, end in whiskers if start == third and end >= third]
    centres = places.mean(axis=1)
    is_across = (values[:, 0] == values[:, 1]) & (places[:, 0] != places[:, 1]) & (low <= centres) & (centres <= high)
    across = values[is_across, 0].tolist()
    if not lower or not upper or not across:
        return None
    beside = loose[(low <= loose[:, place]) & (loose[:, place] <= high), value].tolist()
    return {
        "min": lower[0],
        "first_quartile": first,
        "median": across[2] if len(across) > 2 else across[0],  # behind the caps
        "third_quartile": third,
        "max": upper[0],
        "outliers": [v for v in beside if not lower[0] <= v <= upper[0]],  # marks of means, alone
    }
