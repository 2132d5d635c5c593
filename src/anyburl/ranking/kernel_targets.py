"""Rank targets by their best rule without firing every rule.

Rules with lower scores than the best one of every target cannot move a candidate before them. So rules fire for the
targets first. Then the rules from that score on fire for all: whatever a higher score predicts is counted and passed
over. Candidates that tie with a target as far as is known are *rivals of its class*: the rules with lower scores fire
for them and their targets alone, a range of scores at a time, until the scores of no rival are those of its target.
"""

from __future__ import annotations

import numpy as np

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
from anyburl.ranking.kernel_order import (
    UNDECIDED,
    best_rule,
    compare_candidates,
    link_firings,
    list_undecided,
    move_firing,
    next_query,
    restrict,
)
from anyburl.ranking.kernel_short import fire_short, link_undecided, put_ahead
from anyburl.ranking.kernel_trie import BY_TARGETS, MOST_STEPS, fire_trie

FEW_TARGETS = 8
LEAST_FLOOR = 1 << 28  # a confidence of .000015: few rules have less


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
def fire_for_targets(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    question: QueryState,
    n_long: int,
    space: Workspace,
) -> tuple[int, int]:
    """Find the highest score that predicts each target, as far as it takes to know which rules have to fire for all;
    return the number of firings, and the score above which rules predict what ranks before all targets.

    `n_long` rules have fired. With many targets, those of length 1 fire alone, and no score is known to be above all.
    """
    candidates = space.candidates
    n_listed = list_targets(queries, question, candidates)
    link_undecided(graph, n_listed, space)
    n, _ = fire_short(graph, index, question, -1, n_listed, 0, space, n_long)
    if n > len(space.firings.candidates):
        return n, ANY_SCORE
    note_reached(candidates, space.firings, n, question.query)
    first, last = queries.target_offsets[question.q], queries.target_offsets[question.q + 1]
    if last - first > FEW_TARGETS:
        return n_long, ANY_SCORE
    n, _, _ = fire_trie(graph, index, queries, question, BY_TARGETS, n_listed, space, n_long)
    top, lowest = np.int64(-1), ANY_SCORE
    for i in range(first, last):
        top = max(top, candidates.reached[queries.targets[i]])
        lowest = min(lowest, candidates.reached[queries.targets[i]])
    is_known = lowest > max(question.least, 0)
    return n if n > len(space.firings.candidates) else n_long, int(top) if is_known else ANY_SCORE


@inlined
def drop_ahead(
    candidates: CandidateArrays, firings: FiringArrays, n_first: int, n: int, question: QueryState
) -> tuple[int, int]:
    """Drop those of the first `n` firings whose candidates rank before all targets, by one of these or as is known;
    return how many of the first `n_first` are left, and how many in all.
    """
    if question.top == ANY_SCORE:
        return n_first, n
    kept_first, kept = 0, 0
    for i in range(n):
        entity = int(firings.candidates[i])
        if candidates.excluded[entity] == question.query:
            continue
        if firings.scores[i] > question.top:
            put_ahead(candidates, question, entity)
            continue
        move_firing(firings, i, kept)
        kept += 1
        kept_first += i < n_first
    return kept_first, kept


@inlined
def start_ranks(queries: QueryArrays, question: QueryState, space: Workspace, out: AnswerArrays) -> None:
    """Write which targets are predicted, by which rule, and how many candidates are known to rank before all."""
    candidates = space.candidates
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = int(np.int64(queries.targets[i]))
        out.better[i], out.equal[i] = 0, 0
        out.fired[i] = candidates.stamps[target] == candidates.clock[0]
        if out.fired[i]:
            out.better[i] = candidates.n_ahead[0]
            out.target_rules[i] = best_rule(candidates, space.firings, target)


