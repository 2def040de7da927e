# SPDX-License-Identifier: Apache-2.0
"""Contract 4.1 to 4.3: contexts of the code interpreter, what flows out of their cells while they run, and how much of it."""
import json
import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from e2b.exceptions import NotFoundException
from interpreter_cells import ALL, ALL_BUT_JAVA, BASH, JAVA, JAVASCRIPT, PYTHON, R, TYPESCRIPT, long, run, told

PORT = "49999"
MIB = 1 << 20
LONG = os.environ.get("GLOVEBOX_LONG_TESTS") == "1"


def ask(server, sandbox, method: str, path: str, body=None):
    """A bare request to the interpreter, through the ingress."""
    return server.request(method, path, body, {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": PORT,
                                               "Content-Type": "application/json"}, key=False)[:2]


@pytest.fixture
def context(interpreter):
    """A context for one test, in the language that starts soonest."""
    made = interpreter.create_code_context(language="bash")
    yield made
    if made.id in [other.id for other in interpreter.list_code_contexts()]:
        interpreter.remove_code_context(made)


@pytest.fixture(scope="module")
def silence(server, interpreter):
    """Begun early, for it takes long: all lines of a cell that says nothing for 20 s."""
    context = interpreter.create_code_context(language="bash")
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(ask, server, interpreter, "POST", "/execute",
                          {"code": "sleep 20; echo awake", "context_id": context.id})
    interpreter.remove_code_context(context)


pytestmark = pytest.mark.usefixtures("silence")


def test_contexts_are_listed_restarted_and_removed(interpreter, context):
    listed = interpreter.list_code_contexts()
    assert {"python", "javascript"} <= {other.language for other in listed if other.cwd == "/home/user"}
    assert (context.id, context.language, context.cwd) in [(other.id, other.language, other.cwd) for other in listed]
    assert interpreter.run_code("x=1; echo $x", context=context).logs.stdout == ["1\n"]
    assert told(interpreter, BASH, "echo ${x-none}") == "none\n"
    interpreter.restart_code_context(context)
    again = interpreter.run_code("echo ${x-gone}", context=context)
    assert again.logs.stdout == ["gone\n"] and again.execution_count == 1
    interpreter.remove_code_context(context)
    assert context.id not in [other.id for other in interpreter.list_code_contexts()]
    with pytest.raises(NotFoundException, match=f"Context {context.id} not found"):
        interpreter.run_code("true", context=context)


def test_what_is_no_context_is_refused(server, interpreter, context):
    unknown = str(uuid.uuid4())
    for call in (interpreter.remove_code_context, interpreter.restart_code_context):
        with pytest.raises(NotFoundException, match=f"Context {unknown} not found"):
            call(unknown)
    with pytest.raises(Exception, match="No kernel for language 'cobol'.*python"):
        interpreter.create_code_context(language="cobol")
    with pytest.raises(Exception, match="No kernel for language 'cobol'.*python"):
        interpreter.run_code("1", language="cobol")
    with pytest.raises(Exception, match="'/no/such/folder' is not a directory"):
        interpreter.create_code_context(cwd="/no/such/folder")
    both = {"code": "1", "context_id": context.id, "language": "python"}
    assert ask(server, interpreter, "POST", "/execute", both) == (400, "Only one of context_id or language can be provided")
    assert ask(server, interpreter, "POST", "/execute", {"code": "1", "context_id": unknown}) == (404, f"Context {unknown} not found")


