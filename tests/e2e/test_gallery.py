# SPDX-License-Identifier: Apache-2.0
"""One of each kind of result (contract 4.3 to 4.5), drawn by the interpreter from real tables in a machine without network. What
the client gets is compared with what plain Python finds in the same files; build/gallery/index.html shows it to a person."""
import collections
import csv
import datetime
import fractions
import json
import statistics

import pytest
from conftest import ROOT
from gallery import Gallery, png_size

DATA = ROOT / "build/npm/node_modules/vega-datasets/data"  # put there by scripts/clients
FILES = ("cars.json", "stocks.csv", "seattle-weather.csv")
START = """
import io, json
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML, Image, JSON, Markdown, SVG
cars = pd.read_json('/home/user/cars.json')
stocks = pd.read_csv('/home/user/stocks.csv', parse_dates=['date'])
weather = pd.read_csv('/home/user/seattle-weather.csv', parse_dates=['date'])
"""


@pytest.fixture(scope="module")
def sandbox(server):
    from e2b_code_interpreter import Sandbox

    with Sandbox.create(timeout=1200, allow_internet_access=False) as running:
        for name in FILES:
            running.files.write(f"/home/user/{name}", (DATA / name).read_bytes())
        assert running.run_code(START).error is None
        yield running


@pytest.fixture(scope="module")
def gallery():
    kept = Gallery(ROOT / "build/gallery")
    yield kept
    kept.close()


@pytest.fixture
def draw(sandbox, gallery, request):
    """The one result of a cell."""

    def run(code: str, **options):
        execution = sandbox.run_code(code, timeout=120)
        assert execution.error is None, execution.error.traceback
        assert execution.logs.stderr == []
        (result,) = execution.results
        gallery.keep(request.node.name.removeprefix("test_"), code, result)
        return result

    return run


def cars() -> list[dict]:
    return json.loads((DATA / "cars.json").read_text())


def weather() -> list[dict]:
    with open(DATA / "seattle-weather.csv", newline="") as file:
        return list(csv.DictReader(file))


def stocks() -> dict[str, list[tuple[datetime.date, float]]]:
    found = collections.defaultdict(list)
    with open(DATA / "stocks.csv", newline="") as file:
        for row in csv.DictReader(file):
            found[row["symbol"]].append((datetime.datetime.strptime(row["date"], "%b %d %Y").date(), float(row["price"])))
    return found


def dated(points) -> list[tuple[datetime.date, float]]:
    return [(datetime.datetime.fromisoformat(x).date(), y) for x, y in points]


def test_line_over_dates(draw):
    result = draw("""
one = stocks[stocks.symbol == 'MSFT']
plt.figure(figsize=(8, 4))
plt.plot(one.date, one.price, label='MSFT')
plt.title('Microsoft'); plt.xlabel('Month'); plt.ylabel('Price ($)'); plt.legend(); plt.show()
""")
    width, height = png_size(result.png)
    assert width > height > 300
    assert result.text and result.extra == {} and not result.is_main_result
    chart = result.chart
    assert (chart.type, chart.title, chart.x_label, chart.y_label, chart.y_unit) == ("line", "Microsoft", "Month", "Price ($)", "$")
    assert (chart.x_scale, chart.y_scale) == ("datetime", "linear")
    assert [line.label for line in chart.elements] == ["MSFT"]
    assert dated(chart.elements[0].points) == stocks()["MSFT"]


def test_lines_with_a_log_scale(draw):
    result = draw("""
for symbol, rows in stocks.groupby('symbol'):
    plt.plot(rows.date, rows.price, label=symbol)
plt.yscale('log'); plt.ylabel('Price ($)'); plt.title('Five shares'); plt.legend(); plt.grid(); plt.show()
""")
    png_size(result.png)
    assert (result.chart.type, result.chart.y_scale) == ("line", "log")
    assert {line.label: dated(line.points) for line in result.chart.elements} == stocks()


def test_scatter(draw):
    result = draw("""
for origin, rows in cars.groupby('Origin'):
    plt.scatter(rows.Horsepower, rows.Miles_per_Gallon, label=origin, alpha=0.6)
plt.xlabel('Power (hp)'); plt.ylabel('Range [mpg]'); plt.title('Cars'); plt.legend(); plt.show()
""")
    png_size(result.png)
    chart = result.chart
    assert (chart.type, chart.x_unit, chart.y_unit) == ("scatter", "hp", "mpg")
    expected = collections.defaultdict(list)
    for car in cars():
        expected[car["Origin"]].append((car["Horsepower"], car["Miles_per_Gallon"]))
    got = {cloud.label: [tuple(point) for point in cloud.points] for cloud in chart.elements}
    complete = {origin: [p for p in points if None not in p] for origin, points in expected.items()}
    assert {origin: [p for p in points if None not in p] for origin, points in got.items()} == complete


