"""Find facts, entity by entity: list where the bodies lead, then answer the question of every head from the lists.

Rules are walked entity by entity, not question by question: each body of B rules is there once for all heads. Where it
leads from s is listed once, and all heads with this body read the list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.graph.kernel import GraphArrays, find_segment
from anyburl.ranking.arrays import (
    AnswerSettings,
    CandidateArrays,
    FiringArrays,
    QueryArrays,
    QueryState,
    RuleIndex,
    Workspace,
)
from anyburl.ranking.kernel import exclude_connected
from anyburl.ranking.kernel_fire import fire_unary
from anyburl.ranking.kernel_order import (
    FEW,
    MOST_EVIDENCE,
    add_evidence,
    add_up,
    find_least_key,
    keep_best,
    next_query,
    sort_down,
    start_query,
)
from anyburl.ranking.kernel_trie import fire_trie


class BodyRules(NamedTuple):
    """B rules by body; the bodies themselves are a trie of one root, whose `rows` number them."""

    rule_offsets: NDArray[np.int64]  # body -> its rules
    bodies: NDArray[np.int32]  # rule -> its body
    heads: NDArray[np.int32]  # directed
    codes: NDArray[np.int32]
    rows: NDArray[np.int32]  # of the rule set


class ShelfArrays(NamedTuple):
    """Where the bodies lead from one entity, and the rules that this concerns, by head."""

    ends: FiringArrays  # the entities that bodies lead to, body after body
    starts: NDArray[np.int64]  # body -> its first end
    stops: NDArray[np.int64]
    stamps: NDArray[np.int64]  # directed relation -> the number of the entity whose rules it has; at the end the number
    firsts: NDArray[np.int32]  # directed relation -> its first rule
    following: NDArray[np.int32]  # rule -> the next one with the same head, -1 at the end


class FindSpace(NamedTuple):
    """The buffers of one worker."""

    answering: Workspace
    shelf: ShelfArrays
    weights: NDArray[np.int64]  # entity -> stamp, highest score, sum and number of scores, best rule: (entities, 5)
    gathered: FiringArrays  # the scores and rules of each chosen candidate side by side
    stopped: NDArray[np.int64]  # where the kernel stopped, see `Stopped`


class Stopped(NamedTuple):
    """Places in `FindSpace.stopped`."""

    subject: int = 0  # the next one
    head: int = 1  # the next place among the heads
    facts: int = 2  # how many facts there are
    questions: int = 3  # how many lists
    firings: int = 4  # the room that they would need, 0 if there is enough
    ends: int = 5
    gathered: int = 6


class FactArrays(NamedTuple):
    """Facts as answers: (entity, directed relation, candidate), what they are ordered by, and what speaks for them.

    If lists are asked for, `evidence` has columns, and the facts of each list stand side by side.
    """

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]
    candidates: NDArray[np.int32]
    keys: NDArray[np.int64]
    rules: NDArray[np.int32]  # the rule with the highest score
    n_rules: NDArray[np.int32]
    evidence: NDArray[np.float32]  # (facts, columns)


class ListArrays(NamedTuple):
    """The questions that have candidates: how many these are, how many are listed, and how many follow the list."""

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]
    n_candidates: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_later: NDArray[np.int64]


def empty_facts(room: int, n_columns: int = 0) -> FactArrays:
    """Return room for `room` facts."""
    narrow = [np.empty(room, np.int32) for _ in range(5)]
    keys, evidence = np.empty(room, np.int64), np.empty((room, n_columns), np.float32)
    return FactArrays(narrow[0], narrow[1], narrow[2], keys, narrow[3], narrow[4], evidence)


def empty_lists(room: int) -> ListArrays:
    """Return room for `room` questions."""
    narrow, wide = np.empty((2, room), np.int32), np.empty((3, room), np.int64)
    return ListArrays(narrow[0], narrow[1], wide[0], wide[1], wide[2])


def empty_shelf(bodies: BodyRules, n_heads: int, ends: FiringArrays) -> ShelfArrays:
    """Return one worker's shelf."""
    starts, stops = np.zeros((2, len(bodies.rule_offsets)), np.int64)
    firsts, following = np.full(n_heads, -1, np.int32), np.full(len(bodies.heads) + 1, -1, np.int32)
    return ShelfArrays(ends, starts, stops, np.zeros(n_heads + 1, np.int64), firsts, following)


AT = Stopped()


