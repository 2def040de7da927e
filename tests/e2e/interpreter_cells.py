# SPDX-License-Identifier: Apache-2.0
"""The same cells in every language of the code interpreter, for the scenarios of test_interpreter*.py. What a cell tells it prints,
because a language without values (Bash) has nothing else."""
import os
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Language:
    name: str
    hello: str  # prints "out" to stdout and "err" to stderr, a line each
    keep: str  # x is 20 from now on
    use: str  # f() gives x + 22, made and called
    value: str  # what the main result of `use` shows; printed where there are no values
    fail: str
    failure: str  # name of the error
    broken: str  # is no code
    breakage: str
    env: str  # prints {name}, or "-" when it is not set
    setenv: str  # sets KEPT to "mine", as code of the user does
    folder: str  # prints the current directory
    folder_after: str  # a child process or a relative file agrees
    randoms: str  # prints one random number a line, from every source that people use
    meet: str  # prints "waiting", then "met" once the file {path} is there, or "alone" after a minute

    def __str__(self) -> str:
        return self.name

    def printing(self, variable: str) -> str:
        return self.env.replace("{name}", variable)

    def meeting(self, path: str) -> str:
        return self.meet.replace("{path}", path)


PYTHON = Language(
    "python",
    hello="import sys; print('out'); print('err', file=sys.stderr)",
    keep="x = 20",
    use="def f(): return x + 22\nf()",
    value="42",
    fail="[][1]", failure="IndexError",
    broken="def (", breakage="SyntaxError",
    env="import os; print(os.environ.get('{name}', '-'))",
    setenv="import os; os.environ['KEPT'] = 'mine'",
    folder="import os; print(os.getcwd())",
    folder_after="import subprocess; print(subprocess.check_output('pwd', text=True), end='')",
    randoms="""
import os, random, secrets, ssl, tempfile, uuid, numpy
print(random.random(), random.getrandbits(64), random.SystemRandom().random(), secrets.token_hex(8), uuid.uuid4(), uuid.uuid1(),
      numpy.random.rand(), numpy.random.randint(1 << 60), numpy.random.default_rng().random(), os.urandom(8).hex(), tempfile.mktemp(),
      ssl.RAND_bytes(8).hex(), sep='\\n')""",
    meet="""
import os, time
print('waiting')
for _ in range(600):
    if os.path.exists('{path}'): break
    time.sleep(0.1)
print('met' if os.path.exists('{path}') else 'alone')""")

JAVASCRIPT = Language(
    "javascript",
    hello="console.log('out'); console.error('err')",
    keep="const x = 20",
    use="function f() { return x + 22 }\nf()",
    value="42",
    fail="undefined.x", failure="TypeError",
    broken="function (", breakage="SyntaxError",
    env="console.log(process.env['{name}'] ?? '-')",
    setenv="process.env.KEPT = 'mine'",
    folder="console.log(process.cwd())",
    folder_after="process.stdout.write(require('child_process').execSync('pwd'))",
    randoms="""
const c = require('crypto')
console.log([Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint32Array(2)).join('.'), c.randomUUID(), c.randomInt(2 ** 47),
             c.randomBytes(8).toString('hex'), c.generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }).d].join('\\n'))""",
    meet="""
const fs = require('fs')
console.log('waiting')
for (let n = 0; n < 600 && !fs.existsSync('{path}'); n++) await new Promise(done => setTimeout(done, 100))
console.log(fs.existsSync('{path}') ? 'met' : 'alone')""")

TYPESCRIPT = Language(
    "typescript",
    hello="interface Line { text: string }\nconst line: Line = { text: 'out' }; console.log(line.text); console.error('err' as string)",
    keep="let x: number = 20",
    use="enum More { Two = 22 }\nfunction f(): number { return x + More.Two }\nf()",
    value="42",
    fail="(null as any).x", failure="TypeError",
    broken="let a: = 1", breakage="SyntaxError",
    env="console.log((process.env['{name}'] as string | undefined) ?? '-')",
    setenv="process.env.KEPT = 'mine' as string",
    folder=JAVASCRIPT.folder, folder_after=JAVASCRIPT.folder_after, randoms=JAVASCRIPT.randoms,
    meet="""
import { existsSync } from 'fs'
console.log('waiting')
for (let n: number = 0; n < 600 && !existsSync('{path}'); n++) await new Promise<void>(done => setTimeout(done, 100))
console.log(existsSync('{path}') ? 'met' : 'alone')""")

