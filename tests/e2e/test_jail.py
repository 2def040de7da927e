# SPDX-License-Identifier: Apache-2.0
"""The VMM's jail, looked at from outside while it runs."""
import os
from pathlib import Path

from conftest import TEMPLATES, is_vmm_of
from test_faults import machines_of


def vmm_of(server, sandbox_id: str) -> int:
    instance = (server.data / "instance").read_text().strip()
    for pid in machines_of(instance):
        if is_vmm_of(pid, sandbox_id):
            return pid
    raise AssertionError("no VMM found")


def status_of(pid: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def test_the_vmm_has_no_privilege_and_sees_nothing_of_the_host(server, base):
    pid = vmm_of(server, base.sandbox_id)
    status = status_of(pid)
    assert all(uid not in ("0", "") for uid in status["Uid"].split())
    assert {status[name].strip("0") for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    for namespace in ("mnt", "pid", "net", "ipc", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{namespace}") != os.readlink(f"/proc/self/ns/{namespace}"), namespace
    root = Path(f"/proc/{pid}/root")
    assert not (root / "etc/passwd").exists() and not (root / "home").exists() and not (root / "proc/1").exists()
    assert not (root / str(server.data).lstrip("/")).exists()


def test_the_vmm_cannot_write_what_sandboxes_share(server, base):
    pid = vmm_of(server, base.sandbox_id)
    mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    # By links of the sandbox's own to the template's files, where those are on the same file system.
    files = {fields[3].split("/")[-1]: fields[5].split(",") for fields in mounts}
    assert all("ro" in files[name] for name in ("memory.img", "disk.img")), files
    for file in Path(TEMPLATES).glob("*/*"):
        assert file.stat().st_uid == 0 and file.stat().st_mode & 0o022 == 0, file


def test_two_machines_share_no_user(server, base):
    from e2b import Sandbox

    other = Sandbox.create("base", timeout=60)
    try:
        uids = [status_of(vmm_of(server, s.sandbox_id))["Uid"] for s in (base, other)]
        assert uids[0] != uids[1]
    finally:
        other.kill()
