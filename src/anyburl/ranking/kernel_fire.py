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
from anyburl.bodies.kernel_ends import contains, reach
from anyburl.graph.kernel import GraphArrays, inverse, lower_bound, steps
from anyburl.ranking.arrays import AttributeArrays, LongIndex, QueryState, RuleIndex, TrieWalk, Workspace
from anyburl.ranking.kernel_short import (
    as_entity,
    find_value,
    fire,
    fire_short,
    head_relation_at,
    n_head_relations,
)


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
                    n = fire(space.candidates, space.firings, n, question, answer, score, row)
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
                n = fire(space.candidates, space.firings, n, question, x, score, row)
                last = x
        return n
    for i in range(graph.domain_offsets[step], graph.domain_offsets[step + 1]):
        x = int(graph.domains[i])
        if (x != s or not object_identity) and value_holds(graph, index, rule, x, s, object_identity):
            n = fire(space.candidates, space.firings, n, question, x, score, row)
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
                    n = fire(space.candidates, space.firings, n, question, x, score, row)
            continue
        side, n_ends = ends_of_constant(graph, rules, rule, object_identity, walk)
        for slot in range(n_ends):
            x = int(walk.levels.nodes[side, slot])
            if x == s and object_identity:
                continue
            if holds_at(walk.levels, side, slot, rules, rule, s, object_identity):
                n = fire(space.candidates, space.firings, n, question, x, score, row)
    return n


@part
def fire_long_rules(graph: GraphArrays, index: RuleIndex, question: QueryState, space: Workspace) -> int:
    """Fire the unary rules that answer (s, d, ?), but for those of length 1; return the number of firings, past the
    room there is if that is too small.
    """
    n = fire_long(graph, index, question, space, 0)
    return fire_long_of_constant(graph, index, question, space, n)


@inlined
def fire_unary(graph: GraphArrays, index: RuleIndex, question: QueryState, space: Workspace) -> int:
    """Fire all unary rules."""
    n = fire_long_rules(graph, index, question, space)
    n, _ = fire_short(graph, index, question, -1, -1, 0, space, n)
    return n
