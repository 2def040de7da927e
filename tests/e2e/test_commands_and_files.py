# SPDX-License-Identifier: Apache-2.0
"""Commands and files through the Python client: what every program relies on. Cases from the field are in test_*_cases.py."""
import pytest
from e2b import CommandExitException
from e2b.exceptions import NotFoundException


def test_output_exit_code_and_streams(base):
    done = base.commands.run("echo out; echo err >&2")
    assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 0)
    with pytest.raises(CommandExitException) as failed:
        base.commands.run("echo why >&2; exit 7")
    assert failed.value.exit_code == 7 and failed.value.stderr == "why\n"


def test_standard_streams_can_be_opened_by_name(base):
    for user in ("user", "root"):
        done = base.commands.run("echo out > /dev/stdout; echo err | tee /dev/stderr > /dev/null", user=user)
        assert (done.stdout, done.stderr) == ("out\n", "err\n")
        handle = base.commands.run("cat /dev/stdin", background=True, stdin=True, user=user)
        handle.send_stdin("in\n")
        handle.close_stdin()
        assert handle.wait().stdout == "in\n"


def test_users_and_sudo(base):
    assert base.commands.run("whoami").stdout == "user\n"
    assert base.commands.run("whoami", user="root").stdout == "root\n"
    assert base.commands.run("sudo whoami").stdout == "root\n"
    assert base.commands.run("pwd").stdout == "/home/user\n"


def test_background_commands_can_be_listed_connected_and_killed(base):
    handle = base.commands.run("sleep 120", background=True)
    assert handle.pid in [process.pid for process in base.commands.list()]
    assert base.commands.kill(handle.pid)
    assert not base.commands.kill(999_999)
    with pytest.raises(NotFoundException):
        base.commands.connect(999_999)


def test_relative_paths_are_the_users(base):
    base.files.write("note.txt", "x")
    assert base.files.get_info("note.txt").path == "/home/user/note.txt"
    assert base.commands.run("stat -c '%U %a' note.txt").stdout == "user 644\n"
