# SPDX-License-Identifier: Apache-2.0
"""The Java kernel as its server sees it: a process, two pipes of requests and answers, two of output.

Run with /usr/bin/python3 -m unittest tests/kernel/test_java.py; needs a JDK 17.
"""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src/guest/interpreter/kernel/java"
DEADLINE_S = 120  # a hang fails a test; speed does not
OPENED = ["java.base/java.lang", "java.base/java.util", "java.base/java.util.concurrent",
          "java.base/sun.security.provider", "java.base/jdk.internal.loader", "jdk.random/jdk.random",
          "jdk.jshell/jdk.jshell"]
FLAGS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData", "-Xms64m", "-Xmn24m",
         "-Xmx256m", "-Djava.awt.headless=true", "-Dfile.encoding=UTF-8",
         *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED)]

_scratch = None


def setUpModule():
    global _scratch
    _scratch = tempfile.mkdtemp(prefix="java-kernel-")
    subprocess.run(["javac", "-nowarn", "-XDignore.symbol.file", "-d", _scratch, *map(str, SOURCES.glob("*.java"))],
                   check=True)


def tearDownModule():
    shutil.rmtree(_scratch)


class Outcome:
    """What one request brought about."""

    def __init__(self):
        self.messages = []
        self.stdout = self.stderr = ""

    def contents(self, kind):
        return [message["content"] for message in self.messages if message["type"] == kind]

    @property
    def reply(self):
        return self.messages[-1]["content"]

    @property
    def data(self):
        results = self.contents("execute_result")
        return results[0]["data"] if results else None

    @property
    def text(self):
        return self.data["text/plain"] if self.data else None

    @property
    def error(self):
        errors = self.contents("error")
        return errors[0] if errors else None


class Kernel:
    def __init__(self, cwd=None, env=None):
        ends = [os.pipe() for _ in range(4)]
        raised = [[fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in pair] for pair in ends]
        for pair in ends:
            for fd in pair:
                os.close(fd)
        (requests, self._requests), (self._answers, answers), (self._out, out), (self._err, err) = raised
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, out, 1),
                   (os.POSIX_SPAWN_DUP2, err, 2), (os.POSIX_SPAWN_DUP2, requests, 3),
                   (os.POSIX_SPAWN_DUP2, answers, 4)]
        command = ["java", *FLAGS, "-cp", _scratch, "glovebox.Kernel"]
        self.pid = os.posix_spawn("/bin/sh", ["sh", "-c", 'cd "$1"; shift; exec "$@"', "sh", cwd or "/", *command],
                                  {**os.environ, **(env or {})}, file_actions=actions, setpgroup=0)
        for fd in (requests, answers, out, err):
            os.close(fd)
        for fd in (self._answers, self._out, self._err):
            os.set_blocking(fd, False)
        self._status = None
        self._pending = b""
        self._read = {self._out: b"", self._err: b""}
        self._number = 0
        self.outcome = Outcome()
        assert self.message() == {"type": "ready"}

    def send(self, kind, **fields):
        self._number += 1
        self.send_raw(json.dumps({"id": str(self._number), "type": kind, **fields}))
        return str(self._number)

    def send_raw(self, line):
        os.write(self._requests, line.encode() + b"\n")

    def message(self):
        """The next answer; None at their end. Output is read meanwhile, or the kernel could not go on."""
        deadline = time.monotonic() + DEADLINE_S
        while b"\n" not in self._pending:
            if time.monotonic() > deadline:
                raise AssertionError(f"no answer; output {self._read}")
            ready, _, _ = select.select([self._answers, self._out, self._err], [], [], 1)
            self.drain()
            if self._answers in ready:
                part = os.read(self._answers, 1 << 20)
                if not part:
                    return None
                self._pending += part
        line, self._pending = self._pending.split(b"\n", 1)
        self.drain()
        return json.loads(line.decode())

    def drain(self):
        for fd in self._read:
            while True:
                try:
                    part = os.read(fd, 1 << 20)
                except BlockingIOError:
                    break
                if not part:
                    break
                self._read[fd] += part

    def wait_for_output(self, text):
        deadline = time.monotonic() + DEADLINE_S
        while text.encode() not in self._read[self._out]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{text!r} was not printed")
            time.sleep(0.01)
            self.drain()

    def finish(self, identifier):
        """Reads up to the reply."""
        outcome = Outcome()
        while not outcome.messages or outcome.messages[-1]["type"] != "reply":
            message = self.message()
            if message is None:
                raise AssertionError(f"the kernel ended; output {self._read}")
            assert message["id"] == identifier, message
            outcome.messages.append(message)
        outcome.stdout = self._read[self._out].decode()
        outcome.stderr = self._read[self._err].decode()
        self._read = {fd: b"" for fd in self._read}
        return outcome

    def start(self, code, count=1):
        return self.send("execute", code=code, count=count, language="java")

    def run(self, code, count=1):
        return self.finish(self.start(code, count))

    def hidden(self, kind, argument):
        return self.finish(self.send(kind, argument=argument))

    def interrupt(self):
        os.killpg(self.pid, signal.SIGINT)

    def memory_kib(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])

    def wait(self):
        """The exit status."""
        deadline = time.monotonic() + DEADLINE_S
        while self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise AssertionError("the kernel did not end")
            else:
                time.sleep(0.01)
        return self._status

    def end_requests(self):
        os.close(self._requests)
        self._requests = None

    def close(self):
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        for fd in (self._requests, self._answers, self._out, self._err):
            if fd is not None:
                os.close(fd)


