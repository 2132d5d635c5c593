"""Rules with a condition on a value, or with a comparison of two: what they predict, and their counts."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from .graph import Graph
from .scoring import Counts, walks

Values = Mapping[str, Mapping[int, set[float]]]
"""Attribute -> entity -> its values."""

ConditionalRule = tuple[int, int, tuple[int, ...], str, float, float]
"""Directed relation of the head, its constant, the path (of no or one step), attribute, low, high."""


def predicted_by_condition(graph: Graph, values: Values, rule: ConditionalRule, object_identity: bool) -> set[int]:
    """Every X for which the rule says head(X, constant)."""
    _, constant, path, attribute, low, high = rule
    return {
        walk[0]
        for x in range(graph.n_entities)
        for walk in walks(graph, path, x, object_identity)
        if not (object_identity and constant in walk)
        and any(low <= value < high for value in values[attribute].get(walk[-1], ()))
    }


def score_conditional(graph: Graph, values: Values, rule: ConditionalRule, object_identity: bool) -> Counts:
    """(predictions, support)."""
    members = predicted_by_condition(graph, values, rule, object_identity)
    return len(members), sum(rule[1] in graph.steps.get((x, rule[0]), ()) for x in members)


def surest_confidence(graph: Graph, x: int, head: int, constant: int, smoothing: float) -> float:
    """How sure the surest rule of length 1 is that head(x, constant), without reflexive triples: of those that
    x satisfies, h(X,c) <= b(X,c') if it is right twice, and h(X,c) <= b(X,A) but for b = h.
    """
    stated = {y for y in range(graph.n_entities) if constant in graph.steps.get((y, head), ())}
    confidences = [0.0]
    for relation in range(2 * graph.n_relations):
        ends = graph.steps.get((x, relation), set())
        if ends and relation != head:
            having = {y for y in range(graph.n_entities) if graph.steps.get((y, relation))}
            confidences.append(len(stated & having) / (len(having) + smoothing))
        for end in ends:
            having = {y for y in range(graph.n_entities) if end in graph.steps.get((y, relation), ())}
            if (relation, end) != (head, constant) and len(stated & having) > 1:
                confidences.append(len(stated & having) / (len(having) + smoothing))
    return max(confidences)


ComparingRule = tuple[int, tuple[int, ...], str, str]
"""Relation of the head, the path from X to Y, attribute, operator."""

COMPARE = {"<": operator.lt, "=": operator.eq, ">": operator.gt}


def predicted_by_comparison(
    graph: Graph, values: Values, rule: ComparingRule, object_identity: bool
) -> set[tuple[int, int]]:
    """Every (X, Y) for which the rule says head(X, Y)."""
    _, path, attribute, sign = rule
    return {
        (walk[0], walk[-1])
        for x in range(graph.n_entities)
        for walk in walks(graph, path, x, object_identity)
        if any(
            COMPARE[sign](first, second)
            for first in values[attribute].get(walk[0], ())
            for second in values[attribute].get(walk[-1], ())
        )
    }


def score_comparing(graph: Graph, values: Values, rule: ComparingRule, object_identity: bool) -> Counts:
    """(predictions, support)."""
    pairs = predicted_by_comparison(graph, values, rule, object_identity)
    return len(pairs), sum(y in graph.steps.get((x, rule[0]), ()) for x, y in pairs)
