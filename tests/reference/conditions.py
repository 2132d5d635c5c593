"""Rules with a condition on a value: what they predict, and their counts."""

from __future__ import annotations

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
