"""The columns and scores of the logit, and what vectors of entities are made by: counts and a product of tables."""

from __future__ import annotations

import numpy as np

from anyburl.base.jit import kernel, part
from anyburl.temporal.kernel_bodies import N_FADES, Doubles, Floats, HistoryArrays, Ids, Ints, first_not_before
from anyburl.temporal.kernel_candidates import (
    BELOW,
    LAST_FAVOUR,
    LAST_SEEN,
    LATELY,
    LOGIT,
    N_SEEN,
    N_VALUES,
    OPPOSITE,
    OWN,
    OWN_SHARE,
    REVERSE,
    SCORE,
    SECOND,
    SIMILAR,
)

N_LOGS = N_VALUES + N_FADES + 3  # values, popularity and three components, as logarithms
N_COLUMNS = N_LOGS + 10


@part
def set_columns(row: Floats, out: Floats) -> None:
    """Write the columns of the logit: logarithms of evidence, and what it is relative to the question."""
    for i in range(N_LOGS):
        least = 1.0 if OWN < i < SECOND else (1e-5 if N_VALUES <= i < N_VALUES + N_FADES else 1e-4)
        out[i] = np.log(row[i] + np.float32(least))
    one = np.float32(1)
    out[N_LOGS] = np.log(row[LAST_SEEN] + one)
    out[N_LOGS + 1] = np.log(row[N_SEEN] + one)
    out[N_LOGS + 2] = row[OWN_SHARE]
    out[N_LOGS + 3] = np.log(row[OWN_SHARE] + np.float32(0.01))
    out[N_LOGS + 4] = np.log(row[SCORE] + np.float32(1e-6))
    out[N_LOGS + 5] = np.log(row[OPPOSITE] + one)
    out[N_LOGS + 6] = np.log(max(row[LAST_FAVOUR], np.float32(0)) + one)
    out[N_LOGS + 7] = row[SIMILAR]
    out[N_LOGS + 8] = np.log(row[LATELY] + one)
    out[N_LOGS + 9] = np.log((row[REVERSE] + np.float32(1e-3)) / (row[OPPOSITE] + one))


@kernel
def fill_columns(rows: Floats, out: Floats) -> None:
    """Write the columns of the logit of every row."""
    for row in range(len(rows)):
        set_columns(rows[row], out[row])


@kernel
def fill_logits(
    rows: Floats, offsets: Ints, first: int, last: int, weights: Doubles, columns: Floats, logits: Doubles
) -> None:
    """Write the score of the logit for each row of some lists, and how far it is below the best of its list."""
    for question in range(first, last):
        highest = -np.inf
        for row in range(offsets[question], offsets[question + 1]):
            set_columns(rows[row], columns)
            score = 0.0
            for i in range(len(columns)):
                score += columns[i] * weights[i]
            logits[row] = score
            highest = max(highest, score)
        for row in range(offsets[question], offsets[question + 1]):
            rows[row, LOGIT] = logits[row]
            rows[row, BELOW] = logits[row] - highest


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