@part
def fill_shelf(bodies: BodyRules, shelf: ShelfArrays, n_ends: int) -> None:
    """Note which of the listed ends are those of which body, and chain the rules that this concerns by head."""
    shelf.stamps[-1] += 1
    entity, i = shelf.stamps[-1], 0
    while i < n_ends:
        body = shelf.ends.rules[i]
        shelf.starts[body] = i
        while i < n_ends and shelf.ends.rules[i] == body:
            i += 1
        shelf.stops[body] = i
        for rule in range(bodies.rule_offsets[body], bodies.rule_offsets[body + 1]):
            head = bodies.heads[rule]
            if shelf.stamps[head] != entity:
                shelf.stamps[head] = entity
                shelf.firsts[head] = -1
            shelf.following[rule] = shelf.firsts[head]
            shelf.firsts[head] = rule


@inlined
def weigh(
    weights: NDArray[np.int64], listed: NDArray[np.int32], entity: int, score: int, rule: int, number: int, n: int
) -> int:
    """Add a score to those of a candidate; return how many candidates there are then.

    The sum of its scores is what it may reach: no aggregation gives a candidate more. Of rules with equal scores, the
    first of the rule set is the best.
    """
    listed[n] = entity
    if weights[entity, 0] != number:
        weights[entity, 0] = number
        weights[entity, 1] = score
        weights[entity, 2] = score
        weights[entity, 3] = 1
        weights[entity, 4] = rule
        return n + 1
    if score > weights[entity, 1] or (score == weights[entity, 1] and rule < weights[entity, 4]):
        weights[entity, 1] = score
        weights[entity, 4] = rule
    weights[entity, 2] = min(weights[entity, 2] + score, MOST_EVIDENCE)
    weights[entity, 3] += 1
    return n


@part
def weigh_all(
    bodies: BodyRules,
    scores: NDArray[np.int64],
    shelf: ShelfArrays,
    n_unary: int,
    number: int,
    question: QueryState,
    space: Workspace,
    weights: NDArray[np.int64],
) -> int:
    """Weigh the candidates of a question: of the unary rules that fired, and of the ends of bodies; return how many."""
    candidates, firings, query, n = space.candidates, space.firings, question.query, 0
    listed = candidates.listed
    for i in range(n_unary):
        entity, row = int(np.int64(firings.candidates[i])), int(np.int64(firings.rules[i]))
        n = weigh(weights, listed, entity, int(firings.scores[i]), row, number, n)
    if shelf.stamps[question.d] != shelf.stamps[-1]:
        return n
    rule = int(shelf.firsts[question.d])
    while rule >= 0:
        score, row = int(scores[bodies.codes[rule]]), int(np.int64(bodies.rows[rule]))
        for i in range(shelf.starts[bodies.bodies[rule]], shelf.stops[bodies.bodies[rule]]):
            end = int(np.int64(shelf.ends.candidates[i]))
            if candidates.excluded[end] != query:
                n = weigh(weights, listed, end, score, row, number, n)
        rule = int(shelf.following[rule])
    return n


@part
def choose(
    candidates: CandidateArrays,
    weights: NDArray[np.int64],
    n_candidates: int,
    n_counted: int,
    least: int,
    number: int,
) -> tuple[int, int]:
    """List only the candidates that may reach `least`, and give each a place for its firings; return how many there
    are, and their firings.

    Of `n_counted` scores, none is higher than the highest.
    """
    n, n_firings, least_best = 0, 0, (least + n_counted - 1) // n_counted
    for c in range(n_candidates):
        entity = candidates.listed[c]
        if weights[entity, 2] >= least and weights[entity, 1] >= least_best:
            candidates.tied[entity] = number
            candidates.listed[n] = entity
            candidates.keys[entity] = weights[entity, 1]
            candidates.list_sizes[entity] = weights[entity, 3]
            candidates.list_starts[entity] = n_firings
            candidates.firsts[entity] = n_firings
            n += 1
            n_firings += int(weights[entity, 3])
    return n, n_firings


@inlined
def put(candidates: CandidateArrays, gathered: FiringArrays, entity: int, score: int, rule: int, number: int) -> None:
    """Put a firing beside the others of its candidate, if that was chosen."""
    if candidates.tied[entity] == number:
        position = candidates.firsts[entity]
        gathered.scores[position] = score
        gathered.rules[position] = rule
        candidates.firsts[entity] = position + 1


@part
def gather(
    bodies: BodyRules,
    scores: NDArray[np.int64],
    shelf: ShelfArrays,
    n_unary: int,
    number: int,
    question: QueryState,
    space: Workspace,
    gathered: FiringArrays,
) -> None:
    """Gather the firings of the chosen candidates."""
    candidates, firings = space.candidates, space.firings
    for i in range(n_unary):
        entity, rule = int(np.int64(firings.candidates[i])), int(np.int64(firings.rules[i]))
        put(candidates, gathered, entity, int(firings.scores[i]), rule, number)
    if shelf.stamps[question.d] != shelf.stamps[-1]:
        return
    rule = int(shelf.firsts[question.d])
    while rule >= 0:
        score, row = int(scores[bodies.codes[rule]]), int(np.int64(bodies.rows[rule]))
        for i in range(shelf.starts[bodies.bodies[rule]], shelf.stops[bodies.bodies[rule]]):
            put(candidates, gathered, int(np.int64(shelf.ends.candidates[i])), score, row, number)
        rule = int(shelf.following[rule])


