"""Reads the data back out of a matplotlib figure: line, scatter, bar, pie, box plots (contract 4.5)."""

import re
import sys

_UNIT = re.compile(r"\(([^()]*)\)\s*$")


def describe(figure):
    axes = [one for one in figure.axes if one.get_visible() and not _is_colorbar(one)]
    charts = [_describe_axes(one) for one in axes]
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else _text(getattr(figure, "_suptitle", None))
    if len(charts) == 1:
        if charts[0]["title"] is None:
            charts[0]["title"] = title or None
        return charts[0]
    if not charts:
        return {"type": "unknown", "title": title or None, "elements": []}
    return {"type": "superchart", "title": title or None, "elements": charts}


def _is_colorbar(axes):
    return getattr(axes, "_colorbar", None) is not None or axes.get_label() == "<colorbar>"


def _text(artist):
    return artist.get_text() if artist is not None else None


def _describe_axes(axes):
    for type_name, read in (
        ("pie", _pie),
        ("box_and_whisker", _boxes),
        ("bar", _bars),
        ("line", _lines),
        ("scatter", _scatter),
    ):
        elements = read(axes)
        if elements:
            break
    else:
        return {"type": "unknown", "title": axes.get_title() or None, "elements": []}
    chart = {"type": type_name, "title": axes.get_title() or None, "elements": elements}
    if type_name == "pie":
        return chart
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        label = axis.get_label_text()
        unit = _UNIT.search(label)
        chart[f"{name}_label"] = label or None
        chart[f"{name}_unit"] = unit.group(1) if unit else None
        if type_name in ("line", "scatter"):
            chart.update(_ticks(name, axis))
    return chart


# Axes


def _units(axis):
    """datetime, categorical or nothing special."""
    converter = axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)
    name = type(converter).__name__
    if "Date" in name:
        return "datetime"
    if "Category" in name:
        return "categorical"
    return None


def _scale(axis):
    return _units(axis) or axis.get_scale()


def _ticks(name, axis):
    convert = _converter(axis)
    return {
        f"{name}_ticks": [convert(position) for position in axis.get_ticklocs()],
        f"{name}_tick_labels": [label.get_text() for label in axis.get_ticklabels()],
        f"{name}_scale": _scale(axis),
    }


def _converter(axis):
    """From a position on the axis to what the user plotted there."""
    units = _units(axis)
    if units == "datetime":
        dates = sys.modules["matplotlib.dates"]

        def to_date(value):
            return value if hasattr(value, "isoformat") else dates.num2date(value).isoformat()

        return to_date
    if units == "categorical":
        names = {position: name for name, position in axis.units._mapping.items()}

        def to_name(value):
            return value if isinstance(value, str) else names.get(value, str(value))

        return to_name
    return lambda value: value


def _points(axes, pairs):
    x, y = _converter(axes.xaxis), _converter(axes.yaxis)
    return [[x(one), y(other)] for one, other in pairs]


# Kinds of charts. Each reads its elements, or finds none.


def _in_data_coordinates(axes, artist):
    """Grid lines, axhline and the like live in mixed coordinates and are no data."""
    return artist.get_visible() and all(artist.get_transform().contains_branch_seperately(axes.transData))


def _lines(axes):
    found = []
    for line in axes.get_lines():
        if not _in_data_coordinates(axes, line):
            continue
        pairs = zip(line.get_xdata(orig=False).tolist(), line.get_ydata(orig=False).tolist())
        found.append({"label": line.get_label(), "points": _points(axes, pairs)})
    return found


def _scatter(axes):
    collections = sys.modules["matplotlib.collections"]
    found = []
    for one in axes.collections:
        if isinstance(one, collections.PathCollection) and one.get_visible():
            found.append({"label": str(one.get_label()), "points": _points(axes, one.get_offsets().tolist())})
    return found


def _bars(axes):
    container = sys.modules["matplotlib.container"]
    found = []
    for group in axes.containers:
        if not isinstance(group, container.BarContainer):
            continue
        horizontal = group.orientation == "horizontal"
        names = _bar_names(axes.yaxis if horizontal else axes.xaxis)
        for bar in group.patches:
            value = bar.get_width() if horizontal else bar.get_height()
            middle = bar.get_y() + bar.get_height() / 2 if horizontal else bar.get_x() + bar.get_width() / 2
            found.append({"label": names(middle), "value": value, "group": group.get_label()})
    return found


def _bar_names(axis):
    """The tick label at a bar's middle; its position where there is none."""
    labels = {round(float(tick), 9): text.get_text() for tick, text in zip(axis.get_ticklocs(), axis.get_ticklabels())}
    convert = _converter(axis)

    def name(middle):
        middle = round(float(middle), 9)
        if _units(axis) is None:
            return labels.get(middle) or format(middle, "g")
        nearest = round(middle) if _units(axis) == "categorical" else middle
        return labels.get(nearest) or str(convert(nearest))

    return name


def _pie(axes):
    patches = sys.modules["matplotlib.patches"]
    wedges = [patch for patch in axes.patches if isinstance(patch, patches.Wedge)]
    return [
        {
            "label": wedge.get_label(),
            "angle": round(abs(wedge.theta2 - wedge.theta1), 4),
            "radius": wedge.r,
        }
        for wedge in wedges
    ]


def _boxes(axes):
    """matplotlib keeps no record of a box plot, only what it drew, always in the same order: for every box its two
    whiskers, two caps, median and outliers as lines, the box itself as a closed line or a patch."""
    patches = sys.modules["matplotlib.patches"]
    boxes = [p.get_path().vertices for p in axes.patches if type(p) is patches.PathPatch and len(p.get_path().vertices) >= 5]
    lines = [(line, line.get_xydata()) for line in axes.get_lines()]
    if not boxes:
        boxes = [data for _, data in lines if len(data) == 5 and (data[0] == data[-1]).all()]
    segments = [data for _, data in lines if len(data) == 2]
    loose = [data for line, data in lines if line.get_linestyle() == "None"]
    if not boxes or len(segments) < 5 * len(boxes):
        return []
    vertical = _is_vertical(boxes[0], segments)
    value, place = (1, 0) if vertical else (0, 1)
    names = _bar_names(axes.xaxis if vertical else axes.yaxis)
    found = []
    for box in boxes:
        low, high = box[:, place].min(), box[:, place].max()
        middle = (low + high) / 2
        near = [s for s in segments if low <= s[:, place].mean() <= high]
        whiskers = [s for s in near if s[0, place] == s[1, place]]
        first, third = box[:, value].min(), box[:, value].max()
        medians = [s for s in near if s[0, value] == s[1, value] and first <= s[0, value] <= third
                   and (s[:, place].max() - s[:, place].min()) >= (high - low) * 0.99]
        if len(whiskers) < 2 or not medians:
            return []
        ends = [v for s in whiskers for v in s[:, value]]
        outliers = [v for data in loose for p, v in zip(data[:, place], data[:, value]) if low <= p <= high]
        found.append({
            "label": names(middle),
            "min": min(ends),
            "first_quartile": first,
            "median": medians[-1][0, value],
            "third_quartile": third,
            "max": max(ends),
            "outliers": outliers,
        })
    return found


def _is_vertical(box, segments):
    """Whiskers run along the values and stand at the middle of their box."""
    middle = (box[:, 0].min() + box[:, 0].max()) / 2
    return any(s[0, 0] == s[1, 0] and abs(s[0, 0] - middle) < 1e-9 and s[0, 1] != s[1, 1] for s in segments)
