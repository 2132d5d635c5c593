"""Where targets rank among the candidates, and which candidates are the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel, part
from anyburl.ranking.arrays import CandidateArrays, FiringArrays, QueryArrays
from anyburl.ranking.kernel_order import UNDECIDED, compare, link_firings, set_keys, sift_down


@part
def count_better(
    candidates: CandidateArrays,
    firings: FiringArrays,
    n_candidates: int,
    target: int,
    query: int,
    breaks_ties: bool,
    floor: int,
) -> tuple[int, int, int]:
    """Return how many candidates rank before `target`, how many tie with it, and of how many that is undecided.

    Other targets are known answers, too: they do not count. Candidates of which it is undecided are marked as tied, and
    so is the target then.
    """
    better, equal, n_open = 0, 0, 0
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        if entity == target or candidates.targets[entity] == query or candidates.keys[entity] < candidates.keys[target]:
            continue
        order = compare(candidates, firings, entity, target, breaks_ties, floor)
        if order == UNDECIDED:
            candidates.tied[entity] = query
            n_open += 1
        else:
            better += order > 0
            equal += order == 0
    if n_open > 0:
        candidates.tied[target] = query
    return better, equal, n_open


@inlined
def list_undecided(candidates: CandidateArrays, n_candidates: int, query: int) -> int:
    """Write the candidates of which it is not known whether they tie to `undecided`; return how many there are."""
    n = 0
    for c in range(n_candidates):
        entity = candidates.listed[c]
        if candidates.tied[entity] == query:
            candidates.undecided[n] = entity
            n += 1
    return n


@inlined
def keep_undecided(candidates: CandidateArrays, firings: FiringArrays, n: int, query: int) -> int:
    """Move the firings of undecided candidates, of the first `n`, to the front; return how many there are."""
    kept = 0
    for i in range(n):
        if candidates.tied[firings.candidates[i]] == query:
            firings.candidates[kept] = firings.candidates[i]
            firings.scores[kept] = firings.scores[i]
            firings.rules[kept] = firings.rules[i]
            kept += 1
    return kept


@inlined
def needed_score(queries: QueryArrays, q: int, candidates: CandidateArrays) -> int:
    """Return half the highest score that all targets are predicted by, -1 if one is not predicted yet.

    Rules with lower scores than the targets' can only break ties; down to half of it, they break most.
    """
    lowest = np.int64(2**62)
    for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
        lowest = min(lowest, candidates.reached[queries.targets[i]])
    return int(lowest >> 1)  # -1 stays -1


@part
def find_least_key(candidates: CandidateArrays, firings: FiringArrays, n_candidates: int, top_k: int) -> int:
    """Return the `top_k`-th highest key, -1 if there are fewer candidates: by a heap of the highest so far."""
    if n_candidates <= top_k:
        return -1
    heap, start = firings.lists, int(candidates.list_end[0])
    for c in range(top_k):
        heap[start + c] = candidates.keys[candidates.listed[c]]
    for c in range(top_k // 2 - 1, -1, -1):
        sift_down(heap, start, c, top_k)
    for c in range(top_k, n_candidates):
        key = candidates.keys[candidates.listed[c]]
        if key > heap[start]:
            heap[start] = key
            sift_down(heap, start, 0, top_k)
    return int(heap[start])


@part
def keep_best(
    candidates: CandidateArrays,
    firings: FiringArrays,
    n_candidates: int,
    breaks_ties: bool,
    top_k: int,
    best: NDArray[np.int32],
) -> int:
    """Write the `top_k` first candidates to `best`, in order; ties go to the smaller id. Return how many there are."""
    kept, least = 0, find_least_key(candidates, firings, n_candidates, top_k)
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        if candidates.keys[entity] < least:  # to compare candidates takes longer
            continue
        low, high = 0, kept
        while low < high:
            # The last place first: with many candidates, most are worse than all that are kept.
            place = kept - 1 if high == kept and low == 0 else (low + high) >> 1
            order = compare(candidates, firings, entity, int(best[place]), breaks_ties, -1)
            if order > 0 or (order == 0 and entity < best[place]):
                high = place
            else:
                low = place + 1
        if low < top_k:
            kept = min(kept + 1, top_k)
            for i in range(kept - 1, low, -1):
                best[i] = best[i - 1]
            best[low] = entity
    return kept


@kernel
def order_candidates(candidates: CandidateArrays, firings: FiringArrays, n: int, n_counted: int) -> int:
    """List the candidates of the first `n` firings and give them keys; return how many there are."""
    n_candidates = link_firings(candidates, firings, n, 1)
    set_keys(candidates, firings, n_candidates, n_counted)
    return n_candidates


@kernel
def rank_candidate(
    candidates: CandidateArrays, firings: FiringArrays, n: int, entity: int, n_counted: int, breaks_ties: bool
) -> tuple[int, int]:
    """Return how many of the candidates of the first `n` firings rank before `entity`, one of them, and with it."""
    n_candidates = link_firings(candidates, firings, n, 1)
    set_keys(candidates, firings, n_candidates, n_counted)
    better, equal, _ = count_better(candidates, firings, n_candidates, entity, 1, breaks_ties, -1)
    return better, equal