@inlined
def sort_scores(candidates: CandidateArrays, gathered: FiringArrays, entity: int) -> None:
    """Put the scores of a chosen candidate into `gathered.lists`, the highest first."""
    start, size = int(candidates.list_starts[entity]), int(candidates.list_sizes[entity])
    for i in range(start, start + size):
        gathered.lists[i] = gathered.scores[i]
    sort_down(gathered.lists, start, size)


@inlined
def pick_scores(gathered: FiringArrays, start: int, size: int, n_best: int) -> None:
    """Put the `n_best` highest of some scores, which are few, into `gathered.lists`: each finds its place from the
    end.
    """
    best = gathered.lists
    for i in range(start, start + size):
        score, n = gathered.scores[i], min(i - start, n_best)
        if n == n_best and score <= best[start + n - 1]:
            continue
        position = min(n, n_best - 1)
        while position > 0 and best[start + position - 1] < score:
            best[start + position] = best[start + position - 1]
            position -= 1
        best[start + position] = score


@part
def set_key(
    candidates: CandidateArrays, weights: NDArray[np.int64], gathered: FiringArrays, entity: int, n_counted: int
) -> None:
    """Give a chosen candidate the sum of its `n_counted` highest scores as key; of one, the key stands."""
    start, size = int(candidates.list_starts[entity]), int(candidates.list_sizes[entity])
    if n_counted == 1:
        return
    if size <= n_counted:
        candidates.keys[entity] = weights[entity, 2]
        return
    if n_counted > FEW:
        sort_scores(candidates, gathered, entity)
    else:
        pick_scores(gathered, start, size, n_counted)
    candidates.keys[entity] = add_up(gathered.lists, start, n_counted)


@inlined
def exclude_known(graph: GraphArrays, s: int, d: int, query: int, candidates: CandidateArrays) -> None:
    """Mark the answers to (s, d, ?) that the graph states."""
    segment = find_segment(graph, s, d)
    if segment >= 0:
        for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
            target = int(graph.targets[row])
            candidates.excluded[s if target == graph.n_entities else target] = query


@inlined
def note_fact(
    question: QueryState, candidates: CandidateArrays, weights: NDArray[np.int64], entity: int, n: int, out: FactArrays
) -> int:
    """Write one fact; return how many there are then."""
    out.entities[n] = question.s
    out.relations[n] = question.d
    out.candidates[n] = entity
    out.keys[n] = candidates.keys[entity]
    out.rules[n] = weights[entity, 4]
    out.n_rules[n] = candidates.list_sizes[entity]
    return n + 1


@part
def note_above(
    question: QueryState,
    least: int,
    n_chosen: int,
    candidates: CandidateArrays,
    weights: NDArray[np.int64],
    n: int,
    out: FactArrays,
) -> int:
    """Write the chosen candidates with a key of at least `least`; return how many facts there are then."""
    for c in range(n_chosen):
        entity = int(np.int64(candidates.listed[c]))
        if candidates.keys[entity] >= least:
            n = note_fact(question, candidates, weights, entity, n, out)
    return n


@part
def note_list(
    question: QueryState,
    least: int,
    n_chosen: int,
    protocol: AnswerSettings,
    groups: NDArray[np.uint8],
    best: NDArray[np.int32],
    candidates: CandidateArrays,
    weights: NDArray[np.int64],
    gathered: FiringArrays,
    stopped: NDArray[np.int64],
    out: FactArrays,
    lists: ListArrays,
) -> None:
    """Write the best candidates with their evidence, then those after them with a key of at least `least`."""
    n, number = int(stopped[AT.facts]), candidates.clock[0]
    if protocol.breaks_ties:
        for c in range(n_chosen):
            sort_scores(candidates, gathered, int(np.int64(candidates.listed[c])))
    n_best = keep_best(candidates, gathered, n_chosen, protocol.breaks_ties, protocol.top_k, best)
    for i in range(n_best):
        entity = int(np.int64(best[i]))
        candidates.targets[entity] = number
        out.evidence[n, :] = 0.0
        start = int(candidates.list_starts[entity])
        for position in range(start, start + candidates.list_sizes[entity]):
            add_evidence(out.evidence[n], int(gathered.scores[position]), int(groups[gathered.rules[position]]))
        n = note_fact(question, candidates, weights, entity, n, out)
    n_listed = n
    if n_chosen > n_best:
        for c in range(n_chosen):
            entity = int(np.int64(candidates.listed[c]))
            if candidates.keys[entity] >= least and candidates.targets[entity] != number:
                n = note_fact(question, candidates, weights, entity, n, out)
    position = stopped[AT.questions]
    lists.entities[position] = question.s
    lists.relations[position] = question.d
    lists.sizes[position] = n_best
    lists.n_later[position] = n - n_listed
    stopped[AT.questions] += 1
    stopped[AT.facts] = n


