// SPDX-License-Identifier: Apache-2.0
// Turns the text of a cell into scripts that keep its declarations.
//
// Each top-level declaration becomes a property of the global object: later cells see it and may declare it again, and
// functions of earlier cells see the new value. Lines stay where they are; columns move on few lines (`moves`).
//  - Functions go into a script of their own that runs first, everything else blanked: V8 hoists them as it always does.
//  - Other declarations become assignments within a function, async if the cell awaits.
//  - Imports are taken out and described, to be made before anything else runs.

import { assignmentsTo } from "./glovebox_constants.mjs";
import { blanked, Edits } from "./glovebox_edits.mjs";
import { Map, Object, Set, globalThis } from "./glovebox_globals.mjs";
import { CellSyntaxError, childrenOf, isFunction, namesOf, parse } from "./glovebox_syntax.mjs";

// Names that rewritten cells use. They are properties of the global object that no enumeration shows.
export const metaName = "import_meta"; // as long as `import.meta`, so that no column moves
export const constantName = "__glovebox_constant";

// {imports: [{specifier, bindings: [{local, imported}], attributes}], functions: text or null, body: text, isStrict,
// isAsync, variables: names, lexical: names, moves, identifiers: names that occur
// outside of imports}
//
// variablesAtEnd: the text was made by a compiler that declares its own variables at the end, after the cell's last
// statement.
export function transform(code, { variablesAtEnd = false } = {}) {
    const program = parse(code);
    return program === null ? untouched(code) : new Cell(code, program).rewrite(variablesAtEnd);
}

function untouched(code) {
    const none = { imports: [], functions: null, variables: [], lexical: [], moves: new Map(), identifiers: new Set() };
    return { ...none, body: code, isStrict: false, isAsync: true };
}

function isBareVariable(statement) {
    return statement.type === "VariableDeclaration" && statement.declarations.every((one) => one.init === null);
}

class Cell {
    #imports = [];
    #functions = [];
    #variables = new Set();
    #lexical = new Set();
    #constants = new Set();
    #identifiers = new Set();
    #isAsync = false;

    constructor(code, program) {
        this.code = code;
        this.program = program;
        this.edits = new Edits(code);
        this.isStrict = program.body[0]?.directive === "use strict";
    }

    rewrite(variablesAtEnd) {
        const last = this.program.body.findLast(
            (statement) => statement.type !== "EmptyStatement" && !(variablesAtEnd && isBareVariable(statement)),
        );
        for (const statement of this.program.body) this.#topLevel(statement, statement === last);
        this.#search(this.program, this.program, false);
        for (const target of this.#constants.size > 0 ? assignmentsTo(this.#constants, this.program) : []) {
            this.#refuse(target);
        }
        if (this.code.startsWith("#!")) this.edits.insert(0, "//");
        const edited = this.edits.apply();
        return {
            imports: this.#imports,
            ...this.#split(edited),
            isStrict: this.isStrict,
            isAsync: this.#isAsync,
            variables: [...this.#variables],
            lexical: [...this.#lexical],
            moves: edited.moves,
            identifiers: this.#identifiers,
        };
    }

    #topLevel(node, isLast) {
        switch (node.type) {
            case "ExpressionStatement":
                if (isLast) this.edits.insert(node.start, "return ");
                break;
            case "VariableDeclaration":
                if (node.kind === "const" || node.kind === "let") this.#declaration(node, true);
                break;
            case "FunctionDeclaration":
                this.#functions.push(node);
                this.#variables.add(node.id.name);
                break;
            case "ClassDeclaration":
                this.#lexical.add(node.id.name);
                this.edits.insert(node.start, `${node.id.name}=`);
                this.edits.insert(node.end, ";");
                break;
            case "ImportDeclaration":
                this.#import(node);
                break;
            case "ExportNamedDeclaration":
            case "ExportDefaultDeclaration":
            case "ExportAllDeclaration":
                this.#export(node, isLast);
                break;
        }
    }

    // `const {a} = b` becomes `;    ({a} = b)`: an assignment, which the statement before must not swallow.
    #declaration(node, isStatement) {
        const names = node.kind === "var" ? this.#variables : this.#lexical;
        const [first] = node.declarations;
        const parenthesis = isStatement && first.id.type === "ObjectPattern";
        const keyword = (isStatement ? ";" : "").padEnd(node.kind.length - (parenthesis ? 1 : 0));
        this.edits.replace(node.start, node.start + node.kind.length, parenthesis ? `${keyword}(` : keyword);
        if (parenthesis && first.init) this.edits.insert(first.end, ")");
        for (const one of node.declarations) {
            for (const { name } of namesOf(one.id)) {
                names.add(name);
                if (node.kind === "const") this.#constants.add(name);
            }
            if (one.init === null && node.kind === "let") this.edits.insert(one.end, "=void 0");
        }
        if (isStatement && this.code[node.end - 1] !== ";") this.edits.insert(node.end, ";");
    }

