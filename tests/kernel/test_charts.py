# SPDX-License-Identifier: Apache-2.0
"""Figures of matplotlib as e2b/chart (contract 4.5)."""

import datetime
import unittest
from unittest import mock

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy  # noqa: E402
import pandas  # noqa: E402
from support import as_json, shell  # noqa: E402


def chart(figure=None):
    described = shell().display_formatter.formatters["e2b/chart"](figure or plt.gcf())
    return described if described is None else as_json(described)


def points(described):
    return [element["points"] for element in described["elements"]]


class Charts(unittest.TestCase):
    def tearDown(self):
        plt.close("all")


class LinesAndScatters(Charts):
    def test_line(self):
        plt.plot([1, 2, 3], [4.0, numpy.nan, numpy.inf], label="speed")
        plt.title("Run")
        plt.xlabel("Time (s)")
        plt.ylabel("Speed")
        plt.xticks([1, 3], ["start", "end"])
        described = chart()
        ticks = described.pop("y_ticks"), described.pop("y_tick_labels")
        self.assertEqual(len(ticks[0]), len(ticks[1]))
        self.assertEqual(described, {
            "type": "line",
            "title": "Run",
            "x_label": "Time (s)",
            "x_unit": "s",
            "x_ticks": [1, 3],
            "x_tick_labels": ["start", "end"],
            "x_scale": "linear",
            "y_label": "Speed",
            "y_unit": None,
            "y_scale": "linear",
            "elements": [{"label": "speed", "points": [[1, 4], [2, None], [3, None]]}],
        })

    def test_labels_that_nobody_gave_are_numbers(self):
        plt.plot([1], [1])
        plt.plot([1], [2], label="given")
        plt.plot([1], [3])
        self.assertEqual([element["label"] for element in chart()["elements"]], ["Line 0", "given", "Line 2"])
        plt.figure()
        plt.scatter([1], [1])
        self.assertEqual(chart()["elements"][0]["label"], "Scatter 0")
        plt.figure()
        plt.bar([1], [1])
        plt.bar([1], [2])
        self.assertEqual([element["group"] for element in chart()["elements"]], ["Group 0", "Group 1"])

    def test_masked_values_are_null(self):
        plt.plot([1, 2], numpy.ma.array([1, 2], mask=[True, False]))
        self.assertEqual(points(chart()), [[[1, None], [2, 2]]])

    def test_helping_lines_are_no_data(self):
        plt.plot([1, 2], [3, 4])
        plt.axhline(3.5)
        plt.axvline(1.5)
        plt.grid()
        self.assertEqual(points(chart()), [[[1, 3], [2, 4]]])

    def test_units_are_in_parentheses(self):
        for label, unit in (("a (m/s)", "m/s"), ("(kg) each", "kg"), ("f()", None), ("mean (of all) (°C)", "°C"),
                            ("height [m]", "m"), ("[]", None)):
            plt.figure()
            plt.plot([1])
            plt.xlabel(label)
            self.assertEqual(chart()["x_unit"], unit)

    def test_scatter(self):
        plt.scatter([1, 2], [3, 4], label="a")
        plt.scatter([5], [6], label="b")
        described = chart()
        self.assertEqual(described["type"], "scatter")
        self.assertEqual(points(described), [[[1, 3], [2, 4]], [[5, 6]]])
        self.assertEqual([element["label"] for element in described["elements"]], ["a", "b"])

    def test_empty_scatter(self):
        plt.scatter([], [], label="none")
        self.assertEqual(chart()["elements"], [{"label": "none", "points": []}])

    def test_categorical_scatter(self):
        plt.scatter(["low", "high", "low"], [1, 2, 3])
        described = chart()
        self.assertEqual(points(described), [[["low", 1], ["high", 2], ["low", 3]]])
        self.assertEqual((described["x_scale"], described["y_scale"]), ("categorical", "linear"))
        self.assertEqual((described["x_ticks"], described["x_tick_labels"]), (["low", "high"], ["low", "high"]))

    def test_dates(self):
        plt.plot([datetime.datetime(2024, 1, 2, 3), datetime.datetime(2024, 1, 3)], [1, 2])
        described = chart()
        self.assertEqual(points(described), [[["2024-01-02T03:00:00+00:00", 1], ["2024-01-03T00:00:00+00:00", 2]]])
        self.assertEqual(described["x_scale"], "datetime")
        for tick in described["x_ticks"]:
            datetime.datetime.fromisoformat(tick)

    def test_a_missing_date_is_null(self):
        plt.plot(numpy.array(["2024-01-02", "NaT"], dtype="datetime64[s]"), [1, 2])
        self.assertEqual(points(chart()), [[["2024-01-02T00:00:00+00:00", 1], [None, 2]]])

    def test_dates_are_those_of_matplotlib(self):
        moments = ["1600-02-29T23:59:59.999980", "1969-12-31T12:00", "2024-02-29T01:02:03.456789", "9000-01-01"]
        plt.plot(numpy.array(moments, dtype="datetime64[us]"), range(4))
        numbers = plt.gca().get_lines()[0].get_xdata(orig=False)
        expected = [moment.isoformat() for moment in matplotlib.dates.num2date(numbers)]
        self.assertEqual([point[0] for point in points(chart())[0]], expected)

    def test_a_date_that_python_does_not_have_is_null(self):
        plt.plot(numpy.array(["2024-01-02", "12000-01-01"], dtype="datetime64[D]"), [1, 2])
        self.assertEqual([point[0] for point in points(chart())[0]], ["2024-01-02T00:00:00+00:00", None])

    def test_pandas_draws_a_regular_series_over_periods(self):
        frame = pandas.DataFrame({"a": [1, 2]}, index=pandas.date_range("2024-01-30", periods=2))
        frame.plot()
        described = chart()
        self.assertEqual(described["x_scale"], "datetime")
        self.assertEqual(described["elements"], [
            {"label": "a", "points": [["2024-01-30T00:00:00", 1], ["2024-01-31T00:00:00", 2]]}
        ])

    def test_periods_of_pandas_in_any_length_and_year(self):
        for freq, start, first in (
            ("M", "2024-02", "2024-02-01T00:00:00"), ("H", "2024-02-01 05:00", "2024-02-01T05:00:00"),
            ("A", "2200", "2200-01-01T00:00:00"),
        ):  # fmt: skip
            with self.subTest(freq):
                plt.figure()
                pandas.Series(range(3), index=pandas.period_range(start, periods=3, freq=freq)).plot()
                described = chart()
                self.assertEqual(points(described)[0][0], [first, 0])
                self.assertEqual(len(described["x_ticks"]), len(described["x_tick_labels"]))
        plt.figure()
        pandas.Series([1, 2], index=pandas.PeriodIndex(["2024", "5000"], freq="A")).plot()
        self.assertEqual(points(chart()), [[["2024-01-01T00:00:00", 1], [None, 2]]])

    def test_pandas_draws_an_irregular_series_over_dates(self):
        pandas.Series([1, 2, 3], index=pandas.to_datetime(["2024-01-01", "2024-01-05", "2024-02-01"])).plot()
        described = chart()
        self.assertEqual(described["x_scale"], "datetime")
        self.assertTrue(points(described)[0][2][0].startswith("2024-02-01T00:00:00"))

    def test_error_bars_and_stems_are_one_line_with_their_label(self):
        plt.errorbar([1, 2], [3, 4], yerr=0.5, capsize=3, label="measured")
        plt.stem([5, 6], [7, 8], label="pulses")
        self.assertEqual(chart()["elements"], [
            {"label": "measured", "points": [[1, 3], [2, 4]]},
            {"label": "pulses", "points": [[5, 7], [6, 8]]},
        ])

    def test_hundred_thousand_points(self):
        values = numpy.random.default_rng(1).normal(size=(100_000, 2))
        for draw in (plt.scatter, plt.plot):
            plt.figure()
            draw(values[:, 0], values[:, 1])
            self.assertEqual(points(chart()), [values.tolist()])

    def test_too_many_points_leave_the_picture_alone(self):
        for draw in (
            lambda: plt.plot(numpy.zeros(600_000)), lambda: plt.plot(numpy.zeros((1000, 500))),
            lambda: plt.scatter(numpy.zeros(600_000), numpy.zeros(600_000)),
        ):  # fmt: skip
            plt.figure()
            draw()
            plt.gcf().add_subplot(1, 2, 2).plot([1])
            with mock.patch("glovebox_charts._axes") as described:
                self.assertIsNone(chart())
            described.assert_not_called()  # nothing is copied in vain


