// SPDX-License-Identifier: Apache-2.0
// Acorn, and what is often asked of its trees.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import vm from "node:vm";
import { Array, Error, Math, Object, RegExp, String, Symbol, SyntaxError, process } from "./glovebox_globals.mjs";

const folder = process.env.GLOVEBOX_NODE_MODULES || "/usr/local/lib/node_modules";
const acorn = load(createRequire(join(folder, "/")).resolve(join(folder, "acorn")));

// With globals of its own, see glovebox_globals.mjs.
function load(path) {
    const kept = { Array, Error, Math, Object, RegExp, String, Symbol, SyntaxError };
    const module = { exports: {} };
    const names = ["module", "exports", ...Object.keys(kept)];
    const define = vm.compileFunction(readFileSync(path, "utf8"), names, { filename: path });
    define(module, module.exports, ...Object.values(kept));
    return module.exports;
}

// Scripts rather than modules: a notebook is sloppy unless it says "use strict".
const options = {
    ecmaVersion: "latest",
    sourceType: "script",
    allowAwaitOutsideFunction: true,
    allowImportExportEverywhere: true,
    allowHashBang: true,
};

export class CellSyntaxError extends SyntaxError {
    constructor(message, line, column) {
        super(message);
        this.line = line; // from 1
        this.column = column; // from 0
    }
}

// Throws a CellSyntaxError. Answers null for a text that only V8 can read: its syntax is newer than the parser.
export function parse(code) {
    try {
        return acorn.parse(code, options);
    } catch (error) {
        if (!(error instanceof SyntaxError) || !error.loc) throw error;
        const message = /'return' outside/.test(error.message) ? "Illegal return statement" : messageOfV8(code);
        if (message === null) return null;
        throw new CellSyntaxError(betterMessage(message, code, error), error.loc.line, error.loc.column);
    }
}

function betterMessage(message, code, error) {
    const own = error.message.replace(/ \(\d+:\d+\)$/, "");
    if (error.pos >= code.trimEnd().length && own === "Unexpected token") return "Unexpected end of input";
    // V8 was given the text within a function, where a module's statements are an error of their own.
    return /import|export|outside a module/.test(message) ? own : message;
}

// People know V8's words.
function messageOfV8(code) {
    try {
        new vm.Script(`(async () => {${code}\n})`);
        return null;
    } catch (error) {
        return error.message;
    }
}

export function* childrenOf(node) {
    for (const key in node) {
        const value = node[key];
        if (value === null || typeof value !== "object") continue;
        if (Array.isArray(value)) {
            for (const one of value) if (typeof one?.type === "string") yield one;
        } else if (typeof value.type === "string") {
            yield value;
        }
    }
}

// What has variables of its own.
export function isFunction(node) {
    return (
        node.type === "FunctionDeclaration" ||
        node.type === "FunctionExpression" ||
        node.type === "ArrowFunctionExpression"
    );
}

// The identifiers that a pattern binds or assigns to.
export function namesOf(pattern) {
    switch (pattern?.type) {
        case "Identifier":
            return [pattern];
        case "ObjectPattern":
            return pattern.properties.flatMap((one) => namesOf(one.type === "RestElement" ? one : one.value));
        case "ArrayPattern":
            return pattern.elements.flatMap(namesOf);
        case "AssignmentPattern":
            return namesOf(pattern.left);
        case "RestElement":
            return namesOf(pattern.argument);
        default:
            return [];
    }
}