    #import(node) {
        const bindings = node.specifiers.map((one) => ({
            local: one.local.name,
            imported:
                one.type === "ImportNamespaceSpecifier" ? null
                : one.type === "ImportDefaultSpecifier" ? "default"
                : (one.imported.name ?? one.imported.value),
        }));
        for (const { local } of bindings) {
            this.#lexical.add(local);
            this.#constants.add(local);
        }
        const attributes = (node.attributes ?? []).map((one) => [one.key.name ?? one.key.value, one.value.value]);
        this.#imports.push({ specifier: node.source.value, bindings, attributes: Object.fromEntries(attributes) });
        this.#drop(node.start, node.end);
    }

    #export(node, isLast) {
        if (node.source) {
            throw new CellSyntaxError(
                "A cell has nobody to export to: import the names instead of exporting them from another module",
                ...this.#place(node.start),
            );
        }
        const { declaration } = node;
        if (!declaration) return this.#drop(node.start, node.end);
        if (node.type === "ExportNamedDeclaration" || (/Declaration$/.test(declaration.type) && declaration.id)) {
            this.#drop(node.start, declaration.start);
            return this.#topLevel(declaration, isLast);
        }
        const open = isLast ? ";return (" : ";(";
        this.edits.replace(node.start, declaration.start, open + blanked(this.code.slice(node.start + open.length, declaration.start)));
        this.edits.insert(declaration.end, ");");
    }

    #drop(start, end) {
        this.edits.replace(start, end, ";" + blanked(this.code.slice(start + 1, end)));
    }

    // Everything that is found at any depth. `owner` is the function or program that `var` belongs to.
    #search(node, owner, isStatement) {
        switch (node.type) {
            case "ImportDeclaration":
                return;
            case "Identifier":
                this.#identifiers.add(node.name);
                break;
            case "AwaitExpression":
                if (owner === this.program) this.#isAsync = true;
                break;
            case "ForOfStatement":
                if (node.await && owner === this.program) this.#isAsync = true;
                break;
            case "VariableDeclaration":
                if (node.kind === "await using" && owner === this.program) this.#isAsync = true;
                if (node.kind === "var" && owner === this.program) this.#declaration(node, isStatement);
                break;
            case "MetaProperty":
                if (node.meta.name === "import") {
                    this.edits.replace(node.start, node.end, metaName + blanked(this.code.slice(node.start + metaName.length, node.end)));
                }
                break;
            case "FunctionDeclaration":
                this.#functionInBlock(node, owner, isStatement);
                break;
        }
        if (isFunction(node) || node.type === "StaticBlock" || node.type === "PropertyDefinition") owner = node;
        const isList = /^(Program|BlockStatement|StaticBlock|SwitchCase|ExportNamedDeclaration)$/.test(node.type);
        for (const child of childrenOf(node)) this.#search(child, owner, isList);
    }

    // Sloppy code sees a function outside of its block, too.
    #functionInBlock(node, owner, isStatement) {
        const isHoisted = owner === this.program && isStatement && !this.isStrict && !node.async && !node.generator;
        if (!isHoisted || this.#functions.includes(node)) return;
        this.edits.insert(node.start, `globalThis.${node.id.name}=${node.id.name};`);
    }

    // The assignment throws what V8 would throw, once it is reached.
    #refuse(target) {
        this.edits.insert(target.start, `${this.#isShorthand(this.program, target) ? `${target.name}:` : ""}${constantName}.`);
    }

    #isShorthand(node, target) {
        if (node.end < target.end || node.start > target.start) return false;
        if (node.type === "Property" && node.shorthand && node.start === target.start) return true;
        for (const child of childrenOf(node)) if (this.#isShorthand(child, target)) return true;
        return false;
    }

    #place(offset) {
        const lines = this.code.slice(0, offset).split(/\r\n|[\n\r\u2028\u2029]/);
        return [lines.length, lines.at(-1).length];
    }

    // Both texts hold as many characters as the edited one.
    #split({ text, position }) {
        let [functions, body, done] = ["", "", 0];
        for (const { start, end } of this.#functions) {
            const [from, to] = [position(start, "start"), position(end, "end")];
            functions += blanked(text.slice(done, from)) + text.slice(from, to);
            body += text.slice(done, from) + ";" + blanked(text.slice(from + 1, to));
            done = to;
        }
        return { functions: functions === "" ? null : functions, body: body + text.slice(done) };
    }
}
