// SPDX-License-Identifier: Apache-2.0
// The kernel of JavaScript and TypeScript: runs cells in this process and answers the server, see glovebox_channel.mjs.
// Start as: node --no-force-async-hooks-checks --experimental-import-meta-resolve --disable-warning=ExperimentalWarning

import { receive, send } from "./glovebox_channel.mjs";
import { installEntropy } from "./glovebox_entropy.mjs";
import { errorText } from "./glovebox_errors.mjs";
import { process } from "./glovebox_globals.mjs";
import { watchInterrupts } from "./glovebox_interrupts.mjs";
import { installOutput } from "./glovebox_output.mjs";
import { Session } from "./glovebox_session.mjs";

const reallyExit = process.reallyExit;

installOutput();
installEntropy();
const session = new Session();
session.install();

// What process.exit() calls last.
process.reallyExit = (code) => {
    session.exit(code);
    reallyExit.call(process, code);
};

// Errors of timers, and rejections that nobody handles, are no reason to lose what a notebook holds.
process.setUncaughtExceptionCaptureCallback((error) => {
    if (process.listenerCount("uncaughtException") > 0) process.emit("uncaughtException", error, "uncaughtException");
    else process.stderr.write(`Uncaught ${errorText(error, session.places)}\n`);
});

// Cells are no program that was started with arguments; processes that they fork are started plainly.
process.argv.length = 1;
process.execArgv.length = 0;

await watchInterrupts(() => session.interrupt());
receive(
    (request) => session.take(request),
    () => reallyExit.call(process, 0),
);
send({ type: "ready" });
