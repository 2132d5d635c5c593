"""Finds the best rules of known answers, found without looking at any other candidate; and a choice among them.

A fact of train is a known answer as well, but its rules were counted with it. It is *left out*: the rules that predict
it have one correct prediction less, for all candidates of this question.

Rules are chosen one after the other, each time the one that adds most to what is chosen already. What a set of rules is
worth to an answer is the highest of their values plus smaller shares of the next ones: they break ties, and some
aggregations add them up. This is monotone and submodular, so that gains only fall: a gain that was computed earlier
bounds the one now, and few have to be computed again (lazy greedy). One pass gives the sets of all sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.graph.kernel import GraphArrays, entity_rows, inverse, lower_bound
from anyburl.ranking.arrays import (
    ANY_SCORE,
    AnswerSettings,
    QueryArrays,
    QueryState,
    RuleIndex,
    Workspace,
)
from anyburl.ranking.kernel import exclude, mark_targets
from anyburl.ranking.kernel_fire import fire_unary, holds_for
from anyburl.ranking.kernel_order import link_firings, next_query, start_query
from anyburl.ranking.kernel_short import find_value, fire, is_member, link_undecided, only_end
from anyburl.ranking.kernel_trie import fire_trie


class LeftOutScores(NamedTuple):
    """The scores of rules with one correct prediction less, by rule; -1: too little support is left."""

    scores: NDArray[np.int64]  # code -> score
    codes: NDArray[np.int32]  # rule -> code


class AnswerRules(NamedTuple):
    """The best rules of each target, the best first: (targets, width)."""

    rules: NDArray[np.int32]  # -1 where there are no more
    scores: NDArray[np.int64]


class KnownArrays(NamedTuple):
    """Questions with known answers, and the rules that are fired for them."""

    graph: GraphArrays
    rule_index: RuleIndex
    queries: QueryArrays
    protocol: AnswerSettings
    is_left_out: bool  # the answers are facts of the graph, to be left out
    left_out: LeftOutScores


class KnownSpace(NamedTuple):
    """Scratch of one worker: `stamps` says which rules predict the target under way."""

    workspace: Workspace
    stamps: NDArray[np.int64]  # rule -> the number of the target that it was last left out for
    clock: NDArray[np.int64]


@part
def keep_best_rule(out: AnswerRules, target: int, rule: int, score: int, keys: NDArray[np.int64]) -> None:
    """Enter a rule among the best of a target, if it is one of them; of equals, the one with the lowest key."""
    width = out.rules.shape[1]
    position = width
    while position > 0 and (
        out.rules[target, position - 1] < 0
        or out.scores[target, position - 1] < score
        or (out.scores[target, position - 1] == score and keys[out.rules[target, position - 1]] > keys[rule])
    ):
        position -= 1
    if position == width:
        return
    for i in range(width - 1, position, -1):
        out.rules[target, i] = out.rules[target, i - 1]
        out.scores[target, i] = out.scores[target, i - 1]
    out.rules[target, position] = rule
    out.scores[target, position] = score


@inlined
def first_firing(space: KnownSpace, entity: int, query: int) -> int:
    """Return the first firing for a candidate, -1 if there is none."""
    candidates = space.workspace.candidates
    return int(candidates.firsts[entity]) if candidates.stamps[entity] == query else -1


@inlined
def stamp_rules(space: KnownSpace, target: int, query: int) -> None:
    """Stamp the rules that predict a target with a new number."""
    firings = space.workspace.firings
    space.clock[0] += 1
    i = first_firing(space, target, query)
    while i >= 0:
        space.stamps[firings.rules[i]] = space.clock[0]
        i = int(firings.following[i])


@inlined
def score_without(known: KnownArrays, space: KnownSpace, i: int) -> int:
    """Return the score of a firing; of a rule that predicts the target, as if that were not known."""
    firings = space.workspace.firings
    rule = firings.rules[i]
    if known.is_left_out and space.stamps[rule] == space.clock[0]:
        return int(known.left_out.scores[known.left_out.codes[rule]])
    return int(firings.scores[i])


@inlined
def fire_short_rule(
    index: RuleIndex, body: int, head: int, constant: int, target: int, question: QueryState, space: Workspace, n: int
) -> int:
    """Fire the rule of length 1 with this head relation, head constant and body, if there is one, for `target`."""
    rules = index.short
    position = find_value(rules.body_offsets, rules.bodies, head, body)
    if position < 0:
        return n
    last = int(rules.rule_offsets[position + 1])
    i = lower_bound(rules.constants, int(rules.rule_offsets[position]), last, constant)
    if i < last and rules.constants[i] == constant:
        score, row = int(index.scores[rules.codes[i]]), int(rules.rows[i])
        n = fire(space.candidates, space.firings, n, question, target, score, row)
    return n


@part
def fire_head(
    graph: GraphArrays,
    index: RuleIndex,
    head: int,
    x: int,
    constant: int,
    target: int,
    question: QueryState,
    space: Workspace,
    n: int,
) -> int:
    """Fire the unary rules head(X, constant) whose body x satisfies, for `target`.

    Either the edges of x are looked up among the bodies of the head, or its rules are checked for x, if they are fewer.
    """
    rules, n_directed, object_identity = index.short, 2 * graph.n_relations, question.object_identity
    position = find_value(rules.head_offsets, rules.head_constants, head, constant)
    if position >= 0 and (x != constant or not object_identity):
        first, last = int(rules.head_rule_offsets[position]), int(rules.head_rule_offsets[position + 1])
        start, end = entity_rows(graph, x)
        if last - first <= end - start:
            for i in range(first, last):
                body = int(np.int64(rules.head_bodies[i]))
                if is_member(graph, body, x, constant, object_identity):
                    score, rule = int(index.scores[rules.head_codes[i]]), int(rules.head_rows[i])
                    n = fire(space.candidates, space.firings, n, question, target, score, rule)
        else:
            for row in range(start, end):
                body = n_directed + int(graph.partners[row])
                n = fire_short_rule(index, body, head, constant, target, question, space, n)
            for segment in range(graph.segment_offsets[x], graph.segment_offsets[x + 1]):
                body = int(graph.segment_relations[segment])
                only = only_end(graph, x, body, object_identity)
                if only != -2 and (only != constant or not object_identity):
                    n = fire_short_rule(index, body, head, constant, target, question, space, n)
    position = find_value(index.long.head_offsets, index.long.head_constants, head, constant)
    if position >= 0:
        state = QueryState(
            question.q, x, question.d, question.query, object_identity, question.longest, -1, ANY_SCORE, -1, ANY_SCORE
        )
        for i in range(index.long.head_rule_offsets[position], index.long.head_rule_offsets[position + 1]):
            if index.long.lengths[i] == 0 and head != question.d and constant != graph.n_entities:
                continue  # a rule without a body ranks no subjects
            if holds_for(graph, index, i, constant, state, space.walk):
                score, rule = int(index.scores[index.long.head_codes[i]]), int(index.long.head_rows[i])
                n = fire(space.candidates, space.firings, n, question, target, score, rule)
    return n


@part
def fire_unary_for_targets(
    graph: GraphArrays, index: RuleIndex, queries: QueryArrays, question: QueryState, space: Workspace
) -> int:
    """Fire every unary rule that predicts a target of (s, d, ?): d(s, target), or the same fact read backward."""
    n, s, back = 0, question.s, inverse(graph, question.d)
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = int(np.int64(queries.targets[i]))
        n = fire_head(graph, index, question.d, s, target, target, question, space, n)
        n = fire_head(graph, index, back, target, s, target, question, space, n)
        if target == s:  # the token `self` stands for both
            n = fire_head(graph, index, question.d, s, graph.n_entities, target, question, space, n)
            if question.d >= graph.n_relations:
                n = fire_head(graph, index, back, s, graph.n_entities, target, question, space, n)
    return n


@part
def fire_known(known: KnownArrays, q: int, only_targets: bool, workspace: Workspace) -> tuple[int, int, int]:
    """Fire all rules for a query, whose targets may be facts of the graph, and list the candidates.

    With `only_targets`, most firings for others are left out, which is less work. Return the number of firings (nothing
    is listed if there is no room for them), of candidates, and the number that the query has.
    """
    graph, index, queries, protocol = known.graph, known.rule_index, known.queries, known.protocol
    candidates, firings = workspace.candidates, workspace.firings
    room = len(firings.candidates)
    s, d = int(np.int64(queries.entities[q])), int(np.int64(queries.relations[q]))
    query, least = next_query(candidates), protocol.least_binary
    question = start_query(q, s, d, query, least, protocol)
    exclude(graph, queries, question, protocol, candidates)
    mark_targets(queries, question, candidates)
    n_targets = 0
    for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
        target = queries.targets[i]
        candidates.excluded[target] = 0  # a fact connects its own two entities
        candidates.tied[target] = question.query
        candidates.undecided[n_targets] = target
        n_targets += 1
    if only_targets:
        n = fire_unary_for_targets(graph, index, queries, question, workspace)
    else:
        n = fire_unary(graph, index, question, workspace)
    if n <= room:
        if only_targets:
            link_undecided(graph, n_targets, workspace)
        n, _, _ = fire_trie(graph, index, queries, question, 0, n_targets if only_targets else -1, workspace, n)
    n_candidates = link_firings(candidates, firings, n, question.query, -1) if n <= room else 0
    return n, n_candidates, question.query


@kernel
def find_best_rules(
    known: KnownArrays, first: int, last: int, keys: NDArray[np.int64], space: KnownSpace, out: AnswerRules
) -> tuple[int, int]:
    """Find the best rules of all targets of the queries from `first` to before `last`.

    Ties are settled by `keys` of the rules, which do not depend on the order in which rules were found.
    Return the next query, and the room for firings that it would need: stops where there is too little.
    """
    queries, firings = known.queries, space.workspace.firings
    for q in range(first, last):
        n, _, query = fire_known(known, q, True, space.workspace)
        if n > len(firings.candidates):
            return q, n
        for row in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(np.int64(queries.targets[row]))
            stamp_rules(space, target, query)
            i = first_firing(space, target, query)
            while i >= 0:
                score = score_without(known, space, i)
                if score >= 0:
                    keep_best_rule(out, row, int(firings.rules[i]), score, keys)
                i = int(firings.following[i])
    return last, 0


class ValueArrays(NamedTuple):
    """For each rule the answers that it predicts, and what it is worth to each."""

    offsets: NDArray[np.int64]  # rule -> its entries
    answers: NDArray[np.int32]
    values: NDArray[np.float32]
    weights: NDArray[np.float32]  # of the answers
    shares: NDArray[np.float32]  # of the best value of an answer, of the next, ...; falling
    groups: NDArray[np.int32]  # rule -> group, of which only so many are chosen


class ChoiceArrays(NamedTuple):
    """What is chosen so far, and the queue of the others: a heap by gain, the highest first."""

    best: NDArray[np.float32]  # (answers, shares): the values of the chosen rules, the highest first
    gains: NDArray[np.float64]  # rule -> its gain when it was last computed
    computed: NDArray[np.int64]  # rule -> how many were chosen then
    heap: NDArray[np.int32]
    n_left: NDArray[np.int64]  # [0]: rules in the heap
    room: NDArray[np.int64]  # group -> how many more may be chosen
    chosen: NDArray[np.int32]
    gained: NDArray[np.float64]  # by each of the chosen
    n_chosen: NDArray[np.int64]  # [0]


@inlined
def gain_of(table: ValueArrays, best: NDArray[np.float32], rule: int) -> float:
    """Return what a rule would add to the chosen ones."""
    total = 0.0
    n_shares = len(table.shares)
    for entry in range(table.offsets[rule], table.offsets[rule + 1]):
        answer, value = table.answers[entry], table.values[entry]
        gain = 0.0
        moved = value
        for position in range(n_shares):
            if moved > best[answer, position]:
                gain += table.shares[position] * (moved - best[answer, position])
                moved = best[answer, position]  # it moves one place down
        total += table.weights[answer] * gain
    return total


@inlined
def take_rule(table: ValueArrays, best: NDArray[np.float32], rule: int) -> None:
    """Enter the values of a rule that is chosen."""
    for entry in range(table.offsets[rule], table.offsets[rule + 1]):
        answer, moved = table.answers[entry], table.values[entry]
        for position in range(len(table.shares)):
            if moved > best[answer, position]:
                moved, best[answer, position] = best[answer, position], moved


@part
def sift_rule(choice: ChoiceArrays, start: int) -> None:
    """Restore the heap below `start`; of equal gains, the first rule stands above."""
    heap, gains, n_left = choice.heap, choice.gains, choice.n_left[0]
    root = start
    while 2 * root + 1 < n_left:
        child = 2 * root + 1
        if child + 1 < n_left and comes_before(gains, heap[child + 1], heap[child]):
            child += 1
        if not comes_before(gains, heap[child], heap[root]):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


@inlined
def comes_before(gains: NDArray[np.float64], rule: int, other: int) -> bool:
    """Whether a rule has more gain than another or, with the same, is the first of the set."""
    return gains[rule] > gains[other] or (gains[rule] == gains[other] and rule < other)


@kernel
def start_choice(table: ValueArrays, choice: ChoiceArrays) -> None:
    """Compute the gains of all rules and make the heap."""
    n_rules = len(table.offsets) - 1
    for rule in range(n_rules):
        choice.gains[rule] = gain_of(table, choice.best, rule)
        choice.computed[rule] = choice.n_chosen[0]
        choice.heap[rule] = rule
    choice.n_left[0] = n_rules
    for start in range(n_rules // 2 - 1, -1, -1):
        sift_rule(choice, start)


@kernel
def choose_more(table: ValueArrays, choice: ChoiceArrays, most: int, least_gain: float, n_turns: int) -> bool:
    """Choose until there are `most` rules, nothing gains more than `least_gain`, or `n_turns` gains were computed.

    Return whether there is more to choose.
    """
    for _ in range(n_turns):
        n_chosen = choice.n_chosen[0]
        if n_chosen >= most or choice.n_left[0] == 0:
            return False
        rule = int(choice.heap[0])
        is_full = choice.room[table.groups[rule]] <= 0
        if not is_full and choice.computed[rule] != n_chosen:
            choice.gains[rule] = gain_of(table, choice.best, rule)
            choice.computed[rule] = n_chosen
            sift_rule(choice, 0)
            continue
        if not is_full:
            if choice.gains[rule] <= least_gain:
                return False
            choice.chosen[n_chosen] = rule
            choice.gained[n_chosen] = choice.gains[rule]
            choice.n_chosen[0] = n_chosen + 1
            choice.room[table.groups[rule]] -= 1
            take_rule(table, choice.best, rule)
        choice.n_left[0] -= 1
        choice.heap[0] = choice.heap[choice.n_left[0]]
        sift_rule(choice, 0)
    return True
