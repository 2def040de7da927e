// SPDX-License-Identifier: Apache-2.0
// Runs requests one after another and answers each.

import vm from "node:vm";
import { send } from "./glovebox_channel.mjs";
import { transform } from "./glovebox_cell.mjs";
import { makeDisplay } from "./glovebox_display.mjs";
import { reseed } from "./glovebox_entropy.mjs";
import { Overlay } from "./glovebox_environment.mjs";
import { CellSyntaxError, describeError, describeSyntaxError, keyboardInterrupt } from "./glovebox_errors.mjs";
import { Error, Object, Promise, globalThis, process, setImmediate } from "./glovebox_globals.mjs";
import { mimeBundle } from "./glovebox_mime.mjs";
import { defineHidden, importModuleDynamically, makeImports, ModuleGlobals } from "./glovebox_modules.mjs";
import { CellPlaces, cellName } from "./glovebox_places.mjs";
import { followTrust } from "./glovebox_trust.mjs";
import { withoutTypeImports, withoutTypes } from "./glovebox_typescript.mjs";

const asIs = (line, column) => [line, column];

export class Session {
    #queue = [];
    #current = null; // {id, pending}: the cell that runs
    #modules = new ModuleGlobals();
    #sandboxEnv = new Overlay();
    #callEnv = new Overlay();
    places = new CellPlaces();

    install() {
        this.#modules.install();
        defineHidden("display", makeDisplay((bundle) => this.#show(bundle)));
    }

    take(request) {
        this.#queue.push(request);
        if (this.#queue.length === 1) this.#begin();
    }

    // Answers for the running cell, whatever becomes of its code.
    interrupt() {
        if (this.#current !== null) this.#finish(this.#current, { error: keyboardInterrupt });
    }

    // The process ends with this code.
    exit(code) {
        if (this.#current === null) return;
        const error = code === 0 ? undefined : { ename: "ExitCode", evalue: `${code}`, traceback: [`ExitCode: ${code}`] };
        this.#answer(this.#current, { error, exit: true });
        this.#current = null;
    }

    // Code of the user may be terminated down to the event loop: it starts from there, with nothing of Node's between.
    #begin() {
        setImmediate(() => this.#run(this.#queue[0]));
    }

    #run(request) {
        if (request.type === "execute") {
            const cell = { id: request.id, pending: [] };
            this.#current = cell;
            this.#execute(cell, request).then((outcome) => this.#finish(cell, outcome));
            return;
        }
        let error;
        try {
            this.#hidden(request);
        } catch (thrown) {
            error = describeError(thrown, this.places);
        }
        this.#answer(request, { error });
        this.#next();
    }

    #hidden({ type, argument }) {
        if (type === "enter_generation") {
            if (argument.reseed) reseed();
            this.#sandboxEnv.lay(argument.env);
            followTrust();
        } else if (type === "set_call_env") {
            this.#callEnv.lay(argument);
        } else {
            throw new Error(`a request of unknown type: ${type}`);
        }
    }

    // {error} or {result}; never throws.
    async #execute(cell, { code, count, language }) {
        const name = cellName(count);
        try {
            const isTypeScript = language === "typescript";
            const plain = isTypeScript ? withoutTypes(code) : { code, place: asIs };
            const scripts = transform(plain.code, plain);
            this.places.remember(count, scripts.moves, plain.place);
            const imports = isTypeScript ? withoutTypeImports(scripts.imports, scripts.identifiers, code) : scripts.imports;
            this.#modules.follow();
            declare(scripts);
            if (imports.length > 0) await makeImports(imports, isTypeScript);
            let value = start(scripts, name);
            if (typeof value?.then === "function") value = await value;
            const result = value === undefined ? undefined : await mimeBundle(value);
            await Promise.all(cell.pending);
            return { result };
        } catch (error) {
            const isOfCell = error instanceof CellSyntaxError;
            return { error: isOfCell ? describeSyntaxError(error, code, name) : describeError(error, this.places) };
        }
    }

    #finish(cell, outcome) {
        if (this.#current !== cell) return; // interrupted before
        this.#current = null;
        this.#answer(cell, outcome);
        this.#next();
    }

    #next() {
        this.#queue.shift();
        if (this.#queue.length > 0) this.#begin();
    }

    #answer({ id }, { error, result, exit }) {
        if (result !== undefined) {
            try {
                send({ id, type: "execute_result", content: { data: result } });
            } catch (thrown) {
                error = describeError(thrown, this.places);
            }
        }
        if (error !== undefined) send({ id, type: "error", content: error });
        send({ id, type: "reply", content: { status: error === undefined ? "ok" : "error", ...(exit && { exit }) } });
    }

    #show(bundle) {
        const cell = this.#current;
        const put = (data) => {
            if (cell !== null && cell === this.#current) send({ id: cell.id, type: "display_data", content: { data } });
            else process.stdout.write(`${data["text/plain"]}\n`); // nobody waits for it any more
        };
        if (typeof bundle.then !== "function") return put(bundle);
        const shown = bundle.then(put);
        cell?.pending.push(shown);
        return shown;
    }
}

// Names exist before the cell runs, so that strict code can assign to them.
function declare({ variables, lexical }) {
    for (const name of variables) declareOne(name, true);
    for (const name of lexical) declareOne(name, false);
}

function declareOne(name, isVariable) {
    const property = Object.getOwnPropertyDescriptor(globalThis, name);
    if (property?.configurable === false || property?.writable) return;
    const value = isVariable ? globalThis[name] : undefined;
    Object.defineProperty(globalThis, name, { value, writable: true, enumerable: true, configurable: true });
}

function start({ functions, body, isStrict, isAsync }, filename) {
    if (functions !== null) {
        const prefix = isStrict ? '"use strict";' : "";
        compile(prefix, functions, "", filename).runInThisContext();
    }
    return compile(isAsync ? "(async () => {" : "(() => {", body, "\n})", filename).runInThisContext()();
}

function compile(prefix, text, suffix, filename) {
    return new vm.Script(prefix + text + suffix, { filename, columnOffset: -prefix.length, importModuleDynamically });
}