@part
def order_targets(
    queries: QueryArrays, q: int, candidates: CandidateArrays, firings: FiringArrays, breaks_ties: bool, floor: int
) -> int:
    """Put the targets that are candidates in order, as far as scores from `floor` on tell; return how many positions
    there are: those that tie share one.
    """
    first, last, n, n_positions = queries.target_offsets[q], queries.target_offsets[q + 1], 0, 0
    ordered, standings = candidates.ordered, candidates.standings
    for i in range(first, last):
        standings[queries.targets[i]] = -1
    for i in range(first, last):
        target = int(np.int64(queries.targets[i]))
        if standings[target] >= 0 or candidates.stamps[target] != candidates.clock[0]:
            continue
        low, high = 0, n
        while low < high:
            middle = (low + high) >> 1
            if compare_candidates(candidates, firings, target, int(ordered[middle]), breaks_ties, floor) == 1:
                high = middle
            else:
                low = middle + 1
        for position in range(n, low, -1):
            ordered[position] = ordered[position - 1]
        ordered[low], standings[target] = target, 0
        n += 1
    for i in range(n):
        target = int(ordered[i])
        if (
            i == 0
            or compare_candidates(candidates, firings, int(ordered[n_positions - 1]), target, breaks_ties, floor) == 1
        ):
            ordered[n_positions] = target
            n_positions += 1
        standings[target] = n_positions - 1
    return n_positions


@inlined
def count_better_rivals(
    candidates: CandidateArrays, entity: int, position: int, n_positions: int, question: QueryState
) -> None:
    """Count a candidate as one that ranks before the target at `position` and those after it, of its class where there
    are classes.
    """
    if position < n_positions and (
        question.tied < 0 or candidates.keys[entity] == candidates.keys[candidates.ordered[position]]
    ):
        candidates.n_before[position] += 1


@part
def place_rivals(
    candidates: CandidateArrays,
    firings: FiringArrays,
    n_candidates: int,
    n_positions: int,
    question: QueryState,
    breaks_ties: bool,
    floor: int,
) -> int:
    """Count the candidates that rank before each of the ordered targets and those that tie with it; return how many are
    undecided: they are marked as tied, with the position of their target as standing, and count for those after it.

    Other targets are known answers, too: they do not count.
    """
    n_undecided, ordered = 0, candidates.ordered
    candidates.n_before[:n_positions] = 0
    candidates.n_beside[:n_positions] = 0
    candidates.n_rivals[:n_positions] = 0
    least = candidates.keys[ordered[n_positions - 1]]
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        if candidates.keys[entity] < least or candidates.targets[entity] == question.query:
            continue
        low, high, order = 0, n_positions, 1
        while low < high:
            middle = (low + high) >> 1
            order = compare_candidates(candidates, firings, entity, int(ordered[middle]), breaks_ties, floor)
            if order == 1:
                high = middle
            elif order == -1:
                low = middle + 1
            else:
                low = high = middle
        if order == UNDECIDED:
            candidates.tied[entity], candidates.standings[entity] = candidates.clock[0], low
            candidates.n_rivals[low] += 1
            n_undecided += 1
        elif order == 0:
            candidates.n_beside[low] += 1
        count_better_rivals(candidates, entity, low + (order in (0, UNDECIDED)), n_positions, question)
    return n_undecided


@part
def rank_targets(
    queries: QueryArrays, question: QueryState, ties: bool, floor: int, n: int, space: Workspace, out: AnswerArrays
) -> int:
    """Add to the ranks of the targets those of `n` candidates of which scores from `floor` on tell whether they are
    better; return how many are undecided. Targets that these may tie with are marked as tied as well.

    Of tied candidates, the key is the class: those of other classes have been counted.
    """
    candidates, before = space.candidates, space.candidates.n_before
    n_positions = order_targets(queries, question.q, candidates, space.firings, ties, floor)
    if n_positions == 0:
        return 0
    n_undecided = place_rivals(candidates, space.firings, n, n_positions, question, ties, floor)
    in_classes = question.tied >= 0
    for position in range(1, n_positions):
        target, previous = candidates.ordered[position], candidates.ordered[position - 1]
        if not in_classes or candidates.keys[target] == candidates.keys[previous]:
            before[position] += before[position - 1]
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = queries.targets[i]
        position = int(candidates.standings[target])
        if position >= 0:
            out.better[i] += before[position]
            out.equal[i] += candidates.n_beside[position]
            if candidates.n_rivals[position] > 0:
                candidates.tied[target] = candidates.clock[0]
    return n_undecided


