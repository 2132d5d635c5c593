"""Which unary rules fire for a query, and what they predict.

A query is (s, d, ?) with a directed relation d. A unary rule d(X, c) answers it with c if s satisfies its body; if d
read backward is its head and c is s, it answers with every X that does. All under object identity, where that is on:
the candidate is a term as well, so it occurs nowhere on the way.

Rules of length 1 have an index of their own. For all others, `holds_for` tells how a body is satisfied that ends in a
constant or in a variable, or is missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, merged, part
from anyburl.bodies.arrays import DANGLING, NO_LIMIT, VALUE, ZERO, LevelArrays
from anyburl.bodies.kernel_reach import contains, reach
from anyburl.graph.arrays import GraphArrays, Ints
from anyburl.graph.kernel import entity_rows, inverse, lower_bound, steps
from anyburl.ranking.arrays import (
    AttributeArrays,
    CandidateArrays,
    FiringArrays,
    LongIndex,
    QueryState,
    RuleIndex,
    TrieWalk,
    Workspace,
)


@inlined
def fire(
    candidates: CandidateArrays, firings: FiringArrays, n: int, query: int, candidate: int, score: int, rule: int
) -> int:
    """Note that `rule` predicts `candidate`; return the number of firings, which may be past the room there is."""
    if candidates.excluded[candidate] == query:
        return n
    if n < len(firings.candidates):
        firings.candidates[n] = candidate
        firings.scores[n] = score
        firings.rules[n] = rule
    return n + 1


@inlined
def as_entity(graph: GraphArrays, s: int, constant: int) -> int:
    """A rule d(X, self) predicts d(s, s) (paper, section 4.4)."""
    return s if constant == graph.n_entities else constant


@inlined
def find_value(offsets: NDArray[np.int64], values: Ints, relation: int, value: int) -> int:
    """Return where `value` stands among the sorted values of a relation, -1 if it does not."""
    end = int(offsets[relation + 1])
    position = lower_bound(values, int(offsets[relation]), end, value)
    return position if position < end and values[position] == value else -1


@inlined
def n_head_relations(graph: GraphArrays, head_offsets: NDArray[np.int64], head_constants: Ints, d: int) -> int:
    """Return how many head relations have rules for (s, d, ?) with X = s: d, and d read backward where there are rules
    h(X, self) with that as h, which also answer (?, h, s), with s.
    """
    if d < graph.n_relations:
        return 1
    end = int(head_offsets[d - graph.n_relations + 1])
    has_self = end > head_offsets[d - graph.n_relations] and head_constants[end - 1] == graph.n_entities
    return 2 if has_self else 1


@inlined
def head_relation_at(graph: GraphArrays, d: int, turn: int) -> int:
    """Return the first or second of these head relations."""
    return d if turn == 0 else inverse(graph, d)


@inlined
def fire_body(
    graph: GraphArrays,
    index: RuleIndex,
    body: int,
    head: int,
    only: int,
    question: QueryState,
    space: Workspace,
    n: int,
) -> int:
    """Fire the rules with the head relation `head` and a body that s satisfies. Where `head` is not d, only those with
    the constant `self`.

    Under object identity the head's constant is neither s nor `only`, the entity without which s would not satisfy
    the body (negative if there is none).
    """
    rules = index.short
    position = find_value(rules.body_offsets, rules.bodies, head, body)
    if position < 0:
        return n
    first, last = int(rules.rule_offsets[position]), int(rules.rule_offsets[position + 1])
    if head != question.d:  # `self` is the largest constant
        first = lower_bound(rules.constants, first, last, graph.n_entities)
    for i in range(first, last):
        constant = int(rules.constants[i])
        if not question.object_identity or (constant != question.s and constant != only):
            answer, score = as_entity(graph, question.s, constant), int(index.scores[rules.codes[i]])
            n = fire(space.candidates, space.firings, n, question.query, answer, score, int(rules.rows[i]))
    return n


@inlined
def only_end(graph: GraphArrays, x: int, relation: int, object_identity: bool) -> int:
    """Return the only entity that `relation` leads to from x, -1 if there are several, -2 if there is none."""
    start, end = steps(graph, x, relation)
    if end == start:
        return -2
    return int(graph.targets[start]) if end - start == 1 and object_identity else -1


@merged
def fire_short(graph: GraphArrays, index: RuleIndex, question: QueryState, space: Workspace, n: int) -> int:
    """Fire the rules of length 1 for X = s: U_c rules whose body is an edge of s, U_d rules whose body is a relation of
    s. Under object identity s is not the head's constant.
    """
    rules, n_directed = index.short, 2 * graph.n_relations
    n_turns = n_head_relations(graph, rules.head_offsets, rules.head_constants, question.d)
    for turn in range(n_turns):
        head = head_relation_at(graph, question.d, turn)
        end = rules.body_offsets[head + 1]
        if end > rules.body_offsets[head] and rules.bodies[end - 1] >= n_directed:
            start, stop = entity_rows(graph, question.s)
            for row in range(start, stop):
                n = fire_body(graph, index, n_directed + int(graph.partners[row]), head, -1, question, space, n)
    for turn in range(n_turns):
        head = head_relation_at(graph, question.d, turn)
        start = rules.body_offsets[head]
        if rules.body_offsets[head + 1] > start and rules.bodies[start] < n_directed:
            for segment in range(graph.segment_offsets[question.s], graph.segment_offsets[question.s + 1]):
                body = int(graph.segment_relations[segment])
                only = only_end(graph, question.s, body, question.object_identity)
                if only != -2:
                    n = fire_body(graph, index, body, head, only, question, space, n)
    return n


@merged
def fire_short_of_constant(graph: GraphArrays, index: RuleIndex, question: QueryState, space: Workspace, n: int) -> int:
    """Fire the rules of length 1 whose head is d read backward, with the constant s: for all that satisfies the body.

    Under object identity that is not s, and does not have the relation of a U_d body to s alone.
    """
    rules, edges, s, n_directed = index.short, index.edges, question.s, 2 * graph.n_relations
    position = find_value(rules.head_offsets, rules.head_constants, inverse(graph, question.d), s)
    if position < 0:
        return n
    for rule in range(rules.head_rule_offsets[position], rules.head_rule_offsets[position + 1]):
        body = int(np.int64(rules.head_bodies[rule]))
        score, row = int(index.scores[rules.head_codes[rule]]), int(rules.head_rows[rule])
        if body >= n_directed:
            segment = body - n_directed
            for i in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
                x = int(graph.targets[i])
                # c' itself may lead to `self`
                if x < graph.n_entities and (x != s or not question.object_identity):
                    n = fire(space.candidates, space.firings, n, question.query, x, score, row)
            continue
        for i in range(graph.domain_offsets[body], graph.domain_offsets[body + 1]):
            x = int(graph.domains[i])
            start = edges.starts[i]
            only_s = edges.starts[i + 1] == start + 1 and edges.ends[start] == s
            if not question.object_identity or (x != s and not only_s):
                n = fire(space.candidates, space.firings, n, question.query, x, score, row)
    return n


@inlined
def way_avoids(levels: LevelArrays, side: int, slot: int, size: int, entity: int) -> bool:
    """Whether some way to node `slot` avoids `entity`."""
    for way in range(levels.n_witnesses[side, slot]):
        if not contains(levels, side, slot, way, size, entity):
            return True
    return False


@inlined
def reverse_body(graph: GraphArrays, body: NDArray[np.int32], length: int, reversed_body: NDArray[np.int32]) -> None:
    """Write the body as walked from its end."""
    for i in range(length):
        reversed_body[i] = inverse(graph, int(body[length - 1 - i]))


@part
def dangling_holds(
    graph: GraphArrays, index: LongIndex, rule: int, x: int, avoided: int, object_identity: bool, walk: TrieWalk
) -> bool:
    """Whether x satisfies a U_d body by a way that avoids the entity `avoided`."""
    length = int(index.lengths[rule])
    side, n_ends, _ = reach(graph, index.bodies[rule], length, x, 1, object_identity, walk.levels, walk.clock, NO_LIMIT)
    if not object_identity:
        return n_ends > 0
    for slot in range(n_ends):
        if walk.levels.nodes[side, slot] != avoided and way_avoids(walk.levels, side, slot, length - 1, avoided):
            return True
    return False


@part
def ends_of_constant(
    graph: GraphArrays, index: LongIndex, rule: int, object_identity: bool, walk: TrieWalk
) -> tuple[int, int]:
    """Walk a U_c body from its constant; return the side of the levels with the entities that satisfy it,
    and how many.
    """
    length = int(index.lengths[rule])
    reverse_body(graph, index.bodies[rule], length, walk.body)
    constant = int(index.body_constants[rule])
    side, n_ends, _ = reach(graph, walk.body, length, constant, 1, object_identity, walk.levels, walk.clock, NO_LIMIT)
    return side, n_ends


@inlined
def holds_at(
    levels: LevelArrays, side: int, slot: int, index: LongIndex, rule: int, constant: int, object_identity: bool
) -> bool:
    """Whether the U_c body at this end holds by a way that avoids the head's constant."""
    same = index.body_constants[rule] == constant
    return same or not object_identity or way_avoids(levels, side, slot, int(index.lengths[rule]) - 1, constant)


