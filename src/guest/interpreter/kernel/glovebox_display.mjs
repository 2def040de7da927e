// SPDX-License-Identifier: Apache-2.0
// display(value): shows a value while a cell runs.

import { inspect } from "node:util";
import { Object } from "./glovebox_globals.mjs";
import { asSent, base64, mimeBundle, shown } from "./glovebox_mime.mjs";

// `show(data)` takes a MIME bundle, or a promise of one, at once.
export function makeDisplay(show) {
    const display = (value, bundle) => {
        if (bundle === undefined) return show(mimeBundle(value));
        return show({ "text/plain": shown(value), ...asSent(bundle) });
    };
    const textual = { html: "text/html", svg: "image/svg+xml", markdown: "text/markdown", latex: "text/latex" };
    for (const [name, type] of Object.entries(textual)) {
        display[name] = (text) => show({ "text/plain": `${text}`, [type]: `${text}` });
    }
    for (const [name, type] of Object.entries({ png: "image/png", jpeg: "image/jpeg" })) {
        display[name] = (image) => show({ "text/plain": `<${type}>`, [type]: base64(image) });
    }
    display.json = (value) => show({ "text/plain": inspect(value), "application/json": value });
    return display;
}
