// SPDX-License-Identifier: Apache-2.0
// Which place of a cell as it was written is meant by a place of what ran instead.

import { originalColumn } from "./glovebox_edits.mjs";
import { Map, Number } from "./glovebox_globals.mjs";

const remembered = 2000; // cells; functions of older ones keep the columns of what ran

export function cellName(count) {
    return `cell [${count}]`;
}

export class CellPlaces {
    #cells = new Map();

    // moves: see Edits.apply; place(line, column): back to the text before types were removed.
    remember(count, moves, place) {
        this.#cells.delete(count);
        this.#cells.set(count, { moves, place });
        if (this.#cells.size > remembered) this.#cells.delete(this.#cells.keys().next().value);
    }

    asWritten(line) {
        return line.replace(/\bcell \[(\d+)\]:(\d+):(\d+)/g, (whole, count, row, column) => {
            const cell = this.#cells.get(Number(count));
            if (cell === undefined) return whole;
            const at = cell.place(Number(row), originalColumn(cell.moves, Number(row), Number(column)));
            return `${cellName(count)}:${at.join(":")}`;
        });
    }
}
