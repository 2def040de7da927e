// SPDX-License-Identifier: Apache-2.0
// What cells print, and how processes begin and end.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel;
before(async () => (kernel = await Kernel.start()));
after(() => kernel.stop());

test("console and streams", async () => {
    const { stdout, stderr } = await kernel.run("console.log('a %d', 1); console.error('b'); process.stdout.write('c\\n'); process.stderr.write('d\\n'); console.table([[1]]); console.warn({ e: 1 }); console.info('f')");
    assert.equal(stdout, "a 1\nc\n┌─────────┬───┐\n│ (index) │ 0 │\n├─────────┼───┤\n│ 0       │ 1 │\n└─────────┴───┘\nf\n");
    assert.equal(stderr, "b\nd\n{ e: 1 }\n");
});

test("streams end, pipe and call back", async () => {
    const { stdout } = await kernel.run("const { Readable } = require('stream'); await require('stream/promises').pipeline(Readable.from(['a', 'b']), process.stdout, { end: false }); await new Promise((f) => process.stdout.write('c', f)); require('fs').writeSync(1, 'd'); process.stdout.end('e', () => console.log('f'))");
    assert.equal(stdout, "abcdef\n");
});

test("output goes on after somebody ended it", async () => {
    const fresh = await Kernel.start();
    await fresh.run("process.stdout.end(); process.stdout.destroy()");
    assert.equal((await fresh.run("console.log('still')")).stdout, "still\n");
    await fresh.stop();
});

test("100 MiB arrive whole, in flat memory", async () => {
    const hash = createHash("sha256");
    const line = "x".repeat(1023) + "\n";
    for (let i = 0; i < 102400; i++) hash.update(line);
    const received = createHash("sha256");
    const stream = kernel.stdoutPipe;
    const listeners = stream.listeners("data");
    stream.removeAllListeners("data").on("data", (text) => received.update(text));
    const { result } = await kernel.run("const before = process.memoryUsage().rss; for (let i = 0; i < 102400; i++) console.log('x'.repeat(1023)); process.memoryUsage().rss - before");
    stream.removeAllListeners("data");
    listeners.forEach((listener) => stream.on("data", listener));
    assert.equal(received.digest("hex"), hash.digest("hex"));
    assert.ok(Number(result["text/plain"]) < 90 * 1024 * 1024, result["text/plain"]);
});

test("a child process prints into the cell", async () => {
    const { stdout, result } = await kernel.run("const cp = require('child_process'); cp.execSync('echo direct', { stdio: 'inherit' }); cp.execSync('echo caught').toString()");
    assert.equal(stdout, "direct\n");
    assert.equal(result["text/plain"], "'caught\n'");
});

test("a child that makes the pipe non-blocking loses nothing", async () => {
    const { stdout } = await kernel.run("cp.execFileSync(process.execPath, ['-e', 'process.stdout.write(\"child\\\\n\")'], { stdio: 'inherit' }); console.log('y'.repeat(1e6))");
    assert.equal(stdout.length, "child\n".length + 1e6 + 1);
});

test("children do not hold the kernel's pipes", async () => {
    const { result } = await kernel.run("const own = [3, 4].map((fd) => require('fs').readlinkSync('/proc/self/fd/' + fd)); const theirs = cp.spawnSync('sh', ['-c', 'ls -l /proc/$$/fd']).stdout.toString(); own.map((pipe) => theirs.includes(pipe)).concat(theirs.includes('0 -> '))");
    assert.equal(result["text/plain"], "[ false, false, true ]");
});

test("standard input is at its end", async () => {
    const { result } = await kernel.run("let read = ''; for await (const piece of process.stdin) read += piece; [read, require('fs').readFileSync(0, 'utf8')].join('|')");
    assert.equal(result["text/plain"], "'|'");
});

test("nothing of how the kernel was started shows", async () => {
    const { result } = await kernel.run("[process.argv.length, process.execArgv.length]");
    assert.equal(result["text/plain"], "[ 1, 0 ]");
});

for (const [code, status, error] of [
    ["process.exit()", "ok", undefined],
    ["process.exit(3)", "error", "3"],
    ["process.exitCode = 4; await new Promise(() => setTimeout(process.exit, 10))", "error", "4"],
    ["try { process.exit(5) } finally { console.log('no') }", "error", "5"],
]) {
    test(`exit: ${code}`, async () => {
        const fresh = await Kernel.start();
        const answer = await fresh.run(`process.on('exit', () => console.log('last')); ${code}`);
        assert.deepEqual([answer.status, answer.exit, answer.error?.evalue], [status, true, error]);
        if (error) assert.equal(answer.error.ename, "ExitCode");
        assert.equal(answer.stdout, "last\n");
        assert.equal((await fresh.stop()).code, Number(error ?? 0));
    });
}

test("the end of the requests is the end of the process", async () => {
    const fresh = await Kernel.start();
    await fresh.run("setInterval(() => {}, 1000)");
    assert.deepEqual(await fresh.stop(), { code: 0, signal: null });
});
