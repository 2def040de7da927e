# SPDX-License-Identifier: Apache-2.0
"""Changes a module of the user's when he imports it: who does not use it does not pay for it."""

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec


def when_imported(name, change):
    """Calls change(module) now if the module is loaded, else once it is."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _WhenImported(name, change))


class _WhenImported(MetaPathFinder):
    def __init__(self, name, change):
        self._name = name
        self._change = change
        self._looking = False

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self._looking:
            return None
        self._looking = True
        try:
            spec = find_spec(name)
        finally:
            self._looking = False
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_change(module):
            run(module)
            if self in sys.meta_path:  # once; an import that fails is tried again
                sys.meta_path.remove(self)
            self._change(module)

        spec.loader.exec_module = run_and_change
        return spec
