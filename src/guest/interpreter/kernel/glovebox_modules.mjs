// SPDX-License-Identifier: Apache-2.0
// Modules as a cell sees them: everything is found from the current directory, where the user installs packages.

import { createRequire, Module } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";
import { constantName, metaName } from "./glovebox_cell.mjs";
import { Object, Proxy, TypeError, globalThis, process } from "./glovebox_globals.mjs";
import { CellSyntaxError } from "./glovebox_syntax.mjs";

// Scripts compiled with this import what their text says relative to the current directory.
export const importModuleDynamically = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;

const importAsCell = vm.runInThisContext("(specifier, options) => import(specifier, options)", {
    filename: "cell",
    importModuleDynamically,
});

// Makes the imports of a cell; `isTypeScript` forgives names that a module does not have: they may be types.
export async function makeImports(imports, isTypeScript) {
    for (const { specifier, bindings, attributes } of imports) {
        const namespace = await importAsCell(specifier, { with: attributes });
        for (const { local, imported } of bindings) {
            if (imported === null) {
                globalThis[local] = namespace;
            } else if (imported in namespace) {
                globalThis[local] = namespace[imported];
            } else if (!isTypeScript) {
                throw new CellSyntaxError(
                    `The requested module '${specifier}' does not provide an export named '${imported}'`,
                    null,
                    null,
                );
            }
        }
    }
}

// The file that a cell would be.
function cellFile() {
    return join(process.cwd(), "cell.js");
}

const meta = {
    get url() {
        return pathToFileURL(cellFile()).href;
    },
    get filename() {
        return cellFile();
    },
    get dirname() {
        return process.cwd();
    },
    resolve(specifier) {
        return import.meta.resolve(specifier, pathToFileURL(cellFile()));
    },
};

const constants = new Proxy(Object.create(null), {
    get: (_target, name) => globalThis[name],
    set: () => {
        throw new TypeError("Assignment to constant variable.");
    },
});

// Kept until the user replaces them.
export class ModuleGlobals {
    #cwd = null;
    #made = {};

    install() {
        defineHidden(metaName, meta);
        defineHidden(constantName, constants);
        this.follow();
    }

    // The current directory may have changed.
    follow() {
        const cwd = process.cwd();
        if (cwd === this.#cwd) return;
        const filename = cellFile();
        const module = new Module(filename);
        module.filename = filename;
        module.paths = Module._nodeModulePaths(cwd);
        const made = {
            require: createRequire(filename),
            module,
            exports: module.exports,
            __dirname: cwd,
            __filename: filename,
        };
        for (const [name, value] of Object.entries(made)) {
            if (globalThis[name] === this.#made[name]) defineHidden(name, value);
        }
        this.#cwd = cwd;
        this.#made = made;
    }
}

export function defineHidden(name, value) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}
