"""Unary rules with more than one body atom, and rules without a body."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, merged, part
from anyburl.bodies.arrays import NO_LIMIT, LevelArrays
from anyburl.bodies.kernel_reach import contains, reach
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import inverse
from anyburl.ranking.arrays import Asked, LongIndex, TrieWalk, Workspace
from anyburl.ranking.kernel_fire import as_entity, find_place, fire


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


@merged
def holds_for(graph: GraphArrays, index: LongIndex, rule: int, constant: int, asked: Asked, walk: TrieWalk) -> bool:
    """Whether a rule with this head constant fires for X = s."""
    s, object_identity = asked.s, asked.object_identity
    if index.lengths[rule] == 0:
        return constant != s or not object_identity
    if constant == s and object_identity:
        return False
    if index.body_constants[rule] < 0:
        return dangling_holds(graph, index, rule, s, constant, object_identity, walk)
    side, _ = ends_of_constant(graph, index, rule, object_identity, walk)
    if walk.levels.stamps[side, s] != walk.clock[0]:
        return False
    return holds_at(walk.levels, side, int(walk.levels.slots[side, s]), index, rule, constant, object_identity)


@merged
def fire_long(
    graph: GraphArrays, index: LongIndex, scores: NDArray[np.int64], head: int, asked: Asked, space: Workspace, n: int
) -> int:
    """Fire the rules with head relation `head` for X = s. Where `head` is not d, only those with the
    constant `self`.
    """
    for place in range(index.head_offsets[head], index.head_offsets[head + 1]):
        constant = int(index.head_constants[place])
        if head != asked.d and constant != graph.n_entities:
            continue
        answer = as_entity(graph, asked.s, constant)
        for rule in range(index.head_rule_offsets[place], index.head_rule_offsets[place + 1]):
            if holds_for(graph, index, rule, constant, asked, space.walk):
                score, row = int(scores[index.codes[rule]]), int(index.rows[rule])
                n = fire(space.candidates, space.firings, n, asked.query, answer, score, row)
    return n


@merged
def fire_long_of_constant(
    graph: GraphArrays, index: LongIndex, scores: NDArray[np.int64], asked: Asked, space: Workspace, n: int
) -> int:
    """Fire the rules whose head is d read backward, with the constant s: everything that satisfies the body. A rule
    without a body ranks nothing.
    """
    s, object_identity, walk = asked.s, asked.object_identity, space.walk
    place = find_place(index.head_offsets, index.head_constants, inverse(graph, asked.d), s)
    if place < 0:
        return n
    for rule in range(index.head_rule_offsets[place], index.head_rule_offsets[place + 1]):
        score, row = int(scores[index.codes[rule]]), int(index.rows[rule])
        if index.lengths[rule] == 0:
            continue
        if index.body_constants[rule] < 0:
            relation = index.bodies[rule, 0]
            for i in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
                x = int(graph.domains[i])
                if x == s and object_identity:
                    continue
                if dangling_holds(graph, index, rule, x, s, object_identity, walk):
                    n = fire(space.candidates, space.firings, n, asked.query, x, score, row)
            continue
        side, n_ends = ends_of_constant(graph, index, rule, object_identity, walk)
        for slot in range(n_ends):
            x = int(walk.levels.nodes[side, slot])
            if x == s and object_identity:
                continue
            if holds_at(walk.levels, side, slot, index, rule, s, object_identity):
                n = fire(space.candidates, space.firings, n, asked.query, x, score, row)
    return n
