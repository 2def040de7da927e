// SPDX-License-Identifier: Apache-2.0
// TypeScript to JavaScript.

import { SourceMap, stripTypeScriptTypes } from "node:module";
import { Buffer, JSON, RegExp } from "./glovebox_globals.mjs";
import { CellSyntaxError } from "./glovebox_syntax.mjs";

// {code, place, variablesAtEnd}: place(line, column) leads back to the text as it was written, counting from 1;
// variablesAtEnd: see transform().
export function withoutTypes(code) {
    try {
        // Types become spaces, everything else stays where it is.
        const plain = stripTypeScriptTypes(code, { mode: "strip" });
        return { code: plain, place: (line, column) => [line, column], variablesAtEnd: false };
    } catch (error) {
        if (error.code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw syntaxError(error);
    }
    return transformed(code);
}

// Enums, namespaces and parameter properties are code of their own.
function transformed(code) {
    let text;
    try {
        text = stripTypeScriptTypes(code, { mode: "transform", sourceMap: true });
    } catch (error) {
        throw syntaxError(error);
    }
    const [, body, encoded] = /^([^]*?)\s*\/\/# sourceMappingURL=data:application\/json;base64,([^\s]*)\s*$/.exec(text);
    const map = new SourceMap(JSON.parse(Buffer.from(encoded, "base64").toString()));
    const place = (line, column) => {
        const entry = map.findEntry(line - 1, column - 1);
        return entry.originalLine === undefined ? [line, column] : [entry.originalLine + 1, entry.originalColumn + 1];
    };
    return { code: body, place, variablesAtEnd: true };
}

function syntaxError(error) {
    if (!/TYPESCRIPT_SYNTAX$/.test(error.code)) return error;
    return new CellSyntaxError(error.message, null, null);
}

// Names that an import brings only for their types need not exist when the cell runs.
export function withoutTypeImports(imports, identifiers, typescript) {
    const isType = ({ local }) => !identifiers.has(local) && occurrences(typescript, local) > 1;
    return imports.flatMap((one) => {
        if (one.bindings.length === 0) return [one];
        const bindings = one.bindings.filter((binding) => !isType(binding));
        return bindings.length === 0 ? [] : [{ ...one, bindings }];
    });
}

function occurrences(text, name) {
    return text.match(new RegExp(`(?<![\\w$.])${name.replaceAll("$", "\\$")}(?![\\w$])`, "gu"))?.length ?? 0;
}
