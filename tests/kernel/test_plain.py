# SPDX-License-Identifier: Apache-2.0
"""Lists and dicts as application/json (contract 4.4)."""

import collections
import dataclasses
import datetime
import enum
import sys
import types
import unittest
import uuid
from unittest import mock

import IPython.display
import numpy
import pandas
from support import as_json, bundle

from glovebox_plain import MAX_CHARACTERS, MAX_VALUES, NotJson, plain


class Plain(unittest.TestCase):
    def check(self, value, expected):
        self.assertEqual(as_json(plain(value)), expected)

    def test_values_of_numpy(self):
        self.check([numpy.int64(3), numpy.float32(0.5), numpy.bool_(True), numpy.str_("x")], [3, 0.5, True, "x"])
        self.check([numpy.arange(6).reshape(2, 3)], [[[0, 1, 2], [3, 4, 5]]])
        self.check([numpy.array(7), numpy.longdouble(2.5), numpy.array([1.5], dtype=numpy.longdouble)], [7, 2.5, [1.5]])
        self.check([numpy.ma.array([1, 2], mask=[False, True])], [[1, None]])
        self.check([numpy.uint64(2**64 - 1), 10**30], [2**64 - 1, 10**30])

    def test_dates_stay_dates_whatever_their_precision(self):
        moment = numpy.datetime64("2024-01-02T03:04:05.000000006")
        text = "2024-01-02T03:04:05.000000006"
        self.check([moment, numpy.array([moment]), numpy.array(moment)], [text, [text], text])
        self.check([numpy.datetime64("NaT"), pandas.NaT, pandas.NA], [None, None, None])
        self.check([pandas.Timestamp("2024-01-02"), datetime.date(2024, 1, 2)], ["2024-01-02T00:00:00", "2024-01-02"])

    def test_numbers_that_json_does_not_have_are_null(self):
        nan, inf = float("nan"), float("inf")
        self.check([nan, inf, -inf, numpy.float64(nan), numpy.array([nan, 1])], [None, None, None, None, [None, 1]])

    def test_keys_that_are_no_strings(self):
        self.check({1: "a", numpy.int64(2): "b", 2.5: "c", None: "d"}, {"1": "a", "2": "b", "2.5": "c", "null": "d"})
        self.check({False: 1, datetime.date(2024, 1, 2): 2}, {"false": 1, "2024-01-02": 2})

    def test_two_keys_that_would_become_one_are_not_merged(self):
        with self.assertRaises(NotJson):
            plain({1: "a", "1": "b"})

    def test_kinds_of_the_standard_library(self):
        Colour = enum.Enum("Colour", {"RED": "red"})
        Point = dataclasses.make_dataclass("Point", ["x", "y"])
        self.check([Colour.RED, Point(1, numpy.int8(2))], ["red", {"x": 1, "y": 2}])
        self.check([uuid.UUID(int=1)], ["00000000-0000-0000-0000-000000000001"])
        self.check(collections.Counter("aab"), {"a": 2, "b": 1})

    def test_what_has_no_json_has_none(self):
        for value in (object(), {1, 2}, 1j, numpy.complex64(1), b"x", {(1, 2): 3}, datetime.timedelta(1), int, 10**4300):
            with self.subTest(value=value), self.assertRaises(NotJson):
                plain([value])

    def test_cycles(self):
        loop = [1]
        loop += [loop, loop]
        around = {}
        around["list"] = [around]
        array = numpy.empty(1, dtype=object)
        array[0] = array
        for value in (loop, around, [array]):
            with self.assertRaises(NotJson):
                plain(value)

    def test_shared_is_not_cyclic_but_its_text_has_a_limit(self):
        shared = [1]
        self.check([shared, shared], [[1], [1]])
        for _ in range(60):
            shared = [shared, shared]
        with self.assertRaises(NotJson):
            plain(shared)

    def test_limits(self):
        self.assertEqual(len(plain([0] * MAX_VALUES)), MAX_VALUES)
        self.assertEqual(len(plain(numpy.zeros(MAX_VALUES))), MAX_VALUES)
        for value in ([0] * (MAX_VALUES + 1), [numpy.zeros(MAX_VALUES + 1)], ["x" * (MAX_CHARACTERS // 10)] * 11):
            with self.assertRaises(NotJson):
                plain(value)
        deep = []
        for _ in range(5000):
            deep = [deep]
        with self.assertRaises(NotJson):
            plain(deep)


class Display(unittest.TestCase):
    def test_json_stands_beside_text(self):
        self.assertEqual(bundle([1, "a"]), {"text/plain": "[1, 'a']", "application/json": [1, "a"]})

    def test_what_cannot_be_json_keeps_its_text(self):
        loop = []
        loop += [loop, loop]
        self.assertEqual(bundle(loop), {"text/plain": "[[...], [...]]"})
        self.assertEqual(list(bundle([object()])), ["text/plain"])

    def test_a_subclass_that_raises_keeps_its_text(self):
        class Broken(dict):
            def items(self):
                raise RuntimeError("not today")

        with mock.patch("sys.stderr"):
            self.assertEqual(bundle(Broken()), {"text/plain": "{}"})

    def test_a_subclass_says_itself_how_it_looks(self):
        class Own(list):
            def _repr_json_(self):
                return {"own": True}

        self.assertEqual(bundle(Own([1]))["application/json"], {"own": True})

    def test_an_object_that_is_json_may_hold_what_lists_may(self):
        shown = bundle(IPython.display.JSON({"a": numpy.arange(2), "b": float("nan")}, expanded=True))
        self.assertEqual(shown["application/json"], {"a": [0, 1], "b": None})
        self.assertEqual(list(bundle(IPython.display.JSON({"a": object()}))), ["text/plain"])

    def test_files_of_the_user_with_famous_names(self):
        empty = {name: types.ModuleType(name) for name in ("numpy", "pandas", "matplotlib.figure")}
        with mock.patch.dict(sys.modules, empty):
            self.assertEqual(bundle([1, {"a": 2}])["application/json"], [1, {"a": 2}])
            self.assertEqual(bundle(3), {"text/plain": "3"})
            self.assertEqual(list(bundle([object()])), ["text/plain"])


if __name__ == "__main__":
    unittest.main()
