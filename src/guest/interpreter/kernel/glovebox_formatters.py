"""Representations beyond IPython's own: DataFrames as e2b/data, figures as e2b/chart, lists and dicts as JSON."""

import datetime
import math
import sys

import glovebox_charts
from IPython.core.formatters import BaseFormatter, JSONFormatter
from traitlets import ObjectName, Unicode


class _NotJson(Exception):
    pass


def _plain(value, depth=0):
    """`value` in types that JSON has; _NotJson when there is no honest way."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if depth > 100:
        raise _NotJson
    if isinstance(value, dict):
        return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        if isinstance(value, numpy.datetime64):
            return None if numpy.isnat(value) else str(value)
        return _plain(value.tolist(), depth + 1)
    raise _NotJson


def _key(key):
    plain = _plain(key)
    if isinstance(plain, str):
        return plain
    if plain is None:
        return "null"
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, (int, float)):
        return str(plain)
    raise _NotJson


def _cell(pandas, value):
    try:
        if value is pandas.NaT or value is pandas.NA:
            return None
        return _plain(value)
    except _NotJson:
        return str(value)


class DataFormatter(BaseFormatter):
    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, str)

    def __call__(self, obj):
        # A DataFrame exists only where somebody imported pandas: everybody else does not pay for that.
        pandas = sys.modules.get("pandas")
        if pandas is None or not isinstance(obj, pandas.DataFrame):
            return super().__call__(obj)
        try:
            return {
                str(name): [_cell(pandas, value) for value in obj.iloc[:, position].tolist()]
                for position, name in enumerate(obj.columns)
            }
        except Exception:  # a half-made pandas or an odd extension type: the other representations remain
            return None


class ChartFormatter(BaseFormatter):
    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def __call__(self, obj):
        figure = sys.modules.get("matplotlib.figure")
        if figure is None or not isinstance(obj, figure.Figure):
            return super().__call__(obj)
        try:
            return _plain(glovebox_charts.describe(obj))
        except Exception:  # the picture is the result; its description is an extra
            return None


class JsonFormatter(JSONFormatter):
    def __call__(self, obj):
        if isinstance(obj, (list, dict)):
            try:
                return _plain(obj), {"expanded": True}
            except (_NotJson, RecursionError):
                pass
        return super().__call__(obj)


def install(shell):
    display = shell.display_formatter
    display.formatters["e2b/data"] = DataFormatter(parent=display)
    display.formatters["e2b/chart"] = ChartFormatter(parent=display)
    display.formatters["application/json"] = JsonFormatter(parent=display)
    _show_saved_images()


def _show_saved_images():
    """Image.save("file") and show() display the picture; no viewer is opened. Only once Pillow is imported."""
    from importlib.abc import MetaPathFinder

    class Watcher(MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != "PIL.Image":
                return None
            sys.meta_path.remove(self)
            import importlib.util

            spec = importlib.util.find_spec(name)
            if spec is not None and spec.loader is not None:
                run = spec.loader.exec_module

                def exec_module(module):
                    run(module)
                    _patch(module.Image)

                spec.loader.exec_module = exec_module
            return spec

    def _patch(image_class):
        from IPython.display import display

        save = image_class.save

        def save_and_display(self, fp, format=None, **options):
            save(self, fp, format, **options)
            if isinstance(fp, str):
                display(self)

        def show(self, *args, **options):
            display(self)

        image_class.save = save_and_display
        image_class.show = show

    if "PIL.Image" in sys.modules:
        _patch(sys.modules["PIL.Image"].Image)
    else:
        sys.meta_path.insert(0, Watcher())
