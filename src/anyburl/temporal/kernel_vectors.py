"""Multiply a sparse table with vectors."""

from __future__ import annotations

from anyburl.base.jit import kernel
from anyburl.temporal.arrays import Doubles, HistoryArrays, Ids, Ints
from anyburl.temporal.kernel_history import first_not_before


@kernel
def count_before(history: HistoryArrays, end: int, counts: Ints) -> None:
    """Write how often each triple was seen before `end`."""
    for triple in range(len(counts)):
        start = int(history.time_offsets[triple])
        counts[triple] = first_not_before(history.times, start, int(history.time_offsets[triple + 1]), end) - start


@kernel
def multiply_rows(offsets: Ints, columns: Ids, values: Doubles, basis: Doubles, row: Doubles, out: Doubles) -> None:
    """Add M' M `basis` to `out`, for the table M whose rows have their values in some columns; `row` is a buffer."""
    width = basis.shape[1]
    for i in range(len(offsets) - 1):
        for k in range(width):
            row[k] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            for k in range(width):
                row[k] += values[j] * basis[columns[j], k]
        for j in range(offsets[i], offsets[i + 1]):
            for k in range(width):
                out[columns[j], k] += values[j] * row[k]
