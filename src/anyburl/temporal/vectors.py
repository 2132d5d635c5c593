"""Vectors of entities, by what they are the answer of: entities that the same questions lead to are similar."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.temporal.arrays import HistoryArrays
from anyburl.temporal.kernel_vectors import count_before, multiply_rows

N_DIMENSIONS = 32
N_PASSES = 4

Ints = NDArray[np.int64]


def entity_vectors(history: HistoryArrays, end: int, n_dimensions: int = N_DIMENSIONS) -> NDArray[np.float32]:
    """Return a vector of length 1 for each entity, from the facts before `end`; 0 for those without facts.

    The table of questions (x, h) and their answers, with logarithms of counts, scaled by the sums of rows and columns,
    is reduced to its strongest dimensions (subspace iteration from fixed numbers, so results are the same each time).
    """
    n, n_triples = history.n_entities, len(history.triple_relations)
    counts = np.zeros(n_triples, np.int64)
    count_before(history, end, counts)
    entities = np.repeat(np.arange(n), np.diff(history.triple_offsets))
    order = np.lexsort((history.triple_relations, entities))
    order = order[counts[order] > 0]
    if not len(order):
        return np.zeros((n, 0), np.float32)
    keys = entities[order] * history.n_relations + history.triple_relations[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    offsets = np.append(firsts, len(keys)).astype(np.int64)
    columns, values = history.triple_objects[order], np.log1p(counts[order])
    rows = np.repeat(np.arange(len(firsts)), np.diff(offsets))
    row_sums, column_sums = np.bincount(rows, values), np.bincount(columns, values, n)
    values = values / np.sqrt(row_sums[rows] * column_sums[columns])
    width = min(n_dimensions, n)
    basis = np.random.default_rng(0).standard_normal((n, width))
    strengths = np.ones(width)
    for _ in range(N_PASSES):
        basis, _ = np.linalg.qr(basis)
        product = np.zeros((n, width))
        multiply_rows(offsets, columns, values, basis, np.zeros(width), product)
        basis = product
    left, strengths, _ = np.linalg.svd(basis, full_matrices=False)
    vectors = left * np.sqrt(strengths)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(np.where(lengths > 1e-9, vectors / np.maximum(lengths, 1e-9), 0), np.float32)
