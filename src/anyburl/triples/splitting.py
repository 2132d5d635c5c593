"""Splits a graph into train, valid and test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anyburl.triples.table import Ids, TripleTable


def split_table(table: TripleTable, shares: Sequence[float], seed: int) -> list[TripleTable]:
    """Return train, valid and test of about these shares, drawn at random, over the vocabulary of the table.

    A table is in the order of its labels, so the same triples are divided in the same way, whatever their order was.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(table))
    parts = divide(table.triples, order, shares)
    train, valid, test = (table.triples[parts == part] for part in range(3))
    return [
        TripleTable(table.vocabulary, train, table.n_duplicates),
        TripleTable(table.vocabulary, valid),
        TripleTable(table.vocabulary, test),
    ]


def divide(triples: Ids, order: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.int8]:
    """Return where each triple belongs: 0 is train, 1 valid, 2 test.

    The first triple in `order` of every entity and every relation stays in train, so that none is only in valid or
    test. The others are taken for test and then for valid in that order; where they do not suffice, test and valid get
    their parts of them.
    """
    parts = np.zeros(len(triples), np.int8)
    is_first = np.zeros(len(triples), np.bool_)
    drawn = triples[order]
    is_first[_first_rows(drawn[:, [0, 2]].ravel()) // 2] = True
    is_first[_first_rows(drawn[:, 1])] = True
    free = order[~is_first]
    n_valid, n_test = wanted_sizes(len(triples), len(free), shares)
    parts[free[:n_test]] = 2
    parts[free[n_test : n_test + n_valid]] = 1
    return parts


def _first_rows(ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return where each id occurs first."""
    first = np.full(int(ids.max(initial=-1)) + 1, -1, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # of several, the last that is written stays
    return first[first >= 0]


def wanted_sizes(n_triples: int, n_free: int, shares: Sequence[float]) -> tuple[int, int]:
    """Return how many triples valid and test get, if `n_free` may leave train."""
    n_valid, n_test = (round(n_triples * share) for share in shares[1:])
    if n_valid + n_test <= n_free:
        return n_valid, n_test
    n_test = n_free * n_test // (n_valid + n_test)
    return n_free - n_test, n_test
