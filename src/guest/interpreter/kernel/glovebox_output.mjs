// SPDX-License-Identifier: Apache-2.0
// process.stdout and process.stderr that have written when a call returns: nothing is lost when a cell ends, when the
// process exits or while a loop never gives way, and memory stays flat.

import { constants, openSync, writeSync } from "node:fs";
import { Writable } from "node:stream";
import { ArrayBuffer, Atomics, Buffer, Int32Array, Object, SharedArrayBuffer, Uint8Array, process } from "./glovebox_globals.mjs";

// An open file of the kernel's own: a child process that makes the one they share non-blocking does no harm then.
function openOwn(fd) {
    try {
        return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_APPEND);
    } catch {
        return fd;
    }
}

const waiting = new Int32Array(new SharedArrayBuffer(4));

function write(fd, bytes) {
    for (let done = 0; done < bytes.length; ) {
        try {
            done += writeSync(fd, bytes, done);
        } catch (error) {
            if (error.code !== "EAGAIN") throw error;
            Atomics.wait(waiting, 0, 0, 1); // only where fd is shared, see openOwn
        }
    }
}

class SynchronousOutput extends Writable {
    #own;

    constructor(fd) {
        super({ emitClose: false, autoDestroy: false });
        this.#own = openOwn(fd);
        this.fd = fd; // what a child process inherits
        this._type = "pipe";
        this._isStdio = true;
    }

    // In place of Writable's, which waits for ever for a write that an interrupt has cut off.
    write(chunk, encoding, callback) {
        if (typeof encoding === "function") [encoding, callback] = [undefined, encoding];
        if (typeof chunk !== "string" && !ArrayBuffer.isView(chunk)) return super.write(chunk, encoding, callback); // throws
        try {
            write(this.#own, bytesOf(chunk, encoding));
        } catch {
            // Nobody reads any more.
        }
        if (typeof callback === "function") process.nextTick(callback);
        return true;
    }

    // Later cells print, too, so nothing ends these streams.
    end(chunk, encoding, callback) {
        if (typeof chunk === "function") [chunk, callback] = [undefined, chunk];
        else if (typeof encoding === "function") [encoding, callback] = [undefined, encoding];
        if (chunk !== undefined && chunk !== null) this.write(chunk, encoding);
        if (callback !== undefined) process.nextTick(callback);
        return this;
    }

    destroy() {
        return this;
    }
}

function bytesOf(chunk, encoding) {
    if (typeof chunk === "string") return Buffer.from(chunk, encoding);
    return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

export function installOutput() {
    for (const [name, fd] of [["stdout", 1], ["stderr", 2]]) {
        const stream = new SynchronousOutput(fd);
        Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
    }
}
