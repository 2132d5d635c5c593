"""Answer queries: fire the rules, order the candidates, rank the targets, keep the best.

To rank targets by their best rule, not every rule has to fire: rules with lower scores than theirs cannot move a
candidate before them. So rules fire for the targets first. Where candidates tie with a target as far as is known, the
other rules fire for these candidates alone. The same holds for the best candidates, once so many have a score.
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
from anyburl.ranking.kernel_fire import fire_long_rules
from anyburl.ranking.kernel_order import (
    best_rule,
    chain_marked,
    count_firing_rules,
    keep_best,
    keep_undecided,
    link_firings,
    list_undecided,
    mark_best,
    mark_for_chain,
    needs_chains,
    order_firings,
    order_targets,
    place_rivals,
    tell_evidence,
)
from anyburl.ranking.kernel_short import fire_short, link_undecided
from anyburl.ranking.kernel_trie import BY_TARGETS, fire_trie

FEW_TARGETS = 16
LEAST_FLOOR = 1 << 28  # a confidence of .000015: few rules have less


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
def list_targets(queries: QueryArrays, question: QueryState, candidates: CandidateArrays) -> int:
    """List the targets as undecided; return how many there are."""
    n = 0
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = queries.targets[i]
        if candidates.tied[target] != question.query:
            candidates.tied[target] = question.query
            candidates.undecided[n] = target
            n += 1
    return n


@inlined
def note_reached(candidates: CandidateArrays, firings: FiringArrays, n: int, query: int) -> None:
    """Note for every target the highest score that predicts it."""
    for i in range(n):
        entity = firings.candidates[i]
        if candidates.targets[entity] == query:
            candidates.reached[entity] = max(candidates.reached[entity], firings.scores[i])


@part
def rank_targets(
    queries: QueryArrays, question: QueryState, ties: bool, floor: int, n: int, space: Workspace, out: AnswerArrays
) -> int:
    """Add to the ranks of the targets those of `n` candidates of which scores from `floor` on tell whether they are
    better; return how many are left.
    """
    candidates, first, last = (
        space.candidates,
        queries.target_offsets[question.q],
        queries.target_offsets[question.q + 1],
    )
    n_positions = order_targets(queries, question.q, candidates, space.firings, ties, floor)
    if n_positions == 0:
        return 0
    n_open = place_rivals(candidates, space.firings, n, n_positions, question.query, ties, floor)
    total = 0
    for position in range(n_positions):
        total += candidates.n_before[position]
        candidates.n_before[position] = total
        total += candidates.n_beside[position]
    for i in range(first, last):
        target = queries.targets[i]
        if out.fired[i]:
            out.better[i] += candidates.n_before[candidates.standings[target]]
            out.equal[i] += candidates.n_beside[candidates.standings[target]]
            candidates.tied[target] = candidates.clock[0]
    return n_open


@merged
def start_ranks(queries: QueryArrays, question: QueryState, space: Workspace, out: AnswerArrays) -> None:
    """Write which targets are predicted, by which rule, and no rivals yet."""
    candidates = space.candidates
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = int(np.int64(queries.targets[i]))
        out.better[i], out.equal[i] = 0, 0
        out.fired[i] = candidates.stamps[target] == candidates.clock[0]
        if out.fired[i]:
            out.target_rules[i] = best_rule(candidates, space.firings, target)


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
        query, least = next_query(candidates), protocol.least_binary
        question = QueryState(q, s, d, query, protocol.object_identity, protocol.longest, least, ANY_SCORE, -1)
        out.n_excluded[q] = exclude(graph, queries, question, protocol, candidates)
        n_blocked = mark_targets(queries, question, candidates)
        out.n_excluded[q] -= n_blocked
        n_targets = queries.target_offsets[q + 1] - queries.target_offsets[q]
        prune = 0
        if protocol.n_counted == 1 and n_targets > 0 and protocol.top_k == 0 and n_blocked == 0:
            prune = BY_TARGETS
        elif protocol.n_counted == 1 and n_targets == 0 and protocol.only_best:
            prune = protocol.top_k
        n_long = fire_long_rules(graph, index, question, space)
        if n_long > room:
            return q, n_long
        n, least_short = n_long, -1
        if prune == BY_TARGETS:  # first for them alone: then, fewer rules fire for all
            n_listed = list_targets(queries, question, candidates)
            few = QueryState(q, s, d, query, question.object_identity, question.longest, least, ANY_SCORE, query)
            link_undecided(graph, n_listed, space)
            n, _ = fire_short(graph, index, few, -1, n_listed, 0, space, n)
            if n > room:
                return q, n
            note_reached(candidates, firings, n, query)
            if n_targets <= FEW_TARGETS:
                n, _, _ = fire_trie(graph, index, queries, few, prune, n_listed, space, n_long)
                if n > room:
                    return q, n
            n = n_long
        else:
            n, least_short = fire_short(graph, index, question, -1, -1, prune, space, n)
            if n > room:
                return q, n
        n, floor, highest_left = fire_trie(graph, index, queries, question, prune, -1, space, n)
        if prune == BY_TARGETS:
            n, _ = fire_short(graph, index, question, floor, -1, 0, space, n)
        elif least_short > 0:
            floor = max(floor, least_short)
        if n > room:
            return q, n
        if protocol.only_fires:
            return last, n
        needed = floor if prune == BY_TARGETS else -1
        chained, now = needs_chains(protocol.n_counted, ties), next_query(candidates)
        n_candidates = order_firings(candidates, firings, n, now, protocol.n_counted, ties, needed)
        out.n_candidates[q] = n_candidates if floor < 0 else -1
        out.n_firings[q] = n if floor < 0 else -1
        if not chained:
            if protocol.top_k > 0:
                out.n_best[q] = keep_best(candidates, firings, n_candidates, ties, protocol.top_k, out.best[q])
            chain_shown(queries, q, space, groups, n, out)
        start_ranks(queries, question, space, out)
        while True:
            n_open = 0
            if n_targets > 0:
                n_open = rank_targets(queries, question, ties, floor, n_candidates, space, out)
            elif floor >= 0:
                n_open = mark_best(candidates, firings, n_candidates, prune)
            if n_open == 0:
                break
            # Rules with lower scores fire for the candidates of which it is undecided. To rank targets, down to half of
            # the next score at a time: the next rules decide most.
            below, mark = floor, int(candidates.clock[0])
            floor = min(below, highest_left) >> 1
            if n_targets == 0 or floor < LEAST_FLOOR:
                floor = -1
            lower = max(floor, least)
            again = QueryState(q, s, d, query, question.object_identity, question.longest, lower, below, mark)
            n_undecided = list_undecided(candidates, n_candidates, mark)
            link_undecided(graph, n_undecided, space)
            n_long, n = keep_undecided(candidates, firings, n_long, n, below, mark)
            n, _, highest_left = fire_trie(graph, index, queries, again, 0, n_undecided, space, n)
            if n <= room:
                n, _ = fire_short(graph, index, again, floor, n_undecided, 0, space, n)
            if n > room:
                return q, n
            n_candidates = link_firings(candidates, firings, n, next_query(candidates), floor)
        if protocol.top_k > 0:
            if chained:
                out.n_best[q] = keep_best(candidates, firings, n_candidates, ties, protocol.top_k, out.best[q])
            list_best(q, space, groups, out)
    return last, 0
