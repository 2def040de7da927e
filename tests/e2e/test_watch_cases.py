# SPDX-License-Identifier: Apache-2.0
"""Watching folders: case F8, and what the contract (3.4) promises of events."""
import threading
import time
from pathlib import Path

import pytest
from conftest import eventually
from e2b import FileType, InvalidArgumentException, SandboxException
from e2b import FilesystemEventType as Type
from e2b.exceptions import FileNotFoundException
from raw_agent import Agent, Failed

TINY_FUSE = Path(__file__).parent / "guest/tiny_fuse.py"


@pytest.fixture
def mount(box, folder):
    """A folder on a FUSE file system."""
    path = f"{folder}/mount"
    box.files.make_dir(path)
    box.files.write("/tmp/tiny_fuse.py", TINY_FUSE.read_text())
    program = box.commands.run(f"exec python3 /tmp/tiny_fuse.py {path}", background=True, user="root", timeout=0)
    for out, _, _ in program:
        assert out == "mounted\n"
        break
    yield path
    box.commands.run(f"umount -l {path}", user="root")
    program.kill()


@pytest.fixture
def watch(box):
    """Starts watches and stops them at the end."""
    handles = []

    def start(path: str, **options):
        handles.append(box.files.watch_dir(path, **options))
        return handles[-1]

    yield start
    for handle in handles:
        if not handle._closed:
            handle.stop()


def heard(handle, until) -> list:
    """Events of a watch until one of them satisfies until(event)."""
    events = []

    def more():
        events.extend(handle.get_new_events())
        return any(map(until, events))

    eventually(more, 30)
    return events


def named(name: str, kind: Type):
    return lambda event: event.name == name and event.type == kind


def test_f8_a_network_mount_is_refused_unless_it_is_asked_for(box, agent, folder, mount, watch):
    box.commands.run(f"ln -s {mount} {folder}/link; mkdir {mount}/below", user="root")
    for path in (mount, f"{mount}/below", f"{folder}/link"):
        with pytest.raises(InvalidArgumentException) as refused:
            box.files.watch_dir(path)
        assert "network" in str(refused.value) and path in str(refused.value)
        with pytest.raises(Failed) as refused:
            list(agent.stream("filesystem.Filesystem/WatchDir", {"path": path}))
        assert refused.value.code == "invalid_argument" and "network" in refused.value.message
        with pytest.raises(SandboxException):
            box.files.watch_dir(folder, recursive=True)  # it would be silent in there
    box.files.watch_dir(folder).stop()  # beside it is no harm
    handle = watch(mount, allow_network_mounts=True)
    box.commands.run(f"mkdir {mount}/made", user="root")
    heard(handle, named("made", Type.CREATE))
    everything = watch(folder, recursive=True, allow_network_mounts=True)
    box.commands.run(f"mkdir {mount}/again", user="root")
    heard(everything, named("mount/again", Type.CREATE))


def test_each_operation_is_an_event(box, folder, watch):
    box.files.write(f"{folder}/old", "x")
    handle = watch(folder)
    assert handle.get_new_events() == []
    steps = [("touch new", [("new", Type.CREATE)]), ("echo more >> old", [("old", Type.WRITE)]),
             ("chmod 600 old", [("old", Type.CHMOD)]), ("mv old older", [("old", Type.RENAME), ("older", Type.CREATE)]),
             ("rm older", [("older", Type.REMOVE)]), ("mkdir dir", [("dir", Type.CREATE)]), ("rmdir dir", [("dir", Type.REMOVE)])]
    for command, expected in steps:
        box.commands.run(command, cwd=folder)
        events = heard(handle, named(*expected[-1]))
        seen = [(event.name, event.type) for event in events]
        assert [event for event in seen if event in expected] == expected, (command, seen)
        assert {name for name, _ in seen} <= {name for name, _ in expected}, (command, seen)
    assert handle.get_new_events() == [], "events are given once"


def test_an_upload_shows_as_its_file_only(box, folder, watch):
    handle = watch(folder)
    for content in ("first", "second"):
        box.files.write(f"{folder}/file", content)
        events = heard(handle, named("file", Type.WRITE))
        assert {event.name for event in events} == {"file"}
        assert (events[0].type == Type.CREATE) == (content == "first")


def test_events_below_only_when_recursive_also_in_new_folders(box, folder, watch):
    box.files.make_dir(f"{folder}/a/b")
    flat, deep = watch(folder), watch(folder, recursive=True)
    box.commands.run("touch a/b/file && mkdir -p new/er && touch new/er/file && touch last", cwd=folder)
    seen = {(event.name, event.type) for event in heard(deep, named("last", Type.CREATE))}
    for name in ("a/b/file", "new", "new/er", "new/er/file"):
        assert (name, Type.CREATE) in seen
    box.commands.run("echo later > new/er/later && rm -r a", cwd=folder)
    heard(deep, named("new/er/later", Type.WRITE))
    names = {event.name for event in heard(flat, named("a", Type.REMOVE))}
    assert names >= {"new", "last", "a"} and not [name for name in names if "/" in name]


