"""Which rules fire for a query, and what they predict.

A query is (s, d, ?) with a directed relation d. A unary rule d(X, c) answers it with c if s satisfies its body; if d
read backward is its head and c is s, it answers with every X that does. All under object identity, where that is on:
the candidate is a term as well, so it occurs nowhere on the way.
"""

from __future__ import annotations

from anyburl._jit import inlined, kernel
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import entity_rows, lower_bound, steps
from anyburl.ranking.arrays import CandidateArrays, FiringArrays, RelationEdges, UnaryIndex


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
def fire_own(
    graph: GraphArrays,
    index: UnaryIndex,
    first: int,
    last: int,
    s: int,
    d: int,
    query: int,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """h(X, self) also answers (?, h, s): with s. Its constant is the largest, so it is the last of its relation (or
    the last two: h(self, Y) means the same).
    """
    head = d - graph.n_relations
    place = lower_bound(index.body_heads, first, last, head + 1) - 1
    while place >= first and index.body_heads[place] == head and index.body_constants[place] == graph.n_entities:
        n = fire(candidates, firings, n, query, s, int(index.body_scores[place]), int(index.body_rules[place]))
        place -= 1
    return n


@inlined
def fire_body(
    graph: GraphArrays,
    index: UnaryIndex,
    first: int,
    last: int,
    s: int,
    d: int,
    only: int,
    object_identity: bool,
    query: int,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """Fire the rules from `first` to before `last`, of one body that s satisfies, which answer d.

    Under object identity the head's constant is neither s nor `only`, the entity without which s would not satisfy
    the body (negative if there is none).
    """
    place = lower_bound(index.body_heads, first, last, d)
    while place < last and index.body_heads[place] == d:
        constant = int(index.body_constants[place])
        if not object_identity or (constant != s and constant != only):
            answer = as_entity(graph, s, constant)
            score, rule = int(index.body_scores[place]), int(index.body_rules[place])
            n = fire(candidates, firings, n, query, answer, score, rule)
        place += 1
    if d >= graph.n_relations:
        n = fire_own(graph, index, first, last, s, d, query, candidates, firings, n)
    return n


@kernel
def fire_pairs(
    graph: GraphArrays,
    index: UnaryIndex,
    s: int,
    d: int,
    object_identity: bool,
    query: int,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """U_c rules of length 1 whose body is an edge of s: under object identity s is not the head's constant."""
    start, end = entity_rows(graph, s)
    for row in range(start, end):
        segment = graph.partners[row]
        first, last = int(index.body_offsets[segment]), int(index.body_offsets[segment + 1])
        n = fire_body(graph, index, first, last, s, d, -1, object_identity, query, candidates, firings, n)
    return n


@kernel
def fire_pairs_of_constant(
    graph: GraphArrays,
    index: UnaryIndex,
    s: int,
    head: int,
    object_identity: bool,
    query: int,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """U_c rules of length 1 whose head's constant is s: all that satisfies the body, under object identity but s."""
    for place in range(index.head_offsets[head], index.head_offsets[head + 1]):
        body = index.head_bodies[place]
        score, rule = int(index.head_scores[place]), int(index.head_rules[place])
        for row in range(graph.segment_starts[body], graph.segment_starts[body + 1]):
            x = int(graph.targets[row])
            if x < graph.n_entities and (x != s or not object_identity):  # c' itself may lead to `self`
                n = fire(candidates, firings, n, query, x, score, rule)
    return n


@inlined
def only_end(graph: GraphArrays, x: int, relation: int, object_identity: bool) -> int:
    """Return the only entity that `relation` leads to from x, -1 if there are several, -2 if there is none."""
    start, end = steps(graph, x, relation)
    if end == start:
        return -2
    return int(graph.targets[start]) if end - start == 1 and object_identity else -1


@kernel
def fire_dangling(
    graph: GraphArrays,
    index: UnaryIndex,
    s: int,
    d: int,
    object_identity: bool,
    query: int,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """U_d rules of length 1 whose body is a relation of s."""
    for segment in range(graph.segment_offsets[s], graph.segment_offsets[s + 1]):
        body = int(graph.segment_relations[segment])
        only = only_end(graph, s, body, object_identity)
        if only == -2:
            continue
        first, last = int(index.body_offsets[body]), int(index.body_offsets[body + 1])
        n = fire_body(graph, index, first, last, s, d, only, object_identity, query, candidates, firings, n)
    return n


@kernel
def fire_dangling_of_constant(
    graph: GraphArrays,
    index: UnaryIndex,
    edges: RelationEdges,
    s: int,
    head: int,
    object_identity: bool,
    query: int,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """U_d rules of length 1 whose head's constant is s: everything that has the relation, to another than s."""
    for place in range(index.head_offsets[head], index.head_offsets[head + 1]):
        body = int(index.head_bodies[place])
        score, rule = int(index.head_scores[place]), int(index.head_rules[place])
        for i in range(graph.domain_offsets[body], graph.domain_offsets[body + 1]):
            x = int(graph.domains[i])
            start = edges.starts[i]
            only_s = edges.starts[i + 1] == start + 1 and edges.ends[start] == s
            if not object_identity or (x != s and not only_s):
                n = fire(candidates, firings, n, query, x, score, rule)
    return n
