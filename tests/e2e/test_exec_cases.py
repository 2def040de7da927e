# SPDX-License-Identifier: Apache-2.0
"""Cases from the field, X: how commands are started, what they are given and how they end. What flows while they run is in
test_stream_cases.py, terminals in test_terminal_cases.py, what takes minutes in test_time_cases.py."""
import json
import threading
import time
import uuid

import pytest
from conftest import eventually
from e2b import CommandExitException, InvalidArgumentException, PtySize, Sandbox, TimeoutException
from e2b.exceptions import SandboxNotRunningException
from raw_agent import Agent, Cut, Failed

pytestmark = pytest.mark.usefixtures("elders")  # what must age begins to


def commands_with(sandbox, text: str) -> list:
    return [process for process in sandbox.commands.list() if text in " ".join(process.args)]


def test_x2_a_command_is_ended_with_its_group_at_its_deadline(box):
    mark = f"61.{uuid.uuid4().int % 10**9:09}"
    # a child in the group, and one that job control gives a group of its own
    with pytest.raises(TimeoutException):
        box.commands.run(f"sleep {mark}1 & set -m; sleep {mark}2 & trap '' TERM; sleep {mark}3", timeout=2)
    eventually(lambda: not commands_with(box, mark), 20)
    eventually(lambda: box.commands.run(f"pgrep -fc '^sleep {mark}' || true").stdout == "0\n", 20)


def test_x10_standard_input_is_at_its_end_unless_asked_for(box, agent):
    assert box.commands.run("cat; echo done").stdout == "done\n"
    assert box.commands.run("python3; read line || echo no line", timeout=60).stdout == "no line\n"
    assert agent.run("/bin/cat").exit_code == 0
    assert agent.run("/bin/cat", stdin=False).exit_code == 0
    handle = box.commands.run("cat; echo done", background=True, stdin=True)
    box.commands.send_stdin(handle.pid, "hello\n")
    box.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "hello\ndone\n"


def test_x12_a_heredoc_does_not_hang_the_session(box):
    assert box.commands.run("cat <<'END'\n$HOME 'and' \"so\"\n\nEND\necho after").stdout == "$HOME 'and' \"so\"\n\nafter\n"
    assert box.commands.run("cat <<-A <<B\n\tone\n\tA\ntwo\nB").stdout == "two\n"
    assert box.commands.run("cat << NEVER\nopen end").stdout == "open end\n"
    session = box.commands.run("bash", background=True, stdin=True)
    for line in ("cat << END\n", "first $((1 + 1))\n", "END\n", "echo second\n", "cat <<< third; exit 3\n"):
        box.commands.send_stdin(session.pid, line)
    with pytest.raises(CommandExitException) as ended:
        session.wait()
    assert (ended.value.exit_code, ended.value.stdout) == (3, "first 2\nsecond\nthird\n")


def test_x17_any_byte_but_nul_is_an_argument(agent):
    args = ["two\nlines", "\r\n", "", " ", "\t", "'", '"', "\\", "$HOME", "`id`", "*", "-n", "--", "ünï €", "\U0001f4a9",
            "".join(map(chr, range(1, 0x180))), "trailing\n"]
    assert agent.run("/usr/bin/printf", "%s\\0", *args).stdout.split(b"\0")[:-1] == [a.encode() for a in args]
    envs = {"ODD": args[-2], "EMPTY": "", "LINES": "a\nb\n"}
    done = agent.run("/usr/bin/env", "-0", envs=envs)
    for name, value in envs.items():
        assert f"{name}={value}".encode() in done.stdout.split(b"\0")
    for request in ({"args": ("a\0b",)}, {"envs": {"A": "b\0c"}}, {"envs": {"A=B": "c"}}, {"envs": {"": "c"}}):
        with pytest.raises(Failed) as refused:
            agent.run("/usr/bin/printf", *request.pop("args", ()), **request)
        assert refused.value.code == "invalid_argument"


def test_x18_a_long_command_works_or_is_refused_clearly(box, agent):
    words = "x" * 100_000
    assert box.commands.run(f"printf %s {words} | wc -c").stdout.strip() == str(len(words))
    with pytest.raises(InvalidArgumentException) as refused:
        box.commands.run("true " + "x" * 200_000)
    assert "too long" in str(refused.value) and "128 KiB" in str(refused.value)
    for args in (["y" * 120_000] * 30, ["z" * 5_000_000], ["above what a message may have" * 2_500_000]):
        with pytest.raises(Failed) as refused:
            agent.run("/bin/true", *args)
        assert refused.value.code in ("invalid_argument", "resource_exhausted"), refused.value
    # what does not fit into an argument does fit through standard input
    script = f"print(len('{words * 10}'))\n"
    handle = box.commands.run("python3 -", background=True, stdin=True)
    for at in range(0, len(script), 200_000):
        box.commands.send_stdin(handle.pid, script[at:at + 200_000])
    box.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "1000000\n"


