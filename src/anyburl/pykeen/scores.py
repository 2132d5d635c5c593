"""The scores of rules for a query as one number per entity, as in embedding models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.lookup import neighbours
from anyburl.ranking.arrays import FiringArrays, empty_candidates
from anyburl.ranking.kernel_rank import order_candidates
from anyburl.ranking.ranker import Ranker


def query_scores(ranker: Ranker, entity: int, relation: int) -> NDArray[np.float32]:
    """Score every entity as the answer of (entity, directed relation, ?); known answers are scored like others.

    A score is a place: 0 for what no rule gives, 1 for the weakest candidates, and so on; candidates that tie have the
    same. Places say all that there is to rank by (`max` compares whole lists of rules, which no probability would
    tell), but mean nothing across queries. What is blocked, because it is connected, is not a number.
    """
    firings = ranker.fire(entity, relation)
    scores = np.zeros(ranker.graph.n_entities, np.float32)
    lister = ranker.lister()
    if lister.aggregation.breaks_ties:
        _enter_places_of_lists(firings, scores)
    else:
        n = len(firings.candidates)
        candidates = empty_candidates(ranker.graph.n_entities)
        n_counted = lister.ready.protocol(lister.aggregation, 0).n_counted
        listed = candidates.listed[: order_candidates(candidates, firings, n, n_counted)]
        scores[listed] = np.unique(candidates.keys[listed], return_inverse=True)[1] + 1
    if ranker.block_connected:
        scores[neighbours(ranker.graph, entity)] = np.nan
    return scores


def _enter_places_of_lists(firings: FiringArrays, places: NDArray[np.float32]) -> None:
    """Compare lists of scores one by one, the longer of equals wins: as strings of bytes, the highest first, do."""
    order = np.lexsort((-firings.scores, firings.candidates))
    candidates, firsts = np.unique(firings.candidates[order], return_index=True)
    width = firings.scores.itemsize
    text = firings.scores[order].astype(">i8").tobytes()
    ends = np.append(firsts, len(order))[1:]  # none where nothing fires
    lists = [text[first * width : end * width] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
    numbers = {one: place for place, one in enumerate(sorted(set(lists)), 1)}
    places[candidates] = [numbers[one] for one in lists]