class Scales(Charts):
    def test_every_scale_has_its_name(self):
        two_ways = (lambda x: x, lambda x: x)
        for name, options in (
            ("linear", {}), ("log", {}), ("symlog", {}), ("logit", {}), ("asinh", {}),
            ("function", {"functions": two_ways}), ("functionlog", {"functions": two_ways}),
        ):  # fmt: skip
            with self.subTest(name):
                plt.figure()
                plt.plot([0.1, 0.2], [0.3, 0.4])
                plt.xscale(name, **options)
                plt.yscale(name, **options)
                described = chart()
                self.assertEqual((described["x_scale"], described["y_scale"]), (name, name))
                self.assertEqual(points(described), [[[0.1, 0.3], [0.2, 0.4]]])
                self.assertEqual(len(described["x_ticks"]), len(described["x_tick_labels"]))

    def test_log_axes_with_values_that_they_cannot_show(self):
        plt.loglog([-1, 0, 10, 1000], [1, 10, 100, 0])
        described = chart()
        self.assertEqual(points(described), [[[-1, 1], [0, 10], [10, 100], [1000, 0]]])
        self.assertIn(100, described["x_ticks"])

    def test_a_scale_of_the_users_own_is_a_function(self):
        class Own(matplotlib.scale.LinearScale):
            name = "own"

        matplotlib.scale.register_scale(Own)
        plt.plot([1, 2])
        plt.yscale("own")
        self.assertEqual(chart()["y_scale"], "function")

    def test_a_formatter_that_raises_costs_the_ticks_only(self):
        def broken(value, position):
            raise RuntimeError("no label")

        plt.plot([1, 2])
        plt.gca().xaxis.set_major_formatter(broken)
        described = chart()
        self.assertEqual((described["x_ticks"], described["x_tick_labels"]), ([], []))
        self.assertEqual(points(described), [[[0, 1], [1, 2]]])


