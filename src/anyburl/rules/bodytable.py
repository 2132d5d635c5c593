"""The table of distinct bodies that the rules of a set share.

A body is a row of directed relations, padded with -1 at the end; the empty body of a zero rule is all -1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

MOST_LOOKED_UP = 1 << 24
"""Keys below this are numbered through a table as large as they are, others by sorting."""


def pad_lists(flat: Ints, lengths: NDArray[np.int64]) -> Ints:
    """Lay out lists that follow each other in `flat` as the rows of a matrix, filled up with -1."""
    width = max(1, int(lengths.max(initial=0)))
    rows = np.full((len(lengths), width), -1, dtype=np.int32)
    if len(flat) == rows.size:
        return flat.reshape(rows.shape).astype(np.int32)
    rows[np.arange(width) < lengths[:, None]] = flat
    return rows


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows in ascending order, and for each given row which of them it is."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    n_numbers = min(1, len(rows))
    for column in rows.T:
        base = int(column.max(initial=-1)) + 2
        numbers, n_numbers = dense_numbers(numbers * base + (column + 1), n_numbers * base)
    representative = np.empty(n_numbers, dtype=np.int64)
    representative[numbers] = np.arange(len(rows))
    return np.ascontiguousarray(rows[representative]), numbers.astype(np.int32)


def merge_tables(tables: Sequence[Ints]) -> tuple[Ints, list[Ints]]:
    """Join tables of bodies; return the joint table and for each table where its rows went."""
    width = max((table.shape[1] for table in tables), default=1)
    padded = [widen(table, width) for table in tables]
    merged, numbers = distinct_rows(np.concatenate(padded) if padded else np.empty((0, 1), dtype=np.int32))
    ends = np.cumsum([len(table) for table in tables])[:-1]
    return merged, np.split(numbers, ends) if tables else []


def widen(table: Ints, width: int) -> Ints:
    """Add columns of -1."""
    missing = width - table.shape[1]
    return np.pad(table, ((0, 0), (0, missing)), constant_values=-1) if missing > 0 else table


def dense_numbers(keys: NDArray[np.int64], n_keys: int) -> tuple[NDArray[np.int64], int]:
    """Number the keys (from 0 to `n_keys` - 1) that occur without gaps, in the same order; say how many."""
    if n_keys > max(MOST_LOOKED_UP, 2 * len(keys)):
        distinct, numbers = np.unique(keys, return_inverse=True)
        return numbers.reshape(-1), len(distinct)
    occurs = np.zeros(n_keys, dtype=np.bool_)
    occurs[keys] = True
    number_of = np.cumsum(occurs) - 1
    return number_of[keys], int(occurs.sum())


def joint_keys(columns: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Return one number per row, equal for two rows if all their columns (-1 or more) are equal.

    The numbers are in the order of the rows, compared by the first column, then by the second, and so on.
    """
    keys = np.zeros(len(columns[0]), dtype=np.int64)
    n_keys = 1
    for column in columns:
        base = int(column.max(initial=-1)) + 2
        if n_keys * base >= 1 << 63:
            keys, n_keys = dense_numbers(keys, n_keys)
        keys = keys * base
        keys += column
        keys += 1
        n_keys *= base
    return keys
