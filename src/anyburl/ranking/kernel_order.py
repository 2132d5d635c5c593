"""Put candidates in order by the rules that predict them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel
from anyburl.ranking.arrays import CandidateArrays, FiringArrays

MAXIMUM, NOISY_OR, NOISY_OR_TOP = 0, 1, 2

FEW = 64  # scores that are kept in order one by one

MOST_EVIDENCE = 1 << 62  # a sum of scores stops here: twenty thousand certain rules would leave 64 bits


@kernel
def link_firings(candidates: CandidateArrays, firings: FiringArrays, n: int, query: int) -> int:
    """List the candidates, chain the firings of each, with its highest score as key; return how many
    candidates there are.
    """
    n_candidates = 0
    for i in range(n):
        entity = firings.candidates[i]
        if candidates.stamps[entity] != query:
            candidates.stamps[entity] = query
            candidates.firsts[entity] = -1
            candidates.keys[entity] = -1
            candidates.listed[n_candidates] = entity
            n_candidates += 1
        firings.following[i] = candidates.firsts[entity]
        candidates.firsts[entity] = i
        if firings.scores[i] > candidates.keys[entity]:
            candidates.keys[entity] = firings.scores[i]
    return n_candidates


@inlined
def sift_down(values: NDArray[np.int64], start: int, end: int) -> None:
    """Restore the heap (smallest first) below `start`."""
    root = start
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and values[child + 1] < values[child]:
            child += 1
        if values[root] <= values[child]:
            return
        values[root], values[child] = values[child], values[root]
        root = child


@kernel
def sort_down(values: NDArray[np.int64], n: int) -> None:
    """Sort the first `n` values, the largest first (by insertion if few, by a heap if many)."""
    if n <= 24:
        for i in range(1, n):
            value = values[i]
            j = i - 1
            while j >= 0 and values[j] < value:
                values[j + 1] = values[j]
                j -= 1
            values[j + 1] = value
        return
    for start in range(n // 2 - 1, -1, -1):
        sift_down(values, start, n)
    for end in range(n - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        sift_down(values, 0, end)


@kernel
def scores_of(candidates: CandidateArrays, firings: FiringArrays, entity: int, out: NDArray[np.int64]) -> int:
    """Write the scores of all rules that predict `entity` to `out`, the largest first; return how many."""
    n = 0
    i = int(candidates.firsts[entity])
    while i >= 0:
        out[n] = firings.scores[i]
        n += 1
        i = int(firings.following[i])
    sort_down(out, n)
    return n


@kernel
def best_scores_of(
    candidates: CandidateArrays, firings: FiringArrays, entity: int, n_best: int, out: NDArray[np.int64]
) -> int:
    """Write the `n_best` highest of these scores to `out`, the largest first; return how many there are.

    They are few: each score finds its place from the end.
    """
    n = 0
    i = int(candidates.firsts[entity])
    while i >= 0:
        score = firings.scores[i]
        i = int(firings.following[i])
        if n == n_best and score <= out[n - 1]:
            continue
        place = min(n, n_best - 1)
        while place > 0 and out[place - 1] < score:
            out[place] = out[place - 1]
            place -= 1
        out[place] = score
        n = min(n + 1, n_best)
    return n


@kernel
def best_rule(candidates: CandidateArrays, firings: FiringArrays, entity: int) -> int:
    """Return the rule with the highest score that predicts `entity`, of equals the first of the rule set."""
    best = int(candidates.firsts[entity])
    i = int(firings.following[best])
    while i >= 0:
        if firings.scores[i] > firings.scores[best] or (
            firings.scores[i] == firings.scores[best] and firings.rules[i] < firings.rules[best]
        ):
            best = i
        i = int(firings.following[i])
    return int(firings.rules[best])


@kernel
def set_keys(
    candidates: CandidateArrays, firings: FiringArrays, n_candidates: int, aggregation: int, n_best: int
) -> None:
    """Give each candidate the sum of its scores, of the `n_best` highest for noisy-or-top; for `max` the key stands."""
    if aggregation == MAXIMUM:
        return
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        total = 0
        if aggregation == NOISY_OR:
            i = int(candidates.firsts[entity])
            while i >= 0:
                total = min(total + int(firings.scores[i]), MOST_EVIDENCE)
                i = int(firings.following[i])
        else:
            if n_best <= FEW:
                n = best_scores_of(candidates, firings, entity, n_best, candidates.left)
            else:
                n = min(scores_of(candidates, firings, entity, candidates.left), n_best)
            for i in range(n):
                total = min(total + int(candidates.left[i]), MOST_EVIDENCE)
        candidates.keys[entity] = total


@inlined
def compare_lists(left: NDArray[np.int64], n_left: int, right: NDArray[np.int64], n_right: int) -> int:
    """Compare two lists of scores, the largest first: 1 if the left one is better, -1 if the right one is, else 0."""
    for i in range(min(n_left, n_right)):
        if left[i] > right[i]:
            return 1
        if left[i] < right[i]:
            return -1
    if n_left != n_right:
        return 1 if n_left > n_right else -1
    return 0


@kernel
def compare(candidates: CandidateArrays, firings: FiringArrays, a: int, b: int, aggregation: int) -> int:
    """1 if candidate a ranks before b, -1 if after, 0 if they tie.

    By maximum: the best rule decides, among equals the next best, and so on; if one list ends first, the longer one
    wins.
    """
    if candidates.keys[a] != candidates.keys[b]:
        return 1 if candidates.keys[a] > candidates.keys[b] else -1
    if aggregation != MAXIMUM:
        return 0
    n_left = scores_of(candidates, firings, a, candidates.left)
    n_right = scores_of(candidates, firings, b, candidates.right)
    return compare_lists(candidates.left, n_left, candidates.right, n_right)


@kernel
def count_better(
    candidates: CandidateArrays,
    firings: FiringArrays,
    n_candidates: int,
    target: int,
    is_target: NDArray[np.int64],
    query: int,
    aggregation: int,
) -> tuple[int, int]:
    """Return how many candidates rank before `target` and how many tie with it; other targets are known answers too."""
    better, equal = 0, 0
    n_right = -1
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        if entity == target or is_target[entity] == query:
            continue
        if candidates.keys[entity] > candidates.keys[target]:
            better += 1
        elif candidates.keys[entity] == candidates.keys[target] and aggregation != MAXIMUM:
            equal += 1
        elif candidates.keys[entity] == candidates.keys[target]:
            if n_right < 0:
                n_right = scores_of(candidates, firings, target, candidates.right)
            n_left = scores_of(candidates, firings, entity, candidates.left)
            order = compare_lists(candidates.left, n_left, candidates.right, n_right)
            better += order > 0
            equal += order == 0
    return better, equal