class SharedKernel(unittest.TestCase):
    """Cases that leave the kernel as they find it, but for definitions of unique names."""

    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel()
        cls.addClassCleanup(cls.kernel.close)

    def ok(self, code, count=1):
        outcome = self.kernel.run(code, count)
        self.assertEqual(outcome.reply, {"status": "ok"}, outcome.error)
        return outcome

    def failed(self, code, count=1):
        outcome = self.kernel.run(code, count)
        self.assertEqual(outcome.reply, {"status": "error"})
        self.assertIsNone(outcome.data)
        return outcome


class Results(SharedKernel):
    def test_hello_world(self):
        outcome = self.ok('System.out.println("Hello, World!")')
        self.assertEqual((outcome.stdout, outcome.stderr, outcome.data), ("Hello, World!\n", "", None))

    def test_last_expression(self):
        self.assertEqual(self.ok("int resultsA = 20; resultsA += 1; resultsA * 2").text, "42")
        self.assertEqual(self.ok("resultsA;").text, "21")
        self.assertEqual(self.ok("resultsA == 21").text, "true")

    def test_only_the_last_counts(self):
        self.assertIsNone(self.ok("1 + 1; int resultsB = 3;").data)

    def test_assignments_declarations_and_void_have_none(self):
        for code in ("int resultsC = 1;", "resultsC = 5", "resultsC += 1;", "int[] resultsE = {1, 2};",
                     "resultsE[0] = 5", "resultsE[resultsE[1] - 1] <<= 1", "void resultsD() {}", "resultsD()",
                     "import java.time.*;", "", "  \n", "// only a comment", "/* and\nanother */"):
            with self.subTest(code=code):
                self.assertIsNone(self.ok(code).data)

    def test_strings_keep_their_text_within_one_pair_of_quotes(self):
        self.assertEqual(self.ok(r'"a \"b\" \\ \n c"').text, '"a "b" \\ \n c"')
        self.assertEqual(self.ok('""').text, '""')
        self.assertEqual(self.ok('"\\"q\\""').text, '""q""')
        self.assertEqual(self.ok("'c'").text, "'c'")
        self.assertEqual(self.ok(r"""new StringBuilder("'x'")""").text, '"\'x\'"')
        self.assertEqual(self.ok('new StringBuilder("plain")').text, "plain")

    def test_null_arrays_and_boxes(self):
        for code, text in (("null", "null"), ("(String) null", "null"), ("new int[] {1, 2}", "[1, 2]"),
                           ("new String[][] {{\"a\"}, null}", "[[a], null]"), ("1.5", "1.5"), ("true", "true"),
                           ("Optional.empty()", "Optional.empty"), ("10L / 4", "2")):
            with self.subTest(code=code):
                self.assertEqual(self.ok(code).text, text)

    def test_an_expression_before_a_comment(self):
        self.assertEqual(self.ok("6 * 7 // the answer").text, "42")
        self.assertEqual(self.ok("6 * 7 /* the\nanswer */\n\n").text, "42")

    def test_simple_lists_and_maps_are_json_too(self):
        self.assertEqual(self.ok('List.of(1, "a", 2.5, true)').data,
                         {"text/plain": "[1, a, 2.5, true]", "application/json": [1, "a", 2.5, True]})
        outcome = self.ok('var m = new TreeMap<String, Object>(); m.put("k", Arrays.asList(1, null)); m')
        self.assertEqual(outcome.data["application/json"], {"k": [1, None]})

    def test_what_json_cannot_hold_is_text_only(self):
        for code in ("List.of(new Object())", "List.of(Double.NaN)", "List.of(Path.of(\"a\"))"):
            with self.subTest(code=code):
                self.assertEqual(list(self.ok(code).data), ["text/plain"])
        outcome = self.ok("var itself = new ArrayList<Object>(); itself.add(itself); itself")
        self.assertEqual(outcome.data, {"text/plain": "[(this Collection)]"})

    def test_an_image_is_png(self):
        outcome = self.ok("new java.awt.image.BufferedImage(3, 2, java.awt.image.BufferedImage.TYPE_INT_RGB)")
        png = base64.b64decode(outcome.data["image/png"])
        self.assertEqual((png[:8], png[16:24]), (b"\x89PNG\r\n\x1a\n", b"\0\0\0\3\0\0\0\2"))

    def test_display_needs_no_import(self):
        outcome = self.ok('Display.html("<b>x</b>"); Display.png(new byte[] {1, 2}); Display.json(Map.of("a", 1));'
                          'Display.show(List.of(7)); 5')
        shown = [content["data"] for content in outcome.contents("display_data")]
        self.assertEqual(shown[0]["text/html"], "<b>x</b>")
        self.assertEqual(shown[1]["image/png"], "AQI=")
        self.assertEqual(shown[2]["application/json"], {"a": 1})
        self.assertEqual(shown[3], {"text/plain": "[7]", "application/json": [7]})
        self.assertEqual(outcome.text, "5")

    def test_any_text_survives(self):
        self.assertEqual(self.ok('"äöü €\\u0000 😀"').text, '"äöü €\0 😀"')
        self.assertEqual(self.ok(r'"<\ud800>"').text, '"<\ufffd>"')
        self.assertEqual(self.ok('System.out.print("ä😀"); System.out.println((char) 0xd800)').stdout, "ä😀?\n")

    def test_a_tostring_that_throws_is_an_error(self):
        outcome = self.failed('class Sulky { public String toString() { throw new RuntimeException("no"); } }\n'
                              'new Sulky()')
        self.assertEqual((outcome.error["ename"], outcome.error["evalue"]), ("java.lang.RuntimeException", "no"))
        self.assertNotIn("glovebox", "".join(outcome.error["traceback"]))
        self.assertIsNone(self.ok("var sulky = new Sulky();").data)


