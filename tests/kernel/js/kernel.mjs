// SPDX-License-Identifier: Apache-2.0
// A kernel under test: the real process, spoken to as the server does.

import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, createWriteStream, mkdtempSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const entry = fileURLToPath(new URL("../../../src/guest/interpreter/kernel/glovebox_kernel.mjs", import.meta.url));
const flags = [
    "--no-force-async-hooks-checks",
    "--experimental-import-meta-resolve",
    "--disable-warning=ExperimentalWarning",
];

// Node's own "pipe" is a socket.
function pipes(count) {
    const folder = mkdtempSync(join(tmpdir(), "js-kernel-pipes-"));
    const paths = Array.from({ length: count }, (_, index) => join(folder, `${index}`));
    execFileSync("mkfifo", paths);
    const open = paths.map((path) => {
        const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK); // a reader lets the writer open
        return { read, write: openSync(path, constants.O_WRONLY) };
    });
    rmSync(folder, { recursive: true });
    return open;
}

export class Kernel {
    stdout = "";
    stderr = "";
    #count = 0;
    #text = "";
    #answers = [];
    #ended = false;
    #wake = () => {};

    // In a folder of its own, which is removed with it.
    static async start({ env = {} } = {}) {
        const kernel = new Kernel();
        kernel.cwd = mkdtempSync(join(tmpdir(), "js-kernel-"));
        const [stdout, stderr, requests, answers] = pipes(4);
        kernel.process = spawn(process.execPath, [...flags, entry], {
            cwd: kernel.cwd,
            detached: true,
            env: { ...process.env, ...env },
            stdio: ["ignore", stdout.write, stderr.write, requests.read, answers.write],
        });
        process.setMaxListeners(0);
        process.once("exit", () => kernel.process.kill("SIGKILL")); // a test that failed does not stop it
        [stdout.write, stderr.write, requests.read, answers.write].forEach((fd) => closeSync(fd));
        kernel.requests = createWriteStream(null, { fd: requests.write });
        kernel.requests.on("error", () => {}); // the kernel has ended
        kernel.stdoutPipe = new Socket({ fd: stdout.read, writable: false });
        kernel.#listen(new Socket({ fd: stderr.read, writable: false }), new Socket({ fd: answers.read, writable: false }));
        await kernel.#until((answer) => answer.type === "ready");
        return kernel;
    }

    #listen(stderr, answers) {
        this.exited = new Promise((resolve) => this.process.on("exit", (code, signal) => resolve({ code, signal })));
        answers.on("close", () => (this.#ended = true));
        const read = (stream, take) => stream.setEncoding("utf8").on("data", (text) => (take(text), this.#wake())).on("close", () => this.#wake());
        read(this.stdoutPipe, (text) => (this.stdout += text));
        read(stderr, (text) => (this.stderr += text));
        read(answers, (text) => {
            const lines = (this.#text + text).split("\n");
            this.#text = lines.pop();
            this.#answers.push(...lines.map((line) => JSON.parse(line)));
        });
    }

    // Answers up to the first that fits.
    async #until(fits) {
        for (const taken = []; ; ) {
            while (this.#answers.length > 0) {
                taken.push(this.#answers.shift());
                if (fits(taken.at(-1))) return taken;
            }
            if (this.#ended) throw new Error(`the kernel ended: ${this.stderr}`);
            await this.#change();
        }
    }

    #change() {
        return new Promise((resolve) => (this.#wake = resolve));
    }

    post(message) {
        this.requests.write(`${JSON.stringify(message)}\n`);
    }

    // {status, error, result, displays, stdout, stderr, exit}
    async run(code, language = "javascript") {
        const id = this.submit(code, language);
        return this.answer(id);
    }

    typescript(code) {
        return this.run(code, "typescript");
    }

    // Starts a cell; `answer` waits for its end.
    submit(code, language = "javascript") {
        this.stdout = this.stderr = "";
        const count = ++this.#count;
        this.post({ id: `${count}`, type: "execute", code, count, language });
        return `${count}`;
    }

    async answer(id) {
        const answers = await this.#until((answer) => answer.id === id && answer.type === "reply");
        const content = (type) => answers.filter((one) => one.type === type && one.id === id).map((one) => one.content);
        // Pipes of their own: what was written before the reply arrives beside it.
        await new Promise((resolve) => setTimeout(resolve, 20));
        const [{ status, exit }] = content("reply");
        return {
            status,
            exit,
            error: content("error")[0],
            result: content("execute_result")[0]?.data,
            displays: content("display_data").map((one) => one.data),
            stdout: this.stdout,
            stderr: this.stderr,
        };
    }

    async ask(type, argument) {
        const id = `hidden-${++this.#count}`;
        this.post({ id, type, argument });
        const answers = await this.#until((answer) => answer.id === id && answer.type === "reply");
        return answers.at(-1);
    }

    // Waits until the cells have printed this.
    async printed(text) {
        while (!this.stdout.includes(text)) await this.#change();
    }

    interrupt() {
        process.kill(-this.process.pid, "SIGINT");
    }

    async stop() {
        this.requests.end();
        const end = await this.exited;
        rmSync(this.cwd, { recursive: true });
        return end;
    }
}
