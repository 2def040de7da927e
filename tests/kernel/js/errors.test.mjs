// SPDX-License-Identifier: Apache-2.0
// What errors look like, and that none ends the kernel.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel;
before(async () => (kernel = await Kernel.start()));
after(() => kernel.stop());

const error = async (code) => (await kernel.run(code)).error;
const traceback = async (code) => (await error(code)).traceback.join("\n").replace(/cell \[\d+\]/g, "cell [N]");

test("name, message and the frames of the cell alone", async () => {
    const { ename, evalue } = await error("x.y");
    assert.deepEqual([ename, evalue], ["ReferenceError", "x is not defined"]);
    const expected = "TypeError: no\n    at inner (cell [N]:2:9)\n    at outer (cell [N]:4:21)\n    at cell [N]:5:1";
    assert.equal(await traceback("function inner() {\n  throw new TypeError('no')\n}\nconst outer = () => inner();\nouter()"), expected);
});

test("columns are those of the text", async () => {
    assert.equal(await traceback("let a; const { b } = {}; null.c"), "TypeError: Cannot read properties of null (reading 'c')\n    at cell [N]:1:31");
    assert.match(await traceback("await null.c"), /cell \[N\]:1:12$/);
});

test("frames of earlier cells say which", async () => {
    await kernel.run("function early() { throw new Error('early') }");
    const lines = (await error("\nearly()")).traceback;
    const [first, second] = lines.slice(1).map((line) => Number(/\[(\d+)\]/.exec(line)[1]));
    assert.equal(second, first + 1);
});

test("syntax errors show the line and a caret", async () => {
    assert.equal(await traceback("1\n\tlet a = = 2"), "cell [N]:2:10\n\tlet a = = 2\n\t        ^\n\nSyntaxError: Unexpected token '='");
    assert.equal((await error("foo(")).evalue, "Unexpected end of input");
    assert.equal((await error("eval('1 +')")).ename, "SyntaxError");
});

test("names of errors", async () => {
    assert.equal((await error("class MyError extends Error { name = 'Mine' } throw new MyError('m')")).ename, "Mine");
    assert.equal((await error("throw Object.assign(new Error('m'), { name: '' })")).ename, "Error");
    assert.equal((await error("require('fs').readFileSync('/missing')")).evalue, "ENOENT: no such file or directory, open '/missing'");
    assert.match(await traceback("require('fs').readFileSync('/missing')"), /cell \[N\]:1:15 \{\n  errno: -2,\n  code: 'ENOENT'/);
    assert.doesNotMatch(await traceback("require('fs').readFileSync('/missing')"), /node:/);
    assert.equal((await error("require('vm').runInNewContext('throw new TypeError(1)')")).ename, "TypeError");
});

test("causes and the errors of an aggregate", async () => {
    assert.match(await traceback("throw new Error('outer', { cause: new TypeError('inner') })"), /Error: outer[^]*\[cause\]: TypeError: inner/);
    assert.match(await traceback("await Promise.any([Promise.reject(new Error('one'))])"), /AggregateError[^]*Error: one/);
});

test("what is thrown and no error", async () => {
    assert.deepEqual(await error("throw 'text'"), { ename: "Error", evalue: "text", traceback: ["Uncaught 'text'"] });
    assert.deepEqual(await error("throw { a: 1 }"), { ename: "Error", evalue: "{ a: 1 }", traceback: ["Uncaught { a: 1 }"] });
    assert.equal((await error("throw undefined")).evalue, "undefined");
    assert.equal((await error("await Promise.reject(null)")).evalue, "null");
});

test("errors that throw when they are shown", async () => {
    assert.equal((await kernel.run("throw { get stack() { throw 1 } }")).status, "error");
    assert.equal((await kernel.run("const e = new Error('x'); Object.defineProperty(e, 'message', { get() { throw 1 } }); throw e")).status, "error");
    assert.equal((await kernel.run("({ [require('util').inspect.custom]() { throw new RangeError('shown') } })")).error.evalue, "shown");
});

test("an endless recursion is an error", async () => {
    assert.equal((await error("function r() { r() } r()")).ename, "RangeError");
});

test("errors of timers and unhandled rejections are printed", async () => {
    const { status, stderr } = await kernel.run("setTimeout(() => { throw new Error('of a timer') }, 10); Promise.reject(new TypeError('unhandled')); await new Promise((f) => setTimeout(f, 60)); 1");
    assert.equal(status, "ok");
    assert.match(stderr, /Uncaught Error: of a timer\n    at Timeout._onTimeout \(cell \[\d+\]:1:26\)/);
    assert.match(stderr, /Uncaught TypeError: unhandled/);
    await kernel.run("process.on('uncaughtException', (e) => console.log('heard ' + e.message)); setTimeout(() => { throw new Error('mine') }, 5); await new Promise((f) => setTimeout(f, 60))");
    assert.match(kernel.stdout, /heard mine/);
    await kernel.run("process.removeAllListeners()");
    assert.equal((await kernel.run("Promise.reject(1); 2")).result["text/plain"], "2");
});

test("an unknown request is an error", async () => {
    assert.equal((await kernel.ask("unknown", {})).content.status, "error");
});
