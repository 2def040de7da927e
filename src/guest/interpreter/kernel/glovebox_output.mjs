// process.stdout and process.stderr that have written when a call returns: nothing is lost when a cell ends, when the
// process exits or while a loop never gives way, and memory stays flat.

import { constants, openSync, writeSync } from "node:fs";
import { Writable } from "node:stream";

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
        super({ decodeStrings: true, emitClose: false, autoDestroy: false });
        this.#own = openOwn(fd);
        this.fd = fd; // what a child process inherits
        this._type = "pipe";
        this._isStdio = true;
    }

    _write(bytes, _encoding, done) {
        try {
            write(this.#own, bytes);
        } catch {
            // Nobody reads any more.
        }
        done();
    }

    // As of Node's own: they are never closed.
    destroy() {
        return this;
    }

    _destroySoon() {}
}

export function installOutput() {
    for (const [name, fd] of [["stdout", 1], ["stderr", 2]]) {
        const stream = new SynchronousOutput(fd);
        Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
    }
}