@inlined
def has_value(values: AttributeArrays, attribute: int, entity: int, low: float, high: float) -> bool:
    """Whether an entity has a value v of an attribute with low <= v < high."""
    end = int(values.offsets[attribute + 1])
    row = lower_bound(values.entities, int(values.offsets[attribute]), end, entity)
    while row < end and values.entities[row] == entity:
        if low <= values.values[row] < high:
            return True
        row += 1
    return False


@part
def value_holds(graph: GraphArrays, index: RuleIndex, rule: int, x: int, avoided: int, object_identity: bool) -> bool:
    """Whether x, or an entity one step away that is neither x nor `avoided`, satisfies the condition of a rule."""
    rules = index.long
    low, high = rules.lows[rule], rules.highs[rule]
    if rules.lengths[rule] == 1:
        return has_value(index.values, int(rules.bodies[rule, 0]), x, low, high)
    start, end = steps(graph, x, int(rules.bodies[rule, 0]))
    attribute = int(rules.bodies[rule, 1])
    for row in range(start, end):
        entity = int(graph.targets[row])
        if entity == graph.n_entities or (object_identity and entity in (x, avoided)):
            continue
        if has_value(index.values, attribute, entity, low, high):
            return True
    return False


@merged
def holds_for(
    graph: GraphArrays, rule_index: RuleIndex, rule: int, constant: int, question: QueryState, walk: TrieWalk
) -> bool:
    """Whether a rule with this head constant fires for X = s."""
    index = rule_index.long
    s, object_identity, kind = question.s, question.object_identity, index.types[rule]
    if kind == ZERO:
        return constant != s or not object_identity
    if constant == s and object_identity:
        return False
    if kind == VALUE:
        return value_holds(graph, rule_index, rule, s, constant, object_identity)
    if kind == DANGLING:
        return dangling_holds(graph, index, rule, s, constant, object_identity, walk)
    side, _ = ends_of_constant(graph, index, rule, object_identity, walk)
    if walk.levels.stamps[side, s] != walk.clock[0]:
        return False
    return holds_at(walk.levels, side, int(walk.levels.slots[side, s]), index, rule, constant, object_identity)


