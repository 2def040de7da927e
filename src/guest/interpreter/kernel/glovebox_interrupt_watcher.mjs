// The thread that waits for SIGINT, see glovebox_interrupts.mjs.

import { Session } from "node:inspector";
import { createRequire } from "node:module";
import { parentPort } from "node:worker_threads";

// Node lets only the main thread listen to signals; what it listens with works in every thread.
const { internalBinding } = createRequire(import.meta.url)("internal/test/binding");
const { Signal } = internalBinding("signal_wrap");

const sigint = 2;

function interrupt() {
    const session = new Session();
    session.connectToMainThread();
    const expression = 'process[Symbol.for("glovebox.interrupt")]()';
    session.post("Runtime.evaluate", { expression, silent: true }, () => session.disconnect());
}

const signal = new Signal();
signal.onsignal = interrupt;
signal.start(sigint);
parentPort.postMessage("watching");
