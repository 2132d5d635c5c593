"""The best candidates of a query without firing every rule.

The score that rules need is the one that so many candidates have; it rises while rules fire. In the end, the rules with
lower scores fire only for candidates that may be among the best, to put them in order and to count their rules.
"""

from __future__ import annotations

from anyburl.base.jit import inlined, part
from anyburl.graph.kernel import GraphArrays
from anyburl.ranking.arrays import (
    ANY_SCORE,
    AnswerArrays,
    CandidateArrays,
    FiringArrays,
    QueryArrays,
    QueryState,
    RuleIndex,
    Workspace,
)
from anyburl.ranking.kernel_fire import fire_long_rules
from anyburl.ranking.kernel_order import find_least_key, keep_best, link_firings, list_undecided, next_query
from anyburl.ranking.kernel_short import fire_short, link_undecided
from anyburl.ranking.kernel_trie import fire_trie


@inlined
def keep_undecided(
    candidates: CandidateArrays, firings: FiringArrays, n_first: int, n: int, floor: int, mark: int
) -> tuple[int, int]:
    """Move the firings of undecided candidates, of the first `n`, to the front, but for those of rules of which not all
    have fired: after the first `n_first`, those with scores below `floor`. Return how many of the first are kept, and
    how many in all.
    """
    kept_first, kept = 0, 0
    for i in range(n):
        if candidates.tied[firings.candidates[i]] == mark and (i < n_first or firings.scores[i] >= floor):
            firings.candidates[kept] = firings.candidates[i]
            firings.scores[kept] = firings.scores[i]
            firings.rules[kept] = firings.rules[i]
            kept += 1
            kept_first += i < n_first
    return kept_first, kept


@inlined
def mark_best(candidates: CandidateArrays, firings: FiringArrays, n_candidates: int, top_k: int) -> int:
    """Mark the candidates that may be among the `top_k` best as tied; return how many there are."""
    n_marked, least = 0, find_least_key(candidates, firings, n_candidates, top_k)
    for c in range(n_candidates):
        entity = candidates.listed[c]
        if candidates.keys[entity] >= least:
            candidates.tied[entity] = candidates.clock[0]
            n_marked += 1
    return n_marked


@part
def find_best(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    question: QueryState,
    ties: bool,
    top_k: int,
    space: Workspace,
    out: AnswerArrays,
) -> int:
    """Find the `top_k` candidates with the best rules, where ties are broken by the next best and so on. Return the
    number of firings: past the room there is if that is too small.
    """
    candidates, firings, room, q = space.candidates, space.firings, len(space.firings.candidates), question.q
    n_long = fire_long_rules(graph, index, question, space)
    if n_long > room:
        return n_long
    n, least_short = fire_short(graph, index, question, -1, -1, top_k, space, n_long)
    if n > room:
        return n
    n, floor, _ = fire_trie(graph, index, queries, question, top_k, -1, space, n)
    if n > room:
        return n
    if least_short > 0:
        floor = max(floor, least_short)
    n_candidates = link_firings(candidates, firings, n, next_query(candidates), -1)
    out.n_candidates[q] = n_candidates if floor < 0 else -1
    out.n_firings[q] = n if floor < 0 else -1
    if floor >= 0 and mark_best(candidates, firings, n_candidates, top_k) > 0:
        mark = int(candidates.clock[0])
        n_undecided = list_undecided(candidates, n_candidates, mark)
        link_undecided(graph, n_undecided, space)
        _, n = keep_undecided(candidates, firings, n_long, n, floor, mark)
        below = QueryState(
            q,
            question.s,
            question.d,
            question.query,
            question.object_identity,
            question.longest,
            question.least,
            floor,
            mark,
            ANY_SCORE,
        )
        n, _, _ = fire_trie(graph, index, queries, below, 0, n_undecided, space, n)
        if n <= room:
            n, _ = fire_short(graph, index, below, -1, n_undecided, 0, space, n)
        if n > room:
            return n
        n_candidates = link_firings(candidates, firings, n, next_query(candidates), -1)
    out.n_best[q] = keep_best(candidates, firings, n_candidates, ties, top_k, out.best[q])
    return n
