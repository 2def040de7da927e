// SPDX-License-Identifier: Apache-2.0
// The rewriting of a cell's text, as a function.

import assert from "node:assert/strict";
import { test } from "node:test";
import { transform } from "../../../src/guest/interpreter/kernel/glovebox_cell.mjs";
import { originalColumn } from "../../../src/guest/interpreter/kernel/glovebox_edits.mjs";

test("an expression at the end is what the cell returns", () => {
    assert.equal(transform("a\nb").body, "a\nreturn b");
    assert.equal(transform("'text'").body, "return 'text'");
    assert.equal(transform("5;;").body, "return 5;;");
    assert.equal(transform("5; if (a) b").body, "5; if (a) b");
});

test("declarations become assignments of the same width", () => {
    const { body, lexical } = transform("const a = 1, b = 2;\nlet c = 3;");
    assert.equal(body, ";     a = 1, b = 2;\n;   c = 3;");
    assert.deepEqual(lexical, ["a", "b", "c"]);
    assert.deepEqual(transform("var d").variables, ["d"]);
});

test("a declaration does not run into its neighbours", () => {
    assert.equal(transform("f()\nconst [a] = g()\n;(b)").body, "f()\n;     [a] = g()\n;return (b)");
    assert.equal(transform("let a\n(b)").body, ";   a=void 0;\nreturn (b)");
    assert.equal(transform("class A {}\n[1]").body, "A=class A {};\nreturn [1]");
});

test("names of patterns are found", () => {
    const { lexical, body } = transform("const {a, b: [c, ...d], e = 1, ...f} = g;");
    assert.deepEqual(lexical, ["a", "c", "d", "e", "f"]);
    assert.equal(body, ";   ( {a, b: [c, ...d], e = 1, ...f} = g);");
});

test("functions are kept apart, on their lines and columns", () => {
    const { functions, body, variables } = transform("a\nfunction f() {\n  b }\nc");
    assert.equal(functions, " \nfunction f() {\n  b }");
    assert.equal(body, "a\n;             \n     \nreturn c");
    assert.deepEqual(variables, ["f"]);
});

test("variables of loops and blocks", () => {
    assert.equal(transform("for (const a of b) c").body, "for (const a of b) c");
    assert.deepEqual(transform("for (let a = 0; a < 1; a++) { let b; }").lexical, []);
    const { body, variables } = transform("for (var a of b) { var {c} = a }");
    assert.equal(body, "for (    a of b) { ; ( {c} = a); }");
    assert.deepEqual(variables, ["a", "c"]);
    assert.deepEqual(transform("function f() { var a } (() => { var b })").variables, ["f"]);
    assert.equal(transform("if (a) var b = 1").body, "if (a)     b = 1");
});

test("only what awaits at the top is async", () => {
    assert.equal(transform("await a").isAsync, true);
    assert.equal(transform("for await (const a of b) c").isAsync, true);
    assert.equal(transform("await using a = b").isAsync, true);
    assert.equal(transform("async () => { await a }").isAsync, false);
    assert.equal(transform("async function f() { for await (const a of b); }").isAsync, false);
});

test("imports are described", () => {
    const [a, b, c] = transform("import a, {b as c, default as d} from 'x'\nimport * as e from 'y'\nimport 'z' with {type: 'json'}").imports;
    assert.deepEqual(a.bindings, [
        { local: "a", imported: "default" },
        { local: "c", imported: "b" },
        { local: "d", imported: "default" },
    ]);
    assert.deepEqual(b.bindings, [{ local: "e", imported: null }]);
    assert.deepEqual(c, { specifier: "z", bindings: [], attributes: { type: "json" } });
});

test("exports lose their keyword", () => {
    assert.equal(transform("export const a = 1;").body, ";      ;     a = 1;");
    assert.equal(transform("export default 5").body, ";return (      5);");
    assert.equal(transform("export { a }; b").body, ";             return b");
    assert.equal(transform("export function f() {}").functions.trim(), "function f() {}");
    for (const code of ["export * from 'a'", "export { b } from 'a'"]) {
        assert.throws(() => transform(`1\n ${code}`), { name: "SyntaxError", line: 2, column: 1 });
    }
});

test("assignments to constants are found, those to what hides them are not", () => {
    const refused = (code) => transform(`const a = 1;${code}`).body.split("__glovebox_constant.a").length - 1;
    for (const code of ["a = 2", "a++", "[a] = b", "({a} = b)", "({c: a = 1} = b)", "for (a of b);", "() => { a += 1 }"]) {
        assert.equal(refused(code), 1, code);
    }
    for (const code of [
        "(a) => { a = 1 }",
        "{ let a; a = 2 }",
        "for (let a = 0; ; a++);",
        "() => { if (b) { var a } a = 2 }",
        "try {} catch (a) { a = 2 }",
        "(function a() { a = 2 })",
        "b.a = 2",
    ]) {
        assert.equal(refused(code), 0, code);
    }
});

test("columns lead back", () => {
    const { moves, body } = transform("let a; b\nf(c)");
    assert.equal(body, ";   a=void 0; b\nreturn f(c)");
    assert.equal(originalColumn(moves, 1, body.indexOf("b") + 1), 8);
    assert.equal(originalColumn(moves, 2, 10), 3);
    assert.equal(originalColumn(moves, 3, 10), 10);
});

test("errors say where", () => {
    assert.throws(() => transform("a\nlet b = = 1"), { message: "Unexpected token '='", line: 2, column: 8 });
    assert.throws(() => transform("let a; let a"), { message: "Identifier 'a' has already been declared", line: 1 });
    assert.throws(() => transform("f("), { message: "Unexpected end of input" });
    assert.throws(() => transform("return 1"), { message: "Illegal return statement" });
    assert.throws(() => transform("import a from 'b'; let = = 1"), /Unexpected token/);
});