def test_bars(draw):
    result = draw("""
counts = cars.Origin.value_counts()
plt.bar(counts.index, counts.values, label='models'); plt.ylabel('Models'); plt.title('Where cars come from'); plt.show()
""")
    png_size(result.png)
    assert result.chart.type == "bar"
    expected = collections.Counter(car["Origin"] for car in cars())
    assert {bar.label: bar.value for bar in result.chart.elements} == expected
    assert {bar.group for bar in result.chart.elements} == {"models"}


def test_grouped_bars(draw):
    result = draw("""
table = cars.pivot_table(index='Origin', columns='Cylinders', values='Weight_in_lbs', aggfunc='mean')
table.plot.bar(rot=0, ylabel='Mean weight (lb)', title='Weight by origin and cylinders'); plt.legend(ncol=5, loc='lower center', title='Cylinders'); plt.show()
""")
    png_size(result.png)
    weights = collections.defaultdict(list)
    for car in cars():
        weights[str(car["Cylinders"]), car["Origin"]].append(car["Weight_in_lbs"])
    got = {(bar.group, bar.label): bar.value for bar in result.chart.elements if bar.value}
    assert got == {key: pytest.approx(statistics.mean(values)) for key, values in weights.items()}


def test_pie(draw):
    result = draw("""
days = weather.weather.value_counts()
plt.pie(days, labels=days.index, autopct='%1.0f%%'); plt.title('Weather of Seattle'); plt.show()
""")
    png_size(result.png)
    days = collections.Counter(row["weather"] for row in weather())
    assert (result.chart.type, result.chart.title) == ("pie", "Weather of Seattle")
    angles = {wedge.label: wedge.angle for wedge in result.chart.elements}
    assert angles == {kind: pytest.approx(360 * n / days.total(), abs=0.001) for kind, n in days.items()}


def test_box_plot(draw):
    result = draw("""
groups = {origin: rows.Displacement for origin, rows in cars.groupby('Origin')}
plt.boxplot(groups.values(), labels=groups.keys()); plt.ylabel('Displacement (in³)'); plt.title('Engines'); plt.show()
""")
    png_size(result.png)
    assert (result.chart.type, result.chart.y_unit) == ("box_and_whisker", "in³")
    assert [box.label for box in result.chart.elements] == ["Europe", "Japan", "USA"]
    for box in result.chart.elements:
        values = sorted(car["Displacement"] for car in cars() if car["Origin"] == box.label)
        first, median, third = statistics.quantiles(values, n=4, method="inclusive")
        reach = 1.5 * (third - first)
        inside = [value for value in values if first - reach <= value <= third + reach]
        assert (box.first_quartile, box.median, box.third_quartile) == pytest.approx((first, median, third))
        assert (box.min, box.max) == (inside[0], inside[-1])
        assert sorted(box.outliers) == [value for value in values if value not in inside]
    assert any(box.outliers for box in result.chart.elements)


def test_superchart(draw):
    result = draw("""
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), layout='constrained')
figure.suptitle('Seattle')
left.plot(weather.date, weather.temp_max); left.set_title('Maximum'); left.tick_params('x', rotation=45)
middle.scatter(weather.temp_max, weather.wind); middle.set_title('Wind')
rain = weather.groupby(weather.date.dt.year).precipitation.sum()
right.barh(rain.index.astype(str), rain.values); right.set_xlabel('Rain (mm)'); right.set_ylabel('Year')
plt.show()
""")
    width, height = png_size(result.png)
    assert width > 2 * height
    assert (result.chart.type, result.chart.title) == ("superchart", "Seattle")
    line, cloud, bars = result.chart.elements
    assert [one.type for one in (line, cloud, bars)] == ["line", "scatter", "bar"]
    assert [y for _, y in line.elements[0].points] == [float(row["temp_max"]) for row in weather()]
    assert [y for _, y in cloud.elements[0].points] == [float(row["wind"]) for row in weather()]
    rain = collections.defaultdict(float)
    for row in weather():
        rain[row["date"][:4]] += float(row["precipitation"])
    assert {bar.label: bar.value for bar in bars.elements} == pytest.approx(rain)
    assert (bars.x_label, bars.y_unit) == ("Year", "mm")


def test_heat_map_is_of_no_known_kind(draw):
    result = draw("""
table = weather.pivot_table(index=weather.date.dt.year, columns=weather.date.dt.month, values='temp_max')
plt.imshow(table, aspect='auto'); plt.yticks(range(len(table)), table.index); plt.xticks(range(12), table.columns)
plt.colorbar(label='°C'); plt.title('Mean maximum'); plt.show()
""")
    png_size(result.png)
    assert (result.chart.type, result.chart.title, result.chart.elements) == ("unknown", "Mean maximum", [])


