# SPDX-License-Identifier: Apache-2.0
"""One axis of a matplotlib plot: its label, ticks and scale, and what the user plotted at a position (contract 4.5)."""

import bisect
import datetime
import math
import re
import sys

_UNIT = re.compile(r"\(([^()]+)\)|\[([^][]+)\]")
_SCALES = ("linear", "log", "symlog", "logit", "function", "functionlog", "asinh")


def title(axes):
    return next((text for loc in ("center", "left", "right") if (text := axes.get_title(loc=loc))), None)


def labels(axes, swapped=False):
    found = {}
    axis_pair = (axes.yaxis, axes.xaxis) if swapped else (axes.xaxis, axes.yaxis)
    for name, axis in zip("xy", axis_pair):
        text = axis.get_label_text()
        units = _UNIT.findall(text)
        found[f"{name}_label"] = text or None
        found[f"{name}_unit"] = "".join(units[-1]).strip() or None if units else None
    return found


def ticks(axes):
    found = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        places, texts = _ticks(axis)
        found[f"{name}_ticks"] = values(axis, places)
        found[f"{name}_tick_labels"] = texts
        found[f"{name}_scale"] = scale(axis)
    return found


def scale(axis):
    # A scale of the user's own is a function to whoever reads the chart.
    return _units(axis) or (axis.get_scale() if axis.get_scale() in _SCALES else "function")


def points(axes, xs, ys):
    return [[x, y] for x, y in zip(values(axes.xaxis, xs), values(axes.yaxis, ys))]


def values(axis, positions):
    """What the user plotted at these positions (numbers, None for masked ones): itself, a date or a category."""
    units = _units(axis)
    if units == "datetime":
        if _converter(axis) == "PeriodConverter":
            return _dates_of_periods(axis, positions)
        to_date = _to_date()
        return [_iso(one, to_date) for one in positions]
    if units == "categorical":
        names = {position: name for name, position in axis.units._mapping.items()}
        return [names.get(one, one) for one in positions]
    return list(positions)


def names(axis, positions, may_share=False):
    """What bars or boxes at these positions are called: by ticks that somebody put there, one for each (unless they
    may share one), else by what was plotted."""
    if not _units(axis):
        named = _named_by_ticks(axis, positions, may_share)
        if named:
            return named
    if _units(axis) == "categorical":  # bars of a group stand beside the middle of their category
        return [str(name) for name in values(axis, [round(one) for one in positions])]
    if _units(axis):
        return [str(value) for value in values(axis, positions)]
    return [format(float(one), ".12g") for one in positions]


def _units(axis):
    """datetime, categorical or nothing special."""
    name = _converter(axis)
    if "Date" in name or (name == "PeriodConverter" and _frequency(axis)):
        return "datetime"
    return "categorical" if "Category" in name else None


def _converter(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)
    return type(converter).__name__


def _frequency(axis):
    """pandas draws a regular time series over numbered periods and leaves their length at the axes."""
    return getattr(axis.axes, "freq", None)


def _dates_of_periods(axis, positions):
    pandas = sys.modules["pandas"]
    offset = pandas.tseries.frequencies.to_offset(_frequency(axis))
    ordinals = [int(one) if one is not None and math.isfinite(one) else None for one in positions]
    present = [one for one in ordinals if one is not None]
    # All at once: a single Period takes long to become a date.
    try:
        if hasattr(pandas.PeriodIndex, "from_ordinals"):  # since pandas 2.2, which warns about the other way
            index = pandas.PeriodIndex.from_ordinals(present, freq=offset)
        else:
            index = pandas.PeriodIndex(ordinal=present, freq=offset)
        starts = iter(index.to_timestamp())
    except (ValueError, OverflowError):  # one is beyond the years that a date can have
        return [_iso(one, lambda n: pandas.Period(ordinal=n, freq=offset).to_timestamp()) for one in ordinals]
    return [None if one is None else next(starts).isoformat() for one in ordinals]


def _to_date():
    """matplotlib's num2date in UTC, at a tenth of its time: a long series is described as quickly as it is drawn."""
    dates = sys.modules["matplotlib.dates"]
    try:
        epoch = datetime.datetime.fromisoformat(dates.get_epoch()).replace(tzinfo=datetime.timezone.utc)
    except ValueError:  # the year 0 of old versions
        return dates.num2date

    def to_date(days):
        microseconds = round(days * 86_400_000_000)
        if abs(days) > 70 * 365:  # from here on a float has no single microseconds
            microseconds = round(microseconds / 20) * 20
        return epoch + datetime.timedelta(microseconds=microseconds)

    return to_date


def _iso(position, to_date):
    try:
        return (position if hasattr(position, "isoformat") else to_date(position)).isoformat()
    except (TypeError, ValueError, OverflowError):  # masked, missing, or beyond the years that a date can have
        return None


def _ticks(axis):
    try:
        places = [float(place) for place in axis.get_ticklocs()]
        return places, [label.get_text() for label in axis.get_ticklabels()]
    except Exception:  # a user's locator or formatter; the data are worth more than the ticks
        return [], []


def _named_by_ticks(axis, positions, may_share):
    if not isinstance(axis.get_major_locator(), sys.modules["matplotlib.ticker"].FixedLocator):
        return None
    places, texts = _ticks(axis)
    if not places or len(places) != len(texts):
        return None
    texts_at = dict(zip(places, texts))
    places = sorted(texts_at)
    reach = min((b - a for a, b in zip(places, places[1:])), default=1.0) / 2 * 1.001
    nearest = [_nearest(places, float(one)) for one in positions]
    if not may_share and len(set(nearest)) < len(nearest):  # ticks along a histogram name none of its bars
        return None
    if any(abs(place - one) > reach or not texts_at[place] for place, one in zip(nearest, positions)):
        return None
    return [texts_at[place] for place in nearest]


def _nearest(places, position):
    at = bisect.bisect(places, position)
    return min(places[max(at - 1, 0) : at + 1], key=lambda place: abs(place - position))
