# SPDX-License-Identifier: Apache-2.0
"""How figures are taken and shown."""
import statistics
import time


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def timed(action) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def show(name: str, values: list[float], floor: list[float] | None = None, floor_name: str = "") -> None:
    middle = statistics.median(values)
    digits = 1 if middle >= 10 else 2
    line = f"{name:<52} p50 {middle:8.{digits}f} ms   p99 {percentile(values, 0.99):8.{digits}f} ms   n={len(values)}"
    if floor:
        line += f"   {middle / statistics.median(floor):5.2f} x {floor_name}"
    print(line, flush=True)
