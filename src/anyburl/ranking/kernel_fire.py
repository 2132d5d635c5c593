"""Which unary rules of length 1 fire for a query, and what they predict.

A query is (s, d, ?) with a directed relation d. A unary rule d(X, c) answers it with c if s satisfies its body; if d
read backward is its head and c is s, it answers with every X that does. All under object identity, where that is on:
the candidate is a term as well, so it occurs nowhere on the way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, merged
from anyburl.graph.arrays import GraphArrays, Ints
from anyburl.graph.kernel import entity_rows, inverse, lower_bound, steps
from anyburl.ranking.arrays import Asked, CandidateArrays, FiringArrays, RuleIndex, UnaryIndex, Workspace


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
def find_place(offsets: NDArray[np.int64], values: Ints, relation: int, wanted: int) -> int:
    """Return where `wanted` stands among the sorted values of a relation, -1 if it does not."""
    end = int(offsets[relation + 1])
    place = lower_bound(values, int(offsets[relation]), end, wanted)
    return place if place < end and values[place] == wanted else -1


@inlined
def n_heads(graph: GraphArrays, head_offsets: NDArray[np.int64], head_constants: Ints, d: int) -> int:
    """Return how many head relations have rules for (s, d, ?) with X = s: d, and d read backward where there are rules
    h(X, self) with that as h, which also answer (?, h, s), with s.
    """
    if d < graph.n_relations:
        return 1
    end = int(head_offsets[d - graph.n_relations + 1])
    has_self = end > head_offsets[d - graph.n_relations] and head_constants[end - 1] == graph.n_entities
    return 2 if has_self else 1


@inlined
def head_at(graph: GraphArrays, d: int, turn: int) -> int:
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
    asked: Asked,
    space: Workspace,
    n: int,
) -> int:
    """Fire the rules with the head relation `head` and a body that s satisfies. Where `head` is not d, only those with
    the constant `self`.

    Under object identity the head's constant is neither s nor `only`, the entity without which s would not satisfy
    the body (negative if there is none).
    """
    place = find_place(index.body_offsets, index.bodies, head, body)
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
    graph: GraphArrays, index: UnaryIndex, scores: NDArray[np.int64], head: int, asked: Asked, space: Workspace, n: int
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
    graph: GraphArrays, index: UnaryIndex, scores: NDArray[np.int64], asked: Asked, space: Workspace, n: int
) -> int:
    """U_c rules whose head is d read backward, with the constant s: all that satisfies the body, under object identity
    but s.
    """
    place = find_place(index.head_offsets, index.head_constants, inverse(graph, asked.d), asked.s)
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
    graph: GraphArrays, index: UnaryIndex, scores: NDArray[np.int64], head: int, asked: Asked, space: Workspace, n: int
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
def fire_dangling_of_constant(graph: GraphArrays, index: RuleIndex, asked: Asked, space: Workspace, n: int) -> int:
    """U_d rules of length 1 whose head's constant is s: everything that has the relation, to another than s."""
    rules, edges, s = index.dangling, index.edges, asked.s
    place = find_place(rules.head_offsets, rules.head_constants, inverse(graph, asked.d), s)
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