def test_contexts_run_side_by_side(interpreter, context):
    """Each waits for what the others make: in a row, none would end well."""
    names = ("python", "javascript", "bash", "another bash")
    folder = f"/tmp/{uuid.uuid4().hex}"
    interpreter.files.make_dir(folder)
    python = (f"import os, time\nfor _ in range(600):\n    if len(os.listdir('{folder}')) == {len(names)}: break\n    time.sleep(0.1)\n"
              f"len(os.listdir('{folder}'))")
    script = (f"for n in {{1..600}}; do there=('{folder}'/*); (( ${{#there[@]}} == {len(names)} )) && break; sleep 0.1; done; "
              "printf %s ${#there[@]}")
    node = (f"const {{ readdirSync }} = require('fs'); "
            f"for (let n = 0; n < 600 && readdirSync('{folder}').length < {len(names)}; n++) await new Promise(d => setTimeout(d, 100));\n"
            f"readdirSync('{folder}').length")

    def touch(name: str) -> str:
        return f"{folder}/{name}"

    with ThreadPoolExecutor() as pool:
        running = [pool.submit(run, interpreter, PYTHON, f"open('{touch(names[0])}', 'w').close()\n{python}"),
                   pool.submit(run, interpreter, JAVASCRIPT, f"require('fs').writeFileSync('{touch(names[1])}', '')\n{node}"),
                   pool.submit(run, interpreter, BASH, f"> '{touch(names[2])}'; {script}"),
                   pool.submit(interpreter.run_code, f"> '{touch(names[3])}'; {script}", context=context)]
    ended = [one.result() for one in running]
    assert [e.error for e in ended] == [None] * len(names)
    assert [e.text or "".join(e.logs.stdout) for e in ended] == [str(len(names))] * len(names)


def test_one_context_runs_cell_after_cell_in_order_of_arrival(interpreter):
    interpreter.run_code("import time; log = []")
    begun = threading.Event()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(interpreter.run_code, "print('on'); time.sleep(3); log.append('first')", on_stdout=lambda _: begun.set())
        assert begun.wait(60)
        others = []
        for n in range(4):
            others.append(pool.submit(interpreter.run_code, f"log.append({n})"))
            time.sleep(0.5)  # for the requests to arrive one by one
    assert all(one.result().error is None for one in (first, *others))
    assert interpreter.run_code("log").text == "['first', 0, 1, 2, 3]"


@pytest.mark.parametrize("language", ALL_BUT_JAVA, ids=str)
def test_lines_arrive_while_the_cell_runs(interpreter, language):
    """The cell waits for what its reader does when it hears of it."""
    path = f"/tmp/{uuid.uuid4().hex}"
    heard, times = [], []

    def hear(message) -> None:
        heard.append(message.line)
        times.append(message.timestamp)
        if "".join(heard) == "waiting\n":
            interpreter.files.write(path, "")

    execution = run(interpreter, language, language.meeting(path), on_stdout=hear)
    assert execution.error is None and "".join(heard) == "waiting\nmet\n", execution
    assert times == sorted(times) and all(times)


@pytest.mark.parametrize("language", ALL, ids=str)
def test_streams_are_apart_and_in_order(interpreter, language):
    out, err = [], []
    for _ in range(3):
        run(interpreter, language, language.hello, on_stdout=out.append, on_stderr=err.append)
    assert "".join(message.line for message in out) == "out\n" * 3 and not any(message.error for message in out)
    assert "".join(message.line for message in err).split() == ["err"] * 3 and all(message.error for message in err)


@pytest.mark.parametrize("language, mib, code", [
    (PYTHON, 100 if LONG else 10, "for _ in range({}): print('x' * ((1 << 20) - 1))"),
    (BASH, 100, "head -c $(({} << 20)) /dev/zero | tr '\\0' x")], ids=["python", "bash"])
def test_much_output_arrives_whole(interpreter, language, mib, code):
    assert len(told(interpreter, language, code.format(mib))) == mib << 20


@pytest.mark.parametrize("language, code", [
    (PYTHON, "for n in range(20000): print(f'{n:0999}')"),
    pytest.param(JAVASCRIPT, "for (let n = 0; n < 20000; n++) console.log(String(n).padStart(999, '0'))", marks=long),
    (BASH, "seq -f %0999.0f 0 19999")], ids=["python", "javascript", "bash"])