class Bars(Charts):
    def bars(self):
        described = chart()
        self.assertEqual(described["type"], "bar")
        return [(one["label"], one["value"], one["group"]) for one in described["elements"]]

    def test_categories_with_negative_values(self):
        plt.bar(["a", "b", "c"], [1, -2, float("nan")], label="g")
        plt.ylabel("Change (%)")
        self.assertEqual(self.bars(), [("a", 1, "g"), ("b", -2, "g"), ("c", None, "g")])
        described = chart()
        self.assertEqual((described["y_label"], described["y_unit"]), ("Change (%)", "%"))
        self.assertNotIn("x_ticks", described)

    def test_horizontal(self):
        plt.barh(["a", "b"], [3, -4], label="g")
        plt.xlabel("Sold (t)")
        plt.ylabel("Shop")
        self.assertEqual(self.bars(), [("a", 3, "g"), ("b", -4, "g")])
        described = chart()  # x is where the labels stand, as for bars that stand upright
        self.assertEqual((described["x_label"], described["y_label"]), ("Shop", "Sold (t)"))
        self.assertEqual((described["x_unit"], described["y_unit"]), (None, "t"))

    def test_groups_beside_each_other_share_the_tick_between_them(self):
        x = numpy.arange(3)
        plt.bar(x - 0.2, [1, 2, 3], 0.4, label="men")
        plt.bar(x + 0.2, [4, 5, 6], 0.4, label="women")
        plt.xticks(x, ["a", "b", "c"])
        self.assertEqual(self.bars(), [
            ("a", 1, "men"), ("b", 2, "men"), ("c", 3, "men"),
            ("a", 4, "women"), ("b", 5, "women"), ("c", 6, "women"),
        ])  # fmt: skip

    def test_stacked(self):
        plt.bar(["a", "b"], [1, 2], label="low")
        plt.bar(["a", "b"], [3, 4], bottom=[1, 2], label="high")
        self.assertEqual(self.bars(), [("a", 1, "low"), ("b", 2, "low"), ("a", 3, "high"), ("b", 4, "high")])

    def test_bars_of_pandas(self):
        frame = pandas.DataFrame({"m": [1, 2], "w": [3, 4]}, index=["x", "y"])
        for draw in (frame.plot.bar, frame.plot.barh):
            draw()
            self.assertEqual(self.bars(), [("x", 1, "m"), ("y", 2, "m"), ("x", 3, "w"), ("y", 4, "w")])

    def test_numbers_without_ticks_of_their_own(self):
        plt.bar([1234567, 1234568.5], [1, 2], label="g")
        self.assertEqual(self.bars(), [("1234567", 1, "g"), ("1234568.5", 2, "g")])

    def test_dates(self):
        plt.bar([datetime.date(2024, 1, 2)], [5], label="g")
        self.assertEqual(self.bars(), [("2024-01-02T00:00:00+00:00", 5, "g")])

    def test_few_ticks_along_a_histogram_name_no_bar(self):
        plt.hist([0.5, 1.5, 1.6, 2.5, 3.5], bins=[0, 1, 2, 3, 4])
        plt.xticks([0, 4], ["none", "all"])
        self.assertEqual([bar[:2] for bar in self.bars()], [("0.5", 1), ("1.5", 2), ("2.5", 1), ("3.5", 1)])

    def test_error_bars_are_no_lines(self):
        plt.bar(["a"], [1], yerr=[0.5], capsize=2, label="g")
        self.assertEqual(self.bars(), [("a", 1, "g")])


