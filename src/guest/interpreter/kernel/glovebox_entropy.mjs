// SPDX-License-Identifier: Apache-2.0
// Random numbers that differ between machines restored from the same snapshot.
//
// A snapshot holds the state of V8's generator, of OpenSSL's and of Node's caches; every machine restored from it would
// go on with the same numbers. V8 cannot be seeded again, and OpenSSL takes fresh bytes from the operating system only
// after hours or thousands of requests. So all that JavaScript sees is drawn from, or mixed with, bytes of the operating
// system, whose generator is seeded anew when a machine is restored. Bytes read ahead are part of a snapshot, too:
// reseed() drops them. What OpenSSL draws for itself (keys, TLS) comes from its own generator, which a native module gives
// fresh bytes (node_entropy.cc).

import crypto from "node:crypto";
import { openSync, readSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { ArrayBuffer, Buffer, Math, Object, Uint32Array, Uint8Array, process } from "./glovebox_globals.mjs";

const source = openSync("/dev/urandom");
const pool = new Uint8Array(8192);
const words = new Uint32Array(pool.buffer);
let used = pool.length; // bytes of the pool

const seedOpenssl = loadModule(process.env.GLOVEBOX_NODE_ENTROPY);
delete process.env.GLOVEBOX_NODE_ENTROPY;

function loadModule(path) {
    if (!path) return undefined;
    const module = { exports: {} };
    try {
        process.dlopen(module, path);
        return module.exports;
    } catch (error) {
        process.stderr.write(`OpenSSL is not seeded again in copies of this machine: ${error.message}\n`);
        return undefined;
    }
}

export function reseed() {
    used = pool.length;
    seedOpenssl?.();
}

function fill() {
    for (let done = 0; done < pool.length; ) done += readSync(source, pool, done, pool.length - done);
    used = 0;
}

function random() {
    if (used + 8 > pool.length) fill();
    used = (used + 7) & ~7;
    if (used + 8 > pool.length) fill();
    const high = words[used >> 2] >>> 5;
    const low = words[(used >> 2) + 1] >>> 6;
    used += 8;
    return (high * 67108864 + low) / 9007199254740992; // 53 bits
}

// Mixing keeps what the first generator was worth.
function freshen(view, start = 0, length = view.byteLength - start) {
    const bytes = ArrayBuffer.isView(view)
        ? new Uint8Array(view.buffer, view.byteOffset + start, length)
        : new Uint8Array(view, start, length);
    for (let index = 0; index < bytes.length; index++) {
        if (used >= pool.length) fill();
        bytes[index] ^= pool[used++];
    }
    return view;
}

function part(view, offset, size) {
    const unit = view.BYTES_PER_ELEMENT ?? 1;
    const start = (typeof offset === "number" ? offset : 0) * unit;
    return [start, typeof size === "number" ? size * unit : view.byteLength - start];
}

const { getRandomValues, randomUUID } = crypto.webcrypto; // node:crypto's getRandomValues calls this one
const original = { ...crypto };

const replacements = {
    randomBytes(size, callback) {
        if (callback === undefined) return freshen(original.randomBytes(size));
        return original.randomBytes(size, (error, bytes) => callback(error, error ? bytes : freshen(bytes)));
    },
    randomFillSync(view, offset, size) {
        original.randomFillSync(view, offset, size);
        return freshen(view, ...part(view, offset, size));
    },
    randomFill(view, ...rest) {
        const callback = rest.pop();
        if (typeof callback !== "function") return original.randomFill(view, ...rest, callback);
        return original.randomFill(view, ...rest, (error) =>
            callback(error, error ? undefined : freshen(view, ...part(view, ...rest))),
        );
    },
    randomInt(min, max, callback) {
        if (max === undefined || typeof max === "function") [min, max, callback] = [0, min, max];
        original.randomInt(min, max); // refuses what it must
        const number = min + below(max - min);
        if (callback === undefined) return number;
        process.nextTick(callback, undefined, number);
    },
    randomUUID(options) {
        original.randomUUID(options); // refuses what it must
        return uuid();
    },
};

const ofWebCrypto = {
    getRandomValues(view) {
        return freshen(getRandomValues.call(this, view));
    },
    randomUUID() {
        randomUUID.call(this); // refuses what it must
        return uuid();
    },
};

// Below a limit of up to 48 bits, each number as likely as any other.
function below(limit) {
    const end = 2 ** 48 - (2 ** 48 % limit);
    for (;;) {
        const number = Buffer.from(freshen(new Uint8Array(6)).buffer).readUIntBE(0, 6);
        if (number < end) return number % limit;
    }
}

function uuid() {
    const bytes = freshen(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Buffer.from(bytes.buffer).toString("hex");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

export function installEntropy() {
    replace(Math, { random: () => random() });
    replace(crypto, replacements);
    replace(crypto, { pseudoRandomBytes: replacements.randomBytes, prng: replacements.randomBytes, rng: replacements.randomBytes });
    replace(Object.getPrototypeOf(crypto.webcrypto), ofWebCrypto);
    syncBuiltinESMExports();
}

// Properties keep how they were shown.
function replace(object, functions) {
    for (const [name, value] of Object.entries(functions)) {
        const { enumerable = false } = Object.getOwnPropertyDescriptor(object, name) ?? {};
        Object.defineProperty(object, name, { value, enumerable, writable: true, configurable: true });
    }
}