def test_x21_the_groups_are_those_of_a_login(box):
    name = "w" + uuid.uuid4().hex[:8]
    group = "g" + uuid.uuid4().hex[:8]
    box.commands.run(f"groupadd {group} && useradd -m -s /bin/bash -G {group},audio,video {name}", user="root")
    try:
        for user in (name, "user", "root"):
            login = box.commands.run(f"su - {user} -c id", user="root").stdout
            assert box.commands.run("id", user=user).stdout == login
            assert box.commands.run("sh -c 'sh -c id'", user=user).stdout == login
        assert group in box.commands.run("id", user=name).stdout
        terminal = box.pty.create(PtySize(24, 200), user=name)
        seen = bytearray()
        box.pty.send_stdin(terminal.pid, b"id; exit\n")
        terminal.wait(on_pty=seen.extend)
        assert box.commands.run(f"su - {name} -c id", user="root").stdout.strip() in seen.decode()
    finally:
        box.commands.run(f"userdel -r {name}; groupdel {group}", user="root")


def test_x22_the_memory_hog_dies_and_the_agent_does_not(base, server):
    with Agent(server, base) as agent:
        assert agent.download("/proc/1/oom_score_adj")[1] == b"-1000\n"
        show = "cat /proc/self/oom_score_adj; nice"
        for options in ({}, {"user": "root"}, {"size": (80, 24)}):
            done = agent.run("/bin/sh", "-c", f"{show}; sh -c '{show}'", **options)
            score, nice, childs_score, childs_nice = map(int, (done.stdout or done.pty).split())
            assert score == childs_score >= 0 and nice == childs_nice == 0, options
        base.files.write("/tmp/hog.py", "x = []\nwhile True: x.append(b'x' * (16 << 20))\n")
        with pytest.raises(CommandExitException) as killed:
            base.commands.run("exec python3 /tmp/hog.py", timeout=300)
        assert killed.value.exit_code == -1 and killed.value.error == "signal: killed"
        # the same as a grandchild, and by root
        for user in ("user", "root"):
            done = base.commands.run("sh -c 'python3 /tmp/hog.py; echo $?'", user=user, timeout=300)
            assert done.stdout == "137\n"
        assert base.commands.run("echo still here").stdout == "still here\n"


def test_x23_a_start_that_fails_is_told_and_leaves_no_entry(box, agent):
    tag = "tag-" + uuid.uuid4().hex
    before = agent.pids()
    box.files.write("/tmp/not-a-program-" + tag, "#!/no/such/interpreter\n")
    box.commands.run(f"chmod +x /tmp/not-a-program-{tag}")
    attempts = [(("/no/such/program",), {}), (("no-such-program",), {}), (("/etc/passwd",), {}), (("/tmp",), {}), (("",), {}),
                (("/tmp/not-a-program-" + tag,), {}), (("/bin/true",), {"cwd": "/no/such/folder"}),
                (("/bin/true",), {"cwd": "/etc/passwd"}), (("/bin/true",), {"cwd": "/root"})]
    for args, options in attempts:
        for terminal in ({}, {"size": (80, 24)}):
            with pytest.raises(Failed) as failed:
                agent.run(*args, tag=tag, **options, **terminal)
            assert failed.value.code in ("invalid_argument", "not_found", "permission_denied"), (args, failed.value)
            assert options.get("cwd", args[0]) in failed.value.message
            with pytest.raises(Failed) as unknown:
                list(agent.stream("process.Process/Connect", {"process": {"tag": tag}}))
            assert unknown.value.code == "not_found"
    with pytest.raises(Failed) as nobody:
        agent.run("/bin/true", user="no-such-user")
    assert nobody.value.code == "unauthenticated" and "no-such-user" in nobody.value.message
    assert agent.pids() == before
    assert agent.zombies() == ""
    box.files.remove("/tmp/not-a-program-" + tag)


def printed_environment(text: str) -> dict[str, str]:
    return dict(item.split("=", 1) for item in text.split("\0") if "=" in item)


