# SPDX-License-Identifier: Apache-2.0
"""The start-up files in a real kernel, started as glovebox-interpreter starts it."""

import os
import sys
import unittest

from jupyter_client.manager import KernelManager
from support import KERNEL

TIMEOUT_S = 1800


class Kernel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.manager = KernelManager()
        cls.manager.kernel_spec.argv = [
            sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
            f"--config={KERNEL / 'ipython_kernel_config.py'}",
        ]  # fmt: skip
        cls.addClassCleanup(cls.manager.shutdown_kernel, now=True)
        cls.manager.start_kernel(env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        cls.client = cls.manager.blocking_client()
        cls.client.start_channels()
        cls.addClassCleanup(cls.client.stop_channels)
        cls.client.wait_for_ready(timeout=TIMEOUT_S)

    def execute(self, code):
        """The MIME bundles of all results, and the text of both streams."""
        bundles, text = [], []

        def receive(message):
            if message["msg_type"] in ("execute_result", "display_data"):
                bundles.append(message["content"]["data"])
            elif message["msg_type"] == "stream":
                text.append(message["content"]["text"])

        reply = self.client.execute_interactive(code, output_hook=receive, timeout=TIMEOUT_S, allow_stdin=False)
        self.assertEqual(reply["content"]["status"], "ok", reply["content"])
        return bundles, "".join(text)

    def test_0_the_start_leaves_nothing_behind(self):  # first, while nothing has been imported here
        _, text = self.execute(
            "import sys; print([m for m in ('numpy', 'pandas', 'matplotlib', 'PIL', 'plotly') if m in sys.modules],"
            " [n for n in dir() if 'glovebox' in n], [p for p in sys.path if 'interpreter' in p])"
        )
        self.assertEqual(text, "[] [] []\n")

    def test_what_children_write_is_shown_whatever_it_is(self):
        _, text = self.execute("import os; os.write(1, b'a\\xff\\xe2\\x82b\\n');")
        self.assertEqual(text, "a\ufffd\ufffdb\n")
        for size in (1, 7, 400, 100_000):  # characters lie across every border
            code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(\"€\" * {size})']);"
            with self.subTest(size):
                self.assertEqual(self.execute(code)[1], "€" * size + "\n")
        _, text = self.execute("os.write(2, '€'.encode()[:2]);")
        self.assertEqual(text, "\ufffd")

    def test_output_of_children_is_complete_when_the_cell_is(self):
        for number in range(50):
            self.assertEqual(self.execute(f"import os; os.write(1, b'{number}\\n');")[1], f"{number}\n")

    def test_figure(self):
        bundles, text = self.execute("import matplotlib.pyplot as plt\nplt.bar(['a'], [-1], label='g')\nplt.show()")
        self.assertEqual(text, "")
        (bundle,) = bundles
        self.assertTrue(bundle["image/png"].startswith("iVBOR"))
        self.assertEqual(bundle["e2b/chart"]["elements"], [{"label": "a", "value": -1, "group": "g"}])

    def test_a_chart_that_cannot_be_read_is_still_a_picture(self):
        bundles, _ = self.execute(
            "import matplotlib.pyplot as plt, numpy\nplt.plot(numpy.zeros(600_000))\nplt.show()"
        )
        self.assertEqual([sorted(bundle) for bundle in bundles], [["image/png", "text/plain"]])

    def test_frame(self):
        (bundle,), _ = self.execute("import pandas\npandas.DataFrame({'a': [1, float('nan')], 2: ['x', None]})")
        self.assertEqual(bundle["e2b/data"], {"a": [1, None], "2": ["x", None]})
        self.assertIn("<table", bundle["text/html"])

    def test_json(self):
        (bundle,), _ = self.execute("import numpy\n{'a': numpy.float64('nan'), 1: numpy.arange(2)}")
        self.assertEqual(bundle["application/json"], {"a": None, "1": [0, 1]})

    def test_what_ipython_displays(self):
        for code, kind, value in (
            ("HTML('<b>x</b>')", "text/html", "<b>x</b>"),
            ("Markdown('# x')", "text/markdown", "# x"),
            ("Latex('$x$')", "text/latex", "$x$"),
            ("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", "image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
            ("Javascript('f()')", "application/javascript", "f()"),
            ("JSON({'a': [1]})", "application/json", {"a": [1]}),
        ):  # fmt: skip
            with self.subTest(code):
                (bundle,), text = self.execute(f"import IPython.display\nIPython.display.{code}")
                self.assertEqual((bundle[kind], text), (value, ""))
                self.assertEqual(sorted(bundle), sorted([kind, "text/plain"]))

    def test_formula(self):
        (bundle,), _ = self.execute("import sympy\nsympy.Symbol('x') ** 2 / 3")
        self.assertEqual(bundle, {"text/plain": "x**2/3", "text/latex": r"$\displaystyle \frac{x^{2}}{3}$"})

    def test_styled_frame(self):
        (bundle,), _ = self.execute("import pandas\npandas.DataFrame({'a': [1.234]}).style.format('{:.1f}')")
        self.assertIn(">1.2</td>", bundle["text/html"])

    def test_series(self):
        (bundle,), _ = self.execute("import pandas\npandas.Series([1, 2], name='s')")
        self.assertEqual(bundle, {"text/plain": "0    1\n1    2\nName: s, dtype: int64"})

    def test_interactive_figure(self):
        code = "import plotly.graph_objects as go\nfigure = go.Figure(go.Bar(x=['a', 'b'], y=[1, 2]))\n"
        for show in ("figure", "figure.show()"):
            with self.subTest(show):
                (bundle,), text = self.execute(code + show)
                self.assertEqual(text, "")
                self.assertEqual(bundle["application/vnd.plotly.v1+json"]["data"][0]["y"], [1, 2])
                self.assertIn("<html>", bundle["text/html"])
                self.assertIn("Plotly.newPlot", bundle["text/html"])
                self.assertLess(len(bundle["text/html"]), 50_000)  # plotly.js alone has megabytes

    def test_picture(self):
        bundles, text = self.execute(
            "import os, PIL.Image, tempfile\n"
            "with tempfile.TemporaryDirectory() as folder:\n"
            "    PIL.Image.new('CMYK', (2, 2)).save(os.path.join(folder, 'a.jpg'))\n"
            "PIL.Image.new('L', (2, 2)).show()"
        )
        self.assertEqual(text, "")
        self.assertEqual([bundle["image/png"][:5] for bundle in bundles], ["iVBOR", "iVBOR"])


if __name__ == "__main__":
    unittest.main()
