"""Describe candidates by the rules behind them: what a tuned aggregation decides on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel
from anyburl.bodies.arrays import HeadArrays
from anyburl.graph.arrays import GraphArrays
from anyburl.ranking.arrays import (
    CandidateArrays,
    FeatureArrays,
    FiringArrays,
    Protocol,
    QueryArrays,
    RuleIndex,
    TrieWalk,
)
from anyburl.ranking.kernel import exclude, fire_all, keep_best, next_query
from anyburl.ranking.kernel_order import link_firings, scores_of, set_keys

N_BEST = 5  # the highest scores that are told one by one
PER_GROUP = 3  # highest score, sum of scores, number of rules


@kernel
def describe_candidate(
    candidates: CandidateArrays,
    firings: FiringArrays,
    entity: int,
    groups: NDArray[np.uint8],
    unit: float,
    row: NDArray[np.float32],
) -> None:
    """Write the evidence for `entity`: its best scores, then per group of rules the best score, their sum and number.

    Scores are told as -log(1 - confidence); a sum of them is what noisy-or looks at.
    """
    row[:] = 0.0
    n = scores_of(candidates, firings, entity, candidates.left)
    for i in range(min(n, N_BEST)):
        row[i] = candidates.left[i] / unit
    i = int(candidates.firsts[entity])
    while i >= 0:
        place = N_BEST + PER_GROUP * int(groups[firings.rules[i]])
        score = firings.scores[i] / unit
        row[place] = max(row[place], score)
        row[place + 1] += score
        row[place + 2] += 1.0
        i = int(firings.following[i])


@kernel
def describe(
    graph: GraphArrays,
    heads: HeadArrays,
    index: RuleIndex,
    queries: QueryArrays,
    first: int,
    last: int,
    protocol: Protocol,
    groups: NDArray[np.uint8],
    unit: float,
    walk: TrieWalk,
    candidates: CandidateArrays,
    firings: FiringArrays,
    out: FeatureArrays,
) -> tuple[int, int]:
    """Describe the `top_k` best candidates of the queries from `first` to before `last`, written from row 0 of `out`
    on.

    As in `answer`: returns the next query, and the room for firings that it would need.
    """
    for q in range(first, last):
        query = next_query(candidates)
        exclude(graph, queries, q, query, protocol.block_connected, candidates)
        s, d = int(np.int64(queries.entities[q])), int(np.int64(queries.relations[q]))
        n = fire_all(graph, heads, index, s, d, protocol, query, walk, candidates, firings)
        if n > len(firings.candidates):
            return q, n
        n_candidates = link_firings(candidates, firings, n, query)
        set_keys(candidates, firings, n_candidates, protocol.aggregation, protocol.n_best)
        place = q - out.first
        best = out.candidates[place]
        kept = keep_best(candidates, firings, n_candidates, protocol.aggregation, protocol.top_k, best)
        out.n_candidates[place] = kept
        for i in range(kept):
            describe_candidate(candidates, firings, int(best[i]), groups, unit, out.features[place, i])
    return last, 0