def test_a_slow_reader_loses_nothing(interpreter, language, code):
    naps = [0.1] * 30

    def slowly(_) -> None:
        if naps:
            time.sleep(naps.pop())

    assert told(interpreter, language, code, on_stdout=slowly) == "".join(f"{n:0999}\n" for n in range(20000))


NOT_UTF8 = {
    PYTHON: r"import os, sys; sys.stdout.flush(); os.write(1, b'a\xff\xe2\x82b\n')",
    JAVASCRIPT: r"process.stdout.write(Buffer.from([0x61, 0xff, 0xe2, 0x82, 0x62, 0x0a]))",
    BASH: r"printf 'a\xff\xe2\x82b\n'",
    R: r"cat('a\xff\xe2\x82b\n')",
    JAVA: r"for (int b : new int[] {0x61, 0xff, 0xe2, 0x82, 0x62, 0x0a}) System.out.write(b); System.out.flush();",
}
HALVES = {PYTHON: r"print('a\ud800b'); 'c\udfffd'", JAVASCRIPT: r"console.log('a\ud800b'); 'c\udfffd'",
          TYPESCRIPT: r"console.log('a\ud800b'); 'c\udfffd' as string", JAVA: "System.out.println(\"a\\ud800b\");\n\"c\\udfffd\""}


@pytest.mark.parametrize("language", NOT_UTF8, ids=str)
def test_bytes_that_are_no_text_are_shown_somehow(interpreter, language):
    shown = told(interpreter, language, NOT_UTF8[language])
    assert shown[0] == "a" and shown.endswith("b\n") and 3 < len(shown) < 20, shown
    assert told(interpreter, language, language.hello) == "out\n"


@pytest.mark.parametrize("language", HALVES, ids=str)
def test_half_a_character_is_shown_somehow(interpreter, language):
    execution = run(interpreter, language, HALVES[language])
    shown = "".join(execution.logs.stdout)
    assert execution.error is None and shown[0] == "a" and shown.endswith("b\n"), execution
    assert execution.text[0] == "c" and execution.text[-1] == "d"


@pytest.mark.parametrize("language, code", [
    (PYTHON, "print('€' * 3_500_000)"), (JAVASCRIPT, "console.log('€'.repeat(3_500_000))"),
    (BASH, "head -c 3500000 /dev/zero | tr '\\0' x | sed s/x/€/g; echo"),
    (R, "cat(strrep('€', 3500000), '\\n', sep = '')"), (JAVA, 'System.out.println("€".repeat(3_500_000))')],
    ids=["python", "javascript", "bash", "r", "java"])
def test_a_line_of_10_mb(interpreter, language, code):
    assert told(interpreter, language, code) == "€" * 3_500_000 + "\n"


@pytest.mark.parametrize("language, code", [
    (PYTHON, "print(len('{}'))"), (JAVASCRIPT, "console.log('{}'.length)"), (BASH, "x='{}'; echo ${{#x}}"),
    (R, "x <- '{}'\ncat(nchar(x), '\\n', sep = '')")], ids=["python", "javascript", "bash", "r"])
def test_code_of_a_megabyte(interpreter, language, code):
    assert told(interpreter, language, code.format("x" * MIB)) == f"{MIB}\n"


@pytest.mark.parametrize("language", ALL, ids=str)
def test_code_that_is_nothing(interpreter, language):
    comment = "#" if language in (PYTHON, BASH, R) else "//"
    for code in ("", " \n\n", f"{comment} nothing"):
        execution = run(interpreter, language, code)
        assert (execution.error, execution.results, execution.logs.stdout, execution.logs.stderr) == (None, [], [], []), (code, execution)


def test_a_silent_cell_is_kept_alive(silence):
    status, text = silence.result(120)
    lines = [json.loads(line) for line in text.splitlines()]
    assert status == 200 and [line["text"] for line in lines if line["type"] == "stdout"] == ["awake\n"]
    assert len([line for line in lines if line["type"] == "keepalive"]) >= 3
    assert lines[-1] == {"type": "end_of_execution"}
