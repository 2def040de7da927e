// A kernel under test: the real process, spoken to as the server does.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const entry = fileURLToPath(new URL("../../../src/guest/interpreter/kernel/glovebox_kernel.mjs", import.meta.url));
const flags = [
    "--no-force-async-hooks-checks",
    "--experimental-import-meta-resolve",
    "--disable-warning=ExperimentalWarning",
];

export class Kernel {
    stdout = "";
    stderr = "";
    #count = 0;
    #text = "";
    #answers = [];
    #wake = () => {};

    // In a folder of its own, which is removed with it.
    static async start({ env = {} } = {}) {
        const kernel = new Kernel();
        kernel.cwd = mkdtempSync(join(tmpdir(), "js-kernel-"));
        kernel.process = spawn(process.execPath, [...flags, entry], {
            cwd: kernel.cwd,
            detached: true,
            env: { ...process.env, ...env },
            stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
        });
        kernel.#listen();
        await kernel.#until((answer) => answer.type === "ready");
        return kernel;
    }

    #listen() {
        const [, stdout, stderr, , answers] = this.process.stdio;
        this.exited = new Promise((resolve) => this.process.on("exit", (code, signal) => resolve({ code, signal })));
        this.process.on("close", () => this.#wake());
        const read = (stream, take) => stream.setEncoding("utf8").on("data", (text) => (take(text), this.#wake()));
        read(stdout, (text) => (this.stdout += text));
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
            if (this.process.exitCode !== null || this.process.signalCode !== null) throw new Error(`the kernel ended: ${this.stderr}`);
            await this.#change();
        }
    }

    #change() {
        return new Promise((resolve) => (this.#wake = resolve));
    }

    post(message) {
        this.process.stdio[3].write(`${JSON.stringify(message)}\n`);
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
        const answers = await this.#until((answer) => answer.id === id);
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
        this.process.stdio[3].end();
        const end = await this.exited;
        rmSync(this.cwd, { recursive: true });
        return end;
    }
}
