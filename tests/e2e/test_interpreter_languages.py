# SPDX-License-Identifier: Apache-2.0
"""Contract 4: every language of the code interpreter does what the others do: output, results, state, errors, environment variables,
current folder; and its kernel, frozen with the template's machine, is every sandbox's own."""
import subprocess

import pytest
from conftest import ROOT
from e2b_code_interpreter import Sandbox
from interpreter_cells import ALL, ALL_BUT_JAVA, BASH, JAVA, JAVASCRIPT, PYTHON, QUICK, R, TYPESCRIPT, run, told

every_language = pytest.mark.parametrize("language", ALL, ids=str)
ENVS = {"TEAM": "red 'and' \"blue\"", "KEPT": "the sandbox's"}


@pytest.fixture(scope="module")
def box(server):
    """One sandbox for all tests of a file."""
    sandbox = Sandbox.create(timeout=1800, envs=ENVS)
    yield sandbox
    sandbox.kill()


@every_language
def test_output_state_results_and_errors(box, language):
    first = run(box, language, language.hello)
    assert ("".join(first.logs.stdout), "".join(first.logs.stderr).strip(), first.error) == ("out\n", "err", None)
    assert run(box, language, language.keep).error is None
    used = run(box, language, language.use)
    assert used.error is None
    shown = "".join(used.logs.stdout) if language is BASH else used.results[0].text
    assert shown == language.value
    failed = run(box, language, language.fail)
    assert failed.error.name == language.failure, failed.error
    assert language is BASH or failed.error.traceback
    broken = run(box, language, language.broken)
    assert broken.error.name == language.breakage, broken.error
    last = run(box, language, language.hello)
    assert "".join(last.logs.stdout) == "out\n" and last.execution_count == first.execution_count + 5


@every_language
def test_t9_environment_variables_in_every_language(box, language):
    """Row T9: of the sandbox and of one call; what a call lends it takes back."""
    assert told(box, language, language.printing("TEAM")) == ENVS["TEAM"] + "\n"
    assert told(box, language, language.printing("E2B_SANDBOX_ID")) == box.sandbox_id + "\n"
    lent = {"FOO": "it's \"ünï\" $HOME `id` \\n", "TEAM": "green"}
    for name, value in lent.items():
        assert told(box, language, language.printing(name), envs=lent) == value + "\n"
    assert told(box, language, language.printing("FOO")) == "-\n"
    assert told(box, language, language.printing("TEAM")) == ENVS["TEAM"] + "\n"
    # a cell that fails gives them back too
    assert run(box, language, language.fail, envs=lent).error.name == language.failure
    assert told(box, language, language.printing("FOO")) == "-\n"


@every_language
def test_t9_what_the_code_set_comes_back_after_a_call(box, language):
    env = language.printing("KEPT")
    if language is JAVA:  # the variables of its process cannot be set, so properties stand for them
        env = env.replace("getenv", "getProperty")
    assert run(box, language, language.setenv).error is None
    assert told(box, language, env) == "mine\n"
    assert told(box, language, env, envs={"KEPT": "lent"}) == "lent\n"
    assert told(box, language, env) == "mine\n"


@pytest.mark.parametrize("language", QUICK, ids=str)
def test_folders_of_default_and_created_contexts(box, language):
    box.commands.run("mkdir -p '/tmp/a folder'")
    assert told(box, language, language.folder) == "/home/user\n"
    context = box.create_code_context(language=language.name, cwd="/tmp/a folder")
    try:
        assert (context.language, context.cwd) == (language.name, "/tmp/a folder")
        for code in (language.folder, language.folder_after):
            execution = box.run_code(code, context=context)
            assert execution.error is None and "".join(execution.logs.stdout) == "/tmp/a folder\n", execution
    finally:
        box.remove_code_context(context)


def test_t11_fast_code_always_has_its_output(box):
    """Row T11."""
    for language, cell in ((PYTHON, "print({0})"), (JAVASCRIPT, "console.log({0})"), (BASH, "echo {0}"), (R, "cat('{0}\\n')"),
                           (JAVA, "System.out.println({0})")):
        for n in range(100 if language is PYTHON else 10):
            assert told(box, language, cell.format(n)) == f"{n}\n"


