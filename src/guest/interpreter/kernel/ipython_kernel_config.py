# SPDX-License-Identifier: Apache-2.0
# Configuration of every Python kernel (IPython documentation, "Configuring IPython").
import importlib.util
import os
import sys

c = get_config()  # noqa: F821 - given by traitlets

# Output goes to programs: no colours, no shortened sequences.
c.InteractiveShell.colors = "nocolor"
c.PlainTextFormatter.max_seq_length = 0
# %history works within a session; nothing is written into the user's home.
c.HistoryManager.hist_file = ":memory:"
_folder = os.path.dirname(os.path.abspath(__file__))
c.InteractiveShellApp.exec_files = [os.path.join(_folder, "10-glovebox.py")]

# The kernel makes its streams before it runs those files.
_spec = importlib.util.spec_from_file_location("glovebox_streams", os.path.join(_folder, "glovebox_streams.py"))
sys.modules["glovebox_streams"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["glovebox_streams"])
sys.modules["glovebox_streams"].replace_readers()
