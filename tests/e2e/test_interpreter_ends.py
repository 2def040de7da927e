# SPDX-License-Identifier: Apache-2.0
"""Contract 4.2, when something ends that should not, or does not end that should: clients that leave, kernels that die, memory that
is short, and the interpreter's server itself."""
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import eventually
from e2b.exceptions import NotFoundException, TimeoutException
from interpreter_cells import ALL, BASH, JAVA, JAVASCRIPT, PYTHON, R, TYPESCRIPT, long, run, told

BOOT = "cat /proc/sys/kernel/random/boot_id"


@pytest.mark.parametrize("language, endless", [
    (PYTHON, "while True: pass"), (JAVASCRIPT, "while (true) {}"), (TYPESCRIPT, "await new Promise<void>(() => {})"),
    (BASH, "sleep 1000"), pytest.param(R, "repeat {}", marks=long), pytest.param(JAVA, "while (true) { }", marks=long)],
    ids=[language.name for language in ALL])
def test_a_client_that_leaves_interrupts_its_cell(interpreter, language, endless):
    assert run(interpreter, language, language.keep).error is None
    with pytest.raises(TimeoutException):
        run(interpreter, language, endless, timeout=3)
    again = run(interpreter, language, language.use, timeout=10)
    assert again.error is None
    assert ("".join(again.logs.stdout) if language is BASH else again.results[0].text) == language.value


@pytest.mark.parametrize("language, die", [
    (PYTHON, "import os; os.kill(os.getpid(), 9)"), (BASH, "kill -9 $$"),
    (JAVASCRIPT, "process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})")], ids=["python", "bash", "javascript"])
def test_a_kernel_that_is_killed_is_an_error_and_starts_afresh(interpreter, language, die):
    assert run(interpreter, language, language.keep).error is None
    killed = run(interpreter, language, die)
    assert killed.error.name == "ContextRestarting" and "killed by signal 9" in killed.error.value
    fresh = run(interpreter, language, language.hello)
    assert fresh.error is None and fresh.execution_count == 1
    assert told(interpreter, language, language.folder) == "/home/user\n"
    assert told(interpreter, language, language.printing("E2B_SANDBOX_ID")) == interpreter.sandbox_id + "\n"
    lost = run(interpreter, language, language.use)
    shown = "".join(lost.logs.stdout) + (lost.text or "")
    assert language.value.strip() not in shown, "the variable is gone"


@pytest.mark.parametrize("language, leave, error", [
    (JAVASCRIPT, "console.log('bye'); process.exit(3)", ("ExitCode", "3")), (JAVASCRIPT, "console.log('bye'); process.exit()", None),
    (BASH, "echo bye; exit 3", ("ExitCode", "3")), (BASH, "echo bye; exit", None), (PYTHON, "print('bye'); exit()", None)],
    ids=["javascript-3", "javascript", "bash-3", "bash", "python"])
def test_code_that_exits_takes_no_other_cell_with_it(interpreter, language, leave, error):
    assert run(interpreter, language, language.keep).error is None
    left = run(interpreter, language, leave)
    assert left.logs.stdout == ["bye\n"] and "its variables are lost" in "".join(left.logs.stderr)
    assert (left.error and (left.error.name, left.error.value)) == error
    fresh = run(interpreter, language, language.hello)
    assert fresh.error is None and fresh.execution_count == 1


HOGS = {PYTHON: "hog = []\nwhile True: hog.append(b'x' * (16 << 20))",
        JAVASCRIPT: "const hog = []; while (true) hog.push(Buffer.alloc(16 << 20, 'x'))"}


@pytest.mark.parametrize("language", HOGS, ids=str)
def test_a_cell_that_takes_all_memory_ends_its_kernel_and_nothing_else(interpreter, language):
    other = BASH
    assert run(interpreter, other, other.keep).error is None
    boot = interpreter.commands.run(BOOT).stdout
    killed = run(interpreter, language, HOGS[language], timeout=300)
    assert killed.error.name == "ContextRestarting" and "ran out of memory" in killed.error.value, killed.error
    assert run(interpreter, language, language.hello).execution_count == 1
    assert interpreter.commands.run(BOOT).stdout == boot
    assert told(interpreter, other, other.use) == other.value
    assert {"python", "javascript", "bash"} <= {context.language for context in interpreter.list_code_contexts()}


def test_a_child_that_takes_all_memory_leaves_the_kernel_alive(interpreter):
    assert run(interpreter, PYTHON, PYTHON.keep).error is None
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', '''x = []\nwhile True: x.append(b\"x\" * (16 << 20))''']).returncode"
    assert interpreter.run_code(code, timeout=300).text == "-9"
    assert run(interpreter, PYTHON, PYTHON.use).text == PYTHON.value


def test_the_server_that_is_killed_is_back_soon(server, interpreter):
    """Its clients are told, its kernels are swept away, and what it had is not pretended to be there."""
    def health():
        return server.request("GET", "/health", headers={"E2b-Sandbox-Id": interpreter.sandbox_id, "E2b-Sandbox-Port": "49999"},
                              key=False)[:2]

    context = interpreter.create_code_context(language="bash", cwd="/tmp")
    before = {other.id for other in interpreter.list_code_contexts()}
    assert run(interpreter, PYTHON, PYTHON.keep).error is None and health() == (200, "OK")
    begun = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(interpreter.run_code, "print('on'); import time; time.sleep(300)", on_stdout=lambda _: begun.set())
        assert begun.wait(60)
        interpreter.commands.run("pkill -9 -f -- '--no-supervis[e]'", user="root")
        cut = running.exception(60)
    assert cut is not None and not isinstance(cut, TimeoutError), "the client hears of it"
    eventually(lambda: health() == (200, "OK"), 30)
    for language in (PYTHON, JAVASCRIPT, BASH):
        fresh = run(interpreter, language, language.hello)
        assert fresh.error is None and fresh.execution_count == 1, language
    after = interpreter.list_code_contexts()
    assert {"python", "javascript"} <= {other.language for other in after} and not before & {other.id for other in after}
    with pytest.raises(NotFoundException, match=f"Context {context.id} not found"):
        interpreter.run_code("pwd", context=context)
    assert interpreter.commands.run("pgrep -fc '^/usr/bin/python3.*ipykernel'").stdout == "1\n", "no kernel is left from before"
