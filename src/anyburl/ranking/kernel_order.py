"""Put candidates in order by the rules that predict them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, part
from anyburl.ranking.arrays import CandidateArrays, FiringArrays

ALL_COUNT = 2**31 - 1  # more rules than can predict one candidate

FEW = 64  # scores that are kept in order one by one

MOST_EVIDENCE = 1 << 62  # a sum of scores stops here: twenty thousand certain rules would leave 64 bits

UNDECIDED = 2  # which of two candidates is better: the scores known so far do not tell


@part
def link_firings(candidates: CandidateArrays, firings: FiringArrays, n: int, query: int) -> int:
    """List the candidates, chain the firings of each, with its highest score as key; return how many
    candidates there are.
    """
    n_candidates = 0
    candidates.list_end[0] = 0
    for i in range(n):
        entity = firings.candidates[i]
        if candidates.stamps[entity] != query:
            candidates.stamps[entity] = query
            candidates.firsts[entity] = -1
            candidates.keys[entity] = -1
            candidates.list_starts[entity] = -1
            candidates.listed[n_candidates] = entity
            n_candidates += 1
        firings.following[i] = candidates.firsts[entity]
        candidates.firsts[entity] = i
        if firings.scores[i] > candidates.keys[entity]:
            candidates.keys[entity] = firings.scores[i]
    return n_candidates


@inlined
def sift_down(values: NDArray[np.int64], offset: int, start: int, end: int) -> None:
    """Restore the heap (smallest first) from `offset` on below `start`."""
    root = start
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and values[offset + child + 1] < values[offset + child]:
            child += 1
        if values[offset + root] <= values[offset + child]:
            return
        values[offset + root], values[offset + child] = values[offset + child], values[offset + root]
        root = child


@part
def sort_down(values: NDArray[np.int64], offset: int, n: int) -> None:
    """Sort `n` values from `offset` on, the largest first (by insertion if few, by a heap if many)."""
    if n <= 24:
        for i in range(offset + 1, offset + n):
            value = values[i]
            j = i - 1
            while j >= offset and values[j] < value:
                values[j + 1] = values[j]
                j -= 1
            values[j + 1] = value
        return
    for start in range(n // 2 - 1, -1, -1):
        sift_down(values, offset, start, n)
    for end in range(n - 1, 0, -1):
        values[offset], values[offset + end] = values[offset + end], values[offset]
        sift_down(values, offset, 0, end)


@part
def list_scores(candidates: CandidateArrays, firings: FiringArrays, entity: int) -> int:
    """Put the scores of all rules that predict `entity` into `firings.lists`, the largest first, once; return where."""
    if candidates.list_starts[entity] >= 0:
        return int(candidates.list_starts[entity])
    start = int(candidates.list_end[0])
    n = 0
    i = int(candidates.firsts[entity])
    while i >= 0:
        firings.lists[start + n] = firings.scores[i]
        n += 1
        i = int(firings.following[i])
    sort_down(firings.lists, start, n)
    candidates.list_starts[entity] = start
    candidates.list_sizes[entity] = n
    candidates.list_end[0] = start + n
    return start


@inlined
def add_best(candidates: CandidateArrays, firings: FiringArrays, entity: int, n_best: int) -> int:
    """Return the sum of the `n_best` highest scores, which are few: each score finds its place from the end."""
    best, start = firings.lists, int(candidates.list_end[0])
    n = 0
    i = int(candidates.firsts[entity])
    while i >= 0:
        score = firings.scores[i]
        i = int(firings.following[i])
        if n == n_best and score <= best[start + n - 1]:
            continue
        place = min(n, n_best - 1)
        while place > 0 and best[start + place - 1] < score:
            best[start + place] = best[start + place - 1]
            place -= 1
        best[start + place] = score
        n = min(n + 1, n_best)
    return add_up(best, start, n)


@inlined
def add_up(scores: NDArray[np.int64], start: int, n: int) -> int:
    """Return the sum of some scores, up to the most there can be."""
    total = 0
    for i in range(start, start + n):
        total = min(total + int(scores[i]), MOST_EVIDENCE)
    return total


@part
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


@inlined
def count_rules(candidates: CandidateArrays, firings: FiringArrays, entity: int) -> int:
    """Return how many rules predict `entity`."""
    n = 0
    i = int(candidates.firsts[entity])
    while i >= 0:
        n += 1
        i = int(firings.following[i])
    return n


@part
def set_keys(candidates: CandidateArrays, firings: FiringArrays, n_candidates: int, n_counted: int) -> None:
    """Give each candidate the sum of its `n_counted` highest scores; of one, the key stands."""
    if n_counted == 1:
        return
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        if n_counted >= ALL_COUNT:
            total = 0
            i = int(candidates.firsts[entity])
            while i >= 0:
                total = min(total + int(firings.scores[i]), MOST_EVIDENCE)
                i = int(firings.following[i])
        elif n_counted <= FEW:
            total = add_best(candidates, firings, entity, n_counted)
        else:
            start = list_scores(candidates, firings, entity)
            total = add_up(firings.lists, start, min(int(candidates.list_sizes[entity]), n_counted))
        candidates.keys[entity] = total


@part
def compare(candidates: CandidateArrays, firings: FiringArrays, a: int, b: int, breaks_ties: bool, floor: int) -> int:
    """1 if candidate a ranks before b, -1 if after, 0 if they tie.

    Where ties are broken, the best rule decides, among equals the next best, and so on; if one list ends first, the
    longer one wins. Only scores from `floor` on are known: where they do not tell, the answer is UNDECIDED.
    """
    if candidates.keys[a] != candidates.keys[b]:
        return 1 if candidates.keys[a] > candidates.keys[b] else -1
    if not breaks_ties:
        return 0
    left, right = list_scores(candidates, firings, a), list_scores(candidates, firings, b)
    n_left, n_right = int(candidates.list_sizes[a]), int(candidates.list_sizes[b])
    i = 0
    while True:
        score_a = firings.lists[left + i] if i < n_left else -1
        score_b = firings.lists[right + i] if i < n_right else -1
        if score_a < floor and score_b < floor:
            return UNDECIDED
        if score_a != score_b:
            return 1 if score_a > score_b else -1
        if score_a < 0:
            return 0
        i += 1