class Definitions(SharedKernel):
    def test_kinds_of_definitions(self):
        self.ok("""
            interface Shape { double area(); }
            record Square(double side) implements Shape { public double area() { return side * side; } }
            enum Colour { RED, GREEN; Colour next() { return values()[(ordinal() + 1) % values().length]; } }
            class Box<T extends Comparable<T>> {
                private final List<T> items = new ArrayList<>();
                Box<T> add(T item) { items.add(item); return this; }
                T largest() { return Collections.max(items); }
            }
            <T> T same(T value) { return value; }
            var squares = Stream.of(1, 2, 3).map(Square::new).collect(Collectors.toList());
        """)
        self.assertEqual(self.ok("squares.stream().mapToDouble(Shape::area).sum()").text, "14.0")
        self.assertEqual(self.ok("same(Colour.GREEN.next())").text, "RED")
        self.assertEqual(self.ok('new Box<String>().add("a").add("b").largest()').text, '"b"')

    def test_later_definitions_replace_earlier_ones(self):
        self.ok("int changed = 1; int changing() { return 1; } class Changes { int v() { return 1; } }")
        self.ok('String changed = "now text"; int changing() { return 2; } class Changes { int v() { return 2; } }')
        self.assertEqual(self.ok('changed + changing() + new Changes().v()').text, '"now text22"')

    def test_a_method_may_use_what_a_later_cell_declares(self):
        outcome = self.ok("int early(int a) { return late(a) + 1; }")
        self.assertIn("early", outcome.stderr)
        self.assertIn("late(int)", outcome.stderr)
        outcome = self.failed("early(1)")
        self.assertEqual(outcome.error["ename"], "UnresolvedReferenceException")
        self.assertIn("late(int)", outcome.error["evalue"])
        self.assertEqual(self.ok("int late(int a) { return a * 10; } early(1)").text, "11")

    def test_forward_references_within_a_cell_have_no_note(self):
        outcome = self.ok("int ping(int n) { return n == 0 ? 0 : pong(n - 1); }\n"
                          "int pong(int n) { return n == 0 ? 1 : ping(n - 1); }\nping(5)")
        self.assertEqual((outcome.text, outcome.stderr), ("1", ""))

    def test_a_class_with_main_is_only_defined(self):
        code = 'public class Program { public static void main(String[] args) { System.out.println("ran"); } }'
        outcome = self.ok(code)
        self.assertEqual((outcome.stdout, outcome.data), ("", None))
        self.assertEqual(self.ok("Program.main(new String[0])").stdout, "ran\n")

    def test_control_flow_and_blocks(self):
        outcome = self.ok("int turns = 0;\nif (turns > 0) {\n  turns = 9;\n}\nelse {\n  turns = 1;\n}\n"
                          "for (int i = 0; i < 3; i++)\n  turns += i;\n{ int turns2 = 5; turns += turns2; }\n"
                          'String kind = switch (turns) { case 9 -> "nine"; default -> """\n  block"""; };\nkind')
        self.assertEqual(outcome.text, '"nine"')

    def test_an_import_lasts(self):
        self.ok("import java.time.LocalDate;")
        self.assertEqual(self.ok("LocalDate.of(2024, 2, 28).plusDays(1)").text, "2024-02-29")

    def test_default_imports(self):
        self.ok("BigInteger big = BigInteger.TWO; Path folder = Path.of(\"/\"); URI uri = URI.create(\"a:b\");"
                "Pattern pattern = Pattern.compile(\"a\"); Function<Integer, Integer> twice = x -> 2 * x;"
                "ExecutorService pool = null; Reader reader = new StringReader(\"\");")
        self.assertEqual(self.ok("twice.apply(big.intValue())").text, "4")

    def test_a_long_cell(self):
        lines = ["long total = 0;"] + [f"total += {n};" for n in range(150)] + ["total"]
        self.assertEqual(self.ok("\n".join(lines)).text, str(sum(range(150))))


