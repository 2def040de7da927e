// SPDX-License-Identifier: Apache-2.0
// A value as a MIME bundle: {"text/plain": …, "image/png": base64, …}.

import { inspect, types } from "node:util";
import { Buffer, Object, Promise, Symbol } from "./glovebox_globals.mjs";
import { isPlainJson } from "./glovebox_json.mjs";

export const displaySymbol = Symbol.for("Jupyter.display"); // of Deno's Jupyter kernel

// Methods of IJavascript.
const methods = {
    _toHtml: "text/html",
    _toSvg: "image/svg+xml",
    _toPng: "image/png",
    _toJpeg: "image/jpeg",
    _toMarkdown: "text/markdown",
    _toLatex: "text/latex",
};

// May call methods of the value's own, and throws what they throw. A promise only if one of them answers a promise:
// what is shown without one keeps its order.
export function mimeBundle(value) {
    const own = ownBundle(value);
    const whole = (bundle) => (isBundle(bundle) ? { "text/plain": shown(value), ...asSent(bundle) } : plainBundle(value));
    return typeof own?.then === "function" ? own.then(whole) : whole(own);
}

export function plainBundle(value) {
    const bundle = { "text/plain": shown(value) };
    const image = types.isUint8Array(value) ? imageType(value) : null;
    if (image !== null) bundle[image] = base64(value);
    if (isPlainJson(value)) bundle["application/json"] = value;
    return bundle;
}

// Whoever shows the text takes one pair of quotes from it.
export function shown(value) {
    return typeof value === "string" ? `'${value}'` : inspect(value);
}

export function base64(bytes) {
    return typeof bytes === "string" ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

function ownBundle(value) {
    if (value === null || (typeof value !== "object" && typeof value !== "function")) return null;
    for (const name of [displaySymbol, "_toMime"]) {
        if (typeof value[name] === "function") return value[name]();
    }
    const own = Object.keys(methods).filter((name) => typeof value[name] === "function");
    if (own.length === 0) return null;
    const data = own.map((name) => value[name]());
    const bundle = (all) => Object.fromEntries(own.map((name, index) => [methods[name], all[index]]));
    return data.some((one) => typeof one?.then === "function") ? Promise.all(data).then(bundle) : bundle(data);
}

function isBundle(bundle) {
    return bundle !== null && typeof bundle === "object";
}

// Bytes are sent as base64, everything that is not text as JSON.
export function asSent(bundle) {
    const entries = Object.entries(bundle).filter(([, data]) => data !== undefined && data !== null);
    return Object.fromEntries(
        entries.map(([type, data]) => {
            if (types.isUint8Array(data)) return [type, base64(data)];
            if (typeof data === "string" || /\bjson$/.test(type)) return [type, data];
            return [type, inspect(data)];
        }),
    );
}

function imageType(bytes) {
    if (bytes[0] === 0x89 && bytes[1] === 0x50 && bytes[2] === 0x4e && bytes[3] === 0x47) return "image/png";
    if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return "image/jpeg";
    return null;
}
