// SPDX-License-Identifier: Apache-2.0
// The thread that waits for SIGINT, see glovebox_interrupts.mjs.

import { Session } from "node:inspector";
import { createRequire } from "node:module";
import { parentPort, workerData as terminating } from "node:worker_threads";

// Node lets only the main thread listen to signals; what it listens with works in every thread.
const { internalBinding } = createRequire(import.meta.url)("internal/test/binding");
const { Signal } = internalBinding("signal_wrap");

const sigint = 2;
const expression = "__glovebox_interrupt()";

let isInterrupting = false;

// Signals that come while one is handled mean the same cell.
async function interrupt() {
    if (isInterrupting) return;
    isInterrupting = true;
    const session = new Session();
    session.connectToMainThread();
    await new Promise((resolve) => session.post("Runtime.evaluate", { expression, silent: true }, resolve));
    session.disconnect();
    while (Atomics.load(terminating, 0) === 1) await Atomics.waitAsync(terminating, 0, 1).value;
    isInterrupting = false;
}

const signal = new Signal();
signal.onsignal = interrupt;
signal.start(sigint);
parentPort.postMessage("watching");
