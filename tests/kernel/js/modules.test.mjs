// SPDX-License-Identifier: Apache-2.0
// Imports, require and what a module knows of itself.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Kernel } from "./kernel.mjs";

let kernel;
before(async () => {
    kernel = await Kernel.start();
    put("local.mjs", "export default 1; export const named = 2; export { named as 'a b' }");
    put("common.cjs", "exports.named = 3");
    put("data.json", '{"number": 4}');
    put("types.ts", "export interface Shape { a: number }\nexport const area: number = 5");
});
after(() => kernel.stop());

function put(path, content) {
    mkdirSync(join(kernel.cwd, path, ".."), { recursive: true });
    writeFileSync(join(kernel.cwd, path), content);
}

const text = async (code, language) => {
    const { result, error } = await kernel.run(code, language);
    assert.equal(error, undefined, error?.traceback.join("\n"));
    return result?.["text/plain"];
};

test("an import and what it prints", async () => {
    assert.equal((await kernel.run("import { readFileSync } from 'fs'\nconsole.log(typeof readFileSync)")).stdout, "function\n");
});

test("each form of import", async () => {
    const code = `import one, { named, named as renamed, 'a b' as spaced } from './local.mjs';
import * as all from './local.mjs'
import './local.mjs'
import data from './data.json' with { type: 'json' }
import { join as joined } from 'node:path';
[one, named, renamed, spaced, all.named, data.number, joined('a', 'b')].join()`;
    assert.equal(await text(code), "'1,2,2,2,2,4,a/b'");
    assert.equal(await text("renamed + data.number"), "6");
});

test("imports are made before anything else runs", async () => {
    assert.equal(await text("const before = named2;\nimport { named as named2 } from './local.mjs'\nbefore"), "2");
});

test("import() and require", async () => {
    assert.equal(await text("(await import('./local.mjs')).named"), "2");
    assert.equal(await text("const later = () => import('./local.mjs'); function later2() { return import('./local.mjs') } (await later()).named + (await later2()).default"), "3");
    assert.equal(await text("eval(`import('./local.mjs')`).then((m) => m.named)"), "2");
    assert.equal(await text("require('./common.cjs').named + require('./data.json').number"), "7");
    assert.equal(await text("typeof require.resolve('./common.cjs') + typeof module.paths + typeof exports"), "'stringobjectobject'");
});

test("names of the cell's own file", async () => {
    const { cwd } = kernel;
    assert.equal(await text("__dirname"), `'${cwd}'`);
    assert.equal(await text("__filename"), `'${join(cwd, "cell.js")}'`);
    assert.equal(await text("[import.meta.url, import.meta.dirname, import.meta.filename].join()"), `'file://${cwd}/cell.js,${cwd},${cwd}/cell.js'`);
    assert.equal(await text("function where() { return import.meta.resolve('./local.mjs') } where()"), `'file://${cwd}/local.mjs'`);
});

test("a package that is installed later is found, by import and by require", async () => {
    assert.equal((await kernel.run("import late from 'late'")).error.evalue.includes("late"), true);
    assert.equal((await kernel.run("require('late')")).error.ename, "Error");
    put("node_modules/late/package.json", '{"name": "late", "version": "1.0.0", "main": "main.js"}');
    put("node_modules/late/main.js", "module.exports = { late: true }");
    assert.equal(await text("import late from 'late'; late.late"), "true");
    assert.equal(await text("require('late').late"), "true");
});

test("modules are found from where the process is", async () => {
    put("deep/inner.mjs", "export default 'inner'");
    put("deep/inner.cjs", "module.exports = 'required'");
    await text("process.chdir('deep')");
    assert.equal(await text("import inner from './inner.mjs'; inner + require('./inner.cjs')"), "'innerrequired'");
    await text("process.chdir('..')");
});

test("an export that does not exist", async () => {
    const { error } = await kernel.run("import { missing } from './local.mjs'");
    assert.equal(error.ename, "SyntaxError");
    assert.match(error.evalue, /'\.\/local\.mjs' does not provide an export named 'missing'/);
});

test("exports are tolerated, exports of other modules are not", async () => {
    assert.equal(await text("export const kept = 1; export default class Thing {}; export function made() { return 2 }\nexport { kept as other }\nkept + made()"), "3");
    assert.equal(await text("typeof Thing"), "'function'");
    assert.equal(await text("export default { a: 1 }"), "{ a: 1 }");
    const { error } = await kernel.run("export * from './local.mjs'");
    assert.equal(error.ename, "SyntaxError");
    assert.match(error.evalue, /nobody to export to/);
});

test("TypeScript: types go, state stays", async () => {
    const code = "interface P { a: number }\ntype Q = P | null;\nfunction f<T>(x: T): T { return x }\nconst p: P = { a: f<number>(1) };\n(p as P).a satisfies number";
    assert.equal(await text(code, "typescript"), "1");
    assert.equal(await text("p.a + 1"), "2");
    assert.equal(await text("p!.a + f(2)", "typescript"), "3");
});

test("TypeScript: enums, namespaces, parameter properties", async () => {
    const code = `enum Colour { Red = 1, Blue }
namespace Shapes { export const sides = 3 }
class Point { constructor(public x: number, private y = 2) {} sum() { return this.x + this.y } }
[Colour.Blue, Colour[1], Shapes.sides, new Point(4).sum()].join()`;
    assert.equal(await text(code, "typescript"), "'2,Red,3,6'");
    assert.equal(await text(code, "typescript"), "'2,Red,3,6'");
    assert.equal(await text("Colour.Red"), "1");
});

test("TypeScript: imports of types are dropped", async () => {
    assert.equal(await text("import type { Shape } from './nowhere'\nimport { type Shape as S, area } from './types.ts'\nconst s: S = { a: area }; s.a", "typescript"), "5");
    assert.equal(await text("import { Gone } from 'not-installed'\nconst g: Gone | number = 1; g", "typescript"), "1");
    assert.equal(await text("import { Shape, area as area2 } from './types.ts'\narea2", "typescript"), "5");
});

test("TypeScript: errors are on their lines", async () => {
    const stripped = (await kernel.typescript("interface A {\n  b: number\n}\nnull.x")).error;
    assert.ok(stripped.traceback.some((line) => /cell \[\d+\]:4:6/.test(line)), stripped.traceback);
    const transformed = (await kernel.typescript("enum A {\n  B,\n\n\n}\nconst c: A = A.B;\nnull.x")).error;
    assert.ok(transformed.traceback.some((line) => /cell \[\d+\]:7:/.test(line)), transformed.traceback);
    const { error, stderr } = await kernel.typescript("let x: = 5");
    assert.equal(error.ename, "SyntaxError");
    assert.equal(stderr, "");
});