def test_x25_one_environment_for_commands_terminals_and_kernels_and_only_here(server):
    """The half about resuming comes with pause: a variable that was removed must not come back."""
    from e2b_code_interpreter import Sandbox as Interpreter

    name = "CASE_" + uuid.uuid4().hex
    envs = {name: "a 'b' \"c\"\nd é", "LANG": "C", "EMPTY": ""}
    with Interpreter.create(envs=envs, timeout=300) as one, Interpreter.create(timeout=300) as two:
        def seen(sandbox) -> dict[str, dict[str, str]]:
            with Agent(server, sandbox) as agent:
                agent_says = json.loads(agent.send("GET", "/envs")[1])
                terminal = agent.run("/usr/bin/env", "-0", size=(80, 24)).pty.decode().replace("\r\n", "\n")
                kernel = sandbox.run_code("import os; print('\\0'.join(f'{k}={v}' for k, v in os.environ.items()))").logs.stdout
                return {"command": printed_environment(sandbox.commands.run("env -0").stdout),
                        "terminal": printed_environment(terminal),
                        "kernel": printed_environment("".join(kernel).removesuffix("\n")), "agent": agent_says}

        for place, environment in seen(one).items():
            wanted = envs | {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": one.sandbox_id}
            assert {key: environment.get(key) for key in wanted} == wanted, place
        for place, environment in seen(two).items():
            assert name not in environment and "EMPTY" not in environment, place
            assert environment["LANG"] == "C.UTF-8", f"{place}: the template's own value"  # replaced, not kept from another
            assert environment["E2B_SANDBOX_ID"] == two.sandbox_id, place
        # a command's own variables stay with that command
        assert one.commands.run(f'printf %s "${name}"', envs={name: "mine"}).stdout == "mine"
        assert one.commands.run(f'printf %s "${name}"').stdout == envs[name]
        assert one.run_code(f"import os; print(os.environ['{name}'])", envs={name: "mine"}).logs.stdout == ["mine\n"]
        assert one.run_code(f"import os; os.environ['{name}'] == {envs[name]!r}").text == "True"


def test_x29_a_short_command_does_not_wait_for_a_delayed_acknowledgement(server, box, agent):
    """With Nagle's algorithm every command takes 40 ms at the least, however fast the machine; so the fastest of many decides,
    which a busy machine does not disturb. Under hardware virtualisation 10 ms are demanded."""
    true = agent.install_true()

    def once() -> float:
        start = time.perf_counter()
        assert agent.run(true).exit_code == 0
        return time.perf_counter() - start

    facts = json.loads(server.cli("sandbox", "isolation", box.sandbox_id, "--json").stdout)
    limit = 0.010 if facts["accelerator"] == "kvm" else 0.040
    assert min(once() for _ in range(100)) < limit


def test_x30_a_sandbox_that_ends_in_mid_command_is_named_with_the_reason(server):
    for end in ("kill", "timeout"):
        sandbox = Sandbox.create("base", timeout=300)
        try:
            agent = Agent(server, sandbox)
            handle = sandbox.commands.run("sleep 1000", background=True, timeout=0)
            stream = agent.start("/bin/sleep", "1000")
            done = stream.process()
            timer = threading.Timer(0.5, sandbox.kill if end == "kill" else lambda: sandbox.set_timeout(1))
            timer.start()
            with pytest.raises(SandboxNotRunningException) as ended:
                handle.wait()
            assert "killed or reached its end of life" in str(ended.value)
            with pytest.raises(Cut):  # nothing that looks like a proper end of the command
                stream.rest(done)
            timer.join()
            with pytest.raises(SandboxNotRunningException) as gone:
                sandbox.commands.run("true")
            assert "was not found" in str(gone.value)
            with agent.another() as another:
                status, body, _ = another.send("GET", "/health")
            assert (status, json.loads(body)) == (502, {"sandboxId": sandbox.sandbox_id, "code": 502,
                                                        "message": "The sandbox was not found"})
        finally:
            sandbox.kill()


# What fusermount does, in namespaces of the user's own: /dev/fuse is opened, a file system is mounted, and a request comes.
MOUNT_FUSE = """
import ctypes, os, tempfile
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
at = tempfile.mkdtemp()
options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
if libc.mount(b"none", at.encode(), b"fuse", 0, options.encode()) != 0:
    raise OSError(ctypes.get_errno(), "mount")
request = os.read(device, 1 << 17)
print(int.from_bytes(request[4:8], "little"))
"""


def test_the_default_user_may_mount_with_fuse(box):
    assert box.commands.run("stat -c %a /dev/fuse; id -un").stdout == "666\nuser\n"
    box.files.write("/tmp/mount_fuse.py", MOUNT_FUSE)
    done = box.commands.run("unshare --user --map-root-user --mount python3 /tmp/mount_fuse.py")
    assert done.stdout == "26\n"  # FUSE_INIT