def test_histogram(draw):
    result = draw("plt.hist(weather.temp_max, bins=range(-5, 45, 5), label='days'); plt.xlabel('Maximum (°C)'); plt.show()")
    png_size(result.png)
    assert result.chart.type == "bar"
    expected = collections.Counter(float(row["temp_max"]) // 5 * 5 + 2.5 for row in weather())
    assert {float(bar.label): bar.value for bar in result.chart.elements if bar.value} == expected


def test_labels_in_japanese(draw):
    result = draw("""
days = weather.weather.value_counts()
plt.bar(['雨', '晴れ', '霧', '霧雨', '雪'], days.loc[['rain', 'sun', 'fog', 'drizzle', 'snow']]); plt.title('シアトルの天気'); plt.show()
""")
    png_size(result.png)  # and nothing on stderr: matplotlib complains about characters that no font has
    assert (result.chart.title, result.chart.elements[4].label) == ("シアトルの天気", "雪")


def test_data_frame(draw):
    result = draw("cars")
    assert "<table" in result.html and result.text and result.is_main_result
    rows = cars()
    assert list(result.data) == list(rows[0])
    for column in ("Name", "Miles_per_Gallon", "Horsepower", "Weight_in_lbs", "Origin"):
        assert result.data[column] == [row[column] for row in rows]


def test_data_frame_with_dates(draw):
    result = draw("weather[['date', 'temp_max']]")
    assert result.data["date"] == [row["date"] + "T00:00:00" for row in weather()]


def test_styled_data_frame(draw):
    result = draw("cars.head(3)[['Name', 'Horsepower']].style.highlight_max(subset='Horsepower', color='gold')")
    assert "background-color: gold" in result.html and "buick skylark 320" in result.html


def test_big_data_frame_is_text_and_html(draw):
    result = draw("pd.DataFrame({'a': np.arange(10_000_000)})")
    assert "10000000 rows" in result.html and result.data is None


def test_picture(draw):
    result = draw("""
from PIL import Image as Picture
table = weather.pivot_table(index=weather.date.dt.year, columns=weather.date.dt.dayofyear, values='temp_max').fillna(0)
Picture.fromarray((table / table.max().max() * 255).clip(0).astype('uint8').to_numpy()).resize((730, 200))
""")
    assert png_size(result.png) == (730, 200)


def test_saved_picture(draw):
    result = draw("Picture.linear_gradient('L').save('/tmp/gradient.jpg')")
    assert png_size(result.png) == (256, 256)


def test_jpeg(draw):
    result = draw("""
buffer = io.BytesIO()
Picture.linear_gradient('L').save(buffer, 'JPEG')
Image(buffer.getvalue(), format='jpeg')
""")
    assert result.jpeg.startswith("/9j/") and result.is_main_result


def test_svg(draw):
    result = draw("""
one = stocks[stocks.symbol == 'AAPL'].price
points = ' '.join(f'{3 * x},{250 - y}' for x, y in enumerate(one))
SVG(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 370 260"><polyline points="{points}" fill="none" stroke="navy"/></svg>')
""")
    prices = [price for _, price in stocks()["AAPL"]]
    points = result.svg.split('points="')[1].split('"')[0].split()
    assert [250 - float(point.split(",")[1]) for point in points] == pytest.approx(prices)


def test_html(draw):
    result = draw("HTML('<ul>' + ''.join(f'<li>{name}</li>' for name in cars.Name.head(3)) + '</ul>')")
    assert result.html == "<ul>" + "".join(f"<li>{car['Name']}</li>" for car in cars()[:3]) + "</ul>"


def test_markdown(draw):
    result = draw("Markdown(f'# Cars\\n**{len(cars)}** models')")
    assert result.markdown == f"# Cars\n**{len(cars())}** models"


def test_formula(draw):
    result = draw("""
import sympy
x = sympy.Symbol('x')
sympy.Integral(sympy.Rational(int((cars.Cylinders == 8).sum()), len(cars)) * sympy.sqrt(x), x)
""")
    share = fractions.Fraction(sum(car["Cylinders"] == 8 for car in cars()), len(cars()))
    assert result.text == f"Integral({share.numerator}*sqrt(x)/{share.denominator}, x)"
    assert result.latex == rf"$\displaystyle \int \frac{{{share.numerator} \sqrt{{x}}}}{{{share.denominator}}}\, dx$"


def test_json(draw):
    result = draw("dict(cars.Cylinders.value_counts()) | {'mean': np.float64(cars.Weight_in_lbs.mean()), 'years': [np.nan, 1970]}")
    expected = {str(n): count for n, count in collections.Counter(car["Cylinders"] for car in cars()).items()}
    got = dict(result.json)
    assert got.pop("mean") == pytest.approx(statistics.mean(car["Weight_in_lbs"] for car in cars()))
    assert got.pop("years") == [None, 1970]
    assert got == expected


def test_plotly(draw):
    result = draw("""
import plotly.graph_objects as go
one = stocks[stocks.symbol == 'IBM']
go.Figure(go.Scatter(x=one.date, y=one.price, name='IBM'), layout={'title': 'IBM'})
""")
    figure = result.extra["application/vnd.plotly.v1+json"]
    assert list(result.extra) == ["application/vnd.plotly.v1+json"]
    assert figure["data"][0]["y"] == [price for _, price in stocks()["IBM"]]
    assert "Plotly.newPlot" in result.html
