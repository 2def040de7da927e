# SPDX-License-Identifier: Apache-2.0
"""DataFrames as e2b/data (contract 4.4)."""

import datetime
import decimal
import unittest

import numpy
import pandas
from support import bundle, shell

import glovebox_frames


class Frames(unittest.TestCase):
    def check(self, frame, expected):
        data = bundle(frame)
        self.assertEqual(data["e2b/data"], expected)
        self.assertEqual(list(data["e2b/data"]), list(expected), "columns keep their order")
        self.assertIn("text/html", data)
        self.assertIn("text/plain", data)

    def test_columns_of_plain_values(self):
        self.check(
            pandas.DataFrame({"b": [1, 2], "a": ["x", None], "f": [0.5, numpy.nan], "t": [True, False]}),
            {"b": [1, 2], "a": ["x", None], "f": [0.5, None], "t": [True, False]},
        )

    def test_times(self):
        self.check(
            pandas.DataFrame({
                "naive": pandas.to_datetime(["2024-01-02 03:04:05.000000006", None]),
                "seconds": pandas.to_datetime(["1700-01-01", None]),
                "zone": pandas.to_datetime(["2024-01-02", None]).tz_localize("Europe/Berlin"),
                "day": [datetime.date(2024, 1, 2), None],
                "period": pandas.PeriodIndex(["2024-01", None], freq="M"),
                "length": pandas.to_timedelta(["1 days", None]),
            }),
            {
                "naive": ["2024-01-02T03:04:05.000000006", None],
                "seconds": ["1700-01-01T00:00:00", None],
                "zone": ["2024-01-02T00:00:00+01:00", None],
                "day": ["2024-01-02", None],
                "period": ["2024-01", None],
                "length": ["1 days 00:00:00", None],
            },
        )

    def test_extension_types_and_objects(self):
        self.check(
            pandas.DataFrame({
                "int": pandas.array([1, None], dtype="Int64"),
                "category": pandas.Categorical(["a", None]),
                "object": [numpy.int64(1), [numpy.float64("inf"), {"k": 2}]],
                "decimal": [decimal.Decimal("1.10"), {1}],
            }),
            {
                "int": [1, None],
                "category": ["a", None],
                "object": [1, [None, {"k": 2}]],
                "decimal": ["1.10", "{1}"],
            },
        )

    def test_infinity_is_null(self):
        self.check(pandas.DataFrame({"x": [numpy.inf, -numpy.inf]}), {"x": [None, None]})

    def test_a_column_that_stands_twice_is_not_lost(self):
        frame = pandas.DataFrame([[1, 2, 3, 4]], columns=["a", "a", "a.1", "a"])
        self.check(frame, {"a": [1], "a.2": [2], "a.1": [3], "a.3": [4]})

    def test_columns_that_are_no_strings(self):
        columns = [0, 1.5, None, pandas.Timestamp("2024-01-02"), ("t", 1)]
        frame = pandas.DataFrame([[1, 2, 3, 4, 5]], columns=pandas.Index(columns, dtype=object, tupleize_cols=False))
        self.check(frame, {"0": [1], "1.5": [2], "None": [3], "2024-01-02T00:00:00": [4], "(t, 1)": [5]})

    def test_levels_of_columns(self):
        frame = pandas.DataFrame([[1, 2]], columns=pandas.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
        self.check(frame, {"(a, x)": [1], "(a, y)": [2]})

    def test_nothing_in_it(self):
        self.check(pandas.DataFrame(), {})
        self.check(pandas.DataFrame({"a": []}), {"a": []})

    def test_a_big_frame_keeps_text_and_html(self):
        limit = glovebox_frames.MAX_VALUES
        self.assertEqual(len(bundle(pandas.DataFrame({"a": numpy.arange(limit)}))["e2b/data"]["a"]), limit)
        data = bundle(pandas.DataFrame({"a": numpy.zeros(limit // 2 + 1), "b": 0}))
        self.assertEqual(sorted(data), ["text/html", "text/plain"])

    def test_cells_share_the_limits(self):
        big = list(range(1000))
        for cells in ([big] * 1001, ["x" * 20_000] * 1001, [set(big)] * 6000):
            data = bundle(pandas.DataFrame({"a": cells}))
            self.assertEqual(sorted(data), ["text/html", "text/plain"])

    def test_a_frame_of_very_many_columns_keeps_text_and_html(self):
        data = bundle(pandas.DataFrame(numpy.zeros((1, glovebox_frames.MAX_COLUMNS + 1))))
        self.assertEqual(sorted(data), ["text/html", "text/plain"])

    def test_a_cell_that_raises_costs_the_data_only(self):
        class Sour:
            def __str__(self):
                raise RuntimeError("no")

        self.assertIsNone(shell().display_formatter.formatters["e2b/data"](pandas.DataFrame({"a": [Sour()]})))

    def test_a_subclass_is_a_frame(self):
        class Mine(pandas.DataFrame):
            pass

        self.check(Mine({"a": [1]}), {"a": [1]})


if __name__ == "__main__":
    unittest.main()