@merged
def fire_long(graph: GraphArrays, index: RuleIndex, question: QueryState, space: Workspace, n: int) -> int:
    """Fire the rules for X = s. Where their head relation is not d, only those with the constant `self`."""
    rules = index.long
    for turn in range(n_head_relations(graph, rules.head_offsets, rules.head_constants, question.d)):
        head = head_relation_at(graph, question.d, turn)
        for position in range(rules.head_offsets[head], rules.head_offsets[head + 1]):
            constant = int(rules.head_constants[position])
            if head != question.d and constant != graph.n_entities:
                continue
            answer = as_entity(graph, question.s, constant)
            for rule in range(rules.head_rule_offsets[position], rules.head_rule_offsets[position + 1]):
                if holds_for(graph, index, rule, constant, question, space.walk):
                    score, row = int(index.scores[rules.head_codes[rule]]), int(rules.head_rows[rule])
                    n = fire(space.candidates, space.firings, n, question.query, answer, score, row)
    return n


@part
def fire_value_of_constant(
    graph: GraphArrays, index: RuleIndex, rule: int, question: QueryState, space: Workspace, n: int
) -> int:
    """Fire a rule with a condition and the constant s: for all that satisfies it."""
    rules, values, s, object_identity = index.long, index.values, question.s, question.object_identity
    score, row = int(index.scores[rules.head_codes[rule]]), int(rules.head_rows[rule])
    step, last = int(rules.bodies[rule, 0]), -1
    if rules.lengths[rule] == 1:
        low, high = rules.lows[rule], rules.highs[rule]
        for i in range(values.offsets[step], values.offsets[step + 1]):
            x = int(values.entities[i])  # several values of an entity stand side by side
            if low <= values.values[i] < high and x != last and (x != s or not object_identity):
                n = fire(space.candidates, space.firings, n, question.query, x, score, row)
                last = x
        return n
    for i in range(graph.domain_offsets[step], graph.domain_offsets[step + 1]):
        x = int(graph.domains[i])
        if (x != s or not object_identity) and value_holds(graph, index, rule, x, s, object_identity):
            n = fire(space.candidates, space.firings, n, question.query, x, score, row)
    return n


