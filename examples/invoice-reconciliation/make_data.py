# SPDX-License-Identifier: Apache-2.0
"""Makes the demo's data: an invoice file of 200 rows and the ledger it is checked against, the same on every run.

188 invoices agree with the ledger; 12 do not: 5 amounts differ, 4 are missing in the ledger, 3 name another customer.
"""
import csv
import random
import sys
from pathlib import Path

SEED = 20260101
ROWS = 200
WRONG_AMOUNT, MISSING, WRONG_CUSTOMER = 5, 4, 3


def make(folder: Path) -> None:
    rng = random.Random(SEED)
    customers = [f"C{n:04}" for n in range(1, 41)]
    invoices = []
    for n in range(1, ROWS + 1):
        cents = rng.randrange(1_000, 2_500_000)
        invoices.append({"invoice_id": f"INV-{n:05}", "customer": rng.choice(customers),
                         "issued": f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
                         "amount": f"{cents // 100}.{cents % 100:02}"})
    ledger = [dict(row) for row in invoices]
    odd = rng.sample(range(ROWS), WRONG_AMOUNT + MISSING + WRONG_CUSTOMER)
    for index in odd[:WRONG_AMOUNT]:
        ledger[index]["amount"] = f"{float(ledger[index]['amount']) + rng.choice([-10, 0.1, 100]):.2f}"
    for index in odd[WRONG_AMOUNT + MISSING:]:
        others = [c for c in customers if c != ledger[index]["customer"]]
        ledger[index]["customer"] = rng.choice(others)
    missing = set(odd[WRONG_AMOUNT:WRONG_AMOUNT + MISSING])
    ledger = [row for index, row in enumerate(ledger) if index not in missing]
    rng.shuffle(ledger)
    for name, rows in (("invoices.csv", invoices), ("ledger.csv", ledger)):
        with open(folder / name, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=["invoice_id", "customer", "issued", "amount"])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    make(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
