# SPDX-License-Identifier: Apache-2.0
"""How plotly's figures are displayed when nobody has chosen: data and HTML, without a library of megabytes before it."""

import unittest

from support import run_python

START = (
    "import glovebox_formatters\n"
    "from IPython.core.interactiveshell import InteractiveShell\n"
    "glovebox_formatters.install(InteractiveShell.instance())\n"
)


class Renderers(unittest.TestCase):
    def test_figures_stand_alone(self):
        output = run_python(START + "import plotly.graph_objects, plotly.io as pio\nprint(pio.renderers.default)")
        self.assertEqual(output, "plotly_mimetype+colab\n")

    def test_what_somebody_chose_stays(self):
        output = run_python(START + "import plotly.io as pio\nprint(pio.renderers.default)", PLOTLY_RENDERER="json")
        self.assertEqual(output, "json\n")
        output = run_python(
            START + "import plotly.io as pio\npio.renderers.default = 'svg'\n"
            "import plotly.graph_objects, plotly.express\nprint(pio.renderers.default)"
        )
        self.assertEqual(output, "svg\n")

    def test_a_module_that_is_not_as_expected_stays_as_it_is(self):
        output = run_python(
            "import glovebox_plotly, types\nmodule = types.ModuleType('plotly.io._renderers')\n"
            "glovebox_plotly.change(module)\nprint([name for name in vars(module) if name[0] != '_'])"
        )
        self.assertEqual(output, "[]\n")


if __name__ == "__main__":
    unittest.main()