class Errors(SharedKernel):
    def test_a_compile_error_marks_its_line(self):
        outcome = self.failed('int errorsA = 1;\n\nint errorsB = "text";\nint errorsC = 3;', count=4)
        error = outcome.error
        self.assertEqual(error["ename"], "CompilationError")
        self.assertIn("String cannot be converted to int", error["evalue"])
        lines = "\n".join(error["traceback"]).splitlines()
        self.assertIn("cell 4, line 3", lines[0])
        at = next(index for index, line in enumerate(lines) if line.endswith('int errorsB = "text";'))
        self.assertEqual(lines[at].index('"text"'), lines[at + 1].index("^"))
        self.assertEqual(self.ok("errorsA").text, "1")  # what came before it remains
        self.failed("errorsC")  # what came after it was not run

    def test_unknown_names(self):
        outcome = self.failed("unknownMethod(3)")
        self.assertEqual(outcome.error["ename"], "CompilationError")
        self.assertIn("cannot find symbol", outcome.error["evalue"])
        self.assertIn("unknownMethod", outcome.error["evalue"])
        self.assertEqual(self.failed("UnknownType value = new UnknownType();").error["ename"], "CompilationError")
        self.assertEqual(self.failed("UnknownType value2;").error["ename"], "CompilationError")

    def test_incomplete_code(self):
        for code in ("for (int i = 0; i < 3; i++) {\n  int j = i;", 'String s = "open', "class A {", "foo(", "/* open",
                     "int x = ;", "}", ")", "@", "\\", "if (", '"""\nopen', "'"):
            with self.subTest(code=code):
                self.assertEqual(self.failed(code).error["ename"], "CompilationError")
        self.assertEqual(self.ok("1").text, "1")

    def test_an_exception_has_the_users_frames_only(self):
        self.ok("int divide(int a,\n           int b) {\n  return a / b;\n}", count=7)
        error = self.failed("int errorsD = 1;\ndivide(errorsD, 0);\nint errorsE = 2;", count=8).error
        self.assertEqual((error["ename"], error["evalue"]), ("java.lang.ArithmeticException", "/ by zero"))
        self.assertEqual(error["traceback"], ["java.lang.ArithmeticException: / by zero",
                                              "\tat divide (cell 7:3)", "\tat (cell 8:2)"])
        self.failed("errorsE")

    def test_statements_before_a_faulty_one_are_run(self):
        outcome = self.failed('System.out.println("one");\nSystem.out.println("two");\nSystem.out.printn("three");\n'
                              'System.out.println("four");\nSystem.out.println("five");')
        self.assertEqual((outcome.stdout, outcome.error["ename"]), ("one\ntwo\n", "CompilationError"))
        self.assertIn("line 3", outcome.error["traceback"][0])
        outcome = self.failed('System.out.println("one");\nthrow new RuntimeException("here");\nSystem.out.println(3);')
        self.assertEqual((outcome.stdout, outcome.error["evalue"]), ("one\n", "here"))

    def test_the_line_of_a_statement_among_others(self):
        outcome = self.failed('// first\nSystem.out.println("one"); System.out.println("two"); // a comment\n'
                              'if (true) {\n}\nInteger.parseInt("x");\nSystem.out.println("three");\n1', count=5)
        self.assertEqual(outcome.stdout, "one\ntwo\n")
        self.assertEqual(outcome.error["traceback"][-1], "\tat (cell 5:5)")

    def test_causes_are_kept(self):
        error = self.failed('class Own extends Exception { Own(String m, Throwable c) { super(m, c); } }\n'
                            'try { Integer.parseInt("x"); } catch (Exception e) { throw new Own("outer", e); }').error
        self.assertTrue(error["ename"].endswith("Own"), error["ename"])
        self.assertEqual(error["evalue"], "outer")
        trace = "\n".join(error["traceback"])
        self.assertIn("Caused by: java.lang.NumberFormatException: For input string", trace)
        self.assertIn("Integer.parseInt", trace)
        self.assertNotIn("REPL", trace)
        self.assertNotIn("glovebox", trace)

    def test_an_exception_without_a_message(self):
        error = self.failed("throw new IllegalStateException();").error
        self.assertEqual((error["ename"], error["evalue"]), ("java.lang.IllegalStateException", ""))

    def test_deep_recursion_is_an_error(self):
        error = self.failed("int deep(int n) { return deep(n + 1) + 1; } deep(0)").error
        self.assertEqual(error["ename"], "java.lang.StackOverflowError")
        self.assertLess(len(error["traceback"]), 100)
        self.assertEqual(self.ok("int shallow(int n) { return n == 0 ? 0 : shallow(n - 1) + 1; } shallow(20000)").text,
                         "20000")

    def test_code_nested_too_deeply_for_the_compiler(self):
        error = self.failed("int nested = " + "(" * 200_000 + "1" + ")" * 200_000 + ";").error
        self.assertEqual(error["ename"], "CompilationError")
        self.assertEqual(self.ok("2").text, "2")

    def test_full_memory_is_an_error(self):
        error = self.failed("var hoard = new ArrayList<byte[]>(); while (true) hoard.add(new byte[1 << 20]);").error
        self.assertEqual(error["ename"], "java.lang.OutOfMemoryError")
        self.assertEqual(self.ok("hoard = null; 1").text, "1")

    def test_an_exception_of_a_background_thread_goes_to_stderr(self):
        outcome = self.ok('var t = new Thread(() -> { throw new RuntimeException("behind"); }); t.start(); t.join();')
        self.assertIn("behind", outcome.stderr)

    def test_a_static_initialiser_that_fails(self):
        error = self.failed("class Fails { static int v = 1 / 0; } Fails.v").error
        self.assertEqual(error["ename"], "java.lang.ExceptionInInitializerError")
        self.assertIn("ArithmeticException", "".join(error["traceback"]))


