// SPDX-License-Identifier: Apache-2.0
// Environment variables laid over the process's own; laying others takes the earlier ones back.

import { Map, Object, process } from "./glovebox_globals.mjs";

export class Overlay {
    #before = new Map();

    lay(variables) {
        for (const [name, value] of this.#before) {
            if (value === undefined) delete process.env[name];
            else process.env[name] = value;
        }
        this.#before = new Map();
        for (const [name, value] of Object.entries(variables)) {
            this.#before.set(name, process.env[name]);
            process.env[name] = value;
        }
    }
}
