"""Which unary rules of length 1 fire for a query, and what they predict.

A query is (s, d, ?) with a directed relation d. A unary rule d(X, c) answers it with c if s satisfies its body; if d
read backward is its head and c is s, it answers with every X that does. All under object identity, where that is on:
the candidate is a term as well, so it occurs nowhere on the way.

Unary rules with more than one body atom, and rules without a body.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, merged, part
from anyburl.bodies.arrays import NO_LIMIT, LevelArrays
from anyburl.bodies.kernel_reach import contains, reach
from anyburl.graph.arrays import GraphArrays, Ints
from anyburl.graph.kernel import entity_rows, inverse, lower_bound, steps
from anyburl.ranking.arrays import (
    CandidateArrays,
    FiringArrays,
    LongIndex,
    QueryState,
    RuleIndex,
    TrieWalk,
    UnaryIndex,
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
def find_value(offsets: NDArray[np.int64], values: Ints, relation: int, wanted: int) -> int:
    """Return where `wanted` stands among the sorted values of a relation, -1 if it does not."""
    end = int(offsets[relation + 1])
    place = lower_bound(values, int(offsets[relation]), end, wanted)
    return place if place < end and values[place] == wanted else -1


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
    index: UnaryIndex,
    scores: NDArray[np.int64],
    body: int,
    head: int,
    only: int,
    asked: QueryState,
    space: Workspace,
    n: int,
) -> int:
    """Fire the rules with the head relation `head` and a body that s satisfies. Where `head` is not d, only those with
    the constant `self`.

    Under object identity the head's constant is neither s nor `only`, the entity without which s would not satisfy
    the body (negative if there is none).
    """
    place = find_value(index.body_offsets, index.bodies, head, body)
    if place < 0:
        return n
    first, last = int(index.rule_offsets[place]), int(index.rule_offsets[place + 1])
    if head != asked.d:  # `self` is the largest constant
        first = lower_bound(index.constants, first, last, graph.n_entities)
    for i in range(first, last):
        constant = int(index.constants[i])
        if not asked.object_identity or (constant != asked.s and constant != only):
            answer, score = as_entity(graph, asked.s, constant), int(scores[index.codes[i]])
            n = fire(space.candidates, space.firings, n, asked.query, answer, score, int(index.rows[i]))
    return n


@merged
def fire_pairs(
    graph: GraphArrays,
    index: UnaryIndex,
    scores: NDArray[np.int64],
    head: int,
    asked: QueryState,
    space: Workspace,
    n: int,
) -> int:
    """U_c rules of length 1 whose body is an edge of s: under object identity s is not the head's constant."""
    if index.body_offsets[head] == index.body_offsets[head + 1]:
        return n
    start, end = entity_rows(graph, asked.s)
    for row in range(start, end):
        n = fire_body(graph, index, scores, int(graph.partners[row]), head, -1, asked, space, n)
    return n


@merged
def fire_pairs_of_constant(
    graph: GraphArrays, index: UnaryIndex, scores: NDArray[np.int64], asked: QueryState, space: Workspace, n: int
) -> int:
    """U_c rules whose head is d read backward, with the constant s: all that satisfies the body, under object identity
    but s.
    """
    place = find_value(index.head_offsets, index.head_constants, inverse(graph, asked.d), asked.s)
    if place < 0:
        return n
    for i in range(index.head_rule_offsets[place], index.head_rule_offsets[place + 1]):
        body = index.head_bodies[i]
        score, rule = int(scores[index.head_codes[i]]), int(index.head_rows[i])
        for row in range(graph.segment_starts[body], graph.segment_starts[body + 1]):
            x = int(graph.targets[row])
            # c' itself may lead to `self`
            if x < graph.n_entities and (x != asked.s or not asked.object_identity):
                n = fire(space.candidates, space.firings, n, asked.query, x, score, rule)
    return n


@inlined
def only_end(graph: GraphArrays, x: int, relation: int, object_identity: bool) -> int:
    """Return the only entity that `relation` leads to from x, -1 if there are several, -2 if there is none."""
    start, end = steps(graph, x, relation)
    if end == start:
        return -2
    return int(graph.targets[start]) if end - start == 1 and object_identity else -1


@merged
def fire_dangling(
    graph: GraphArrays,
    index: UnaryIndex,
    scores: NDArray[np.int64],
    head: int,
    asked: QueryState,
    space: Workspace,
    n: int,
) -> int:
    """U_d rules of length 1 whose body is a relation of s."""
    if index.body_offsets[head] == index.body_offsets[head + 1]:
        return n
    for segment in range(graph.segment_offsets[asked.s], graph.segment_offsets[asked.s + 1]):
        body = int(graph.segment_relations[segment])
        only = only_end(graph, asked.s, body, asked.object_identity)
        if only != -2:
            n = fire_body(graph, index, scores, body, head, only, asked, space, n)
    return n


@merged
def fire_dangling_of_constant(graph: GraphArrays, index: RuleIndex, asked: QueryState, space: Workspace, n: int) -> int:
    """U_d rules of length 1 whose head's constant is s: everything that has the relation, to another than s."""
    rules, edges, s = index.dangling, index.edges, asked.s
    place = find_value(rules.head_offsets, rules.head_constants, inverse(graph, asked.d), s)
    if place < 0:
        return n
    for rule in range(rules.head_rule_offsets[place], rules.head_rule_offsets[place + 1]):
        body = int(rules.head_bodies[rule])
        score, row = int(index.scores[rules.head_codes[rule]]), int(rules.head_rows[rule])
        for i in range(graph.domain_offsets[body], graph.domain_offsets[body + 1]):
            x = int(graph.domains[i])
            start = edges.starts[i]
            only_s = edges.starts[i + 1] == start + 1 and edges.ends[start] == s
            if not asked.object_identity or (x != s and not only_s):
                n = fire(space.candidates, space.firings, n, asked.query, x, score, row)
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


@merged
def holds_for(
    graph: GraphArrays, index: LongIndex, rule: int, constant: int, asked: QueryState, walk: TrieWalk
) -> bool:
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
    graph: GraphArrays,
    index: LongIndex,
    scores: NDArray[np.int64],
    head: int,
    asked: QueryState,
    space: Workspace,
    n: int,
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
    graph: GraphArrays, index: LongIndex, scores: NDArray[np.int64], asked: QueryState, space: Workspace, n: int
) -> int:
    """Fire the rules whose head is d read backward, with the constant s: everything that satisfies the body. A rule
    without a body ranks nothing.
    """
    s, object_identity, walk = asked.s, asked.object_identity, space.walk
    place = find_value(index.head_offsets, index.head_constants, inverse(graph, asked.d), s)
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
