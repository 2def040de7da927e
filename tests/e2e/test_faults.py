# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on the host: one clear line that says what to do, and nothing left behind."""
import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path

from conftest import GLOVEBOX, TEMPLATES, Server, eventually
from e2b import Sandbox


def serve(*arguments: str, prefix=()) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory(prefix="glovebox-e2e-") as data:
        return subprocess.run([*prefix, GLOVEBOX, "serve", "--data-dir", data, "--templates-dir", TEMPLATES, *arguments],
                              capture_output=True, text=True, timeout=1800)


def one_line(done: subprocess.CompletedProcess) -> str:
    lines = [line for line in done.stderr.splitlines() if line.startswith("glovebox: ")]
    assert done.returncode != 0 and len(lines) == 1, done
    return lines[0]


def test_a_port_that_is_taken(server):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        line = one_line(serve("--port", str(taken.getsockname()[1])))
    assert "is taken by another program" in line and "--port" in line


def test_a_data_folder_that_is_in_use(server):
    done = subprocess.run([GLOVEBOX, "serve", "--port", "0", "--data-dir", str(server.data)], capture_output=True, text=True,
                          timeout=1800)
    assert "another server uses" in one_line(done) and "--data-dir" in one_line(done)


def test_qemu_is_missing():
    hide = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null /usr/bin/qemu-system-x86_64 && exec "$@"', "sh"]
    line = one_line(serve("--port", "0", prefix=hide))
    assert "qemu" in line.lower()


def test_a_wrong_listen_address():
    assert "is not an IP address" in one_line(serve("--listen", "somewhere", "--port", "0"))


def test_no_free_memory_is_503_with_the_reason():
    server = Server("--memory-reserve-mib", "99999999")
    try:
        status, body, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base"})
        assert status == 503 and "no free memory" in body["message"] and "MiB" in body["message"]
        assert server.request("GET", "/v2/sandboxes")[1] == []
        assert not list((server.data / "sandboxes").iterdir())
    finally:
        server.close()


def machines_of(instance: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if f"/glovebox/{instance}/" in entry.read_text():
                found.append(int(entry.parent.name))
        except OSError:
            pass
    return found


def cgroups_of(instance: str) -> list[str]:
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/glovebox/{instance}/*") if path.is_dir()]


def host_links() -> set[str]:
    return {line.split(":")[1].split("@")[0].strip() for line in os.popen("ip -o link").read().splitlines()}


def nft_tables() -> set[str]:
    return {line.split()[-1] for line in os.popen("nft list tables").read().splitlines() if "glovebox_" in line}


def test_s17_s18_killed_hard_and_started_again_nothing_leaks():
    tables = nft_tables()
    server = Server("--pool", "0")  # machines are counted
    try:
        instance = (server.data / "instance").read_text().strip()
        [table] = nft_tables() - tables  # the server's own; its links have the same tag
        links = f"gb{table.removeprefix('glovebox_')}-"
        assert [name for name in host_links() if name.startswith(links)]
        mounts = Path("/proc/mounts").read_text().count("\n")
        made = [server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600})[1] for _ in range(3)]
        machines = sorted(machines_of(instance))
        assert len(machines) == 3
        groups = cgroups_of(instance)
        # one that nobody knows any more is reclaimed, the others are taken over
        lost, *kept = made
        server.kill_hard()
        (server.data / "sandboxes" / lost["sandboxID"] / "machine.json").unlink()
        server.start()
        assert len(machines_of(instance)) == 2 and set(machines_of(instance)) < set(machines)
        assert set(cgroups_of(instance)) == {group for group in groups if not group.endswith(lost["sandboxID"])}
        assert server.request("GET", f"/sandboxes/{lost['sandboxID']}")[0] == 404
        for sandbox in kept:
            assert server.request("DELETE", f"/sandboxes/{sandbox['sandboxID']}")[0] == 204
        assert machines_of(instance) == [] and cgroups_of(instance) == []
        assert server.request("GET", "/v2/sandboxes")[1] == []
        assert not list((server.data / "sandboxes").iterdir())
        assert Path("/proc/mounts").read_text().count("\n") <= mounts
        status, again, _ = server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60})
        assert status == 201
        assert server.request("DELETE", f"/sandboxes/{again['sandboxID']}")[0] == 204
        server.stop()
        # what the kernel removes by itself takes a moment
        eventually(lambda: not [name for name in host_links() if name.startswith(links)], 60)
        eventually(lambda: not cgroups_of(instance), 10)
        assert table not in nft_tables()
    finally:
        server.close()


def test_a_stop_ends_every_sandbox_and_leaves_nothing():
    server = Server()
    instance = (server.data / "instance").read_text().strip()
    try:
        server.request("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600})
        assert machines_of(instance)
        server.stop()
        assert machines_of(instance) == [] and cgroups_of(instance) == []
        assert server.process.returncode == 0
    finally:
        server.close()


def test_doctor_says_what_it_finds(server):
    done = server.cli("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert checks["qemu"]["finding"] == "ok" and checks["cgroups"]["finding"] == "ok"


def test_no_secret_reaches_the_log_or_a_command_line(server):
    sandbox = Sandbox.create("base", timeout=60, envs={"SECRET": "s3cr3t-value-0815"})
    try:
        token = server.request("GET", f"/sandboxes/{sandbox.sandbox_id}")[1]["envdAccessToken"]
        text = server.log()
        lines = "".join(p.read_bytes().decode(errors="replace") for p in Path("/proc").glob("[0-9]*/cmdline"))
        for secret in (token, server.key, "s3cr3t-value-0815"):
            assert secret not in text and secret not in lines
    finally:
        sandbox.kill()
