"""Put candidates in order by the rules that predict them.

What speaks for a candidate, as numbers that a tuned aggregation decides on.

Where targets rank among the candidates, and which candidates are the best.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part, prefetch
from anyburl.ranking.arrays import ANY_SCORE, AnswerSettings, CandidateArrays, FiringArrays, QueryState

ALL_COUNT = 2**31 - 1  # more rules than can predict one candidate

FEW = 64  # scores that are kept in order one by one

MOST_EVIDENCE = 1 << 62  # a sum of scores stops here: twenty thousand certain rules would leave 64 bits

UNDECIDED = 2  # which of two candidates is better: the scores known so far do not tell


@inlined
def next_query(candidates: CandidateArrays) -> int:
    """Return a number that no query of this worker had before."""
    candidates.clock[0] += 1
    return int(candidates.clock[0])


@inlined
def start_query(q: int, s: int, d: int, query: int, least: int, protocol: AnswerSettings) -> QueryState:
    """Return the query (s, d, ?) at its start: B rules with scores of `least` or more fire, for all candidates."""
    return QueryState(q, s, d, query, protocol.object_identity, protocol.longest, least, ANY_SCORE, -1, ANY_SCORE)


@inlined
def restrict(question: QueryState, least: int, below: int, tied: int, top: int) -> QueryState:
    """Return the same query for which other rules fire, see `QueryState`."""
    return QueryState(
        question.q,
        question.s,
        question.d,
        question.query,
        question.object_identity,
        question.longest,
        least,
        below,
        tied,
        top,
    )


@part
def link_firings(candidates: CandidateArrays, firings: FiringArrays, n: int, query: int, least: int) -> int:
    """List the candidates that rules with a score of `least` or more predict, chain these firings of each, with its
    highest score as key; return how many candidates there are.
    """
    n_candidates = 0
    candidates.list_end[0] = 0
    for i in range(n):
        if firings.scores[i] < least:
            continue
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
def count_firing_rules(candidates: CandidateArrays, firings: FiringArrays, entity: int) -> int:
    """Return how many rules predict `entity`."""
    n = 0
    i = int(candidates.firsts[entity])
    while i >= 0:
        n += 1
        i = int(firings.following[i])
    return n


@part
def set_keys(candidates: CandidateArrays, firings: FiringArrays, n_candidates: int, n_counted: int) -> None:
    """Give each candidate with a chain the sum of its `n_counted` highest scores; of one, the key stands."""
    if n_counted == 1:
        return
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        start = list_scores(candidates, firings, entity)
        candidates.keys[entity] = add_up(firings.lists, start, min(int(candidates.list_sizes[entity]), n_counted))


@inlined
def needs_chains(n_counted: int, breaks_ties: bool) -> bool:
    """Whether candidates are put in order by their lists of scores, or by many of their scores but not by all."""
    return breaks_ties or n_counted == 1 or FEW < n_counted < ALL_COUNT


@inlined
def insert_score(kept: NDArray[Any], start: int, size: int, most: int, score: Any) -> int:
    """Insert a score among the `size` from `start` on, the highest first, of which at most `most` are kept: then it is
    higher than the last of them. Return how many there are.
    """
    position = start + min(size, most - 1)
    while position > start and kept[position - 1] < score:
        kept[position] = kept[position - 1]
        position -= 1
    kept[position] = score
    return min(size + 1, most)


@part
def sum_firings(candidates: CandidateArrays, firings: FiringArrays, n: int, query: int, n_counted: int) -> int:
    """List the candidates of the first `n` firings, with the sum of their `n_counted` highest scores, which are few or
    all, as keys; return how many candidates there are.

    Firings are read one after the other: a chain leads all over them, which takes twice as long.
    """
    n_candidates, add_all = 0, n_counted >= ALL_COUNT
    for i in range(n):
        entity = firings.candidates[i]
        if candidates.stamps[entity] != query:
            candidates.stamps[entity] = query
            candidates.keys[entity] = 0
            candidates.list_sizes[entity] = 0
            candidates.listed[n_candidates] = entity
            n_candidates += 1
        if add_all:
            candidates.keys[entity] = min(candidates.keys[entity] + firings.scores[i], MOST_EVIDENCE)
        else:
            candidates.list_sizes[entity] += 1
    candidates.list_end[0] = 0
    if not add_all:
        sum_highest(candidates, firings, n, n_candidates, n_counted)
    return n_candidates


@inlined
def sum_highest(candidates: CandidateArrays, firings: FiringArrays, n: int, n_candidates: int, n_counted: int) -> None:
    """Give each candidate, of which `list_sizes` holds the number of firings, the sum of its highest scores as key.

    They are kept in order in `firings.lists`; until the sum is known, the key is the lowest of as many as count.
    """
    kept, end = firings.lists, 0
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        candidates.list_starts[entity] = end
        end += min(int(candidates.list_sizes[entity]), n_counted)
        candidates.list_sizes[entity] = 0
        candidates.keys[entity] = -1
    for i in range(n):
        entity, score = int(firings.candidates[i]), int(firings.scores[i])
        if score <= candidates.keys[entity]:
            continue
        start = int(candidates.list_starts[entity])
        size = insert_score(kept, start, int(candidates.list_sizes[entity]), n_counted, score)
        candidates.list_sizes[entity] = size
        if size == n_counted:
            candidates.keys[entity] = kept[start + n_counted - 1]
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        candidates.keys[entity] = add_up(kept, int(candidates.list_starts[entity]), int(candidates.list_sizes[entity]))
    candidates.list_end[0] = end


@part
def order_firings(
    candidates: CandidateArrays, firings: FiringArrays, n: int, query: int, n_counted: int, breaks_ties: bool
) -> int:
    """List the candidates of the first `n` firings, with their keys and, if they are compared by that, chains of their
    firings; return how many there are.
    """
    if not needs_chains(n_counted, breaks_ties):
        return sum_firings(candidates, firings, n, query, n_counted)
    n_candidates = link_firings(candidates, firings, n, query, -1)
    set_keys(candidates, firings, n_candidates, n_counted)
    return n_candidates


@inlined
def mark_for_chain(candidates: CandidateArrays, entity: int) -> None:
    """Mark a candidate, so that its firings are chained."""
    candidates.tied[entity] = candidates.clock[0]
    candidates.firsts[entity] = -1


@part
def chain_marked(candidates: CandidateArrays, firings: FiringArrays, n: int, groups: NDArray[np.uint8]) -> None:
    """Chain the firings of the marked candidates, of the first `n`; prefetch the groups of their rules."""
    mark = candidates.clock[0]
    for i in range(n):
        entity = firings.candidates[i]
        if candidates.tied[entity] == mark:
            firings.following[i] = candidates.firsts[entity]
            candidates.firsts[entity] = i
            if len(groups) > 0:
                prefetch(groups, firings.rules[i])


@part
def compare_lists(candidates: CandidateArrays, firings: FiringArrays, a: int, b: int, floor: int) -> int:
    """1 if candidate a, with the same key, ranks before b, -1 if after, 0 if they tie, see `compare_candidates`."""
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


@inlined
def compare_candidates(
    candidates: CandidateArrays, firings: FiringArrays, a: int, b: int, breaks_ties: bool, floor: int
) -> int:
    """1 if candidate a ranks before b, -1 if after, 0 if they tie.

    Where ties are broken, the best rule decides, among equals the next best, and so on; if one list ends first, the
    longer one wins. Only scores from `floor` on are known: where they do not tell, the answer is UNDECIDED.
    """
    if candidates.keys[a] != candidates.keys[b]:
        return 1 if candidates.keys[a] > candidates.keys[b] else -1
    return compare_lists(candidates, firings, a, b, floor) if breaks_ties else 0


UNIT = float(1 << 44)  # of scores

N_BEST = 5  # the highest scores, which are kept one by one
PER_GROUP = 3  # highest score, sum of scores, number of rules


def n_columns(groups: NDArray[np.uint8]) -> int:
    """Return how many numbers tell the evidence for a candidate; none without groups of rules."""
    return N_BEST + PER_GROUP * (int(groups.max()) + 1) if len(groups) else 0


@inlined
def add_evidence(row: NDArray[np.float32], score: int, group: int) -> None:
    """Add a rule's score to the evidence for a candidate: to its best scores, and to those of the rule's group.

    Scores are given as -log(1 - confidence), whose sum noisy-or orders candidates by.
    """
    strength = np.float32(score / UNIT)
    if strength > row[N_BEST - 1]:
        insert_score(row, 0, N_BEST, N_BEST, strength)
    own = N_BEST + PER_GROUP * group
    row[own] = max(row[own], strength)
    row[own + 1] += score / UNIT
    row[own + 2] += 1.0


@part
def tell_evidence(
    candidates: CandidateArrays,
    firings: FiringArrays,
    entity: int,
    groups: NDArray[np.uint8],
    row: NDArray[np.float32],
) -> None:
    """Write the evidence for `entity`: its best scores, then per group of rules the best, their sum and number."""
    row[:] = 0.0
    i = int(candidates.firsts[entity])
    while i >= 0:
        add_evidence(row, int(firings.scores[i]), int(groups[firings.rules[i]]))
        i = int(firings.following[i])


@inlined
def list_undecided(candidates: CandidateArrays, n_candidates: int, mark: int) -> int:
    """Write the candidates that may still tie to `undecided`; return how many there are."""
    n = 0
    for c in range(n_candidates):
        entity = candidates.listed[c]
        if candidates.tied[entity] == mark:
            candidates.undecided[n] = entity
            n += 1
    return n


@inlined
def move_firing(firings: FiringArrays, i: int, to: int) -> None:
    """Write the firing at `i` to the position `to` as well."""
    firings.candidates[to] = firings.candidates[i]
    firings.scores[to] = firings.scores[i]
    firings.rules[to] = firings.rules[i]


@inlined
def drop_below(firings: FiringArrays, n_first: int, n: int, least: int) -> int:
    """Drop the firings with scores below `least`, but for the first `n_first`; return how many of `n` are left."""
    kept = n_first
    for i in range(n_first, n):
        score = firings.scores[i]
        move_firing(firings, i, kept)
        kept += score >= least
    return kept


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
def least_of_best(candidates: CandidateArrays, firings: FiringArrays, n: int, top_k: int) -> int:
    """Return the `top_k`-th highest score that candidates of the first `n` firings have, -1 if they are fewer."""
    n_candidates = link_firings(candidates, firings, n, next_query(candidates), -1)
    return find_least_key(candidates, firings, n_candidates, top_k)


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
            # The last position first: with many candidates, most are worse than all that are kept.
            position = kept - 1 if high == kept and low == 0 else (low + high) >> 1
            order = compare_candidates(candidates, firings, entity, int(best[position]), breaks_ties, -1)
            if order > 0 or (order == 0 and entity < best[position]):
                high = position
            else:
                low = position + 1
        if low < top_k:
            kept = min(kept + 1, top_k)
            for i in range(kept - 1, low, -1):
                best[i] = best[i - 1]
            best[low] = entity
    return kept


@kernel
def order_candidates(candidates: CandidateArrays, firings: FiringArrays, n: int, n_counted: int) -> int:
    """List the candidates of the first `n` firings and give them keys; return how many there are."""
    return order_firings(candidates, firings, n, 1, n_counted, False)


@kernel
def rank_candidate(
    candidates: CandidateArrays, firings: FiringArrays, n: int, entity: int, n_counted: int, breaks_ties: bool
) -> tuple[int, int]:
    """Return how many of the candidates of the first `n` firings rank before `entity`, one of them, and with it."""
    n_candidates, better, equal = order_firings(candidates, firings, n, 1, n_counted, breaks_ties), 0, 0
    for c in range(n_candidates):
        rival = int(candidates.listed[c])
        if rival != entity:
            order = compare_candidates(candidates, firings, rival, entity, breaks_ties, -1)
            better += order > 0
            equal += order == 0
    return better, equal
