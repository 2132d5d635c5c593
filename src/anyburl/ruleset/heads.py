"""How common the heads of rules are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import BINARY, head_arrays
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.build import find_segments
from anyburl.ruleset import measures
from anyburl.ruleset.columns import RuleColumns


def head_coverage(graph: GraphArrays, rules: RuleColumns) -> NDArray[np.float64]:
    """Return for each rule which part of the facts of its head's relation it predicts."""
    facts = _facts_by_relation(graph)[rules.head % max(1, graph.n_relations)]
    return measures.head_coverage(rules.support, facts)


def lift(graph: GraphArrays, rules: RuleColumns) -> NDArray[np.float64]:
    """Return for each rule how many times likelier its head is where its body holds than anywhere."""
    return measures.lift(rules.support, rules.predictions, _head_probability(graph, rules))


def _head_probability(graph: GraphArrays, rules: RuleColumns) -> NDArray[np.float64]:
    """Return how likely each head is for entities drawn at random from those that have a fact.

    Two are drawn for a binary head h(X, Y), one for a unary head h(X, c); with `self` as the constant that is h(X, X).
    """
    n_entities = max(1, int(np.count_nonzero(np.diff(graph.segment_offsets[: graph.n_entities + 1]))))
    binary = rules.type == BINARY
    probabilities = np.empty(len(rules), np.float64)
    probabilities[binary] = _facts_by_relation(graph)[rules.head[binary]] / n_entities**2
    back = inverses(rules.head[~binary], graph.n_relations)
    segments = find_segments(graph, rules.head_constant[~binary], back)
    sizes = np.append(np.diff(graph.segment_starts), 0)
    probabilities[~binary] = sizes[segments] / n_entities
    return probabilities


def _facts_by_relation(graph: GraphArrays) -> NDArray[np.int64]:
    """Return how many facts each relation has. A reflexive one is two edges along it: to `self`, and back."""
    edges = head_arrays(graph).edge_counts[: graph.n_relations].copy()
    own = slice(graph.segment_offsets[graph.n_entities], graph.segment_offsets[graph.n_entities + 1])
    relations = graph.segment_relations[own]
    sizes = np.diff(graph.segment_starts[own.start : own.stop + 1])
    forward = relations < graph.n_relations
    edges[relations[forward]] -= sizes[forward]
    return edges
