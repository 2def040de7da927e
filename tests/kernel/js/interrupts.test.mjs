// SPDX-License-Identifier: Apache-2.0
// Interrupts, and that a kernel keeps its variables through them.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel;
before(async () => {
    kernel = await Kernel.start();
    await kernel.run("let kept = 'kept'");
});
after(() => kernel.stop());

async function interrupted(code, { times = 1 } = {}) {
    const id = kernel.submit(`console.log('started');${code}`);
    await kernel.printed("started");
    await new Promise((resolve) => setTimeout(resolve, 60));
    for (let i = 0; i < times; i++) kernel.interrupt();
    return kernel.answer(id);
}

const busy = {
    "an endless loop": "while (true) {}",
    "an endless loop that catches": "for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }",
    "an endless wait": "await new Promise(() => {})",
    "a loop after an await": "await 1; while (true) {}",
    "a loop after a timer": "await new Promise((f) => setTimeout(f, 5)); for (;;) {}",
    "a loop in a timer": "setTimeout(() => { while (true) {} }, 5); await new Promise(() => {})",
    "a loop in an immediate": "setImmediate(() => { while (true) {} }); await new Promise(() => {})",
    "a loop in a tick": "process.nextTick(() => { while (true) {} }); await new Promise(() => {})",
    "a loop in an async resource": "await 1; new (require('async_hooks').AsyncResource)('x').runInAsyncScope(() => { for (;;) {} })",
    "promises that never give way": "const again = () => Promise.resolve().then(again); again(); await new Promise(() => {})",
    "a wait for shared memory": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "a regular expression": "/^(a+)+$/.test('a'.repeat(60) + 'b')",
    "a loop while a value is shown": "({ [require('util').inspect.custom]() { for (;;) {} } })",
    "a loop in toString of an error": "throw { get stack() { for (;;) {} } }",
    "endless output": "for (;;) console.log('line')",
    "endless output after endless output": "for (;;) process.stdout.write('x'.repeat(100000))",
    "endless displays": "for (;;) display('x')",
    "a child that is waited for": "require('child_process').execSync('sleep 60'); for (;;) {}",
    "a loop of a package": "require('vm').runInNewContext('for (;;);')",
};

for (const [name, code] of Object.entries(busy)) {
    test(name, async () => {
        const { status, error } = await interrupted(code);
        assert.equal(status, "error");
        assert.deepEqual(error, { ename: "KeyboardInterrupt", evalue: "", traceback: ["KeyboardInterrupt"] });
        const after = await kernel.run("setTimeout(() => {}, 1); await new Promise((f) => setTimeout(f, 10)); await new Promise(setImmediate); kept");
        assert.equal(after.result["text/plain"], "'kept'");
    });
}

test("many interrupts at once", async () => {
    const codes = ["for (;;) {}", "await 1; for (;;) {}", "await new Promise(() => {})"];
    for (const code of Array(5).fill(codes).flat()) {
        const { error } = await interrupted(code, { times: 20 });
        assert.equal(error.ename, "KeyboardInterrupt");
        assert.equal((await kernel.run("kept")).result["text/plain"], "'kept'");
    }
});

test("an interrupt while nothing runs is ignored", async () => {
    for (let i = 0; i < 5; i++) kernel.interrupt();
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal((await kernel.run("await new Promise((f) => setTimeout(f, 30)); kept")).result["text/plain"], "'kept'");
});

test("the next cell runs after an interrupted one, if it was waiting already", async () => {
    const first = kernel.submit("console.log('started'); await 1; for (;;) {}");
    const second = kernel.submit("kept");
    await kernel.printed("started");
    kernel.interrupt();
    assert.equal((await kernel.answer(first)).error.ename, "KeyboardInterrupt");
    assert.equal((await kernel.answer(second)).result["text/plain"], "'kept'");
});

test("a loop that an earlier cell left behind", async () => {
    await kernel.run("setTimeout(() => { console.log('looping'); for (;;) {} }, 50)");
    await kernel.printed("looping");
    const id = kernel.submit("kept");
    kernel.interrupt();
    assert.equal((await kernel.answer(id)).result["text/plain"], "'kept'");
});

test("a module that loops while it is imported", async () => {
    writeFileSync(join(kernel.cwd, "loops.mjs"), "console.log('started'); for (;;) {}");
    const { error } = await interrupted("await import('./loops.mjs')");
    assert.equal(error.ename, "KeyboardInterrupt");
    assert.equal((await kernel.run("kept")).result["text/plain"], "'kept'");
});

test("handlers of signals that the user sets and removes do no harm", async () => {
    const { error } = await interrupted("process.on('SIGINT', () => {}); await new Promise(() => {})");
    assert.equal(error.ename, "KeyboardInterrupt");
    await kernel.run("process.removeAllListeners('SIGINT')");
    kernel.interrupt();
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal((await interrupted("for (;;) {}")).error.ename, "KeyboardInterrupt");
});

test("loops interrupted many times over", async () => {
    const loop = "console.log('started'); for (;;) n++";
    for (let i = 0; i < 25; i++) {
        for (const code of [`let n = 0; ${loop}`, `let n = 0; await 1; ${loop}`, `let n = 0; setTimeout(() => { ${loop} }, 0); await new Promise(() => {})`]) {
            const id = kernel.submit(code);
            await kernel.printed("started");
            kernel.interrupt();
            assert.equal((await kernel.answer(id)).error.ename, "KeyboardInterrupt");
        }
    }
    assert.equal((await kernel.run("kept")).result["text/plain"], "'kept'");
});
