"""Cases from the field, F: what paths and names mean, and what is said of paths that lead nowhere."""
import re
import uuid
from urllib.parse import unquote_to_bytes

import pytest
from e2b import FileType, InvalidArgumentException, Sandbox
from e2b.exceptions import FileNotFoundException
from raw_agent import Agent


@pytest.fixture(scope="module")
def box(server):
    """One sandbox for all tests of this file."""
    sandbox = Sandbox.create("base", timeout=1800)
    yield sandbox
    sandbox.kill()


@pytest.fixture
def agent(server, box):
    with Agent(server, box) as connection:
        yield connection


@pytest.fixture
def folder(box):
    """A new folder for one test."""
    path = f"/home/user/{uuid.uuid4().hex}"
    box.files.make_dir(path)
    yield path
    box.commands.run(f"rm -rf {path}")


def test_f5_paths_mean_the_same_everywhere(box, folder):
    """`~` and relative paths start at the home of whoever asks, `..` is resolved by name, results are absolute."""
    name = folder.rsplit("/", 1)[1]
    spellings = [f"{folder}/x", f"~/{name}/x", f"{name}/x", f"./{name}/../{name}/./x", f"//home//user//{name}//x",
                 f"/home/user/../../home/user/{name}/x", f"../../../../home/user/{name}/x"]
    for n, path in enumerate(spellings):
        assert box.files.write(path, str(n)).path == f"{folder}/x"
        for other in spellings:
            assert box.files.read(other) == str(n)
        info = box.files.get_info(path)
        assert (info.path, info.name, info.owner) == (f"{folder}/x", "x", "user")
        assert [entry.path for entry in box.files.list(path.removesuffix("/x"))] == [f"{folder}/x"]
        assert box.files.rename(path, path + "y").path == f"{folder}/xy"
        box.files.remove(path + "y")
        assert not box.files.exists(path) and not box.files.exists(f"{folder}/xy")
        assert box.files.make_dir(path) and not box.files.make_dir(path)
        box.files.remove(path)
    assert box.files.get_info("~").path == box.files.get_info("").path == "/home/user"
    assert box.files.get_info("~", user="root").path == "/root"
    assert box.commands.run("pwd", cwd=f"~/{name}").stdout == box.commands.run("pwd", cwd=name).stdout == f"{folder}\n"
    for wrong in ("~nobody/x", "a\0b"):
        with pytest.raises(InvalidArgumentException):
            box.files.read(wrong)
        with pytest.raises(InvalidArgumentException):
            box.files.get_info(wrong)
    # a file is named ~ if it is not in front
    assert box.files.write(f"{folder}/~/~", "tilde").path == f"{folder}/~/~"


NAMES = ["plain", "with space", " lead and trail ", "quote'\"", "per%20cent%", "ünïcode-日本", "\U0001f4a9", "-leading-dash",
         "--",
         "new\nline", "a\r\nX-Injected: yes", "tab\t", "back\\slash", "semi;colon; filename=\"other\"", "*?[x]", "$(id)`id`",
         "#hash?query&a=b", "plus+sign", ".hidden", "...", "~", "é" * 127, "\x01\x7f"]


def test_f10_names_that_are_no_text_do_no_harm(box, folder):
    box.commands.run("touch $'bad-\\xff\\xfe' good", cwd=folder)
    assert [entry.name for entry in box.files.list(folder)] == ["bad-\ufffd\ufffd", "good"]


def test_f13_making_a_folder_that_exists_changes_nothing(box, folder):
    box.commands.run(f"mkdir -m 0711 {folder}/own && sudo install -d -m 1770 -o root -g daemon {folder}/roots")
    places = ["/tmp", "/", "/home", "/home/user", "/usr/local", f"{folder}/own", f"{folder}/roots"]
    look = "stat -c '%n %a %u:%g %i %Z' " + " ".join(places)
    before = box.commands.run(look).stdout
    for _ in range(2):
        for place in places:
            assert box.files.make_dir(place) is False
            assert box.files.make_dir(place, user="root") is False
    assert box.commands.run(look).stdout == before
    # nor does what is made or written inside, of owner and mode
    inside = uuid.uuid4().hex
    for place in ("/tmp", f"{folder}/own", f"{folder}/roots"):
        assert box.files.make_dir(f"{place}/{inside}/deep") is True
        box.files.write(f"{place}/{inside}/deep/file", "x")
        entry = box.files.get_info(f"{place}/{inside}/deep")
        assert (entry.owner, entry.permissions) == ("user", "drwxr-xr-x")
        box.files.remove(f"{place}/{inside}")
    modes = "stat -c '%n %a %u:%g %i' " + " ".join(places)
    assert [line.rsplit(" ", 1)[0] for line in before.splitlines()] == box.commands.run(modes).stdout.splitlines()


def test_f19_hidden_folders_are_folders(box, folder):
    box.files.write(f"{folder}/.hidden/.deeper/.file", "x")
    box.files.write(f"{folder}/.hidden/plain", "x")
    box.files.write(f"{folder}/..two", "x")
    assert [entry.name for entry in box.files.list(folder)] == ["..two", ".hidden"]
    assert [entry.name for entry in box.files.list(f"{folder}/.hidden")] == [".deeper", "plain"]
    assert [entry.name for entry in box.files.list(f"{folder}/.hidden/.deeper")] == [".file"]
    everything = [entry.path.removeprefix(folder + "/") for entry in box.files.list(folder, depth=3)]
    assert everything == ["..two", ".hidden", ".hidden/.deeper", ".hidden/.deeper/.file", ".hidden/plain"]