def test_events_carry_their_entry_when_asked(box, folder, watch):
    plain, full = watch(folder), watch(folder, include_entry=True)
    box.files.write(f"{folder}/file", "12345")
    [entry] = {id(e): e.entry for e in heard(full, named("file", Type.WRITE)) if e.type == Type.WRITE}.values()
    assert (entry.name, entry.path, entry.type, entry.size) == ("file", f"{folder}/file", FileType.FILE, 5)
    assert all(event.entry is None for event in heard(plain, named("file", Type.WRITE)))
    box.files.remove(f"{folder}/file")
    assert all(event.entry is None for event in heard(full, named("file", Type.REMOVE)) if event.type == Type.REMOVE)


def test_what_cannot_be_watched_is_told_at_once(box, agent, folder):
    box.files.write(f"{folder}/file", "x")
    for path, code, error in ((f"{folder}/none", "not_found", FileNotFoundException),
                              (f"{folder}/file", "invalid_argument", InvalidArgumentException)):
        with pytest.raises(error):
            box.files.watch_dir(path)
        with pytest.raises(Failed) as failed:
            list(agent.stream("filesystem.Filesystem/WatchDir", {"path": path}))
        assert failed.value.code == code and path in failed.value.message
    for method in ("GetWatcherEvents", "RemoveWatcher"):
        status, body = agent.status(f"filesystem.Filesystem/{method}", {"watcherId": "wnone"})
        assert (status, body["code"]) == (404, "not_found")


def test_a_stopped_watcher_is_gone(box, agent, folder):
    made = agent.call("filesystem.Filesystem/CreateWatcher", {"path": folder})
    assert made["watcherId"].startswith("w")
    assert agent.call("filesystem.Filesystem/GetWatcherEvents", made).get("events", []) == []
    agent.call("filesystem.Filesystem/RemoveWatcher", made)
    assert agent.status("filesystem.Filesystem/GetWatcherEvents", made)[0] == 404


def test_a_watch_stream_begins_with_start_and_ends_with_its_client(agent, folder):
    files = agent.open_files()
    for n in range(60):
        with agent.another() as another:
            stream = another.stream("filesystem.Filesystem/WatchDir", {"path": folder, "recursive": True})
            messages = iter(stream)
            assert "start" in next(messages)
            if n % 10 == 0:
                agent.upload(f"{folder}/file-{n}", b"x")
                event = next(messages)["filesystem"]
                assert (event["name"], event["type"]) == (f"file-{n}", "EVENT_TYPE_CREATE")
            stream.drop(reset=n % 2 == 0)
    eventually(lambda: agent.open_files() <= files + 40, 30)


def test_a_watch_stream_keeps_its_deadline_and_says_that_it_lives(agent, folder):
    stream = agent.stream("filesystem.Filesystem/WatchDir", {"path": folder}, Keepalive_Ping_Interval="1",
                          Connect_Timeout_Ms="3500")
    kinds = []
    with pytest.raises(Failed) as over:
        for message in stream:
            kinds += message
    assert over.value.code == "deadline_exceeded"
    assert kinds[0] == "start" and set(kinds[1:]) == {"keepalive"}


def test_a_burst_is_whole_or_said_to_be_cut(box, folder, watch):
    """Nobody fetches while 3,000 files are made."""
    handle = watch(folder)
    box.commands.run("for n in $(seq 3000); do : > f$n; done", cwd=folder, timeout=300)
    time.sleep(1)
    try:
        names = {event.name for event in heard(handle, named("f3000", Type.CREATE))}
        assert len(names) == 3000
    except SandboxException as lost:
        assert "lost" in str(lost) or "drop" in str(lost)


def test_many_watch_at_once(server, box, folder):
    """Every watcher hears everything."""
    agents = [Agent(server, box) for _ in range(8)]
    streams = [iter(agent.stream("filesystem.Filesystem/WatchDir", {"path": folder})) for agent in agents]
    assert all("start" in next(stream) for stream in streams)
    writers = [threading.Thread(target=box.files.write, args=(f"{folder}/{n}", "x")) for n in range(5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    for agent, stream in zip(agents, streams):
        missing = {str(n) for n in range(5)}
        while missing:
            event = next(stream).get("filesystem", {})
            if event.get("type") == "EVENT_TYPE_CREATE":
                missing.discard(event["name"])
        agent.connection.close()
