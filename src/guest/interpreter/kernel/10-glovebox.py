# SPDX-License-Identifier: Apache-2.0
# Runs once in every new kernel: loads the modules beside this file under their names, leaves nothing in the user's
# namespace and nothing on sys.path.


def _glovebox_start(folder):
    import importlib.util
    import os
    import sys

    from IPython import get_ipython

    # In this order: a module imports only those before it.
    for name in (
        "glovebox_kernel",
        "glovebox_imports",
        "glovebox_plain",
        "glovebox_axes",
        "glovebox_boxes",
        "glovebox_charts",
        "glovebox_frames",
        "glovebox_images",
        "glovebox_plotly",
        "glovebox_formatters",
    ):
        spec = importlib.util.spec_from_file_location(name, os.path.join(folder, name + ".py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    sys.modules["glovebox_streams"].bound_output(get_ipython())
    sys.modules["glovebox_kernel"].publish_any_text(get_ipython())
    sys.modules["glovebox_formatters"].install(get_ipython())
    sys.modules["glovebox_streams"].install(get_ipython())


try:
    _glovebox_start(__import__("os").path.dirname(__file__))
finally:
    del _glovebox_start
