#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of many rows that loses none, whatever happens to the machine it runs on.

    long_job.py RESULTS ROWS [SECONDS_PER_ROW]

A sandbox that is paused at the end of its lifetime goes on where it was, so this program needs nothing for that: it does not even
notice. What it does need is for the day when it is started again from the beginning: it was killed, or its machine was. Then it goes
on behind the last row that is safe.

RESULTS is the file that grows by one line a row. RESULTS.checkpoint says how many rows are done and how long the file is with them.
"""
import hashlib
import json
import os
import sys
import time


def load_checkpoint(path: str) -> dict:
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"rows": 0, "bytes": 0}


def save_checkpoint(path: str, rows: int, size: int) -> None:
    """The old checkpoint or the new one, never half of one: written beside it, synced, renamed over it."""
    with open(path + ".new", "w") as file:
        json.dump({"rows": rows, "bytes": size}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def work(row: int, seconds: float) -> str:
    """Stands for what is worth three hours. The same row always gives the same result."""
    time.sleep(seconds)
    return hashlib.sha256(f"row {row}".encode()).hexdigest()[:16]


def main() -> None:
    results, rows = sys.argv[1], int(sys.argv[2])
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    checkpoint = results + ".checkpoint"
    done = load_checkpoint(checkpoint)
    with open(results, "ab") as file:
        file.truncate(done["bytes"])  # a row behind the checkpoint is done anew, so that it is there once
        for row in range(done["rows"] + 1, rows + 1):
            line = f"{row},{work(row, seconds)}\n"
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())  # first the row, then the checkpoint that counts it
            save_checkpoint(checkpoint, row, file.tell())
            print(line, end="", flush=True)
    print(f"{rows} rows are done", flush=True)


if __name__ == "__main__":
    main()
