"""Which stated facts rules predict, and which rules predict nearly the same ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays
from anyburl.reasoning.explanation.arrays import empty_search
from anyburl.reasoning.explanation.kernel import find_first_walks
from anyburl.rules.ruleset import RuleSet

Rows = NDArray[np.int64]
Triples = NDArray[np.int32]
Mask = NDArray[np.bool_]

NEARLY_THE_SAME = 0.8
"""Of the facts that either of two rules predicts, as many are predicted by both if they say nearly the same."""


def predicted_facts_of(
    graph: GraphArrays, rules: RuleSet, rows: Rows, facts: Triples, *, object_identity: bool = True
) -> Mask:
    """Return which of some facts each of some rules predicts; all are of the same relation.

    `graph` is what rules walk on: without object identity, one with loops.
    """
    covers = np.zeros((len(rows), len(facts)), np.bool_)
    is_reflexive = facts[:, 0] == facts[:, 2]
    for place, row in enumerate(rows):
        forward = rules.head[row] < rules.vocabulary.n_relations
        starts, ends = (facts[:, 0], facts[:, 2]) if forward else (facts[:, 2], facts[:, 0])
        constant = int(rules.head_constant[row])
        if constant == rules.vocabulary.self_id:
            tried = np.flatnonzero(is_reflexive)
        elif constant >= 0:
            tried = np.flatnonzero((ends == constant) & ~(is_reflexive & object_identity))
        else:
            tried = np.flatnonzero(~(is_reflexive & object_identity))
        goals = ends if constant < 0 else np.full(len(facts), rules.body_constant[row], np.int32)
        if object_identity:
            tried = tried[starts[tried] != goals[tried]]
        covers[place, tried] = _has_walks(graph, rules, int(row), starts[tried], goals[tried], object_identity)
    return covers


def _has_walks(
    graph: GraphArrays,
    rules: RuleSet,
    row: int,
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    object_identity: bool,
) -> Mask:
    """Return whether the body of a rule leads from each start to its end, -1 for any."""
    body, n = rules.bodies[rules.body[row]], len(starts)
    length = int((body >= 0).sum())
    if not length or not n:
        return np.ones(n, np.bool_)
    walks = np.empty((n, length + 1), np.int32)
    find_first_walks(
        graph,
        np.ascontiguousarray(np.broadcast_to(body[:length], (n, length))),
        np.full(n, length, np.int32),
        np.ascontiguousarray(starts, np.int32),
        np.ascontiguousarray(ends, np.int32),
        np.full(n, rules.head_constant[row], np.int32),
        object_identity,
        empty_search(length),
        walks,
    )
    return walks[:, 0] >= 0


def similarity(some: NDArray[np.bool_], others: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return which part of the facts that either of two rules predicts is predicted by both (Jaccard), 0 for none."""
    both = some.astype(np.float32) @ others.astype(np.float32).T
    either = some.sum(axis=1)[:, None] + others.sum(axis=1)[None, :] - both
    return np.asarray(both / np.maximum(either, 1), np.float64)