def test_modules_of_javascript(box):
    box.files.write("/home/user/own.mjs", "export const word = 'ours'; export default 7")
    box.files.write("/home/user/old.cjs", "exports.word = 'old'")
    for language in (JAVASCRIPT, TYPESCRIPT):
        assert run(box, language, "await Promise.resolve('waited')").text == "waited"
        assert run(box, language, "import seven, { word } from './own.mjs'\nimport { basename } from 'node:path'\n"
                                  "`${word} ${seven} ${basename('/a/b')}`").text == "ours 7 b"
        assert run(box, language, "const { word: was } = require('./old.cjs'); was + require('os').EOL.length").text == "old1"
        assert run(box, language, "(await import('fs/promises')).readFile.name").text == "readFile"
    assert run(box, JAVASCRIPT, "require('no-such-package')").error.name == "Error"
    assert "no-such-package" in run(box, JAVASCRIPT, "import 'no-such-package'").error.value


def test_the_official_javascript_client_gets_the_same(server):
    own = ROOT / "build/npm/node_modules/.bin/node"
    done = subprocess.run([str(own) if own.exists() else "node", str(ROOT / "tests/e2e/js/interpreter.mjs")], capture_output=True,
                          text=True, timeout=1800, cwd=ROOT / "build/npm")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "all well"


class Family:
    """A sandbox, a second one of its template, a fork and a child of its snapshot; all their kernels came out of one frozen machine."""

    def __init__(self):
        self.members = []
        self.snapshot_id = None
        try:
            self.source = Sandbox.create(timeout=1800)
            self.members.append(self.source)
            self.first = [run(self.source, language, code) for language, code in (
                (PYTHON, "kept = {'answer': 42}"), (JAVASCRIPT, "const kept = { answer: 42 }"), (BASH, "kept=42"), (R, "kept <- 42"),
                (JAVA, "int kept = 42;"))]
            # generators that are in use already go on in every copy
            self.before = {language: told(self.source, language, language.randoms).split() for language in ALL}
            [fork] = self.source.fork(count=1, timeout=1800)
            self.members.append(fork)
            self.snapshot_id = self.source.create_snapshot().snapshot_id
            self.members.append(Sandbox.create(self.snapshot_id, timeout=1800))
            self.members.append(Sandbox.create(timeout=1800))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for sandbox in self.members:
            sandbox.kill()
        if self.snapshot_id:
            Sandbox.delete_snapshot(self.snapshot_id)


@pytest.fixture(scope="module")
def family(server):
    there = Family()
    yield there
    there.close()


def test_cells_are_counted_from_one_in_every_new_sandbox(family):
    """Whatever ran before the machine was frozen."""
    assert [(execution.error, execution.execution_count) for execution in family.first] == [(None, 1)] * len(family.first)


@pytest.mark.parametrize("language", ALL_BUT_JAVA, ids=str)
def test_random_numbers_differ_in_every_copy(family, language):
    drawn = [family.before[language], *(told(sandbox, language, language.randoms).split() for sandbox in family.members)]
    assert all(len(numbers) == len(drawn[0]) >= 4 for numbers in drawn)
    assert len({number for numbers in drawn for number in numbers}) == sum(map(len, drawn)), drawn


KEPT = ((PYTHON, "print(kept['answer'])"), (JAVASCRIPT, "console.log(kept.answer)"), (BASH, "echo $kept"),
        (R, "cat(kept, '\\n', sep = '')"), (JAVA, "System.out.println(kept)"))


def test_variables_are_in_every_copy_and_in_no_other_sandbox(family):
    source, fork, child, stranger = family.members
    for language, code in KEPT:
        for sandbox in (source, fork, child):
            assert told(sandbox, language, code) == "42\n", language
        assert "42" not in "".join(run(stranger, language, code).logs.stdout)


def test_variables_survive_pause_and_resume(family):
    source = family.source
    own = source.create_code_context(language="javascript", cwd="/tmp")
    source.run_code("let calls = 0; const next = () => ++calls; next()", context=own)
    listed = sorted(context.id for context in source.list_code_contexts())
    assert source.pause()
    again = Sandbox.connect(source.sandbox_id, timeout=1800)
    for language, code in KEPT:
        assert told(again, language, code) == "42\n", language
    assert again.run_code("next() + process.cwd()", context=own).text == "2/tmp"
    assert sorted(context.id for context in again.list_code_contexts()) == listed
