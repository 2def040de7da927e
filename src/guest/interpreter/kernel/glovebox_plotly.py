# SPDX-License-Identifier: Apache-2.0
"""Figures of plotly: as data (application/vnd.plotly.v1+json) and as one HTML document."""


def change(renderers_module):
    """plotly.io._renderers, just loaded. What PLOTLY_RENDERER or plotly itself chose for a reason stays."""
    renderers = getattr(renderers_module, "renderers", None)
    # plotly's own last resort is made for notebooks: before the first figure it displays the whole of plotly.js,
    # several megabytes, and the figures' HTML works only beside that. "colab" is its name for HTML that stands alone:
    # whoever looks at it loads plotly.js, nobody here does.
    if getattr(renderers, "default", None) == "plotly_mimetype+notebook":
        renderers.default = "plotly_mimetype+colab"
