"""What speaks for each of the best candidates of a query, as numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.kernel_features import N_BEST, PER_GROUP
from anyburl.ranking.ranker import Ranker
from anyburl.ruleset.ruleset import RuleSet

LONGEST_GROUP = 3


def rule_groups(rules: RuleSet) -> tuple[NDArray[np.uint8], int]:
    """Put rules of one type and length into a group (lengths from 3 on together); return each rule's, and how many."""
    codes = rules.type.astype(np.int64) * 8 + np.minimum(rules.lengths, LONGEST_GROUP)
    present = np.zeros(64, np.bool_)
    present[codes] = True
    numbers = np.cumsum(present) - 1
    return numbers[codes].astype(np.uint8), int(present.sum())


class Lists:
    """The best candidates of some queries: `rows` of features, one per candidate, and where each query's start."""

    def __init__(self, first: int, sizes: NDArray[np.int64], candidates: NDArray[np.int32], rows: NDArray[np.float32]):
        self.first, self.sizes, self.candidates, self.rows = first, sizes, candidates, rows
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])


def candidate_lists(ranker: Ranker, queries: QueryArrays, top_k: int) -> Iterator[Lists]:
    """Yield the `top_k` best candidates by noisy-or of every query, a batch of queries at a time."""
    groups, n_groups = rule_groups(ranker.rules)
    width = N_BEST + PER_GROUP * n_groups
    for batch in ranker.describe(queries, groups, width, top_k):
        n_queries = len(batch.n_candidates)
        kept = np.arange(top_k)[None, :] < batch.n_candidates[:, None]
        rows, candidates = batch.features[kept], batch.candidates[kept]
        sizes = batch.n_candidates
        relations = queries.relations[batch.first : batch.first + n_queries]
        extra = _context(ranker, rows, candidates, sizes, np.repeat(relations, sizes), kept)
        yield Lists(batch.first, sizes, candidates, np.hstack([rows, extra]))


def _context(
    ranker: Ranker,
    rows: NDArray[np.float32],
    candidates: NDArray[np.int32],
    sizes: NDArray[np.int64],
    relations: NDArray[np.int32],
    kept: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Return the sum of all scores, its distance to the query's best, the place in the list, and how common
    the answer is.
    """
    sums = rows[:, N_BEST + 1 :: PER_GROUP].sum(axis=1)
    counts = rows[:, N_BEST + 2 :: PER_GROUP].sum(axis=1)
    filled = np.full(kept.shape, -np.inf, np.float32)
    filled[kept] = sums
    best = np.repeat(filled.max(axis=1, initial=-np.inf), sizes)
    places = np.broadcast_to(np.arange(kept.shape[1]), kept.shape)[kept]
    common = ranker.answer_counts(candidates, relations)
    return np.column_stack([sums, best - sums, counts, np.log1p(places), np.log1p(common)]).astype(np.float32)
