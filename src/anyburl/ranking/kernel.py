"""Answer queries: fire the rules, order the candidates, rank the targets, keep the best.

By the best rule, not every rule has to fire. How targets are ranked is in `kernel_targets`. To find the best
candidates, the score that rules need is the one that so many candidates have; it rises while rules fire. In the end,
the rules with lower scores fire only for candidates that may be among the best, to put them in order and to count
their rules.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, merged, part
from anyburl.graph.kernel import GraphArrays, entity_rows, find_segment
from anyburl.ranking.arrays import (
    ANY_SCORE,
    AnswerArrays,
    AnswerSettings,
    CandidateArrays,
    FiringArrays,
    QueryArrays,
    QueryState,
    RuleIndex,
    Workspace,
)
from anyburl.ranking.kernel_fire import fire_long_rules, fire_unary
from anyburl.ranking.kernel_order import (
    best_rule,
    chain_marked,
    count_firing_rules,
    find_least_key,
    keep_best,
    link_firings,
    list_undecided,
    mark_for_chain,
    move_firing,
    needs_chains,
    next_query,
    order_firings,
    restrict,
    start_query,
    tell_evidence,
)
from anyburl.ranking.kernel_short import fire_short, link_undecided
from anyburl.ranking.kernel_targets import rank_by_best_rule, rank_targets, start_ranks
from anyburl.ranking.kernel_trie import fire_trie


@inlined
def exclude_connected(graph: GraphArrays, s: int, query: int, candidates: CandidateArrays) -> int:
    """Mark whatever s is connected with as not to be ranked; return how many more that are."""
    n_excluded = 0
    start, end = entity_rows(graph, s)
    for row in range(start, end):
        entity = int(graph.neighbours[row])
        if entity == graph.n_entities:  # a reflexive triple joins s with itself
            entity = s
        if candidates.excluded[entity] != query:
            candidates.excluded[entity] = query
            n_excluded += 1
    return n_excluded


@part
def exclude(
    graph: GraphArrays,
    queries: QueryArrays,
    question: QueryState,
    protocol: AnswerSettings,
    candidates: CandidateArrays,
) -> int:
    """Mark and count candidates that are not ranked: known answers and, if blocked, all that s is connected with.

    Targets are known answers of each other; they fire, and are left out one by one when ranks are counted.
    """
    s, query, n_excluded = question.s, question.query, 0
    for i in range(queries.excluded_offsets[question.q], queries.excluded_offsets[question.q + 1]):
        candidates.excluded[queries.excluded[i]] = query
        n_excluded += 1
    if protocol.block_connected:
        n_excluded += exclude_connected(graph, s, query, candidates)
        if protocol.keep_known:
            segment = find_segment(graph, s, question.d)
            if segment >= 0:
                for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
                    target = int(graph.targets[row])
                    if target == graph.n_entities:
                        target = s
                    if candidates.excluded[target] == query:  # once, where s leads to itself and to `self`
                        candidates.excluded[target] = 0
                        n_excluded -= 1
    return n_excluded


@inlined
def mark_targets(queries: QueryArrays, question: QueryState, candidates: CandidateArrays) -> int:
    """Mark the targets of a query; return how many of them are excluded (blocked), but ranked all the same: as ones
    that no rule predicts.
    """
    n_blocked = 0
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = queries.targets[i]
        if candidates.targets[target] != question.query and candidates.excluded[target] == question.query:
            n_blocked += 1
        candidates.targets[target] = question.query
        candidates.reached[target] = -1
    return n_blocked


@merged
def chain_shown(
    queries: QueryArrays, q: int, space: Workspace, groups: NDArray[np.uint8], n: int, out: AnswerArrays
) -> None:
    """Chain the firings of what is told more of than its key: the targets and the best candidates."""
    for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
        mark_for_chain(space.candidates, int(np.int64(queries.targets[i])))
    for i in range(out.n_best[q]):
        mark_for_chain(space.candidates, int(np.int64(out.best[q, i])))
    chain_marked(space.candidates, space.firings, n, groups)


@merged
def list_best(q: int, space: Workspace, groups: NDArray[np.uint8], out: AnswerArrays) -> None:
    """Write what speaks for the best candidates."""
    candidates, firings, best = space.candidates, space.firings, out.best[q]
    for i in range(out.n_best[q]):
        entity = int(best[i])
        out.best_keys[q, i] = candidates.keys[entity]
        out.best_rules[q, i] = best_rule(candidates, firings, entity)
        out.best_counts[q, i] = count_firing_rules(candidates, firings, entity)
        if out.evidence.shape[2] > 0:
            tell_evidence(candidates, firings, entity, groups, out.evidence[q, i])


@part
def order_all(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    question: QueryState,
    protocol: AnswerSettings,
    groups: NDArray[np.uint8],
    space: Workspace,
    out: AnswerArrays,
) -> int:
    """Fire every rule for a query, put the candidates in order, rank the targets and keep the best. Return the number
    of firings: past the room there is if that is too small.
    """
    candidates, firings, ties, q = space.candidates, space.firings, protocol.breaks_ties, question.q
    n = fire_unary(graph, index, question, space)
    if n <= len(firings.candidates):
        n, _, _ = fire_trie(graph, index, queries, question, 0, -1, space, n)
    if n > len(firings.candidates) or protocol.only_fires:
        return n
    n_candidates = order_firings(candidates, firings, n, next_query(candidates), protocol.n_counted, ties)
    out.n_candidates[q], out.n_firings[q] = n_candidates, n
    if protocol.top_k > 0:
        out.n_best[q] = keep_best(candidates, firings, n_candidates, ties, protocol.top_k, out.best[q])
    if not needs_chains(protocol.n_counted, ties):
        chain_shown(queries, q, space, groups, n, out)
    candidates.n_ahead[0] = 0
    start_ranks(queries, question, space, out)
    rank_targets(queries, question, ties, -1, n_candidates, space, out)
    return n


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
            move_firing(firings, i, kept)
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
        below = restrict(question, question.least, floor, mark, ANY_SCORE)
        n, _, _ = fire_trie(graph, index, queries, below, 0, n_undecided, space, n)
        if n <= room:
            n, _ = fire_short(graph, index, below, -1, n_undecided, 0, space, n)
        if n > room:
            return n
        n_candidates = link_firings(candidates, firings, n, next_query(candidates), -1)
    out.n_best[q] = keep_best(candidates, firings, n_candidates, ties, top_k, out.best[q])
    return n


@kernel
def answer(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    first: int,
    last: int,
    protocol: AnswerSettings,
    space: Workspace,
    groups: NDArray[np.uint8],
    out: AnswerArrays,
) -> tuple[int, int]:
    """Answer the queries from `first` to before `last`; return the next one, and the room for firings that it would
    need.

    Stops early where there is too little room for the firings of a query; and after the first, with the number of its
    firings, where rules are only to fire. Evidence is kept for each of the `groups` of rules, if `out` has room for it.
    """
    candidates = space.candidates
    for q in range(first, last):
        # Compiled, int() keeps 32 bits: without np.int64, kernels would be compiled once more.
        s, d = int(np.int64(queries.entities[q])), int(np.int64(queries.relations[q]))
        question = start_query(q, s, d, next_query(candidates), protocol.least_binary, protocol)
        out.n_excluded[q] = exclude(graph, queries, question, protocol, candidates)
        n_blocked = mark_targets(queries, question, candidates)
        out.n_excluded[q] -= n_blocked
        n_targets = queries.target_offsets[q + 1] - queries.target_offsets[q]
        if protocol.n_counted == 1 and n_targets > 0 and protocol.top_k == 0 and n_blocked == 0:
            n = rank_by_best_rule(graph, index, queries, question, protocol.breaks_ties, space, out)
        elif protocol.n_counted == 1 and n_targets == 0 and protocol.only_best:
            n = find_best(graph, index, queries, question, protocol.breaks_ties, protocol.top_k, space, out)
        else:
            n = order_all(graph, index, queries, question, protocol, groups, space, out)
        if n > len(space.firings.candidates):
            return q, n
        if protocol.only_fires:
            return last, n
        if protocol.top_k > 0:
            list_best(q, space, groups, out)
    return last, 0