@merged
def fire_long_of_constant(graph: GraphArrays, index: RuleIndex, question: QueryState, space: Workspace, n: int) -> int:
    """Fire the rules whose head is d read backward, with the constant s: for all that satisfies the body. A rule
    without a body ranks nothing.
    """
    rules, s, object_identity, walk = index.long, question.s, question.object_identity, space.walk
    position = find_value(rules.head_offsets, rules.head_constants, inverse(graph, question.d), s)
    if position < 0:
        return n
    for rule in range(rules.head_rule_offsets[position], rules.head_rule_offsets[position + 1]):
        score, row = int(index.scores[rules.head_codes[rule]]), int(rules.head_rows[rule])
        if rules.types[rule] == ZERO:
            continue
        if rules.types[rule] == VALUE:
            n = fire_value_of_constant(graph, index, rule, question, space, n)
            continue
        if rules.types[rule] == DANGLING:
            relation = rules.bodies[rule, 0]
            for i in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
                x = int(graph.domains[i])
                if x == s and object_identity:
                    continue
                if dangling_holds(graph, rules, rule, x, s, object_identity, walk):
                    n = fire(space.candidates, space.firings, n, question.query, x, score, row)
            continue
        side, n_ends = ends_of_constant(graph, rules, rule, object_identity, walk)
        for slot in range(n_ends):
            x = int(walk.levels.nodes[side, slot])
            if x == s and object_identity:
                continue
            if holds_at(walk.levels, side, slot, rules, rule, s, object_identity):
                n = fire(space.candidates, space.firings, n, question.query, x, score, row)
    return n


@part
def fire_unary(graph: GraphArrays, index: RuleIndex, question: QueryState, space: Workspace) -> int:
    """Fire every unary rule that answers (s, d, ?); return the number of firings, past the room there is if that is
    too small.
    """
    n = fire_short(graph, index, question, space, 0)
    n = fire_long(graph, index, question, space, n)
    n = fire_short_of_constant(graph, index, question, space, n)
    return fire_long_of_constant(graph, index, question, space, n)