class Printing(SharedKernel):
    def test_stderr(self):
        outcome = self.ok('System.err.println("bad"); System.out.print("no newline")')
        self.assertEqual((outcome.stdout, outcome.stderr), ("no newline", "bad\n"))

    def test_output_shows_while_the_cell_runs(self):
        identifier = self.kernel.start('for (int i = 0; i < 500; i++) System.out.println(i); System.out.print("shown");'
                                       'Thread.sleep(100_000);')
        self.kernel.wait_for_output("shown")
        self.kernel.interrupt()
        self.assertEqual(self.kernel.finish(identifier).error["ename"], "KeyboardInterrupt")

    def test_the_order_with_child_processes(self):
        outcome = self.ok('System.out.println("before");'
                          'new ProcessBuilder("echo", "child").inheritIO().start().waitFor();'
                          'System.out.println("after");')
        self.assertEqual(outcome.stdout, "before\nchild\nafter\n")

    def test_children_do_not_inherit_the_pipes_of_the_server(self):
        outcome = self.ok('new ProcessBuilder("sh", "-c", "ls -l /proc/$$/fd").inheritIO().start().waitFor()')
        descriptors = {line.split(" -> ")[0].split()[-1] for line in outcome.stdout.splitlines() if " -> " in line}
        self.assertEqual(descriptors & {"3", "4"}, set())

    def test_much_output_takes_no_memory(self):
        self.ok('for (int i = 0; i < 1000; i++) System.out.println("x".repeat(99))')
        before = self.kernel.memory_kib()
        outcome = self.ok('for (int i = 0; i < 300_000; i++) System.out.println("x".repeat(99))')
        self.assertEqual(len(outcome.stdout), 30_000_000)
        self.assertLess(self.kernel.memory_kib() - before, 30_000)

    def test_a_closed_output_is_opened_for_the_next_cell(self):
        self.assertEqual(self.ok('var w = new PrintWriter(System.out); w.print("last"); w.close();').stdout, "last")
        self.assertEqual(self.ok('System.out.print("again")').stdout, "again")

    def test_input_is_at_its_end(self):
        self.assertEqual(self.ok("System.in.read()").text, "-1")
        self.assertEqual(self.ok("new Scanner(System.in).hasNextLine()").text, "false")

    def test_a_thread_lives_on(self):
        self.ok('var gate = new CountDownLatch(1); var printed = new CountDownLatch(1);'
                'new Thread(() -> { try { gate.await(); } catch (InterruptedException e) {}'
                ' System.out.println("later"); printed.countDown(); }).start();')
        self.assertEqual(self.ok("gate.countDown(); printed.await();").stdout, "later\n")