@kernel
def find_facts(
    graph: GraphArrays,
    index: RuleIndex,
    bodies: BodyRules,
    subjects: NDArray[np.int32],
    heads: NDArray[np.int32],
    least: NDArray[np.int64],
    floors: NDArray[np.int64],
    one_object: NDArray[np.bool_],
    queries: QueryArrays,
    protocol: AnswerSettings,
    groups: NDArray[np.uint8],
    best: NDArray[np.int32],
    space: FindSpace,
    out: FactArrays,
    lists: ListArrays,
) -> None:
    """Find the answers to (s, d, ?) that the graph does not state, for all subjects s and directed relations d.

    Without groups of rules, those with a key of at least `least[d]` are facts; with groups, the best are listed, none
    that cannot reach `floors[d]`. A question of a relation with `one_object` that has an answer already is not asked.
    Begins at `space.stopped`, and stops there where room runs out.
    """
    stopped, answering, shelf, gathered = space.stopped, space.answering, space.shelf, space.gathered
    candidates, firings, walk, weights = answering.candidates, answering.firings, answering.walk, space.weights
    listing = Workspace(walk, candidates, shelf.ends)
    has_lists = len(groups) > 0
    stopped[AT.facts] = 0
    stopped[AT.questions] = 0
    stopped[AT.firings] = 0
    stopped[AT.ends] = 0
    stopped[AT.gathered] = 0
    for position in range(stopped[AT.subject], len(subjects)):
        s = int(np.int64(subjects[position]))
        entity = next_query(candidates)
        if protocol.block_connected:
            exclude_connected(graph, s, entity, candidates)
        walked = start_query(0, s, 0, entity, -1, protocol)
        n_ends, _, _ = fire_trie(graph, index, queries, walked, 0, -1, listing, 0)
        if n_ends > len(shelf.ends.candidates):
            stopped[AT.ends] = n_ends
            return
        fill_shelf(bodies, shelf, n_ends)
        for turn in range(stopped[AT.head], len(heads)):
            d = int(np.int64(heads[turn]))
            if one_object[d] and find_segment(graph, s, d) >= 0:
                continue
            query = entity
            if not protocol.block_connected:
                query = next_query(candidates)
                exclude_known(graph, s, d, query, candidates)
            question = start_query(0, s, d, query, -1, protocol)
            n_unary = fire_unary(graph, index, question, answering)
            if n_unary > len(firings.candidates):
                stopped[AT.firings] = n_unary
                return
            number = next_query(candidates)
            n_candidates = weigh_all(bodies, index.scores, shelf, n_unary, number, question, answering, weights)
            needed = int(least[d])
            if has_lists:
                candidates.list_end[0] = 0
                for c in range(n_candidates):
                    candidates.keys[candidates.listed[c]] = weights[candidates.listed[c], 1]
                needed = min(needed, find_least_key(candidates, gathered, n_candidates, protocol.top_k))
                needed = max(needed, int(floors[d]))
            n_chosen, n_gathered = choose(candidates, weights, n_candidates, protocol.n_counted, needed, number)
            if n_chosen == 0:
                continue
            if stopped[AT.facts] + n_chosen > len(out.keys) or stopped[AT.questions] == len(lists.sizes):
                return
            if protocol.n_counted > 1 or has_lists:
                if n_gathered > len(gathered.scores):
                    stopped[AT.gathered] = n_gathered
                    return
                gather(bodies, index.scores, shelf, n_unary, number, question, answering, gathered)
                candidates.list_end[0] = n_gathered
                for c in range(n_chosen):
                    set_key(candidates, weights, gathered, int(np.int64(candidates.listed[c])), protocol.n_counted)
            if has_lists:
                lists.n_candidates[stopped[AT.questions]] = n_candidates
                note_list(
                    question,
                    least[d],
                    n_chosen,
                    protocol,
                    groups,
                    best,
                    candidates,
                    weights,
                    gathered,
                    stopped,
                    out,
                    lists,
                )
            else:
                stopped[AT.facts] = note_above(
                    question, least[d], n_chosen, candidates, weights, stopped[AT.facts], out
                )
            stopped[AT.head] = turn + 1
        stopped[AT.head] = 0
        stopped[AT.subject] = position + 1
