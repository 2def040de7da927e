# SPDX-License-Identifier: Apache-2.0
"""Pictures of Pillow (contract 4.4): saving and showing displays them."""

import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
import PIL.Image  # noqa: E402
from support import run_python, shell  # noqa: E402

PNG = b"\x89PNG"


class Images(unittest.TestCase):
    def setUp(self):
        shell()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def displayed_by(self, action):
        with mock.patch("IPython.display.display") as display:
            action()
        return [call.args[0] for call in display.call_args_list]

    def test_save_to_a_path_displays(self):
        image = PIL.Image.new("RGB", (2, 2), "red")
        path = self.folder / "a.png"
        for target in (path, str(path), bytes(path)):
            path.unlink(missing_ok=True)
            self.assertEqual(self.displayed_by(lambda: image.save(target, "PNG")), [image])
            self.assertTrue(path.read_bytes().startswith(PNG))
        self.assertEqual(self.displayed_by(lambda: image.save(fp=str(path), format="JPEG", quality=50)), [image])
        self.assertTrue(path.read_bytes().startswith(b"\xff\xd8"))

    def test_save_to_a_file_does_not(self):
        image = PIL.Image.new("L", (2, 2))
        self.assertEqual(self.displayed_by(lambda: image.save(io.BytesIO(), "PNG")), [])
        with open(self.folder / "b.png", "wb") as file:
            self.assertEqual(self.displayed_by(lambda: image.save(file)), [])

    def test_a_save_that_fails_raises_and_displays_nothing(self):
        def save():
            with self.assertRaises(ValueError):
                PIL.Image.new("L", (2, 2)).save(self.folder / "no-such-format.abc")

        self.assertEqual(self.displayed_by(save), [])

    def test_show_displays_and_opens_no_viewer(self):
        image = PIL.Image.new("L", (2, 2))
        with mock.patch("PIL.ImageShow.show") as viewer, mock.patch("subprocess.Popen") as program:
            self.assertEqual(self.displayed_by(lambda: image.show(title="t")), [image])
        viewer.assert_not_called()
        program.assert_not_called()

    def test_a_saved_figure_is_not_displayed_as_a_picture_too(self):
        plt.plot([1, 2])
        self.addCleanup(plt.close, "all")
        self.assertEqual(self.displayed_by(lambda: plt.savefig(self.folder / "figure.png")), [])
        self.assertEqual(self.displayed_by(lambda: plt.savefig(str(self.folder / "figure.jpg"))), [])

    def test_a_display_that_fails_is_no_failure_of_save(self):
        path = self.folder / "c.png"
        with mock.patch("IPython.display.display", side_effect=RuntimeError("no")), mock.patch("sys.stderr") as err:
            PIL.Image.new("L", (2, 2)).save(path)
        self.assertTrue(path.exists())
        self.assertTrue(err.write.called)

    def test_every_mode_is_a_png(self):
        for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16"):
            with self.subTest(mode):
                image = PIL.Image.new(mode, (2, 2))
                self.assertTrue(png_of(image).startswith(PNG))
                self.assertEqual(image.mode, mode)


def png_of(image):
    data, _ = shell().display_formatter.format(image)
    return data["image/png"]


class Imports(unittest.TestCase):
    def test_pillow_is_changed_when_it_is_imported_later(self):
        output = run_python(
            "import glovebox_images, glovebox_imports\n"
            "glovebox_imports.when_imported('PIL.Image', glovebox_images.change)\n"
            "finders = len(sys.meta_path)\n"
            "import PIL\n"
            "import PIL.Image\n"
            "print(hasattr(PIL.Image.Image.save, '__wrapped__'), len(sys.meta_path) - finders)\n"
            "from PIL import Image, ImageFilter\n"
            "print(hasattr(Image.Image.save.__wrapped__, '__wrapped__'), Image.__spec__.name)\n"
        )
        self.assertEqual(output, "True -1\nFalse PIL.Image\n")

    def test_a_failed_import_is_tried_again(self):
        with tempfile.TemporaryDirectory() as folder:
            run_python(
                "import glovebox_images, glovebox_imports, os\n"
                "glovebox_imports.when_imported('PIL.Image', glovebox_images.change)\n"
                f"os.makedirs({folder!r} + '/PIL'); open({folder!r} + '/PIL/__init__.py', 'w').close()\n"
                f"open({folder!r} + '/PIL/Image.py', 'w').write('1/0')\n"
                f"sys.path.insert(0, {folder!r})\n"
                "try: import PIL.Image\n"
                "except ZeroDivisionError: pass\n"
                "sys.path.pop(0); del sys.modules['PIL']; import importlib; importlib.invalidate_caches()\n"
                "import PIL.Image\n"
                "assert hasattr(PIL.Image.Image.save, '__wrapped__')\n"
            )

    def test_nothing_is_imported_for_the_user(self):
        output = run_python(
            "import IPython, IPython.core.interactiveshell as shells\n"
            "import glovebox_formatters\n"
            "shell = shells.InteractiveShell.instance(); glovebox_formatters.install(shell)\n"
            "for thing in (1, [1], {'a': object()}, object()): shell.display_formatter.format(thing)\n"
            "print([m for m in ('numpy', 'pandas', 'matplotlib', 'PIL', 'plotly') if m in sys.modules])\n"
        )
        self.assertEqual(output, "[]\n")


if __name__ == "__main__":
    unittest.main()
