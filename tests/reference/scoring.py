"""Predictions and support of rules (section 3.3.1), with and without object identity (section 2.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .graph import Body, Graph, Triple, build, mirror

Walk = tuple[int, ...]
Counts = tuple[int, int]
"""Predictions and support."""


class Rule(NamedTuple):
    """A rule; equal to, and hashed as, the plain tuple of its fields.

    B  h(X,Y) <- body from X to Y            (head d < n_relations when normalised)
    Ud h(X,c) <- body from X to a variable   (head d >= n_relations: h(c,Y), body from Y)
    Uc h(X,c) <- body from X to c'
    Z  h(X,c) <-
    """

    type: str
    head: int
    head_constant: int | None
    body: Body
    body_constant: int | None


RuleLike = Rule | tuple[str, int, int | None, Body, int | None]


def groundings(
    triples: Iterable[Triple],
    n_entities: int,
    n_relations: int,
    body: Body,
    start: int,
    object_identity: bool = True,
) -> set[Walk]:
    """All `(start, a1, ..., an)` along `body`; never through `self`.

    Under object identity the entities of one grounding are pairwise different; without it a reflexive triple is a step
    like any other.
    """
    return walks(build(triples, n_entities, n_relations, object_identity), body, start, object_identity)


def walks(graph: Graph, body: Body, start: int, object_identity: bool) -> set[Walk]:
    """`groundings` on an indexed graph."""
    found: set[Walk] = {(start,)} if start != graph.self_id else set()
    for d in body:
        found = extend(graph, found, d, object_identity)
    return found


def extend(graph: Graph, found: set[Walk], d: int, object_identity: bool) -> set[Walk]:
    """Every walk with one more step along `d`."""
    return {
        (*walk, entity)
        for walk in found
        for entity in graph.steps.get((walk[-1], d), ())
        if entity != graph.self_id and not (object_identity and entity in walk)
    }


def predicted(
    triples: Iterable[Triple], n_entities: int, n_relations: int, rule: RuleLike, object_identity: bool = True
) -> set[tuple[int, int]]:
    """The distinct pairs (x, y) for which the rule says `x -head-> y`; y is the constant of a unary head."""
    return pairs_of(build(triples, n_entities, n_relations, object_identity), Rule(*rule), object_identity)


def score(
    triples: Iterable[Triple], n_entities: int, n_relations: int, rule: RuleLike, object_identity: bool = True
) -> Counts:
    """(predictions, support): how many pairs the rule predicts, and how many of them are triples."""
    graph = build(triples, n_entities, n_relations, object_identity)
    pairs = pairs_of(graph, Rule(*rule), object_identity)
    return len(pairs), sum(y in graph.steps.get((x, rule[1]), ()) for x, y in pairs)


def pairs_of(graph: Graph, rule: Rule, object_identity: bool) -> set[tuple[int, int]]:
    """`predicted` on an indexed graph."""
    entities = range(graph.n_entities)
    if rule.type == "B":
        found = {walk for x in entities for walk in walks(graph, rule.body, x, object_identity)}
        return {(walk[0], walk[-1]) for walk in found}
    constant = rule.head_constant
    assert constant is not None, rule
    if rule.type == "Z":
        found = {(x,) for x in entities if graph.steps.get((x, rule.head))}
    elif rule.type == "Ud":
        found = {walk for x in entities for walk in walks(graph, rule.body, x, object_identity)}
    else:
        found = {walk for x in entities for walk in _walks_before_constant(graph, rule, x, object_identity)}
    # The head's constant is a term too: under object identity no variable may stand for it.
    return {(walk[0], constant) for walk in found if not (object_identity and constant in walk)}


def _walks_before_constant(graph: Graph, rule: Rule, start: int, object_identity: bool) -> set[Walk]:
    """What the variables of a Uc rule may stand for: walks of which one more step ends in the constant."""
    return {
        walk
        for walk in walks(graph, rule.body[:-1], start, object_identity)
        if rule.body_constant in graph.steps.get((walk[-1], rule.body[-1]), ())
        and not (object_identity and rule.body_constant in walk)
    }


def confidence(predictions: int, support: int, smoothing: float = 0.0) -> float:
    """support / (predictions + smoothing); 0 if the rule predicts nothing."""
    return support / (predictions + smoothing) if predictions else 0.0


def is_tautology(rule: RuleLike) -> bool:
    """h(X,Y) <- h(X,Y), and h(X,c) <- h(X,c): they predict only what is stated. Takes normalised rules."""
    kind, head, head_constant, body, body_constant = rule
    return body == (head,) and (kind == "B" or (kind == "Uc" and head_constant == body_constant))


def normalise(rule: RuleLike, n_entities: int, n_relations: int) -> Rule:
    """The one way to write a rule: B heads read forward, atoms with `self` read forward."""
    kind, head, head_constant, body, body_constant = rule
    if kind == "B" and head >= n_relations:
        head, body = head - n_relations, mirror(body, n_relations)
    if head_constant == n_entities:
        head %= n_relations
    if body_constant == n_entities:
        body = (*body[:-1], body[-1] % n_relations)
    return Rule(kind, head, head_constant, body, body_constant)


def all_rules(
    triples: Iterable[Triple],
    n_entities: int,
    n_relations: int,
    *,
    max_cyclic: int = 2,
    max_acyclic: int = 1,
    max_grounded: int = 1,
    min_support: int = 1,
    min_confidence: float = 0.0,
    object_identity: bool = True,
) -> dict[Rule, Counts]:
    """Every normalised rule that passes the thresholds, with its counts; see `each_rule`."""
    return dict(
        each_rule(
            triples,
            n_entities,
            n_relations,
            max_cyclic=max_cyclic,
            max_acyclic=max_acyclic,
            max_grounded=max_grounded,
            min_support=min_support,
            min_confidence=min_confidence,
            object_identity=object_identity,
        )
    )


def each_rule(
    triples: Iterable[Triple],
    n_entities: int,
    n_relations: int,
    *,
    max_cyclic: int = 2,
    max_acyclic: int = 1,
    max_grounded: int = 1,
    min_support: int = 1,
    min_confidence: float = 0.0,
    object_identity: bool = True,
) -> Iterator[tuple[Rule, Counts]]:
    """Yield every rule once, body by body, tautologies left out.

    B rules of length 1 to `max_cyclic`; Ud rules, and Uc rules with two constants, to `max_acyclic`; Uc
    rules with the same constant twice to `max_grounded`, except that `self` twice is a rule of length
    1 only (no straight path of more steps is cyclic in `self`). Kept: support >= `min_support` (at least
    1) and support / predictions > `min_confidence`.
    """
    graph = build(triples, n_entities, n_relations, object_identity)
    by_body: dict[Body, set[Walk]] = {(): {(x,) for x in range(n_entities)}}
    for length in range(1, max(max_cyclic, max_acyclic, max_grounded) + 1):
        longer: dict[Body, set[Walk]] = {}
        for body, found in by_body.items():
            for d in range(2 * n_relations):
                extended = extend(graph, found, d, object_identity)
                if extended:
                    longer[*body, d] = extended
                rules: list[tuple[Rule, Counts]] = []
                if length <= max_cyclic:
                    rules += _binary_heads(graph, (*body, d), extended)
                if length <= max_acyclic:
                    rules += _dangling_heads(graph, (*body, d), extended, min_support, object_identity)
                if length <= max(max_acyclic, max_grounded):
                    kinds = (length <= max_acyclic, length <= max_grounded)
                    rules += _constant_heads(graph, (*body, d), found, kinds, min_support, object_identity)
                for rule, (predictions, support) in rules:
                    passes = support >= min_support and support / predictions > min_confidence
                    if passes and not is_tautology(rule):
                        yield rule, (predictions, support)
        by_body = longer


def _binary_heads(graph: Graph, body: Body, found: set[Walk]) -> Iterator[tuple[Rule, Counts]]:
    pairs = {(walk[0], walk[-1]) for walk in found}
    supports = Counter(d for pair in pairs for d in graph.joins.get(pair, ()) if d < graph.n_relations)
    for d, support in supports.items():
        yield Rule("B", d, None, body, None), (len(pairs), support)


def _dangling_heads(
    graph: Graph, body: Body, found: set[Walk], min_support: int, object_identity: bool
) -> Iterator[tuple[Rule, Counts]]:
    for c in range(graph.n_entities + 1):
        xs = {walk[0] for walk in found if not (object_identity and c in walk)}
        for d, support in _head_supports(graph, xs, c, min_support):
            yield Rule("Ud", d, c, body, None), (len(xs), support)


def _constant_heads(
    graph: Graph,
    body: Body,
    found: set[Walk],
    kinds: tuple[bool, bool],
    min_support: int,
    object_identity: bool,
) -> Iterator[tuple[Rule, Counts]]:
    """Uc rules of `body`, whose variables stand for the walks `found` along all but its last relation.

    `kinds` says whether rules with two constants, and with the same constant twice, are wanted.
    """
    two_constants, same_constant = kinds
    ending: dict[int, set[Walk]] = {}
    for walk in found:
        for last in graph.steps.get((walk[-1], body[-1]), ()):
            if not (object_identity and last in walk):
                ending.setdefault(last, set()).add(walk)
    if body[-1] >= graph.n_relations:
        ending.pop(graph.self_id, None)  # b(self,A) means b(A,self), which is listed
    for last, before in ending.items():
        for c in range(graph.n_entities + 1):
            if c == last == graph.self_id and len(body) > 1:
                continue
            if not (same_constant if c == last else two_constants):
                continue
            xs = {walk[0] for walk in before if not (object_identity and c in walk)}
            for d, support in _head_supports(graph, xs, c, min_support):
                yield Rule("Uc", d, c, body, last), (len(xs), support)


def _head_supports(graph: Graph, xs: set[int], c: int, min_support: int) -> Iterator[tuple[int, int]]:
    """For every directed relation d that leads from enough of `xs` to c: (d, from how many)."""
    if len(xs) < min_support:
        return
    supports: Counter[int] = Counter()
    for x in xs:
        supports.update(graph.joins.get((x, c), ()))
    for d, support in supports.items():
        # h(self,Y) means h(X,self), which is listed
        if support >= min_support and (c != graph.self_id or d < graph.n_relations):
            yield d, support
