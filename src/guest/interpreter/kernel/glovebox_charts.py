# SPDX-License-Identifier: Apache-2.0
"""Reads the data back out of a matplotlib figure: line, scatter, bar, pie, box plots (contract 4.5). The values are
still those of numpy."""

import sys

import glovebox_axes
import glovebox_boxes
from glovebox_plain import MAX_VALUES, TooLarge

_MAX_POINTS = MAX_VALUES // 3  # each is a list of two in a list


def describe(figure):
    """Raises TooLarge, before anything is copied, for a figure of more points than a result may hold."""
    if sum(_points(axes) for axes in figure.axes) > _MAX_POINTS:
        raise TooLarge
    charts = [_axes(one) for one in figure.axes if one.get_visible() and not _is_colorbar(one)]
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else _text(getattr(figure, "_suptitle", None))
    if len(charts) == 1:
        charts[0]["title"] = charts[0]["title"] or title or None
        return charts[0]
    if not charts:
        return {"type": "unknown", "title": title or None, "elements": []}
    return {"type": "superchart", "title": title or None, "elements": charts}


def _points(axes):
    try:
        lines = sum(len(line.get_xdata(orig=False)) for line in axes.get_lines())
        return lines + sum(len(scatter.get_offsets()) for scatter in _scatters(axes))
    except Exception:  # what cannot be read has none
        return 0


def _is_colorbar(axes):
    return getattr(axes, "_colorbar", None) is not None or axes.get_label() == "<colorbar>"


def _text(artist):
    return artist.get_text() if artist is not None else None


def _axes(axes):
    chart = {"type": "unknown", "title": glovebox_axes.title(axes), "elements": []}
    if axes.name == "3d":  # its artists hold what they look like on the screen
        return chart
    for type_name, read in _KINDS:
        try:
            elements, is_horizontal = read(axes)
        except Exception:  # one plot that cannot be read must not take its neighbours with it
            continue
        if elements:
            break
    else:
        return chart
    chart.update(type=type_name, elements=elements)
    if type_name != "pie":
        # Elements have no direction: x is the axis of their labels, y that of their values, whichever way they lie.
        chart.update(glovebox_axes.labels(axes, swapped=is_horizontal))
    if type_name in ("line", "scatter"):
        chart.update(glovebox_axes.ticks(axes))
    return chart


def _is_data(axes, artist):
    """Grid lines, axhline and the like live in mixed coordinates and are no data."""
    return artist.get_visible() and all(artist.get_transform().contains_branch_seperately(axes.transData))


def _instances(artists, module, name):
    kind = getattr(sys.modules[module], name)
    return [one for one in artists if isinstance(one, kind)]


def _scatters(axes):
    found = _instances(axes.collections, "matplotlib.collections", "PathCollection")
    # Of contours the paths are data; their offset is not.
    return [one for one in found if one.get_offset_transform().contains_branch(axes.transData)]


def _label(artist, kind):
    """A label that nobody gave is matplotlib's number of the artist."""
    label = str(artist.get_label())
    number = label.removeprefix("_child").removeprefix("_container")
    return f"{kind} {number}" if number != label and number.isdigit() else label


# Kinds of charts. Each reads its elements, or finds none, and says whether they lie.


def _boxes(axes):
    return glovebox_boxes.read(axes, _is_data)


def _lines(axes):
    names = _names_of_composed_lines(axes)
    found = []
    for line in axes.get_lines():
        label = names.get(line, _label(line, "Line"))
        if label is None or not _is_data(axes, line):
            continue
        xs, ys = line.get_xdata(orig=False), line.get_ydata(orig=False)
        found.append({"label": label, "points": glovebox_axes.points(axes, xs.tolist(), ys.tolist())})
    return found, False


def _names_of_composed_lines(axes):
    """Error bars and stems are several lines, of which one is data and has the label of all; None for the others."""
    names = {}
    for group in _instances(axes.containers, "matplotlib.container", "ErrorbarContainer"):
        data, caps, _ = group.lines
        names.update(dict.fromkeys(caps))
        if data is not None:
            names[data] = _label(group, "Line")
    for group in _instances(axes.containers, "matplotlib.container", "StemContainer"):
        names.update({group.markerline: _label(group, "Line"), group.baseline: None})
    return names


def _scatter(axes):
    found = []
    for one in _scatters(axes):
        if one.get_visible():
            xs, ys = one.get_offsets().T.tolist()
            found.append({"label": _label(one, "Scatter"), "points": glovebox_axes.points(axes, xs, ys)})
    return found, False


def _bars(axes):
    found = []
    groups = _instances(axes.containers, "matplotlib.container", "BarContainer")
    for group in groups:
        bars = [bar for bar in group.patches if bar.get_visible()]
        if group.orientation == "horizontal":
            values = [bar.get_width() for bar in bars]
            names = glovebox_axes.names(axes.yaxis, [bar.get_y() + bar.get_height() / 2 for bar in bars])
        else:
            values = [bar.get_height() for bar in bars]
            names = glovebox_axes.names(axes.xaxis, [bar.get_x() + bar.get_width() / 2 for bar in bars])
        group_name = _label(group, "Group")
        found += [{"label": name, "value": value, "group": group_name} for name, value in zip(names, values)]
    return found, any(group.orientation == "horizontal" for group in groups)


def _pie(axes):
    wedges = [
        {"label": wedge.get_label(), "angle": round(float(abs(wedge.theta2 - wedge.theta1)), 4), "radius": wedge.r}
        for wedge in _instances(axes.patches, "matplotlib.patches", "Wedge")
    ]
    return wedges, False


_KINDS = (
    ("pie", _pie),
    ("box_and_whisker", _boxes),
    ("bar", _bars),
    ("line", _lines),
    ("scatter", _scatter),
)
