// SPDX-License-Identifier: Apache-2.0
// What a cell shows of its values.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel;
before(async () => (kernel = await Kernel.start()));
after(() => kernel.stop());

const data = async (code) => (await kernel.run(code)).result;

test("the last expression is the result", async () => {
    assert.deepEqual(await data("1 + 1"), { "text/plain": "2" });
    assert.deepEqual(await data("'a'"), { "text/plain": "'a'" });
    assert.deepEqual(await data("null"), { "text/plain": "null" });
    for (const code of ["", "// nothing", "undefined", "let x = 5", "void 0", "if (true) 5", "5; ;let y"]) {
        assert.equal(await data(code), undefined, code);
    }
    assert.deepEqual(await data("5;"), { "text/plain": "5" });
    assert.deepEqual(await data("5 // comment"), { "text/plain": "5" });
});

test("a string is whole between one pair of quotes", async () => {
    assert.equal((await data(`"it's \\"so\\" \\n\\u001b[0m"`))["text/plain"], `'it's "so" \n\u001b[0m'`);
    assert.equal((await data("'x'.repeat(3e6)"))["text/plain"].length, 3e6 + 2);
    assert.equal((await data("'<svg></svg>'"))["image/svg+xml"], undefined);
});

test("values are shown as Node shows them, without colours", async () => {
    process.env.FORCE_COLOR = "1";
    const kernel = await Kernel.start();
    delete process.env.FORCE_COLOR;
    const text = async (code) => (await kernel.run(code)).result["text/plain"];
    assert.equal(await text("({ a: [1, { b: new Map([[1, 2]]) }], f() {}, s: Symbol('s'), n: 10n, d: new Date(0) })"), "{\n  a: [ 1, { b: [Map] } ],\n  f: [Function: f],\n  s: Symbol(s),\n  n: 10n,\n  d: 1970-01-01T00:00:00.000Z\n}");
    assert.equal(await text("-0"), "-0");
    await kernel.stop();
});

test("large values stay bounded", async () => {
    assert.ok((await data("new Set(Array.from({ length: 1e6 }, (_, i) => i))"))["text/plain"].length < 5000);
    assert.ok((await data("Array(2e6).fill(1)"))["application/json"] === undefined);
    assert.ok((await data("['x'.repeat(17e6)]"))["application/json"] === undefined);
    assert.ok((await data("let deep = []; for (let i = 0; i < 1e5; i++) deep = [deep]; deep"))["text/plain"].length < 5000);
});

test("plain objects and arrays are JSON, too", async () => {
    assert.deepEqual((await data("({ a: [1, 'x', null, true, { b: 1.5 }] })"))["application/json"], { a: [1, "x", null, true, { b: 1.5 }] });
    assert.deepEqual((await data("[]"))["application/json"], []);
    assert.equal((await data("Array(1e5).fill(1)"))["application/json"].length, 1e5);
});

test("what JSON would change is not JSON", async () => {
    for (const code of [
        "[1n]", "[undefined]", "[NaN]", "[-0]", "[, 1]", "[() => 1]", "[new Date()]", "[new Map()]", "[Symbol()]",
        "({ get a() { return 1 } })", "({ toJSON() { return 1 } })", "({ [Symbol()]: 1 })", "new (class A {})",
        "const cycle = []; cycle.push(cycle); cycle", "[Object.assign([1], { b: 1 })]", "new Proxy({}, {})", "1", "'a'",
    ]) {
        assert.equal((await data(code))["application/json"], undefined, code);
    }
    assert.deepEqual((await data("const twice = { a: 1 }; [twice, twice]"))["application/json"], [{ a: 1 }, { a: 1 }]);
});

test("values that know their MIME bundle", async () => {
    assert.deepEqual(await data("({ [Symbol.for('Jupyter.display')]() { return { 'text/html': '<b>1</b>', 'text/plain': '1' } } })"), { "text/html": "<b>1</b>", "text/plain": "1" });
    assert.equal((await data("({ async _toMime() { return { 'image/png': Buffer.from('png') } } })"))["image/png"], "cG5n");
    assert.equal((await data("({ _toHtml() { return '<i>2</i>' } })"))["text/html"], "<i>2</i>");
    assert.equal((await data("({ _toSvg: () => '<svg/>', _toMarkdown: () => '*' })"))["image/svg+xml"], "<svg/>");
    assert.equal((await kernel.run("({ _toHtml() { throw new TypeError('mine') } })")).error.evalue, "mine");
});

test("images in bytes", async () => {
    assert.equal((await data("Buffer.from([0x89, 0x50, 0x4e, 0x47, 1])"))["image/png"], "iVBORwE=");
    assert.equal((await data("new Uint8Array([0xff, 0xd8, 0xff, 0xe0])"))["image/jpeg"], "/9j/4A==");
    assert.deepEqual(Object.keys(await data("Buffer.from('plain')")), ["text/plain"]);
});

test("display shows values along the way", async () => {
    const { displays, result } = await kernel.run("display({ a: 1 }); display('x', { 'text/html': '<p>' }); 5");
    assert.deepEqual(displays, [
        { "text/plain": "{ a: 1 }", "application/json": { a: 1 } },
        { "text/plain": "'x'", "text/html": "<p>" },
    ]);
    assert.equal(result["text/plain"], "5");
    assert.equal(await data("typeof Object.getOwnPropertyDescriptor(globalThis, 'display').value + Object.keys(globalThis).includes('display')").then((one) => one["text/plain"]), "'functionfalse'");
});

test("display of each kind", async () => {
    const { displays } = await kernel.run("display.html('<b>'); display.svg('<svg/>'); display.png(Buffer.from('a')); display.png('YQ=='); display.jpeg('YQ=='); display.markdown('#'); display.json([1]); display.latex('x')");
    const types = ["text/html", "image/svg+xml", "image/png", "image/png", "image/jpeg", "text/markdown", "application/json", "text/latex"];
    assert.deepEqual(displays.map((one, index) => one[types[index]]), ["<b>", "<svg/>", "YQ==", "YQ==", "YQ==", "#", [1], "x"]);
});

test("display after the end of a cell is output", async () => {
    await kernel.run("setTimeout(() => display([7]), 60)");
    await kernel.printed("[ 7 ]");
});

test("halves of surrogate pairs", async () => {
    assert.equal((await data("'a\\ud800b'"))["text/plain"], "'a\ufffdb'");
    assert.deepEqual((await data("[{ '\\udfff': '\\ud83d\\ude00' }]"))["application/json"], [{ "\ufffd": "😀" }]);
    assert.equal((await data("String.raw`\\ud800`"))["text/plain"], "'\\ud800'");
    assert.equal((await kernel.run("console.log('\\ud800')")).stdout, "\ufffd\n");
});

test("what cannot be sent is an error", async () => {
    const { error } = await kernel.run("({ [Symbol.for('Jupyter.display')]: () => ({ 'application/json': { a: 1n } }) })");
    assert.equal(error.ename, "TypeError");
    assert.equal((await kernel.run("display.json(1n)")).error.ename, "TypeError");
    assert.equal((await data("1"))["text/plain"], "1");
});