class Interrupts(SharedKernel):
    def interrupted(self, code):
        """`code` prints "started" and would not end."""
        identifier = self.kernel.start(code)
        self.kernel.wait_for_output("started")
        time.sleep(0.2)  # it is likely to wait by now
        self.kernel.interrupt()
        outcome = self.kernel.finish(identifier)
        self.assertEqual((outcome.error["ename"], outcome.error["evalue"]), ("KeyboardInterrupt", ""))
        self.assertEqual(outcome.reply, {"status": "error"})
        return outcome

    def test_sleep_and_variables(self):
        self.interrupted('int kept = 5; { System.out.println("started"); Thread.sleep(1_000_000); } kept = 6;')
        self.assertEqual(self.ok("kept").text, "5")

    def test_busy_loop(self):
        self.interrupted('{ System.out.println("started"); while (true) {} }')
        self.interrupted('long spins = 0; { System.out.println("started"); for (;;) spins++; }')

    def test_code_that_heeds_it_and_returns_is_interrupted_all_the_same(self):
        outcome = self.interrupted('{ System.out.println("started");'
                                   'try { Thread.sleep(1_000_000); } catch (InterruptedException e) {'
                                   ' System.out.println("cleaned up"); } } System.out.println("not run");')
        self.assertEqual(outcome.stdout, "started\ncleaned up\n")

    def test_code_that_swallows_exceptions(self):
        self.interrupted('{ System.out.println("started");'
                         'while (true) { try { Thread.sleep(10); } catch (Exception e) {} } }')

    def test_a_locked_monitor_does_not_hold_the_kernel(self):
        self.interrupted('Object monitor = new Object(); var held = new CountDownLatch(1);'
                         'var holder = new Thread(() -> { synchronized (monitor) { held.countDown();'
                         ' try { Thread.sleep(1_000_000); } catch (InterruptedException e) {} } });'
                         'holder.start(); held.await(); { System.out.println("started"); synchronized (monitor) {} }')
        self.ok("holder.interrupt(); holder.join();")

    def test_a_socket_that_stays_silent(self):
        self.interrupted('var server = new ServerSocket(0); { System.out.println("started"); server.accept(); }')
        self.ok("server.close();")

    def test_a_child_process(self):
        for _ in range(5):  # the child ends by the same signal, perhaps before the kernel has heard of it
            self.interrupted('{ System.out.println("started");'
                             ' new ProcessBuilder("sleep", "1000").start().waitFor(); }')
            self.assertEqual(self.ok("1").text, "1")

    def test_tostring_of_a_result(self):
        self.interrupted('class Slow { public String toString() { System.out.println("started"); while (true) {} } }'
                         'new Slow()')

    def test_idle(self):
        for _ in range(5):
            self.kernel.interrupt()
        time.sleep(0.3)
        self.assertEqual(self.ok("3").text, "3")

    def test_many_at_once(self):
        identifier = self.kernel.start('{ System.out.println("started"); while (true) {} }')
        self.kernel.wait_for_output("started")
        for _ in range(10):
            self.kernel.interrupt()
        self.assertEqual(self.kernel.finish(identifier).error["ename"], "KeyboardInterrupt")
        time.sleep(0.5)
        self.assertEqual(self.ok("int after = 0; for (int i = 0; i < 100_000_000; i++) after ^= i; after").reply,
                         {"status": "ok"})

    def test_another_thread_is_left_alone(self):
        self.interrupted('var ending = new CountDownLatch(1);'
                         'var counts = new Thread(() -> { while (ending.getCount() > 0) Thread.onSpinWait(); });'
                         'counts.start(); { System.out.println("started"); counts.join(); }')
        self.assertEqual(self.ok("counts.isAlive()").text, "true")
        self.ok("ending.countDown(); counts.join();")