BASH = Language(
    "bash",
    hello="echo out; echo err >&2",
    keep="x=20",
    use="f() { echo $((x + 22)); }; f",
    value="42\n",
    fail="(exit 3)", failure="ExitCode",
    broken="if true", breakage="ExitCode",
    env="printenv {name} || echo -",
    setenv="export KEPT=mine",
    folder="echo $PWD",
    folder_after="/bin/pwd",
    randoms="echo $RANDOM-$RANDOM-$RANDOM-$RANDOM; echo $SRANDOM-$SRANDOM; (echo $RANDOM-$RANDOM-$RANDOM-$RANDOM); mktemp -u",
    meet="echo waiting; for n in {1..600}; do [[ -e '{path}' ]] && break; sleep 0.1; done; [[ -e '{path}' ]] && echo met || echo alone")

R = Language(
    "r",
    hello="cat('out\\n'); message('err')",
    keep="x <- 20",
    use="f <- function() x + 22\nf()",
    value="[1] 42",
    fail="stop('broken')", failure="ERROR",
    broken="x <- )", breakage="ERROR",
    env="cat(Sys.getenv('{name}', unset = '-'), '\\n', sep = '')",
    setenv="Sys.setenv(KEPT = 'mine')",
    folder="cat(getwd(), '\\n', sep = '')",
    folder_after="cat(system('pwd', intern = TRUE), '\\n', sep = '')",
    randoms="cat(format(c(runif(1), rnorm(1), rexp(1)), digits = 15), sample.int(2^31 - 1, 1), paste(sample(letters), collapse = ''), sep = '\\n')",
    meet="""
cat('waiting\\n')
for (n in 1:600) if (file.exists('{path}')) break else Sys.sleep(0.1)
cat(if (file.exists('{path}')) 'met\\n' else 'alone\\n')""")

JAVA = Language(
    "java",
    hello='System.out.println("out"); System.err.println("err");',
    keep="int x = 20;",
    use="int f() { return x + 22; }\nf()",
    value="42",
    fail="int[] none = {}; none[1] = 3;", failure="java.lang.ArrayIndexOutOfBoundsException",
    broken="int broken = ;", breakage="CompilationError",
    env='System.out.println(System.getenv("{name}") == null ? "-" : System.getenv("{name}"))',
    setenv='System.setProperty("KEPT", "mine")',
    folder='System.out.println(System.getProperty("user.dir"))',
    folder_after='System.out.println(java.nio.file.Path.of("").toAbsolutePath())',
    randoms="""
System.out.println(Math.random());
System.out.println(new java.util.Random().nextLong());
System.out.println(java.util.UUID.randomUUID());
System.out.println(java.util.concurrent.ThreadLocalRandom.current().nextLong());
System.out.println(new java.util.SplittableRandom().nextLong());
System.out.println(new java.security.SecureRandom().nextLong());""",
    meet="""
System.out.println("waiting");
var there = new java.io.File("{path}");
for (int n = 0; n < 600 && !there.exists(); n++) Thread.sleep(100);
System.out.println(there.exists() ? "met" : "alone");""")

ALL = (PYTHON, JAVASCRIPT, TYPESCRIPT, BASH, R, JAVA)

# What takes ten seconds and more in an emulated machine, and is seen natively by tests beside the code, too.
long = pytest.mark.skipif(os.environ.get("GLOVEBOX_LONG_TESTS") != "1", reason="takes long: GLOVEBOX_LONG_TESTS=1")
QUICK = (PYTHON, JAVASCRIPT, TYPESCRIPT, BASH, pytest.param(R, marks=long), pytest.param(JAVA, marks=long))
ALL_BUT_JAVA = (PYTHON, JAVASCRIPT, TYPESCRIPT, BASH, R, pytest.param(JAVA, marks=long))


def run(sandbox, language: Language, code: str, **options):
    """In the default context of the language."""
    return sandbox.run_code(code, language=language.name, **options)


def told(sandbox, language: Language, code: str, **options) -> str:
    """What the cell printed; it has no error."""
    execution = run(sandbox, language, code, **options)
    assert execution.error is None, execution.error
    return "".join(execution.logs.stdout)
