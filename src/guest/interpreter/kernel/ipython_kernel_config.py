# Configuration of every Python kernel (IPython documentation, "Configuring IPython").
import os

c = get_config()  # noqa: F821 - given by traitlets

# Output goes to programs: no colours, no shortened sequences.
c.InteractiveShell.colors = "nocolor"
c.PlainTextFormatter.max_seq_length = 0
# %history works within a session; nothing is written into the user's home.
c.HistoryManager.hist_file = ":memory:"
c.InteractiveShellApp.exec_files = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "10-glovebox.py")]
