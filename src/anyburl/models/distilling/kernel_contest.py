"""A *contest*: a known answer, its rivals, and the rules that predict them, the highest scores first.

Where the answer ranks by any subset of the rules is read from its contest, so that rules fire once and not for each
subset that is tried. Candidates are numbered within a contest; 0 is the answer itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import kernel, part
from anyburl.models.distilling.kernel import (
    KnownArrays,
    KnownSpace,
    fire_known,
    first_firing,
    score_without,
    stamp_rules,
)
from anyburl.ranking.kernel_order import insert_score


class ContestArrays(NamedTuple):
    """Contests, one after the other; the entries of each sorted by score, the highest first, then by rule."""

    offsets: NDArray[np.int64]  # contest -> its entries
    n_candidates: NDArray[np.int32]  # contest -> its candidates
    rules: NDArray[np.int32]
    candidates: NDArray[np.int32]
    scores: NDArray[np.int32]  # numbers of scores, in their order


class EntryArrays(NamedTuple):
    """Scratch: the entries of one contest, and the best scores of the target."""

    scores: NDArray[np.int64]
    rules: NDArray[np.int32]
    candidates: NDArray[np.int32]
    own: NDArray[np.int64]


@part
def sort_entries(entries: EntryArrays, n: int) -> None:
    """Sort the first `n` entries by score, the highest first, then by rule (shell sort)."""
    scores, rules, candidates = entries.scores, entries.rules, entries.candidates
    gap = 1
    while 3 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            score, rule, candidate = scores[i], rules[i], candidates[i]
            j = i - gap
            while j >= 0 and (scores[j] < score or (scores[j] == score and rules[j] > rule)):
                scores[j + gap], rules[j + gap], candidates[j + gap] = scores[j], rules[j], candidates[j]
                j -= gap
            scores[j + gap], rules[j + gap], candidates[j + gap] = score, rule, candidate
        gap //= 3


@part
def find_own_scores(known: KnownArrays, target: int, query: int, space: KnownSpace, best: NDArray[np.int64]) -> int:
    """Write the highest scores of a target to `best`, as many as there is room for; return how many."""
    n = 0
    i = first_firing(space, target, query)
    while i >= 0:
        score = score_without(known, space, i)
        i = int(space.workspace.firings.following[i])
        if score < 0 or (n == len(best) and best[n - 1] >= score):
            continue
        n = insert_score(best, 0, n, len(best), score)
    return n


@part
def list_entries(
    known: KnownArrays,
    n_listed: int,
    target: int,
    query: int,
    least: int,
    most: int,
    space: KnownSpace,
    entries: EntryArrays,
) -> tuple[int, int]:
    """List the rules of a target and its rivals with a score of `least` or more; return how many entries there are
    (stops at more than `most`), and how many candidates.
    """
    candidates, firings = space.workspace.candidates, space.workspace.firings
    n, n_candidates = 0, 1
    for c in range(-1, n_listed):
        entity = target if c < 0 else int(candidates.listed[c])
        if c >= 0 and (candidates.keys[entity] < least or candidates.targets[entity] == query):
            continue
        before = n
        i = int(candidates.firsts[entity])
        while i >= 0:
            if firings.scores[i] >= least:  # without the fact that is left out, it is lower
                score = score_without(known, space, i)
                if score >= least and n < most:
                    entries.scores[n], entries.rules[n] = score, firings.rules[i]
                    entries.candidates[n] = 0 if c < 0 else n_candidates
                n += score >= least
            i = int(firings.following[i])
        n_candidates += c >= 0 and n > before
        if n > most:
            break
    return n, n_candidates


@kernel
def list_contests(
    known: KnownArrays,
    first: int,
    most: int,
    space: KnownSpace,
    entries: EntryArrays,
    out: ContestArrays,
    n_written: int,
) -> tuple[int, int, int]:
    """Write the contests of the targets of the queries from `first` on.

    An index with numbers of scores is used. Where `entries.own` is empty, all rules are listed; else down to the
    lowest of as many rules of the target, fewer where these were more than `most` entries.

    `out.offsets` gets how many entries each contest has. Return the next query, the room for firings that it would
    need, and the entries written: stops where there is too little room for either.
    """
    queries, candidates, firings = known.queries, space.workspace.candidates, space.workspace.firings
    for q in range(first, len(queries.entities)):
        n, n_listed, query = fire_known(known, q, False, space.workspace)
        if n > len(firings.candidates):
            return q, n, n_written
        n_targets = int(queries.target_offsets[q + 1] - queries.target_offsets[q])
        if n_written + n_targets * min(n, most) > len(out.rules):
            return q, 0, n_written
        for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(np.int64(queries.targets[i]))
            stamp_rules(space, target, query)
            n_own, n_entries, n_candidates = 0, 0, 1
            is_predicted = candidates.stamps[target] == query
            if len(entries.own) == 0 and is_predicted:
                n_entries, n_candidates = list_entries(known, n_listed, target, query, 0, most, space, entries)
            elif is_predicted:
                n_own = find_own_scores(known, target, query, space, entries.own)
            while n_own > 0:
                least = int(entries.own[n_own - 1])
                n_entries, n_candidates = list_entries(known, n_listed, target, query, least, most, space, entries)
                if n_entries <= most:
                    break
                n_own, n_entries = n_own // 2, 0
            sort_entries(entries, n_entries)
            for e in range(n_entries):
                out.rules[n_written], out.candidates[n_written] = entries.rules[e], entries.candidates[e]
                out.scores[n_written] = entries.scores[e]
                n_written += 1
            out.offsets[i + 1] = n_entries
            out.n_candidates[i] = n_candidates
    return len(queries.entities), 0, n_written
