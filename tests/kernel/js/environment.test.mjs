// SPDX-License-Identifier: Apache-2.0
// Environment variables and random numbers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel;
before(async () => (kernel = await Kernel.start({ env: { FROM_START: "start", HIDDEN: "below" } })));
after(() => kernel.stop());

const value = async (code) => JSON.parse((await kernel.run(`JSON.stringify(${code})`)).result["text/plain"].slice(1, -1));
const names = "['FROM_START', 'HIDDEN', 'NEW'].map((name) => process.env[name] ?? null)";

test("variables of the sandbox replace one another", async () => {
    assert.deepEqual(await value(names), ["start", "below", null]);
    assert.deepEqual((await kernel.ask("enter_generation", { reseed: false, env: { HIDDEN: "above", NEW: "1" } })).content, { status: "ok" });
    assert.deepEqual(await value(names), ["start", "above", "1"]);
    await kernel.ask("enter_generation", { reseed: true, env: { NEW: "2" } });
    assert.deepEqual(await value(names), ["start", "below", "2"]);
    assert.equal((await kernel.run("require('child_process').execSync('echo $NEW').toString()")).result["text/plain"], "'2\n'");
});

test("variables of one execution are taken back", async () => {
    await kernel.ask("set_call_env", { NEW: "call", HIDDEN: "" });
    assert.deepEqual(await value(names), ["start", "", "call"]);
    await kernel.ask("set_call_env", {});
    assert.deepEqual(await value(names), ["start", "below", "2"]);
});

test("Math.random looks as ever and is even", async () => {
    assert.deepEqual(await value("[Math.random.name, Math.random.length, Object.keys(Math).length]"), ["random", 0, 0]);
    const [low, high, mean, distinct] = await value("(() => { const all = Array.from({ length: 1e5 }, Math.random); return [Math.min(...all.slice(0, 1e4)), Math.max(...all.slice(0, 1e4)), all.reduce((a, b) => a + b) / 1e5, new Set(all).size] })()");
    assert.ok(low >= 0 && low < 0.01 && high < 1 && high > 0.99);
    assert.ok(Math.abs(mean - 0.5) < 0.01); // ten standard deviations
    assert.equal(distinct, 1e5);
});

test("every function of crypto still does what it should", async () => {
    const code = `await (async () => {
        const crypto = await import('node:crypto'), { promisify } = await import('node:util');
        const fresh = (view) => [...view].some((byte) => byte !== 0);
        const within = crypto.randomFillSync(new Uint32Array(8), 2, 4);
        return [
            crypto.randomBytes(5).length, (await promisify(crypto.randomBytes)(6)).length,
            fresh(crypto.randomFillSync(new Uint8Array(32))), [...within].map((word) => word !== 0),
            fresh(new Uint8Array(crypto.randomFillSync(new ArrayBuffer(32)))),
            fresh(await promisify(crypto.randomFill)(new Uint8Array(32))),
            [crypto.randomInt(3) < 3, crypto.randomInt(5, 6), await promisify(crypto.randomInt)(7, 8)],
            new Set(Array.from({ length: 300 }, () => crypto.randomInt(3))).size,
            /^[\\da-f]{8}-[\\da-f]{4}-4[\\da-f]{3}-[89ab][\\da-f]{3}-[\\da-f]{12}$/.test(crypto.randomUUID()),
            fresh(crypto.getRandomValues(new Uint8Array(32))), fresh(globalThis.crypto.getRandomValues(new Uint16Array(16))),
            new Set(Array.from({ length: 1000 }, () => globalThis.crypto.randomUUID())).size,
        ];
    })()`;
    const edges = [false, false, true, true, true, true, false, false];
    assert.deepEqual(await value(code), [5, 6, true, edges, true, true, [true, 5, 7], 3, true, true, true, 1000]);
});

test("functions of crypto refuse what they refused", async () => {
    for (const code of ["randomInt(5, 5)", "randomBytes(-1)", "randomUUID(1)", "getRandomValues(new Float32Array(1))", "randomFillSync(new Uint8Array(2), 3)", "getRandomValues(new Uint8Array(70000))"]) {
        assert.equal((await kernel.run(`require('crypto').${code}`)).status, "error", code);
    }
});

// Nothing here restores a snapshot. What can be seen is where numbers come from: bytes read ahead are dropped.
test("random numbers come from the operating system, anew after a reseed", async () => {
    const readBy = async (between) => {
        await kernel.run("Math.random()");
        await between();
        const before = "const { openSync, readSync } = require('fs'); const rchar = () => { const b = Buffer.alloc(400); readSync(openSync('/proc/self/io'), b); return Number(/rchar: (\\d+)/.exec(b)[1]) }; rchar(); const one = rchar(); const two = rchar(); Math.random(); const three = rchar(); (three - two) - (two - one)";
        return Number((await kernel.run(before)).result["text/plain"]);
    };
    await kernel.ask("enter_generation", { reseed: true, env: {} });
    assert.ok((await readBy(() => {})) < 1000);
    assert.ok((await readBy(() => kernel.ask("enter_generation", { reseed: true, env: {} }))) >= 8192);
    assert.ok((await readBy(() => kernel.ask("enter_generation", { reseed: false, env: {} }))) < 1000);
});
