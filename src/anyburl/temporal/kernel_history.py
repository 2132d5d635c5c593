"""Look up what a history held before a moment: how long ago, how often, and how popular."""

from __future__ import annotations

import numpy as np

from anyburl.base.jit import inlined, kernel
from anyburl.temporal.arrays import N_FREQUENCY, CellArrays, Doubles, Floats, HistoryArrays, Ints


@kernel
def fade_counts(offsets: Ints, times: Ints, counts: Ints, fades: Doubles, out: Floats) -> None:
    """Write, for every moment of every list, the sum of all counts so far, faded since their moments."""
    for i in range(len(offsets) - 1):
        for k in range(len(fades)):
            total = 0.0
            for row in range(offsets[i], offsets[i + 1]):
                if row > offsets[i]:
                    total *= np.exp(-fades[k] * (times[row] - times[row - 1]))
                total += counts[row]
                out[row, k] = total


@inlined
def first_not_before(values: Ints, start: int, end: int, value: int) -> int:
    """Return the first of the ascending values that is at least `value`."""
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def cell_of(cells: CellArrays, age: int, count: int) -> int:
    """Return the cell of what was seen `count` times, the last time `age` steps ago."""
    recency = cells.recency[min(age, len(cells.recency) - 1)]
    frequency = cells.frequency[min(count, len(cells.frequency) - 1)]
    return int(recency) * N_FREQUENCY + int(frequency)


@inlined
def popularity_rows(history: HistoryArrays, relation: int, before: int) -> int:
    """Return the last moment before `before` at which the relation has facts, -1 if there is none."""
    start = int(history.total_offsets[relation])
    row = first_not_before(history.total_times, start, int(history.total_offsets[relation + 1]), before)
    return row - 1 if row > start else -1


@inlined
def faded(history: HistoryArrays, row: int, k: int, now: int) -> float:
    """Return the k-th popularity that a favourite has now, as a count, by its last moment `row`."""
    return float(history.favours[row, k] * np.exp(-history.fades[k] * (now - history.favour_times[row])))


@inlined
def faded_total(history: HistoryArrays, row: int, k: int, now: int) -> float:
    """Return the k-th popularity of all objects of a relation now, by its last moment `row`."""
    return float(history.totals[row, k] * np.exp(-history.fades[k] * (now - history.total_times[row])))
