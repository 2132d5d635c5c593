"""Unary rules with more than one body atom, and rules without a body."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel
from anyburl.bodies.arrays import NO_LIMIT, LevelArrays
from anyburl.bodies.kernel_reach import contains, reach
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import inverse
from anyburl.ranking.arrays import CandidateArrays, FiringArrays, LongIndex, TrieWalk
from anyburl.ranking.kernel_fire import as_entity, fire


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


@inlined
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


@kernel
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
    same = index.body_constants[rule] == index.head_constants[rule]
    return same or not object_identity or way_avoids(levels, side, slot, int(index.lengths[rule]) - 1, constant)


@kernel
def fire_long(
    graph: GraphArrays,
    index: LongIndex,
    s: int,
    d: int,
    head: int,
    object_identity: bool,
    query: int,
    walk: TrieWalk,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """Fire the rules with head relation `head` for X = s. Where `head` is not d, only those with the
    constant `self`.
    """
    for place in range(index.relation_offsets[head], index.relation_offsets[head + 1]):
        rule = int(index.relation_rules[place])
        constant = int(index.head_constants[rule])
        if head != d and constant != graph.n_entities:
            continue
        holds = index.lengths[rule] == 0
        if constant == s and (object_identity or holds):
            continue
        if not holds and index.body_constants[rule] < 0:
            holds = dangling_holds(graph, index, rule, s, constant, object_identity, walk)
        elif not holds:
            side, _ = ends_of_constant(graph, index, rule, object_identity, walk)
            if walk.levels.stamps[side, s] == walk.clock[0]:
                slot = int(walk.levels.slots[side, s])
                holds = holds_at(walk.levels, side, slot, index, rule, constant, object_identity)
        if holds:
            answer = as_entity(graph, s, constant)
            n = fire(candidates, firings, n, query, answer, int(index.scores[rule]), int(index.rules[rule]))
    return n


@kernel
def fire_long_of_constant(
    graph: GraphArrays,
    index: LongIndex,
    s: int,
    head: int,
    object_identity: bool,
    query: int,
    walk: TrieWalk,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """Fire the rules whose head's constant is s: everything that satisfies the body. A rule without a body
    ranks nothing.
    """
    for place in range(index.head_offsets[head], index.head_offsets[head + 1]):
        rule = int(index.head_rules[place])
        score, row = int(index.scores[rule]), int(index.rules[rule])
        if index.lengths[rule] == 0:
            continue
        if index.body_constants[rule] < 0:
            relation = index.bodies[rule, 0]
            for i in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
                x = int(graph.domains[i])
                if x == s and object_identity:
                    continue
                if dangling_holds(graph, index, rule, x, s, object_identity, walk):
                    n = fire(candidates, firings, n, query, x, score, row)
            continue
        side, n_ends = ends_of_constant(graph, index, rule, object_identity, walk)
        for slot in range(n_ends):
            x = int(walk.levels.nodes[side, slot])
            if x == s and object_identity:
                continue
            if holds_at(walk.levels, side, slot, index, rule, s, object_identity):
                n = fire(candidates, firings, n, query, x, score, row)
    return n
