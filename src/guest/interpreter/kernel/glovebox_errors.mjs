// SPDX-License-Identifier: Apache-2.0
// What a cell's error looks like: its stack without the kernel's and Node's own frames, at the places as written.

import { inspect } from "node:util";
import { Error, URL } from "./glovebox_globals.mjs";
import { CellSyntaxError } from "./glovebox_syntax.mjs";

const kernelFolder = new URL(".", import.meta.url).href;

// {ename, evalue, traceback} of anything that can be thrown. `places` is a CellPlaces.
export function describeError(error, places) {
    try {
        return error instanceof Error || isErrorLike(error) ? describe(error, places) : describeThrown(error);
    } catch {
        return { ename: "Error", evalue: "an error that cannot be shown", traceback: ["an error that cannot be shown"] };
    }
}

// The text of an error, or of anything else that was thrown.
export function errorText(error, places) {
    const { traceback } = describeError(error, places);
    return traceback.join("\n");
}

// A cell that could not be compiled: the line and a caret, as Node shows it.
export function describeSyntaxError(error, code, name) {
    const { line, column, message } = error;
    const traceback = [`SyntaxError: ${message}`];
    if (line !== null) {
        const text = code.split(/\r\n|[\n\r\u2028\u2029]/)[line - 1] ?? "";
        const indentation = text.slice(0, column).replace(/[^\t]/g, " ");
        traceback.unshift(`${name}:${line}:${column + 1}`, text, `${indentation}^`, "");
    }
    return { ename: "SyntaxError", evalue: message, traceback };
}

export const keyboardInterrupt = { ename: "KeyboardInterrupt", evalue: "", traceback: ["KeyboardInterrupt"] };

function isErrorLike(error) {
    return typeof error === "object" && error !== null && typeof error.stack === "string" && "message" in error;
}

function describe(error, places) {
    const name = error.name || error.constructor?.name || "Error";
    const text = error instanceof Error ? inspect(error) : error.stack;
    return { ename: `${name}`, evalue: `${error.message ?? ""}`, traceback: cleanLines(text, places) };
}

// `throw "text"`: there is no name and no stack.
function describeThrown(value) {
    const text = typeof value === "string" ? value : inspect(value);
    return { ename: "Error", evalue: text, traceback: [`Uncaught ${inspect(value)}`] };
}

function cleanLines(text, places) {
    const lines = [];
    for (const line of text.split("\n")) {
        if (!isForeign(line)) lines.push(places.asWritten(line));
        else if (line.endsWith(" {")) lines.push(`${lines.pop()} {`); // the error's properties follow
    }
    return lines;
}

function isForeign(line) {
    return /^\s*at /.test(line) && (/[( ]node:[\w/]+:\d+/.test(line) || line.includes(kernelFolder));
}

export { CellSyntaxError };
