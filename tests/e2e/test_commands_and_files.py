"""Commands and files through the Python client: what every program relies on."""
import pytest
from e2b import CommandExitException
from e2b.exceptions import FileNotFoundException, NotFoundException


def test_output_exit_code_and_streams(base):
    done = base.commands.run("echo out; echo err >&2")
    assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 0)
    with pytest.raises(CommandExitException) as failed:
        base.commands.run("echo why >&2; exit 7")
    assert failed.value.exit_code == 7 and failed.value.stderr == "why\n"


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


def test_f10_odd_names_round_trip(base):
    for name in ("plain", "with space", "quote'\"", "per%20cent", "ünïcode-日本", "-leading-dash", "new\nline"):
        base.files.write(f"/tmp/odd/{name}", name)
        assert base.files.read(f"/tmp/odd/{name}") == name
    assert len(base.files.list("/tmp/odd")) == 7


def test_f6_what_is_missing_is_not_found(base):
    with pytest.raises(FileNotFoundException):
        base.files.read("/no/such/file")
    assert not base.files.exists("/no/such/file")
    base.files.make_dir("/home/user/new/deep")
    assert base.files.get_info("/home/user/new/deep").owner == "user"
    base.files.rename("/home/user/new", "/home/user/newer")
    base.files.remove("/home/user/newer")
    assert not base.files.exists("/home/user/newer")


def test_relative_paths_are_the_users(base):
    base.files.write("note.txt", "x")
    assert base.files.get_info("note.txt").path == "/home/user/note.txt"
    assert base.commands.run("stat -c '%U %a' note.txt").stdout == "user 644\n"