class Variables(SharedKernel):
    def seen(self, name):
        outcome = self.ok(f'System.out.print(System.getProperty("{name}") + " " + System.getenv("{name}") + " ");'
                          f'new ProcessBuilder("sh", "-c", "echo ${{{name}-unset}}").inheritIO().start().waitFor();')
        return outcome.stdout.split()

    def test_layers(self):
        self.kernel.hidden("enter_generation", {"reseed": False, "env": {"LAYER_A": "sandbox", "LAYER_B": "b"}})
        self.assertEqual(self.seen("LAYER_A"), ["sandbox"] * 3)
        self.kernel.hidden("set_call_env", {"LAYER_A": "call"})
        self.assertEqual(self.seen("LAYER_A"), ["call"] * 3)
        self.assertEqual(self.seen("LAYER_B"), ["b"] * 3)
        self.kernel.hidden("set_call_env", {})
        self.assertEqual(self.seen("LAYER_A"), ["sandbox"] * 3)
        self.kernel.hidden("enter_generation", {"reseed": False, "env": {"LAYER_A": "other"}})
        self.assertEqual(self.seen("LAYER_A"), ["other"] * 3)
        self.assertEqual(self.seen("LAYER_B"), ["null", "null", "unset"])
        self.kernel.hidden("enter_generation", {"reseed": False, "env": {}})
        self.assertEqual(self.seen("LAYER_A"), ["null", "null", "unset"])

    def test_the_result_as_the_clients_read_it(self):
        self.kernel.hidden("set_call_env", {"TEST_ENV_VAR": "supertest"})
        self.assertEqual(self.ok('System.getProperty("TEST_ENV_VAR")').text, '"supertest"')
        self.kernel.hidden("set_call_env", {})
        self.assertEqual(self.ok('System.getProperty("TEST_ENV_VAR")').text, "null")

    def test_impossible_names_do_no_harm(self):
        outcome = self.kernel.hidden("set_call_env", {"": "x", "A=B": "y", "N\0UL": "z", "V": "a\0b", "GOOD": "ok"})
        self.assertEqual(outcome.reply, {"status": "ok"})
        self.assertEqual(outcome.messages[0]["type"], "reply")
        self.assertEqual(self.seen("GOOD"), ["ok"] * 3)
        self.kernel.hidden("set_call_env", {})
        self.assertEqual(self.seen("GOOD"), ["null", "null", "unset"])

    def test_what_the_jvm_says_of_itself_stays(self):
        home = self.ok('System.getProperty("java.home")').text
        self.kernel.hidden("set_call_env", {"java.home": "/nowhere", "line.separator": "!"})
        self.assertEqual(self.ok('System.getProperty("java.home")').text, home)
        self.assertEqual(self.ok('System.getenv("java.home")').text, '"/nowhere"')
        self.kernel.hidden("set_call_env", {})
        self.assertEqual(self.ok('System.getenv("java.home")').text, "null")

    def test_reseeding(self):
        self.ok("""
            java.lang.reflect.Field internal(Class<?> owner, String name) throws Exception {
                var field = owner.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            }
            void counter(Class<?> owner, String name) throws Exception {
                ((java.util.concurrent.atomic.AtomicLong) internal(owner, name).get(null)).set(42);
            }
            Thread longLived = new Thread(() -> java.util.concurrent.locks.LockSupport.park());
            longLived.start();
            void settle() throws Exception {
                counter(ThreadLocalRandom.class, "seeder");
                counter(SplittableRandom.class, "defaultGen");
                counter(Class.forName("jdk.random.L32X64MixRandom"), "defaultGen");
                counter(Class.forName("jdk.random.Xoshiro256PlusPlus"), "DEFAULT_GEN");
                ((Random) internal(Class.forName("java.lang.Math$RandomNumberGeneratorHolder"),
                    "randomNumberGenerator").get(null)).setSeed(42);
                internal(Collections.class, "r").set(null, new Random(42));
                internal(Thread.class, "threadLocalRandomSeed").setLong(longLived, 42);
                Math.random();
            }
            boolean continues() throws Exception {  // threads of the JVM's own take seeds too
                var seeds = (Number) internal(ThreadLocalRandom.class, "seeder").get(null);
                return LongStream.range(0, 100).anyMatch(k -> 42 + k * 0xbb67ae8584caa73bL == seeds.longValue());
            }
            List<Integer> shuffled() {
                var list = new ArrayList<>(IntStream.range(0, 50).boxed().toList());
                Collections.shuffle(list);
                return list;
            }
        """)
        draw = ('Arrays.asList(internal(Thread.class, "threadLocalRandomSeed").getLong(longLived), Math.random(), '
                'new SplittableRandom().nextLong(),'
                'java.util.random.RandomGenerator.of("L32X64MixRandom").nextLong(), '
                'java.util.random.RandomGenerator.of("Xoshiro256PlusPlus").nextLong(), shuffled())')
        draws = []
        for reseed in (False, False, True, True):
            self.ok("settle();")
            self.kernel.hidden("enter_generation", {"reseed": reseed, "env": {}})
            draws.append(self.ok(draw).data["application/json"])
            self.assertEqual(self.ok("continues()").text, "false" if reseed else "true")
        self.assertEqual(draws[0], draws[1])  # the same state gives the same numbers
        for one, two, three in zip(*draws[1:]):
            self.assertEqual(len({str(one), str(two), str(three)}), 3)


