// SPDX-License-Identifier: Apache-2.0
// Messages between the server and the kernel: one JSON object in a line, requests from fd 3, answers to fd 4.

import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { Array, Buffer, JSON, Object } from "./glovebox_globals.mjs";

const requestsFd = 3;
const answersFd = 4;

let sending = false;
let afterwards = null;

export function send(message) {
    const bytes = Buffer.from(wellFormed(message) + "\n");
    sending = true;
    writeAll(answersFd, bytes);
    sending = false;
    if (afterwards === null) return;
    const next = afterwards;
    afterwards = null;
    next();
}

// Calls `next` at once, or as soon as the message that is being written is whole.
export function betweenMessages(next) {
    if (sending) afterwards = next;
    else next();
}

// Calls `take` with each request, and `end` when the server has closed its side.
export function receive(take, end) {
    const socket = new Socket({ fd: requestsFd, readable: true, writable: false });
    let pieces = [];
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
        const lines = text.split("\n");
        const rest = lines.pop();
        for (const line of lines) {
            pieces.push(line);
            const whole = pieces.join("");
            pieces = [];
            take(JSON.parse(whole));
        }
        pieces.push(rest);
    });
    socket.on("end", end);
    socket.on("error", end);
}

function writeAll(fd, bytes) {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

// Half of a surrogate pair is no character: UTF-8 cannot hold it, and strict readers refuse its escape, too.
function wellFormed(message) {
    const text = JSON.stringify(message);
    if (!/\\ud[89a-f]/.test(text)) return text;
    return JSON.stringify(message, (_key, value) => (typeof value === "string" ? value.toWellFormed() : withWholeKeys(value)));
}

function withWholeKeys(value) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key.toWellFormed(), one]));
}
