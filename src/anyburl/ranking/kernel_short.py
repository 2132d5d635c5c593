"""Which unary rules of length 1 fire for a query, by their body or by the constant of their head."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, merged, part
from anyburl.graph.kernel import GraphArrays, Ints, entity_rows, inverse, lower_bound, steps
from anyburl.ranking.arrays import (
    CandidateArrays,
    FiringArrays,
    LinkArrays,
    MatchedBodies,
    QueryState,
    RuleIndex,
    Workspace,
)
from anyburl.ranking.kernel_order import drop_below, least_of_best

MEMBER_WORK = 8  # work of looking up whether one entity satisfies a body
FEW_FIRINGS = 64
TOO_MANY, NO_ROOM = 1 << 32, -1  # segments to be linked


@inlined
def put_ahead(candidates: CandidateArrays, question: QueryState, candidate: int) -> None:
    """Count a candidate as one that ranks before all targets: from now on it is passed over like what is excluded."""
    candidates.excluded[candidate] = question.query
    candidates.n_ahead[0] += 1


@inlined
def fire(
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
    question: QueryState,
    candidate: int,
    score: int,
    rule: int,
) -> int:
    """Note that `rule` predicts `candidate`; return the number of firings, which may be past the room there is."""
    if candidates.excluded[candidate] == question.query:
        return n
    if score > question.top:
        put_ahead(candidates, question, candidate)
        return n
    if n < len(firings.candidates):
        firings.candidates[n] = candidate
        firings.scores[n] = score
        firings.rules[n] = rule
    return n + 1


@inlined
def start_links(links: LinkArrays, mark: int) -> None:
    """Forget all links; `mark` is a stamp that these never had."""
    links.mark[0], links.n_links[0] = mark, 0


@inlined
def link_segments(graph: GraphArrays, entity: int, links: LinkArrays) -> bool:
    """Add the segments of `entity`; return whether there is room for them. If there is not, nothing is linked."""
    link = int(links.n_links[0])
    start, end = int(graph.segment_offsets[entity]), int(graph.segment_offsets[entity + 1])
    if link + end - start > len(links.entities):
        links.mark[0] = NO_ROOM
        return False
    for segment in range(start, end):
        relation = int(graph.segment_relations[segment])
        if links.stamps[relation] != links.mark[0]:
            links.stamps[relation], links.sizes[relation], links.firsts[relation] = links.mark[0], 0, -1
        links.entities[link], links.segments[link] = entity, segment
        links.following[link], links.firsts[relation] = links.firsts[relation], link
        links.sizes[relation] += 1
        link += 1
    links.n_links[0] = link
    return True


@inlined
def n_links(links: LinkArrays, relation: int) -> int:
    """Return how many segments of a directed relation there are, `TOO_MANY` if there was no room."""
    if links.mark[0] == NO_ROOM:
        return TOO_MANY
    return int(links.sizes[relation]) if links.stamps[relation] == links.mark[0] else 0


@inlined
def first_link(links: LinkArrays, relation: int) -> int:
    """Return the first link of a directed relation, -1 if there is none."""
    return int(links.firsts[relation]) if links.stamps[relation] == links.mark[0] else -1


@part
def link_undecided(graph: GraphArrays, n_undecided: int, space: Workspace) -> None:
    """Link the segments of the undecided candidates, if there is room for all."""
    links, n_segments = space.walk.undecided, 0
    space.walk.clock[0] += 1
    start_links(links, int(space.walk.clock[0]))
    for i in range(n_undecided):
        entity = int(space.candidates.undecided[i])
        n_segments += int(graph.segment_offsets[entity + 1]) - int(graph.segment_offsets[entity])
        if n_segments > len(links.entities):
            links.mark[0] = NO_ROOM
            return
    for i in range(n_undecided):
        link_segments(graph, int(space.candidates.undecided[i]), links)


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
def matters(candidates: CandidateArrays, question: QueryState, candidate: int) -> bool:
    """Whether rules are to fire for `candidate`, where they may be for tied ones only."""
    return bool(question.tied < 0 or candidates.tied[candidate] == question.tied)


@inlined
def fire_rules(
    graph: GraphArrays,
    index: RuleIndex,
    bodies: MatchedBodies,
    i: int,
    question: QueryState,
    least: int,
    space: Workspace,
    n: int,
) -> int:
    """Fire the rules with a body that s satisfies, whose scores are `least` or more.

    Under object identity the head's constant is neither s nor the entity without which s would not satisfy the body.
    """
    rules, only = index.short, bodies.only[i]
    for rule in range(bodies.first_rules[i], bodies.last_rules[i]):
        constant = int(rules.constants[rule])
        answer = as_entity(graph, question.s, constant)
        if not matters(space.candidates, question, answer):
            continue
        score = int(index.scores[rules.codes[rule]])
        if score < least or score >= question.below:
            continue
        if not question.object_identity or (constant != question.s and constant != only):
            n = fire(space.candidates, space.firings, n, question, answer, score, int(rules.rows[rule]))
    return n


@inlined
def match_body(
    graph: GraphArrays, index: RuleIndex, body: int, head: int, only: int, question: QueryState, bodies: MatchedBodies
) -> None:
    """List a body that s satisfies, if there are rules with it and the head relation `head`; where that is not d, only
    those with the constant `self`. Without the entity `only`, s would not satisfy the body (negative: it would).
    """
    rules = index.short
    position = find_value(rules.body_offsets, rules.bodies, head, body)
    if position < 0:
        return
    first, last = int(rules.rule_offsets[position]), int(rules.rule_offsets[position + 1])
    if head != question.d:  # `self` is the largest constant
        first = lower_bound(rules.constants, first, last, graph.n_entities)
    i = int(bodies.n[0])
    bodies.first_rules[i], bodies.last_rules[i], bodies.only[i] = first, last, only
    bodies.n[0] = i + 1


@inlined
def only_end(graph: GraphArrays, x: int, relation: int, object_identity: bool) -> int:
    """Return the only entity that `relation` leads to from x, -1 if there are several, -2 if there is none."""
    start, end = steps(graph, x, relation)
    if end == start:
        return -2
    return int(graph.targets[start]) if end - start == 1 and object_identity else -1


@inlined
def raise_least(top_k: int, least: int, n_first: int, n: int, space: Workspace) -> tuple[int, int]:
    """Once the firings have doubled, drop those that cannot be of the best rule of any of the `top_k` best candidates,
    but for the first `n_first`; return how many are left, and the score that rules need from now on.
    """
    walk, candidates, firings = space.walk, space.candidates, space.firings
    if top_k <= 0 or n <= walk.n_linked[0] or n > len(firings.candidates):
        return n, least
    least = max(least, least_of_best(candidates, firings, n, top_k))
    n = drop_below(firings, n_first, n, least)
    walk.n_linked[0] = 2 * n + FEW_FIRINGS
    return n, least


@part
def fire_listed(
    graph: GraphArrays,
    index: RuleIndex,
    question: QueryState,
    least: int,
    top_k: int,
    n_first: int,
    space: Workspace,
    n: int,
) -> tuple[int, int]:
    """Fire the rules of the bodies that are listed."""
    for i in range(space.walk.bodies.n[0]):
        n = fire_rules(graph, index, space.walk.bodies, i, question, least, space, n)
        n, least = raise_least(top_k, least, n_first, n, space)
    return n, least


@merged
def fire_short_of_body(
    graph: GraphArrays,
    index: RuleIndex,
    question: QueryState,
    least: int,
    top_k: int,
    n_first: int,
    space: Workspace,
    n: int,
) -> tuple[int, int]:
    """Fire the rules of length 1 for X = s: U_c rules whose body is an edge of s, U_d rules whose body is a relation of
    s. Under object identity s is not the head's constant.

    The bodies are looked up once for a query, if there is room for all.
    """
    rules, bodies, n_directed = index.short, space.walk.bodies, 2 * graph.n_relations
    if bodies.query[0] == question.query and bodies.relation[0] == question.d:
        return fire_listed(graph, index, question, least, top_k, n_first, space, n)
    bodies.query[0], bodies.relation[0], bodies.n[0] = question.query, question.d, 0
    for turn in range(2 * n_head_relations(graph, rules.head_offsets, rules.head_constants, question.d)):
        head, dangling = head_relation_at(graph, question.d, turn >> 1), turn & 1
        first, last = int(rules.body_offsets[head]), int(rules.body_offsets[head + 1]) - 1
        if last < first or (rules.bodies[first] >= n_directed if dangling else rules.bodies[last] < n_directed):
            continue
        start, stop = entity_rows(graph, question.s)
        if dangling:
            start, stop = int(graph.segment_offsets[question.s]), int(graph.segment_offsets[question.s + 1])
        for i in range(start, stop):
            if bodies.n[0] == len(bodies.only):
                n, least = fire_listed(graph, index, question, least, top_k, n_first, space, n)
                bodies.query[0], bodies.n[0] = -1, 0
            body, only = n_directed, -1
            if dangling:
                body = int(graph.segment_relations[i])
                only = only_end(graph, question.s, body, question.object_identity)
            else:
                body += int(graph.partners[i])
            if only != -2:
                match_body(graph, index, body, head, only, question, bodies)
    return fire_listed(graph, index, question, least, top_k, n_first, space, n)


@inlined
def n_members(graph: GraphArrays, body: int) -> int:
    """Return how many entities satisfy a body of length 1 (the token `self` is counted as one)."""
    segment = body - 2 * graph.n_relations
    if segment >= 0:
        return int(graph.segment_starts[segment + 1] - graph.segment_starts[segment])
    return int(graph.domain_offsets[body + 1] - graph.domain_offsets[body])


@inlined
def relation_of_body(graph: GraphArrays, body: int) -> int:
    """Return the directed relation that what satisfies a body of length 1 has."""
    segment = body - 2 * graph.n_relations
    return inverse(graph, int(graph.segment_relations[segment])) if segment >= 0 else body


@inlined
def is_member(graph: GraphArrays, body: int, x: int, constant: int, object_identity: bool) -> bool:
    """Whether x satisfies a body of length 1. Under object identity x is not the head's constant, and does not have the
    relation of a U_d body to that alone.
    """
    if x == constant and object_identity:
        return False
    segment = body - 2 * graph.n_relations
    if segment >= 0:
        end = int(graph.segment_starts[segment + 1])
        row = lower_bound(graph.targets, int(graph.segment_starts[segment]), end, x)
        return bool(row < end and graph.targets[row] == x)
    only = only_end(graph, x, body, object_identity)
    return only != -2 and (only != constant or not object_identity)


@inlined
def fire_members(
    graph: GraphArrays, index: RuleIndex, rule: int, question: QueryState, space: Workspace, n: int
) -> int:
    """Fire a rule of length 1 with the constant s for all that satisfies its body, see `is_member`."""
    rules, edges, s, candidates = index.short, index.edges, question.s, space.candidates
    body = int(np.int64(rules.head_bodies[rule]))
    score, row = int(index.scores[rules.head_codes[rule]]), int(rules.head_rows[rule])
    segment = body - 2 * graph.n_relations
    if segment >= 0:
        for i in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
            x = int(graph.targets[i])
            # c' itself may lead to `self`
            if x < graph.n_entities and (x != s or not question.object_identity) and matters(candidates, question, x):
                n = fire(candidates, space.firings, n, question, x, score, row)
        return n
    for i in range(graph.domain_offsets[body], graph.domain_offsets[body + 1]):
        x = int(graph.domains[i])
        start = edges.starts[i]
        only_s = edges.starts[i + 1] == start + 1 and edges.ends[start] == s
        if (not question.object_identity or (x != s and not only_s)) and matters(candidates, question, x):
            n = fire(candidates, space.firings, n, question, x, score, row)
    return n


@merged
def fire_short_of_constant(
    graph: GraphArrays,
    index: RuleIndex,
    question: QueryState,
    least: int,
    n_undecided: int,
    top_k: int,
    n_first: int,
    space: Workspace,
    n: int,
) -> tuple[int, int]:
    """Fire the rules of length 1 whose head is d read backward, with the constant s: for all that satisfies the body.

    Candidates are looked up one by one where only a few matter.
    """
    rules, s, candidates = index.short, question.s, space.candidates
    position = find_value(rules.head_offsets, rules.head_constants, inverse(graph, question.d), s)
    if position < 0:
        return n, least
    for rule in range(rules.head_rule_offsets[position], rules.head_rule_offsets[position + 1]):
        body, score = int(np.int64(rules.head_bodies[rule])), int(index.scores[rules.head_codes[rule]])
        if score < least or score >= question.below:
            continue
        relation = relation_of_body(graph, body)
        if n_undecided < 0 or MEMBER_WORK * n_links(space.walk.undecided, relation) > n_members(graph, body):
            n_before = n
            n = fire_members(graph, index, rule, question, space, n)
            if 0 < top_k <= n - n_before:
                least = score
            n, least = raise_least(top_k, least, n_first, n, space)
            continue
        link = first_link(space.walk.undecided, relation)
        while link >= 0:
            x = int(space.walk.undecided.entities[link])
            if is_member(graph, body, x, s, question.object_identity):
                n = fire(candidates, space.firings, n, question, x, score, int(rules.head_rows[rule]))
            link = int(space.walk.undecided.following[link])
    return n, least


@part
def fire_short(
    graph: GraphArrays,
    index: RuleIndex,
    question: QueryState,
    least: int,
    n_undecided: int,
    top_k: int,
    space: Workspace,
    n: int,
) -> tuple[int, int]:
    """Fire the rules of length 1 that answer (s, d, ?), with scores from `least` on and below `QueryState.below`; if
    `n_undecided` is not negative, for so many undecided candidates.

    If `top_k` is positive, rules are passed over that cannot change which are the `top_k` best candidates. Return the
    number of firings, and the score from which on all rules have fired.
    """
    n_first = n
    space.walk.n_linked[0] = 2 * n + FEW_FIRINGS
    n, least = fire_short_of_constant(graph, index, question, least, n_undecided, top_k, n_first, space, n)
    return fire_short_of_body(graph, index, question, least, top_k, n_first, space, n)