class Protocol(unittest.TestCase):
    def kernel(self, **options):
        kernel = Kernel(**options)
        self.addCleanup(kernel.close)
        return kernel

    def test_requests_are_answered_in_order(self):
        kernel = self.kernel()
        identifiers = [kernel.start(f"int queued{n} = {n}; queued{n}") for n in range(5)]
        self.assertEqual([kernel.finish(identifier).text for identifier in identifiers], list("01234"))

    def test_all_of_the_jdk_that_is_needed_is_reached(self):
        kernel = self.kernel()
        self.assertEqual(kernel.run("").stderr, "")  # complaints from the start

    def test_malformed_requests(self):
        kernel = self.kernel()
        for line in ("", "nonsense", "[]", '{"id":7}', '{"id":"1","type":"execute"} x', "[" * 5000, '{"id":"\\u12"}'):
            kernel.send_raw(line)
        self.assertEqual(kernel.run("1").text, "1")
        outcome = kernel.hidden("no_such_request", {})
        self.assertEqual((outcome.reply, outcome.error["ename"]),
                         ({"status": "error"}, "java.lang.IllegalArgumentException"))

    def test_the_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            kernel = self.kernel(cwd=folder)
            self.assertEqual(kernel.run('System.getProperty("user.dir")').text, f'"{os.path.realpath(folder)}"')
            kernel.run('Files.writeString(Path.of("note-ä.txt"), "text ä");')
            self.assertEqual(pathlib.Path(folder, "note-ä.txt").read_text("utf-8"), "text ä")

    def test_the_end_of_requests_is_the_end(self):
        kernel = self.kernel()
        kernel.run("new Thread(() -> { while (true) {} }).start();")
        kernel.end_requests()
        self.assertIsNone(kernel.message())
        self.assertEqual(kernel.wait(), 0)

    def test_exit(self):
        kernel = self.kernel()
        outcome = kernel.run('System.out.print("bye"); System.exit(0); System.out.print("never")')
        self.assertEqual((outcome.reply, outcome.error, outcome.stdout), ({"status": "ok", "exit": True}, None, "bye"))
        self.assertIsNone(kernel.message())
        self.assertEqual(kernel.wait(), 0)

    def test_exit_with_a_status_from_a_thread_after_hooks(self):
        kernel = self.kernel()
        outcome = kernel.run('Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.print("hook")));'
                             'new Thread(() -> Runtime.getRuntime().exit(7)).start(); Thread.sleep(1_000_000);')
        self.assertEqual((outcome.error["ename"], outcome.error["evalue"]), ("ExitCode", "7"))
        self.assertEqual((outcome.reply, outcome.stdout), ({"status": "error", "exit": True}, "hook"))
        self.assertEqual(kernel.wait(), 7)

    def test_nothing_is_shown_after_the_reply(self):
        kernel = self.kernel()
        kernel.run('var gate = new CountDownLatch(1); var shown = new Thread(() -> { try { gate.await(); }'
                   ' catch (InterruptedException e) {} Display.html("late"); }); shown.start();')
        kernel.run('new Thread(() -> { try { Thread.sleep(300); } catch (InterruptedException e) {}'
                   ' gate.countDown(); }).start();')
        time.sleep(0.6)
        outcome = kernel.run("shown.join(); 1")  # finish() holds each answer's id against the request's
        self.assertEqual((outcome.text, outcome.contents("display_data")), ("1", []))

    def test_an_interrupt_before_the_cell_or_while_it_is_compiled(self):
        kernel = self.kernel()
        for _ in range(10):
            identifier = kernel.start("int quick = 0; quick++; quick++; quick++; quick++; quick")
            kernel.interrupt()
            outcome = kernel.finish(identifier)
            self.assertIn((outcome.text, outcome.error and outcome.error["ename"]),
                          [("4", None), (None, "KeyboardInterrupt")])
        self.assertEqual(kernel.run("1").text, "1")


if __name__ == "__main__":
    unittest.main()
