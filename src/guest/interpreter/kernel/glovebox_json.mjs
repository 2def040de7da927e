// SPDX-License-Identifier: Apache-2.0
// Whether a value is the same after a way through JSON.

import { types } from "node:util";
import { Array, Number, Object, Reflect, Set } from "./glovebox_globals.mjs";

const maxValues = 1_000_000;
const maxCharacters = 16 * 1024 * 1024;
const maxDepth = 500;

// Plain objects and arrays all the way down, without what JSON drops or changes, and not too large. Calls no code of
// the value's own.
export function isPlainJson(value) {
    if (value === null || typeof value !== "object") return false;
    const budget = { values: maxValues, characters: maxCharacters };
    return isPlain(value, new Set(), budget);
}

function isPlain(value, above, budget) {
    if (--budget.values < 0) return false;
    switch (typeof value) {
        case "string":
            budget.characters -= value.length;
            return budget.characters >= 0;
        case "number":
            return Number.isFinite(value) && !Object.is(value, -0);
        case "boolean":
            return true;
        case "object":
            return value === null || isPlainObject(value, above, budget);
        default:
            return false;
    }
}

function isPlainObject(object, above, budget) {
    if (types.isProxy(object) || above.has(object) || above.size >= maxDepth) return false;
    const prototype = Object.getPrototypeOf(object);
    const isArray = Array.isArray(object);
    if (isArray ? prototype !== Array.prototype : prototype !== Object.prototype && prototype !== null) return false;
    above.add(object);
    const isSame = isArray ? isPlainArray(object, above, budget) : hasPlainProperties(object, above, budget);
    above.delete(object);
    return isSame;
}

function isPlainArray(array, above, budget) {
    if (array.length > budget.values || Reflect.ownKeys(array).length !== array.length + 1) return false;
    for (let index = 0; index < array.length; index++) {
        if (!isPlainProperty(array, index, above, budget)) return false;
    }
    return true;
}

function hasPlainProperties(object, above, budget) {
    for (const key of Reflect.ownKeys(object)) {
        if (typeof key === "symbol" || key === "toJSON" || key === "__proto__") return false;
        budget.characters -= key.length;
        if (!isPlainProperty(object, key, above, budget)) return false;
    }
    return true;
}

function isPlainProperty(object, key, above, budget) {
    const property = Object.getOwnPropertyDescriptor(object, key);
    return property !== undefined && "value" in property && property.enumerable && isPlain(property.value, above, budget);
}
