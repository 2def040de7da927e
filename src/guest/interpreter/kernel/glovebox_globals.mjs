// SPDX-License-Identifier: Apache-2.0
// What JavaScript and Node offer everywhere, kept from cells: `const process = …` in one replaces the global property.

export const {
    Array, ArrayBuffer, Atomics, Buffer, Error, Int32Array, JSON, Map, Math, Number, Object, Promise,
    Proxy, Reflect, RegExp, Set, SharedArrayBuffer, String, Symbol, SyntaxError, TypeError, URL, Uint32Array,
    Uint8Array, globalThis, process, setImmediate,
} = global;
