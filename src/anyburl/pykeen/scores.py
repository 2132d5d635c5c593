"""What rules say about a query as one number for every entity, as embedding models do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.kernel_order import MAXIMUM, MOST_EVIDENCE, NOISY_OR_TOP
from anyburl.ranking.options import parse_aggregation
from anyburl.ranking.ranker import Ranker


def query_scores(ranker: Ranker, entity: int, relation: int) -> NDArray[np.float32]:
    """Score every entity as the answer of (entity, directed relation, ?); known answers are scored like others.

    A score is a place: 0 for what no rule gives, 1 for the weakest candidates, and so on; candidates that tie have the
    same. Places say all that there is to rank by (`max` compares whole lists of rules, which no probability would
    tell), but mean nothing across queries. What is blocked, because it is connected, is not a number.
    """
    firings = ranker.fire(entity, relation)
    scores = np.zeros(ranker.graph.n_entities, np.float32)
    if len(firings.candidates):
        order = np.lexsort((-firings.scores, firings.candidates))
        candidates, firsts = np.unique(firings.candidates[order], return_index=True)
        scores[candidates] = _places(firings.scores[order], firsts, ranker.options.aggregation)
    if ranker.block_connected:
        scores[connected_entities(ranker, entity)] = np.nan
    return scores


def connected_entities(ranker: Ranker, entity: int) -> NDArray[np.int32]:
    """Return whatever a fact joins with an entity."""
    graph = ranker.graph
    start, end = (graph.segment_starts[graph.segment_offsets[entity + i]] for i in (0, 1))
    found = graph.neighbours[start:end]
    return np.where(found == graph.n_entities, entity, found)


def _places(scores: NDArray[np.int64], firsts: NDArray[np.int64], aggregation: str) -> NDArray[np.int64]:
    """Number the distinct strengths of candidates upward from 1; a candidate's scores start at its first, downward."""
    code, n_best = parse_aggregation(aggregation)
    if code == MAXIMUM:
        return _places_of_lists(scores, firsts)
    if code == NOISY_OR_TOP:
        sizes = np.diff(np.append(firsts, len(scores)))
        within = np.arange(len(scores)) - np.repeat(firsts, sizes)
        scores = np.where(within < n_best, scores, 0)
    sums = np.add.reduceat(scores, firsts)
    is_most = np.add.reduceat(scores.astype(np.float64), firsts) >= MOST_EVIDENCE
    places: NDArray[np.int64] = np.unique(np.where(is_most, MOST_EVIDENCE, sums), return_inverse=True)[1] + 1
    return places


def _places_of_lists(scores: NDArray[np.int64], firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compare lists one by one, the longer of equals wins: as strings of bytes, the highest first, do."""
    width = scores.itemsize
    text = scores.astype(">i8").tobytes()
    ends = np.append(firsts[1:], len(scores))
    lists = [text[first * width : end * width] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
    places = {one: place for place, one in enumerate(sorted(set(lists)), 1)}
    return np.array([places[one] for one in lists], np.int64)
