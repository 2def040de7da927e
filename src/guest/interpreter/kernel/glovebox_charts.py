"""Reads the data back out of a matplotlib figure: line, scatter, bar, pie, box plots (contract 4.5). The values are
still those of numpy; labels that nobody gave are matplotlib's own ("_child0"), which keep what they label apart."""

import sys

import glovebox_axes
import glovebox_boxes


def describe(figure):
    charts = [_axes(one) for one in figure.axes if one.get_visible() and not _is_colorbar(one)]
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else _text(getattr(figure, "_suptitle", None))
    if len(charts) == 1:
        charts[0]["title"] = charts[0]["title"] or title or None
        return charts[0]
    if not charts:
        return {"type": "unknown", "title": title or None, "elements": []}
    return {"type": "superchart", "title": title or None, "elements": charts}


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
            elements = read(axes)
        except Exception:  # one plot that cannot be read must not take its neighbours with it
            continue
        if elements:
            break
    else:
        return chart
    chart.update(type=type_name, elements=elements)
    if type_name != "pie":
        chart.update(glovebox_axes.labels(axes))
    if type_name in ("line", "scatter"):
        chart.update(glovebox_axes.ticks(axes))
    return chart


def _is_data(axes, artist):
    """Grid lines, axhline and the like live in mixed coordinates and are no data."""
    return artist.get_visible() and all(artist.get_transform().contains_branch_seperately(axes.transData))


def _instances(artists, module, name):
    kind = getattr(sys.modules[module], name)
    return [one for one in artists if isinstance(one, kind)]


# Kinds of charts. Each reads its elements, or finds none.


def _boxes(axes):
    return glovebox_boxes.read(axes, _is_data)


def _lines(axes):
    names = _names_of_composed_lines(axes)
    found = []
    for line in axes.get_lines():
        label = names.get(line, line.get_label())
        if label is None or not _is_data(axes, line):
            continue
        xs, ys = line.get_xdata(orig=False), line.get_ydata(orig=False)
        found.append({"label": str(label), "points": glovebox_axes.points(axes, xs.tolist(), ys.tolist())})
    return found


def _names_of_composed_lines(axes):
    """Error bars and stems are several lines, of which one is data and has the label of all; None for the others."""
    names = {}
    for group in _instances(axes.containers, "matplotlib.container", "ErrorbarContainer"):
        data, caps, _ = group.lines
        names.update(dict.fromkeys(caps))
        if data is not None:
            names[data] = group.get_label()
    for group in _instances(axes.containers, "matplotlib.container", "StemContainer"):
        names.update({group.markerline: group.get_label(), group.baseline: None})
    return names


def _scatter(axes):
    found = []
    for one in _instances(axes.collections, "matplotlib.collections", "PathCollection"):
        if one.get_visible():
            xs, ys = one.get_offsets().T.tolist()
            found.append({"label": str(one.get_label()), "points": glovebox_axes.points(axes, xs, ys)})
    return found


def _bars(axes):
    found = []
    for group in _instances(axes.containers, "matplotlib.container", "BarContainer"):
        bars = [bar for bar in group.patches if bar.get_visible()]
        if group.orientation == "horizontal":
            values = [bar.get_width() for bar in bars]
            names = glovebox_axes.names(axes.yaxis, [bar.get_y() + bar.get_height() / 2 for bar in bars])
        else:
            values = [bar.get_height() for bar in bars]
            names = glovebox_axes.names(axes.xaxis, [bar.get_x() + bar.get_width() / 2 for bar in bars])
        group_name = str(group.get_label())
        found += [{"label": name, "value": value, "group": group_name} for name, value in zip(names, values)]
    return found


def _pie(axes):
    return [
        {"label": wedge.get_label(), "angle": round(float(abs(wedge.theta2 - wedge.theta1)), 4), "radius": wedge.r}
        for wedge in _instances(axes.patches, "matplotlib.patches", "Wedge")
    ]


_KINDS = (
    ("pie", _pie),
    ("box_and_whisker", _boxes),
    ("bar", _bars),
    ("line", _lines),
    ("scatter", _scatter),
)
