"""Answer queries: fire the rules, order the candidates, rank the targets, keep the best.

To rank targets by their best rule, not every rule has to fire: once all targets are predicted, rules with lower scores
than theirs cannot move a candidate before them. Where candidates tie with a target as far as is known, the other rules
fire for these candidates alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, merged, part
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import entity_rows, find_segment
from anyburl.ranking.arrays import (
    AnswerArrays,
    AnswerSettings,
    CandidateArrays,
    FiringArrays,
    QueryArrays,
    QueryState,
    RuleIndex,
    Workspace,
)
from anyburl.ranking.kernel_fire import fire_unary
from anyburl.ranking.kernel_order import (
    UNDECIDED,
    best_rule,
    compare_candidates,
    count_better,
    count_firing_rules,
    keep_best,
    keep_undecided,
    link_firings,
    list_undecided,
    set_keys,
    tell_evidence,
)
from anyburl.ranking.kernel_trie import fire_trie


@inlined
def next_query(candidates: CandidateArrays) -> int:
    """Return a number that no query of this worker had before."""
    candidates.clock[0] += 1
    return int(candidates.clock[0])


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


@inlined
def note_reached(candidates: CandidateArrays, firings: FiringArrays, n: int, query: int) -> None:
    """Note for every target the highest score that predicts it."""
    for i in range(n):
        entity = firings.candidates[i]
        if candidates.targets[entity] == query:
            candidates.reached[entity] = max(candidates.reached[entity], firings.scores[i])


@merged
def rank_targets(
    queries: QueryArrays, question: QueryState, ties: bool, floor: int, n: int, space: Workspace, out: AnswerArrays
) -> int:
    """Write the ranks of the targets among `n` candidates; return how many of them have rivals of which it is undecided
    who is better.
    """
    candidates, firings, n_open = space.candidates, space.firings, 0
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = int(np.int64(queries.targets[i]))
        out.fired[i] = candidates.stamps[target] == question.query
        if out.fired[i]:
            better, equal, undecided = count_better(candidates, firings, n, target, question.query, ties, floor)
            out.better[i], out.equal[i] = better, equal
            out.target_rules[i] = best_rule(candidates, firings, target)
            n_open += undecided > 0
    return n_open


@merged
def decide(
    queries: QueryArrays, question: QueryState, floor: int, n_undecided: int, space: Workspace, out: AnswerArrays
) -> None:
    """Add to the ranks of the targets what was undecided: now all scores of these candidates are known."""
    candidates, firings, query = space.candidates, space.firings, question.query
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = int(np.int64(queries.targets[i]))
        if not out.fired[i] or candidates.tied[target] != query:
            continue
        for j in range(n_undecided):
            rival = int(candidates.undecided[j])
            if candidates.targets[rival] == query or candidates.keys[rival] != candidates.keys[target]:
                continue
            if compare_candidates(candidates, firings, rival, target, True, floor) == UNDECIDED:
                order = compare_candidates(candidates, firings, rival, target, True, -1)
                out.better[i] += order > 0
                out.equal[i] += order == 0


@merged
def list_best(q: int, n: int, ties: bool, space: Workspace, groups: NDArray[np.uint8], out: AnswerArrays) -> None:
    """Write the best of `n` candidates, as many as there is room for, and what speaks for them."""
    candidates, firings, best = space.candidates, space.firings, out.best[q]
    out.n_best[q] = keep_best(candidates, firings, n, ties, len(best), best)
    for i in range(out.n_best[q]):
        entity = int(best[i])
        out.best_keys[q, i] = candidates.keys[entity]
        out.best_rules[q, i] = best_rule(candidates, firings, entity)
        out.best_counts[q, i] = count_firing_rules(candidates, firings, entity)
        if out.evidence.shape[2] > 0:
            tell_evidence(candidates, firings, entity, groups, out.evidence[q, i])


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
    candidates, firings, ties = space.candidates, space.firings, protocol.breaks_ties
    room = len(firings.candidates)
    for q in range(first, last):
        # Compiled, int() keeps 32 bits: without np.int64, kernels would be compiled once more.
        s, d = int(np.int64(queries.entities[q])), int(np.int64(queries.relations[q]))
        question = QueryState(
            q, s, d, next_query(candidates), protocol.object_identity, protocol.longest, protocol.least_binary
        )
        out.n_excluded[q] = exclude(graph, queries, question, protocol, candidates)
        out.n_excluded[q] -= mark_targets(queries, question, candidates)
        n_unary = fire_unary(graph, index, question, space)
        if n_unary > room:
            return q, n_unary
        has_targets = queries.target_offsets[q] < queries.target_offsets[q + 1]
        prune = has_targets and protocol.top_k == 0 and protocol.n_counted == 1
        if prune:
            note_reached(candidates, firings, n_unary, question.query)
        n, floor = fire_trie(graph, index, queries, question, prune, -1, space, n_unary)
        if n > room:
            return q, n
        if protocol.only_fires:
            return last, n
        n_candidates = link_firings(candidates, firings, n, question.query)
        set_keys(candidates, firings, n_candidates, protocol.n_counted)
        out.n_candidates[q] = n_candidates if floor < 0 else -1
        out.n_firings[q] = n if floor < 0 else -1
        if rank_targets(queries, question, ties, floor, n_candidates, space, out) > 0:
            # All rules fire again, for the candidates of which it is undecided.
            n_undecided = list_undecided(candidates, n_candidates, question.query)
            n = keep_undecided(candidates, firings, n_unary, question.query)
            n, _ = fire_trie(graph, index, queries, question, False, n_undecided, space, n)
            if n > room:
                return q, n
            link_firings(candidates, firings, n, next_query(candidates))
            decide(queries, question, floor, n_undecided, space, out)
        if protocol.top_k > 0:
            list_best(q, n_candidates, ties, space, groups, out)
    return last, 0
