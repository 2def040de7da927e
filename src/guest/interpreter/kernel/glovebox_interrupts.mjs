// SPDX-License-Identifier: Apache-2.0
// Interrupts of a running cell, also of code that never gives way to the event loop.
//
// A signal reaches JavaScript only through the event loop. So a thread (glovebox_interrupt_watcher.mjs) waits for SIGINT
// and has the main thread call `interrupt` through the inspector, which V8 does in the middle of any loop, wait or match
// of a regular expression. There, the kernel knows what it is doing; if code of the user is running, it asks V8 to
// terminate it, down to the event loop. No `finally` runs and tasks waiting in the queue of promises are dropped.
// Node must run with --no-force-async-hooks-checks: a terminated timer leaves its entry on the stack of async ids, and
// Node would abort. The inspector is connected only while a signal is handled, since console.log has more to do else.

import { Session } from "node:inspector";
import { getCallSites } from "node:util";
import { Worker } from "node:worker_threads";
import { betweenMessages } from "./glovebox_channel.mjs";
import { Atomics, Int32Array, Object, Promise, SharedArrayBuffer, URL, globalThis, setImmediate } from "./glovebox_globals.mjs";

const kernelFolder = new URL(".", import.meta.url).href;
const framesToLookAt = 200; // as many as getCallSites answers

// 1 from the request to terminate until the code has ended. Nothing may be evaluated in between: it would be terminated
// instead, and the loop below it would go on.
const terminating = new Int32Array(new SharedArrayBuffer(4));

// Calls `onInterrupt` on the main thread when the process gets SIGINT. Answers once signals are watched.
export async function watchInterrupts(onInterrupt) {
    const interrupt = () => {
        onInterrupt();
        if (isUserCodeRunning()) terminate();
    };
    // Neither shown nor replaced by cells.
    Object.defineProperty(globalThis, "__glovebox_interrupt", { value: () => betweenMessages(interrupt) });
    const watcher = new Worker(new URL("glovebox_interrupt_watcher.mjs", import.meta.url), {
        execArgv: ["--expose-internals", "--no-warnings"],
        env: {},
        workerData: terminating,
        resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    await new Promise((resolve, reject) => {
        watcher.once("message", resolve);
        watcher.once("error", reject);
    });
    watcher.unref();
}

function isUserCodeRunning() {
    return getCallSites(framesToLookAt).some(
        ({ scriptName }) =>
            scriptName !== "" && !scriptName.startsWith("node:") && !scriptName.startsWith(kernelFolder),
    );
}

function terminate() {
    const session = new Session();
    session.connect();
    Atomics.store(terminating, 0, 1);
    session.post("Runtime.terminateExecution", () => {
        Atomics.store(terminating, 0, 0);
        Atomics.notify(terminating, 0);
        setImmediate(() => session.disconnect()); // not within its own answer
    });
}
