# SPDX-License-Identifier: Apache-2.0
"""Pillow's pictures: save("file") and show() display them, and no viewer is opened (contract 4.4)."""

import functools
import os
import sys


def change(module):
    """PIL.Image, just loaded; one that is not as expected stays as it is."""
    image_class = getattr(module, "Image", None)
    if not all(hasattr(image_class, name) for name in ("save", "show", "convert")):
        return
    _change_save(image_class)
    _change_show(image_class)
    if hasattr(image_class, "_repr_png_"):
        _change_png(image_class)


def _change_save(image_class):
    save = image_class.save

    @functools.wraps(save)
    def save_and_display(self, fp, *args, **options):
        result = save(self, fp, *args, **options)
        if isinstance(fp, (str, bytes, os.PathLike)) and not _on_behalf_of_a_figure(sys._getframe(1)):
            _display(self)
        return result

    image_class.save = save_and_display


def _on_behalf_of_a_figure(caller):
    """matplotlib's savefig writes through Pillow; the figure itself is displayed, with its chart."""
    return str(caller.f_globals.get("__name__")).partition(".")[0] == "matplotlib"


def _change_show(image_class):
    @functools.wraps(image_class.show)
    def show(self, *args, **options):
        _display(self)

    image_class.show = show


def _change_png(image_class):
    as_png = image_class._repr_png_

    @functools.wraps(as_png)
    def png_of_any_mode(self, **options):
        if self.mode in ("CMYK", "YCbCr", "LAB", "HSV", "F"):  # PNG has no such pictures
            return as_png(self.convert("L" if self.mode == "F" else "RGB"), **options)
        return as_png(self, **options)

    image_class._repr_png_ = png_of_any_mode


def _display(image):
    from IPython.display import display

    try:
        display(image)
    except Exception as error:  # the file is written; that it cannot be shown is no failure of the user's code
        print(f"picture not displayed: {error}", file=sys.stderr)
