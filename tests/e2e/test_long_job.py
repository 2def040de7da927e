# SPDX-License-Identifier: Apache-2.0
"""Jobs that outlive the runs of their sandbox: segments, exit codes, clients that go away, through the program itself."""
import json
import re
import signal
import subprocess
import threading
import time

import pytest
from conftest import GLOVEBOX, ROOT, Server, eventually

SCRIPT = ROOT / "examples/long_job/long_job.py"
ROWS = 40
LIMIT = 300


def command(server, *arguments):
    return [GLOVEBOX, "job", *arguments[:1], "--data-dir", str(server.data), *arguments[1:]]


def job(server, *arguments, check=None):
    done = subprocess.run(command(server, *arguments), capture_output=True, text=True, timeout=LIMIT)
    if check is not None:
        assert done.returncode == check, (done.stdout, done.stderr)
    return done


def long_job(rows=ROWS, seconds=0.3):
    return ["--upload", f"{SCRIPT}:long_job.py", "--", "python3", "long_job.py", "results.csv", str(rows), str(seconds)]


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def output_of(lines):
    """The output, which must have neither gaps nor repetitions."""
    text, offset = "", None
    for line in lines:
        if line["type"] != "output":
            continue
        assert offset is None or line["offset"] == offset, line
        text += line["text"]
        offset = line["offset"] + len(line["text"].encode())
    return text


def numbers(text):
    return [int(line.split(",")[0]) for line in text.splitlines() if "," in line]


def read_file(sandbox_id, path):
    from e2b import Sandbox

    return Sandbox.connect(sandbox_id, timeout=60).files.read(path)


def state(server, sandbox_id):
    status, body, _ = server.request("GET", f"/sandboxes/{sandbox_id}")
    return body["state"] if status == 200 else None


@pytest.fixture
def forget(server):
    """Ids of sandboxes that a test leaves."""
    ids = []
    yield ids
    for sandbox_id in ids:
        server.request("DELETE", f"/sandboxes/{sandbox_id}")


def test_a_job_longer_than_its_runs_loses_no_row(server, forget):
    done = job(server, "run", "--json", "--name", "rows", "--timeout", "6", "--keep", *long_job(), check=0)
    lines = objects(done.stdout)
    segments = [line for line in lines if line["type"] == "segment"]
    end = lines[-1]
    forget.append(end["sandboxID"])
    assert end["type"] == "end" and end["exitCode"] == 0 and end["sandbox"] == "running"
    assert len(segments) >= 2 and end["segments"] == len(segments) == segments[-1]["number"]
    assert len({segment["startedAt"] for segment in segments}) == len(segments)
    text = output_of(lines)
    assert numbers(text) == list(range(1, ROWS + 1)) and text.endswith(f"{ROWS} rows are done\n")
    assert end["outputBytes"] == len(text.encode())
    assert read_file(end["sandboxID"], "results.csv") == text.rpartition(f"{ROWS} rows")[0]
    listed = json.loads(job(server, "list", "--json", check=0).stdout)
    assert [item["name"] for item in listed if item["sandboxID"] == end["sandboxID"]] == ["rows"]
    # Whoever comes later sees the same.
    again = objects(job(server, "attach", end["sandboxID"], "--json", "--keep", check=0).stdout)
    assert output_of(again) == text


def test_a_client_that_was_interrupted_goes_on_where_it_was(server, forget):
    first = subprocess.Popen(command(server, "run", "--timeout", "6", *long_job()), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    killer = threading.Timer(LIMIT, first.kill)
    killer.start()
    try:
        shown = "".join(first.stdout.readline() for _ in range(5))
        first.send_signal(signal.SIGINT)
        rest, said = first.communicate(timeout=60)
    finally:
        killer.cancel()
    assert first.returncode == 130, said
    hint = re.search(r"glovebox (job attach .*)", said).group(1).split()
    sandbox_id, offset = hint[-3], int(hint[-1])
    forget.append(sandbox_id)
    shown += rest
    assert hint[-2] == "--offset" and offset == len(shown.encode())
    # Nobody resumes it: it sleeps until somebody comes.
    eventually(lambda: state(server, sandbox_id) == "paused", 90)
    done = subprocess.run([GLOVEBOX, *hint, "--timeout", "6"], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert numbers(shown + done.stdout) == list(range(1, ROWS + 1))
    assert state(server, sandbox_id) is None  # ended after success


def test_the_exit_code_is_the_commands_and_what_failed_is_kept(server, forget):
    done = job(server, "run", "--json", "--env", "WORD=it's", "--", "sh", "-c", 'echo "$WORD"; echo bad >&2; exit 7', check=7)
    lines = objects(done.stdout)
    assert output_of(lines) == "it's\nbad\n"
    end = lines[-1]
    forget.append(end["sandboxID"])
    assert end["exitCode"] == 7 and end["sandbox"] == "paused" and end["sandboxID"] in done.stderr
    assert state(server, end["sandboxID"]) == "paused"
    assert job(server, "attach", end["sandboxID"], check=7).stdout == "it's\nbad\n"
    assert state(server, end["sandboxID"]) == "paused"


def test_what_is_killed_inside_is_no_success(server, forget):
    done = job(server, "run", "--json", "--keep", "--", "sh", "-c", "echo begun; kill -9 $$", check=137)
    lines = objects(done.stdout)
    forget.append(lines[-1]["sandboxID"])
    assert output_of(lines).startswith("begun\n")


def test_nothing_is_made_of_a_mistake(server):
    before = json.loads(job(server, "list", "--json", check=0).stdout)
    for wrong in (["run"], ["run", "--env", "A", "--", "true"], ["run", "--upload", "/no/such/file:x", "--", "true"],
                  ["run", "--upload", "nonsense", "--", "true"], ["run", "--template", "nonsense", "--", "true"],
                  ["run", "--timeout", "99999999", "--", "true"], ["attach", "inosuchsandbox000000"]):
        done = job(server, *wrong)
        assert done.returncode not in (0, 130) and done.stderr, wrong
    assert json.loads(job(server, "list", "--json", check=0).stdout) == before


def test_a_sandbox_without_a_job_has_none(server, base):
    done = job(server, "attach", base.sandbox_id, "--keep")
    assert done.returncode == 3 and "no job" in done.stderr


def test_a_server_that_comes_back_is_waited_for():
    """The server dies without a word and starts again on the same port; the job does not notice, its client goes on."""
    one = Server()
    client = None
    try:
        client = subprocess.Popen(command(one, "run", "--json", "--timeout", "120", *long_job(20, 0.3)),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [client.stdout.readline()]
        while '"type":"output"' not in lines[-1]:
            assert lines[-1], client.stderr.read()
            lines.append(client.stdout.readline())
        one.kill_hard()
        time.sleep(1)
        again = one.command()
        again[again.index("--port") + 1] = one.url.rsplit(":", 1)[1]
        one.command = lambda: again
        one.start()
        rest, said = client.communicate(timeout=LIMIT)
        assert client.returncode == 0, said
        assert numbers(output_of(objects("".join(lines) + rest))) == list(range(1, 21))
    finally:
        if client is not None and client.poll() is None:
            client.kill()
            client.wait()
        one.close()
