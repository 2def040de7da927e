// SPDX-License-Identifier: Apache-2.0
// What cells leave to one another.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel;
before(async () => (kernel = await Kernel.start()));
after(() => kernel.stop());

const text = async (code, language) => {
    const { result, error } = await kernel.run(code, language);
    assert.equal(error, undefined, error?.traceback.join("\n"));
    return result?.["text/plain"];
};

test("declarations of each kind are seen by later cells", async () => {
    await text("const a1 = 1; let a2 = 2; var a3 = 3; function a4() { return 4 }; class a5 { static v = 5 }; a6 = 6");
    assert.equal(await text("[a1, a2, a3, a4(), a5.v, a6].join()"), "'1,2,3,4,5,6'");
});

test("each kind can be declared again as each other", async () => {
    const kinds = ["const b = ", "let b = ", "var b = ", "function b() {} b.v = ", "class b {} b.v = ", "import b from 'fs'; "];
    for (const first of kinds) {
        for (const second of kinds) {
            assert.equal((await kernel.run(`${first}1`)).status, "ok", first);
            assert.equal((await kernel.run(`${second}2`)).status, "ok", `${first} then ${second}`);
        }
    }
});

test("what Node declares can be declared again", async () => {
    assert.equal(await text("const crypto = require('crypto'); const fetch = 1; const { performance } = { performance: 2 }; fetch + performance"), "3");
    assert.equal(await text("typeof crypto.createHash"), "'function'");
});

test("functions see what later cells declare anew", async () => {
    await text("let c = 1; function helper() { return 'old' }\nfunction f() { return helper() + c }");
    await text("let c = 2; function helper() { return 'new' }");
    assert.equal(await text("f()"), "'new2'");
});

test("a constant refuses assignment in its cell, also from functions", async () => {
    const { error } = await kernel.run("const d = 1;\nconst change = () => { d = 2 };\nchange()");
    assert.equal(error.ename, "TypeError");
    assert.equal(error.evalue, "Assignment to constant variable.");
    assert.ok(error.traceback.some((line) => line.includes("cell [") && /:2:\d+/.test(line)));
    assert.equal(await text("d"), "1");
});

test("functions are hoisted, and keep their names", async () => {
    assert.equal(await text("const e = later(); function later() { return 7 } e"), "7");
    assert.equal(await text("const arrow = () => 1; class K {}; let [g = function () {}] = []; [arrow.name, K.name, g.name, later.name].join()"), "'arrow,K,g,later'");
});

test("destructuring with defaults and a rest", async () => {
    assert.equal(await text("const { h, i: [j, ...k], l = h + 1, ...m } = { h: 1, i: [2, 3, 4], n: 5 };\nJSON.stringify([h, j, k, l, m])"), `'[1,2,[3,4],2,{"n":5}]'`);
});

test("loops keep their variables to themselves, except var", async () => {
    assert.equal(await text("const fs1 = []; for (const o of [1, 2]) fs1.push(() => o); fs1.map((f) => f()).join()"), "'1,2'");
    assert.equal(await text("for (var p = 0; p < 3; p++) { var q = p }\nfor (let r = 0; r < 3; r++);\n[p, q, typeof r].join()"), "'3,2,undefined'");
    assert.equal(await text("q"), "2");
});

test("sloppy and strict cells", async () => {
    assert.equal(await text("if (true) { function inBlock() { return 8 } }\ninBlock()"), "8");
    assert.equal(await text("inBlock()"), "8");
    assert.equal((await kernel.run("'use strict'; undeclared1 = 1")).error.ename, "ReferenceError");
    assert.equal(await text("'use strict'; const s = 1; function t() { return this } [s, t()]"), "[ 1, undefined ]");
    assert.equal(await text("this === globalThis"), "true");
});

test("a variable without a value", async () => {
    assert.equal(await text("var u = 1; let v = 1"), undefined);
    assert.equal(await text("var u; let v; [u, v]"), "[ 1, undefined ]");
});

test("await at the top", async () => {
    assert.equal(await text("await Promise.resolve('Hello World!')"), "'Hello World!'");
    assert.equal(await text("const w = await new Promise((f) => setTimeout(f, 5, 9)); for await (const x of [w]) y = x; y"), "9");
    assert.equal(await text("w"), "9");
});

test("a promise is what it becomes", async () => {
    assert.equal(await text("Promise.resolve([1])"), "[ 1 ]");
    assert.equal(await text("({ then: (f) => f(3) })"), "3");
    assert.equal(await text("Promise.resolve()"), undefined);
    const { error } = await kernel.run("Promise.reject(new RangeError('no'))");
    assert.deepEqual([error.ename, error.evalue], ["RangeError", "no"]);
});

test("cells run after one that failed, and keep what it did", async () => {
    await kernel.run("const z1 = 1; null.x; const z2 = 2");
    assert.equal(await text("[z1, z2]"), "[ 1, undefined ]");
});

test("nothing of the kernel is listed", async () => {
    const fresh = await Kernel.start();
    const { result } = await fresh.run("Object.keys(globalThis).filter((key) => !['global', 'crypto', 'navigator', 'performance', 'fetch'].includes(key) && !/^(set|clear|queue|structured|atob|btoa)/.test(key))");
    assert.equal(result["text/plain"], "[]");
    await fresh.stop();
});

test("a cell ends with its body, not with its timers", async () => {
    const answer = await kernel.run("setTimeout(() => console.log('later'), 150); 1");
    assert.equal(answer.stdout, "");
    await kernel.printed("later");
});

test("queued cells run in order", async () => {
    const first = kernel.submit("const order = []; await new Promise((f) => setTimeout(f, 50)); order.push(1)");
    const second = kernel.submit("order.push(2); order");
    await kernel.answer(first);
    assert.equal((await kernel.answer(second)).result["text/plain"], "[ 1, 2 ]");
});

test("scripts that resources dispose of", async () => {
    const { stdout } = await kernel.run("using file = { [Symbol.dispose]() { console.log('closed') } }; console.log('open')");
    assert.equal(stdout, "open\nclosed\n");
});

test("cells may take the names that the kernel uses itself", async () => {
    const fresh = await Kernel.start();
    const names = "Array ArrayBuffer Atomics Buffer Error JSON Map Math Number Object Promise Proxy Reflect Set Symbol URL Uint8Array globalThis process setImmediate console require module".split(" ");
    for (const name of names) assert.equal((await fresh.run(`let ${name} = 'mine'`)).status, "ok", name);
    const { result, displays } = await fresh.run("function f() {}\nclass K {}\ndisplay([1]); [process, K.name].join()");
    assert.equal(result["text/plain"], "'mine,K'");
    assert.equal(displays[0]["application/json"][0], 1);
    assert.equal((await fresh.run("null.x")).error.ename, "TypeError");
    await fresh.ask("enter_generation", { reseed: true, env: { A: "1" } });
    const id = fresh.submit("for (;;) {}");
    await new Promise((resolve) => setTimeout(resolve, 60));
    fresh.interrupt();
    assert.equal((await fresh.answer(id)).error.ename, "KeyboardInterrupt");
    await fresh.stop();
});