@inlined
def keep_waiting(candidates: CandidateArrays, firings: FiringArrays, n_long: int, question: QueryState) -> int:
    """Keep those of the first `n_long` firings whose scores have not been compared, of tied candidates; return how
    many.
    """
    kept = 0
    for i in range(n_long):
        if firings.scores[i] < question.below and candidates.tied[firings.candidates[i]] == question.tied:
            move_firing(firings, i, kept)
            kept += 1
    return kept


@inlined
def link_tied(
    candidates: CandidateArrays, firings: FiringArrays, n_undecided: int, n: int, query: int, floor: int
) -> None:
    """List the undecided candidates with their class as key, the best first, and chain those of their first `n` firings
    that have a score of `floor` or more.
    """
    candidates.list_end[0] = 0
    for c in range(n_undecided):
        entity = int(candidates.undecided[c])
        candidates.listed[c] = entity
        candidates.stamps[entity] = query
        candidates.keys[entity] = -candidates.standings[entity]
        candidates.firsts[entity] = -1
        candidates.list_starts[entity] = -1
    for i in range(n):
        if firings.scores[i] >= floor:
            entity = int(firings.candidates[i])
            firings.following[i] = candidates.firsts[entity]
            candidates.firsts[entity] = i


@part
def rank_by_best_rule(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    question: QueryState,
    ties: bool,
    space: Workspace,
    out: AnswerArrays,
) -> int:
    """Rank the targets of a query by the best rule, where ties are broken by the next best and so on. Return the number
    of firings: past the room there is if that is too small.
    """
    candidates, firings, room = space.candidates, space.firings, len(space.firings.candidates)
    q, least = question.q, question.least
    n_long = fire_long_rules(graph, index, question, space)
    if n_long > room:
        return n_long
    alone = restrict(question, least, ANY_SCORE, question.query, ANY_SCORE)
    n, top = fire_for_targets(graph, index, queries, alone, n_long, space)
    if n > room:
        return n
    question = restrict(question, least, ANY_SCORE, -1, top)
    candidates.n_ahead[0] = 0
    n_long, _ = drop_ahead(candidates, firings, n_long, n_long, question)
    n, floor, highest_left = fire_trie(graph, index, queries, question, BY_TARGETS, -1, space, n_long)
    if n <= room:
        n, _ = fire_short(graph, index, question, floor, -1, 0, space, n)
    if n > room:
        return n
    n_long, n = drop_ahead(candidates, firings, n_long, n, question)
    n_candidates = link_firings(candidates, firings, n, next_query(candidates), floor)
    out.n_candidates[q] = n_candidates if floor < 0 else -1
    out.n_firings[q] = n if floor < 0 else -1
    start_ranks(queries, question, space, out)
    while rank_targets(queries, question, ties, floor, n_candidates, space, out) > 0:
        # Down to three quarters of the next score at a time, for the next rules decide most; half if walks are long.
        below, mark = floor, int(candidates.clock[0])
        floor = ((3 if question.longest <= MOST_STEPS else 2) * min(below, highest_left)) >> 2
        if floor < LEAST_FLOOR:
            floor = -1
        question = restrict(question, max(floor, least), below, mark, ANY_SCORE)
        n_undecided = list_undecided(candidates, n_candidates, mark)
        link_undecided(graph, n_undecided, space)
        n_long = keep_waiting(candidates, firings, n_long, question)
        n, _, highest_left = fire_trie(graph, index, queries, question, 0, n_undecided, space, n_long)
        if n <= room:
            n, _ = fire_short(graph, index, question, floor, n_undecided, 0, space, n)
        if n > room:
            return n
        link_tied(candidates, firings, n_undecided, n, next_query(candidates), floor)
        n_candidates = n_undecided
    return n
