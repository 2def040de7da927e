// SPDX-License-Identifier: Apache-2.0
// Finds assignments to the constants of a cell.
//
// A cell's declarations become properties of the global object, so that later cells and functions of earlier ones see
// them; a property cannot refuse assignment and stay as quick as a variable. What assigns to a constant is therefore
// found in the text.

import { Set } from "./glovebox_globals.mjs";
import { childrenOf, isFunction, namesOf } from "./glovebox_syntax.mjs";

// Identifier nodes that are assigned to and mean one of `constants`, a set of names declared at the top of `program`.
export function assignmentsTo(constants, program) {
    const found = [];
    visit(program, null, { constants, found });
    return found;
}

// `scope` is a chain of {names, parent}: names that hide the cell's constants.
function visit(node, scope, search) {
    const names = namesDeclaredIn(node);
    if (names.size > 0) scope = { names, parent: scope };
    for (const target of targetsOf(node)) {
        if (search.constants.has(target.name) && !hidden(target.name, scope)) {
            search.found.push(target);
        }
    }
    for (const child of childrenOf(node)) visit(child, scope, search);
}

function hidden(name, scope) {
    for (; scope !== null; scope = scope.parent) {
        if (scope.names.has(name)) return true;
    }
    return false;
}

function targetsOf(node) {
    switch (node.type) {
        case "AssignmentExpression":
            return namesOf(node.left);
        case "UpdateExpression":
            return namesOf(node.argument);
        case "ForInStatement":
        case "ForOfStatement":
            return node.left.type === "VariableDeclaration" ? [] : namesOf(node.left);
        default:
            return [];
    }
}

function namesDeclaredIn(node) {
    const names = new Set();
    const add = (pattern) => namesOf(pattern).forEach((identifier) => names.add(identifier.name));
    if (isFunction(node)) {
        node.params.forEach(add);
        if (node.type === "FunctionExpression" && node.id) add(node.id);
        addVariables(node.body, add);
    } else if (node.type === "ClassExpression" || node.type === "ClassDeclaration") {
        if (node.id) add(node.id);
    } else if (node.type === "CatchClause") {
        if (node.param) add(node.param);
    } else if (node.type === "BlockStatement" || node.type === "StaticBlock") {
        node.body.forEach((statement) => addLexical(statement, add));
    } else if (node.type === "SwitchStatement") {
        node.cases.forEach((one) => one.consequent.forEach((statement) => addLexical(statement, add)));
    } else if (node.type === "ForStatement" && node.init) {
        addLexical(node.init, add);
    } else if (node.type === "ForInStatement" || node.type === "ForOfStatement") {
        addLexical(node.left, add);
    }
    return names;
}

function addLexical(statement, add) {
    if (statement.type === "VariableDeclaration" && statement.kind !== "var") {
        statement.declarations.forEach((one) => add(one.id));
    } else if (statement.type === "FunctionDeclaration" || statement.type === "ClassDeclaration") {
        add(statement.id);
    }
}

function addVariables(node, add) {
    if (node.type === "VariableDeclaration" && node.kind === "var") node.declarations.forEach((one) => add(one.id));
    for (const child of childrenOf(node)) {
        if (!isFunction(child)) addVariables(child, add);
    }
}
