// SPDX-License-Identifier: Apache-2.0
// Replacements in a text that never change its lines, and the way back from a column of the new text to the old.

import { Map, Math } from "./glovebox_globals.mjs";

export class Edits {
    #text;
    #edits = [];

    constructor(text) {
        this.#text = text;
    }

    replace(start, end, text) {
        this.#edits.push({ start, end, text });
    }

    insert(at, text) {
        this.replace(at, at, text);
    }

    // text: the new text
    // moves: for each line of it that moved, [[column in the new text, columns it moved by], ...]
    // position(offset, side): where the "start" or "end" of something went that no edit crosses
    apply() {
        const edits = this.#edits.sort((a, b) => a.start - b.start || a.end - b.end);
        const moves = new Map();
        const pieces = [];
        const place = { line: 1, column: 0 };
        let done = 0;
        const add = (piece) => {
            pieces.push(piece);
            advance(place, piece);
        };
        for (const { start, end, text } of edits) {
            add(this.#text.slice(done, start));
            add(text);
            done = end;
            const moved = text.length - (end - start);
            if (moved !== 0) {
                const line = moves.get(place.line) ?? [];
                line.push([place.column, moved]);
                moves.set(place.line, line);
            }
        }
        add(this.#text.slice(done));
        const position = (offset, side) =>
            edits.reduce((at, { start, end, text }) => {
                const isBefore = side === "start" ? end <= offset : start < offset;
                return isBefore ? at + text.length - (end - start) : at;
            }, offset);
        return { text: pieces.join(""), moves, position };
    }
}

// Line breaks stay, so that what follows keeps its line.
export function blanked(text) {
    return text.replace(/[^\n\r\u2028\u2029]/g, " ");
}

// Lines and columns count from 1, as in a stack trace.
export function originalColumn(moves, line, column) {
    let moved = 0;
    for (const [from, by] of moves.get(line) ?? []) {
        if (column - 1 >= from) moved += by;
    }
    return Math.max(1, column - moved);
}

function advance(place, text) {
    const breaks = text.match(/\r\n|[\n\r\u2028\u2029]/g);
    if (breaks === null) {
        place.column += text.length;
        return;
    }
    place.line += breaks.length;
    place.column = text.length - 1 - Math.max(...["\n", "\r", "\u2028", "\u2029"].map((mark) => text.lastIndexOf(mark)));
}