class Pies(Charts):
    def test_pie(self):
        plt.pie([1, 2, 1], labels=["a", "b", "c"], radius=1.5)
        plt.title("Shares")
        self.assertEqual(chart(), {
            "type": "pie",
            "title": "Shares",
            "elements": [
                {"label": "a", "angle": 90, "radius": 1.5},
                {"label": "b", "angle": 180, "radius": 1.5},
                {"label": "c", "angle": 90, "radius": 1.5},
            ],
        })

    def test_clockwise_and_without_labels(self):
        plt.pie([3, 1], counterclock=False, wedgeprops={"width": 0.3})
        self.assertEqual([one["angle"] for one in chart()["elements"]], [270, 90])


class BoxPlots(Charts):
    data = ([1, 2, 3, 4, 5, 20], [-30, 2, 4, 6, 8, 10])

    def expected(self, names=("1", "2")):
        found = []
        for name, values in zip(names, self.data):
            first, median, third = numpy.percentile(values, [25, 50, 75]).tolist()
            inside = [v for v in values if first - 1.5 * (third - first) <= v <= third + 1.5 * (third - first)]
            found.append({
                "label": name, "min": min(inside), "first_quartile": first, "median": median,
                "third_quartile": third, "max": max(inside), "outliers": [v for v in values if v not in inside],
            })  # fmt: skip
        return found

    def check(self, names=("1", "2"), outliers=True, **options):
        plt.close("all")
        plt.boxplot(self.data, **options)
        described = chart()
        self.assertEqual(described["type"], "box_and_whisker")
        expected = self.expected(names)
        if not outliers:
            for one in expected:
                one["outliers"] = []
        self.assertEqual(described["elements"], expected)

    def test_plain(self):
        self.check()
        self.check(labels=["a", "b"], names=("a", "b"))

    def test_every_way_to_draw_it(self):
        for patch in (False, True):
            for notch in (False, True):
                with self.subTest(patch=patch, notch=notch):
                    self.check(patch_artist=patch, notch=notch)
                    self.check(patch_artist=patch, notch=notch, vert=False, labels=["a", "b"], names=("a", "b"))
                    self.check(patch_artist=patch, notch=notch, showmeans=True)
                    self.check(patch_artist=patch, notch=notch, showmeans=True, meanline=True)
                    self.check(patch_artist=patch, notch=notch, showcaps=False)
                    self.check(patch_artist=patch, notch=notch, showcaps=False, showmeans=True, meanline=True)
                    self.check(patch_artist=patch, notch=notch, showfliers=False, outliers=False)

    def test_labels_of_the_axes(self):
        for vertical in (True, False):
            plt.figure()
            plt.boxplot(self.data, vert=vertical)
            (plt.ylabel if vertical else plt.xlabel)("Score")
            described = chart()
            self.assertEqual((described["x_label"], described["y_label"]), (None, "Score"))

    def test_a_box_of_nothing_is_null_and_leaves_the_others(self):
        plt.boxplot([[], [1, 2, 3]])
        first, second = chart()["elements"]
        self.assertEqual(first, {
            "label": "1", "min": None, "first_quartile": None, "median": None, "third_quartile": None,
            "max": None, "outliers": [],
        })  # fmt: skip
        self.assertEqual((second["min"], second["median"], second["max"]), (1, 2, 3))

    def test_all_values_alike(self):
        for vertical in (True, False):
            plt.figure()
            plt.boxplot([[5, 5, 5]], vert=vertical)
            (box,) = chart()["elements"]
            self.assertEqual([box[n] for n in ("min", "first_quartile", "median", "third_quartile", "max")], [5] * 5)

    def test_lines_over_it_are_not_its_own(self):
        plt.boxplot(self.data)
        plt.plot([1, 2], [3, 4])
        plt.axhline(3)
        self.assertEqual(chart()["elements"], self.expected())

    def test_boxes_of_two_calls_may_share_a_tick(self):
        plt.boxplot([[1, 2, 3]], positions=[0.8], widths=0.3, manage_ticks=False)
        plt.boxplot([[4, 5, 6]], positions=[1.2], widths=0.3, manage_ticks=False)
        plt.xticks([1, 2], ["a", "b"])
        self.assertEqual([(one["label"], one["median"]) for one in chart()["elements"]], [("a", 2), ("a", 5)])

    def test_of_pandas(self):
        pandas.DataFrame({"a": [1, 2, 3], "b": [4, 5, 60]}).boxplot()
        self.assertEqual([(one["label"], one["median"]) for one in chart()["elements"]], [("a", 2), ("b", 5)])

    def test_a_closed_line_is_a_line(self):
        plt.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0])
        for x in range(6):
            plt.plot([x, x], [0, 1])
        self.assertEqual(chart()["type"], "line")


