# SPDX-License-Identifier: Apache-2.0
"""Representations beyond IPython's own: DataFrames as e2b/data, figures as e2b/chart, lists and dicts as JSON.

Each is an extra to what IPython shows anyway, so none of them may raise: one that fails is absent. What the user has
not imported cannot be what he displays, so nothing is imported here on his behalf."""

import sys
import warnings

import glovebox_charts
import glovebox_frames
import glovebox_images
import glovebox_plotly
from glovebox_imports import when_imported
from glovebox_plain import plain
from IPython.core.formatters import BaseFormatter, JSONFormatter
from traitlets import ObjectName, Unicode


def _is_a(obj, module, name):
    # By name in what is loaded: a user's own file may be called pandas.py and hold nothing of the kind.
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(obj, kind)


def _or_nothing(describe, obj):
    try:
        with warnings.catch_warnings():  # the user did not ask for this; a warning would be about code he did not write
            warnings.simplefilter("ignore")
            return describe(obj)
    except Exception:
        return None


class DataFormatter(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, str)

    def __call__(self, obj):
        if _is_a(obj, "pandas", "DataFrame"):
            return _or_nothing(glovebox_frames.describe, obj)
        return super().__call__(obj)


class ChartFormatter(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def __call__(self, obj):
        if _is_a(obj, "matplotlib.figure", "Figure"):
            return _or_nothing(lambda figure: plain(glovebox_charts.describe(figure)), obj)
        return super().__call__(obj)


class JsonFormatter(JSONFormatter):
    def __call__(self, obj):
        # A subclass that says itself how it looks as JSON is asked first.
        if isinstance(obj, (list, dict)) and not hasattr(type(obj), self.print_method):
            return _or_nothing(lambda value: (plain(value), {"expanded": True}), obj)
        result = super().__call__(obj)
        if result is None:
            return None
        data, metadata = result if isinstance(result, tuple) else (result, {})
        return _or_nothing(lambda value: (plain(value), metadata), data)


def install(shell):
    display = shell.display_formatter
    display.formatters["e2b/data"] = DataFormatter(parent=display)
    display.formatters["e2b/chart"] = ChartFormatter(parent=display)
    display.formatters["application/json"] = JsonFormatter(parent=display)
    when_imported("PIL.Image", glovebox_images.change)
    when_imported("plotly.io._renderers", glovebox_plotly.change)
