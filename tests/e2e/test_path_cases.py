# SPDX-License-Identifier: Apache-2.0
"""Cases from the field, F: what paths and names mean, and what is said of paths that lead nowhere."""
import re
import uuid
from urllib.parse import unquote_to_bytes

import pytest
from e2b import FileType, InvalidArgumentException
from e2b.exceptions import FileNotFoundException


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


def test_f5_links_say_where_they_lead_and_are_not_replaced(box, folder):
    box.commands.run(f"mkdir real && echo old > real/file && ln -s real/file link && ln -s {folder}/real dir && "
                     "ln -s nowhere broken && ln -s loop loop", cwd=folder)
    for name, target, kind in (("link", "real/file", FileType.FILE), ("dir", "real", FileType.DIR)):
        entry = box.files.get_info(f"{folder}/{name}")
        assert (entry.type, entry.symlink_target, entry.name) == (kind, f"{folder}/{target}", name)
    plain = box.files.get_info(f"{folder}/real/file")
    assert (plain.type, plain.symlink_target) == (FileType.FILE, None)
    # through a linked folder the asked path stays; links below are shown and not entered
    assert [entry.path for entry in box.files.list(f"{folder}/dir")] == [f"{folder}/dir/file"]
    listed = {entry.path.removeprefix(folder + "/") for entry in box.files.list(folder, depth=5)}
    assert listed == {"dir", "link", "real", "real/file"}, "the client leaves out what leads nowhere"
    assert box.files.get_info(f"{folder}/broken").symlink_target == f"{folder}/nowhere"
    box.files.write(f"{folder}/link", "new")
    assert box.commands.run("readlink link; cat real/file", cwd=folder).stdout == "real/file\nnew"
    box.files.write(f"{folder}/broken", "made")
    assert box.commands.run("readlink broken; cat nowhere", cwd=folder).stdout == "nowhere\nmade"
    for path in ("loop", "loop/x"):
        with pytest.raises(Exception) as looping:
            box.files.read(f"{folder}/{path}")
        assert "500" not in str(looping.value) and "internal" not in str(looping.value).lower()
    box.files.remove(f"{folder}/dir")
    assert box.files.read(f"{folder}/real/file") == "new", "removing a link removes the link"


def test_f6_what_is_missing_is_not_found(box, agent, folder):
    box.files.write(f"{folder}/file", "x")
    for missing in (f"{folder}/none", f"{folder}/none/deeper", f"{folder}/file/below"):
        for service, message in (("Stat", {"path": missing}), ("ListDir", {"path": missing}),
                                 ("Move", {"source": missing, "destination": f"{folder}/moved"})):
            status, body = agent.status(f"filesystem.Filesystem/{service}", message)
            assert (status, body["code"]) == (404, "not_found") and missing in body["message"], service
        status, body, headers = agent.download(missing)
        assert status == 404 and headers["Content-Type"].startswith("application/json")
        assert b'"code":404' in body.replace(b" ", b"") and missing.encode() in body
        with pytest.raises(FileNotFoundException):
            box.files.read(missing)
        with pytest.raises(FileNotFoundException):
            box.files.rename(missing, f"{folder}/moved")
        assert not box.files.exists(missing)
        # what should go away and is not there is as it should be (contract 3.4)
        assert agent.status("filesystem.Filesystem/Remove", {"path": missing})[0] == 200
    # what stands in the way is the caller's mistake, not the server's
    for status in (agent.status("filesystem.Filesystem/MakeDir", {"path": f"{folder}/file/below"})[0],
                   agent.status("filesystem.Filesystem/MakeDir", {"path": f"{folder}/file"})[0],
                   agent.status("filesystem.Filesystem/Move", {"source": f"{folder}/file", "destination": f"{folder}/file/x"})[0],
                   agent.upload(f"{folder}/file/below", b"x")[0], agent.upload(folder, b"x")[0], agent.download(folder)[0]):
        assert 400 <= status < 500
    assert box.files.read(f"{folder}/file") == "x"


NAMES = ["plain", "with space", " lead and trail ", "quote'\"", "per%20cent%", "ünïcode-日本", "\U0001f4a9", "-leading-dash",
         "--",
         "new\nline", "a\r\nX-Injected: yes", "tab\t", "back\\slash", "semi;colon; filename=\"other\"", "*?[x]", "$(id)`id`",
         "#hash?query&a=b", "plus+sign", ".hidden", "...", "~", "é" * 127, "\x01\x7f"]


def test_f10_odd_names_round_trip(box, agent, folder):
    for name in NAMES:
        path = f"{folder}/{name}"
        box.files.write(path, name)
        assert box.files.read(path) == name
        assert box.files.get_info(path).name == name
        box.files.write(path, name * 2, use_octet_stream=True)
        assert box.files.read(path) == name * 2
        status, body, headers = agent.download(path)
        assert (status, body.decode()) == (200, name * 2) and "X-Injected" not in headers
        disposition = headers["Content-Disposition"]
        extended = re.search(r"filename\*=UTF-8''([A-Za-z0-9!#$&+.^_`|~%-]+)$", disposition)  # RFC 5987, RFC 6266
        if extended:
            assert unquote_to_bytes(extended[1]).decode() == name
        else:
            quoted = re.fullmatch(r'inline; filename="((?:[^"\\]|\\.)*)"', disposition)
            assert re.sub(r"\\(.)", r"\1", quoted[1]) == name and name.isascii()
    assert sorted(entry.name for entry in box.files.list(folder)) == sorted(NAMES)
    seen = box.commands.run(f"find {folder} -mindepth 1 -printf '%f\\0'").stdout.split("\0")[:-1]
    assert sorted(seen) == sorted(NAMES)
    # several at once: then the names travel in the form
    box.files.write_files([{"path": f"{folder}/form/{name}", "data": name} for name in NAMES])
    seen = box.commands.run(f"find {folder}/form -mindepth 1 -printf '%f\\0'").stdout.split("\0")[:-1]
    assert sorted(seen) == sorted(NAMES)
    for name in NAMES:
        assert box.files.rename(f"{folder}/{name}", f"{folder}/moved/{name}").name == name
        box.files.remove(f"{folder}/moved/{name}")
    assert box.files.list(f"{folder}/moved") == []


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