class Figures(Charts):
    def test_empty_figure(self):
        self.assertEqual(chart(plt.figure()), {"type": "unknown", "title": None, "elements": []})

    def test_empty_axes(self):
        plt.subplots()
        plt.title("Nothing")
        self.assertEqual(chart(), {"type": "unknown", "title": "Nothing", "elements": []})

    def test_what_is_not_known_keeps_its_title(self):
        plt.imshow([[1, 2], [3, 4]])
        plt.colorbar()
        plt.title("Map")
        self.assertEqual(chart(), {"type": "unknown", "title": "Map", "elements": []})

    def test_contours_are_no_scatter(self):
        for draw in (plt.contour, plt.contourf):
            plt.figure()
            draw([[1, 2], [3, 5]])
            self.assertEqual(chart()["type"], "unknown")

    def test_title_of_the_figure_stands_in(self):
        plt.plot([1])
        plt.suptitle("Above")
        self.assertEqual(chart()["title"], "Above")
        plt.title("Left", loc="left")
        self.assertEqual(chart()["title"], "Left")

    def test_several_axes_are_a_superchart(self):
        figure, (left, right) = plt.subplots(1, 2)
        left.plot([1, 2])
        right.bar(["a"], [1])
        right.set_title("Bars")
        figure.suptitle("Both")
        described = chart()
        self.assertEqual((described["type"], described["title"]), ("superchart", "Both"))
        self.assertEqual([one["type"] for one in described["elements"]], ["line", "bar"])
        self.assertEqual([one["title"] for one in described["elements"]], [None, "Bars"])

    def test_twin_axes(self):
        _, axes = plt.subplots()
        axes.plot([1, 2], label="left")
        other = axes.twinx()
        other.plot([10, 20], label="right")
        other.set_ylabel("Cost (€)")
        described = chart()
        self.assertEqual(described["type"], "superchart")
        self.assertEqual([one["elements"][0]["label"] for one in described["elements"]], ["left", "right"])
        self.assertEqual(described["elements"][1]["y_unit"], "€")

    def test_a_colour_bar_is_no_chart(self):
        figure, (left, right) = plt.subplots(1, 2)
        figure.colorbar(left.scatter([1, 2], [3, 4], c=[5, 6]), ax=left)
        right.plot([1])
        self.assertEqual([one["type"] for one in chart()["elements"]], ["scatter", "line"])
        plt.figure()
        plt.scatter([1, 2], [3, 4], c=[5, 6])
        plt.colorbar()
        self.assertEqual(chart()["type"], "scatter")

    def test_three_dimensions_are_unknown(self):
        plt.figure().add_subplot(projection="3d").plot([1, 2], [3, 4], [5, 6])
        plt.gcf().canvas.draw()
        self.assertEqual(chart()["type"], "unknown")

    def test_control_characters(self):
        text = "a\x00b\x1b[31m\n\u2028\x7f"
        plt.plot([1], label=text)
        plt.title(text)
        plt.xlabel(text + " (\x01)")
        described = chart()
        self.assertEqual((described["title"], described["x_unit"]), (text, "\x01"))
        self.assertEqual(described["elements"][0]["label"], text)

    def test_describing_changes_nothing(self):
        plt.plot([1, 2], [3, 4])
        before = plt.gca().viewLim.frozen().bounds, len(plt.gca().get_children())
        self.assertEqual(chart(), chart())
        self.assertEqual((plt.gca().viewLim.frozen().bounds, len(plt.gca().get_children())), before)

    def test_one_plot_that_cannot_be_read_leaves_the_others(self):
        _, (left, right) = plt.subplots(1, 2)
        left.plot([1, 2])
        left.get_lines()[0].get_xdata = None
        right.plot([3, 4])
        self.assertEqual([one["type"] for one in chart()["elements"]], ["unknown", "line"])


if __name__ == "__main__":
    unittest.main()
