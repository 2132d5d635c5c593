"""From reference rules to bodies that kernels harvest, and from what they harvest back to reference rules."""

from __future__ import annotations

from itertools import product

import numpy as np

from anyburl.bodies.arrays import (
    BINARY,
    CONSTANT,
    DANGLING,
    GROUNDED,
    BodyArrays,
    HarvestArrays,
    HeadArrays,
    Limits,
    Scratch,
    empty_harvest,
    empty_scratch,
    head_arrays,
)
from anyburl.bodies.kernel import harvest
from anyburl.bodies.paths import make_bodies
from anyburl.graph.kernel import GraphArrays
from reference.graph import Body, mirror
from reference.scoring import Rule

TYPES = {BINARY: "B", GROUNDED: "Uc", CONSTANT: "Uc", DANGLING: "Ud"}
UNLIMITED = 2**62

Scores = tuple[int, int, bool]
"""Predictions, support, exact."""


def limits(
    min_support: int = 1,
    min_confidence: float = 0.0,
    object_identity: bool = True,
    budget: int = UNLIMITED,
    work: int = UNLIMITED,
) -> Limits:
    """Limits that keep everything and stop nowhere, unless told."""
    return Limits(min_support, min_confidence, object_identity, budget, work, UNLIMITED)


def joined(parts: list[BodyArrays]) -> BodyArrays:
    """Bodies of one length, one after the other."""
    return BodyArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def distinct(bodies: BodyArrays) -> BodyArrays:
    """Every body once, in the order of first occurrence."""
    return bodies.take(np.sort(np.unique(bodies.keys, return_index=True)[1]))


def every_binary(graph: GraphArrays, length: int) -> BodyArrays:
    """Every B body, of a body and its reversal one."""
    return distinct(make_bodies(graph, BINARY, every_relations(graph, length)))


def every_dangling(graph: GraphArrays, length: int) -> BodyArrays:
    """Every U_d body."""
    return make_bodies(graph, DANGLING, every_relations(graph, length))


def every_constant(graph: GraphArrays, length: int, kind: int) -> BodyArrays:
    """Every U_c body of one kind. An atom with `self` is read forward; `self` twice is for length 1 only."""
    relations = every_relations(graph, length)
    parts = []
    for constant in range(graph.n_entities + 1):
        chosen = relations
        if constant == graph.n_entities:
            chosen = relations[relations[:, -1] < graph.n_relations]
            if kind == GROUNDED and length > 1:
                continue
        parts.append(make_bodies(graph, kind, chosen, np.full(len(chosen), constant, np.int32)))
    return joined(parts)


def every_relations(graph: GraphArrays, length: int) -> np.ndarray:
    """Every sequence of directed relations."""
    return np.array(list(product(range(2 * graph.n_relations), repeat=length)), np.int32)


def relations_of(bodies: BodyArrays, number: int, n_relations: int) -> Body:
    """The body that a harvest calls `number`: from the size of the batch on, the reversed ones follow."""
    n = len(bodies.kinds)
    body = tuple(bodies.relations[number % n].tolist())
    return mirror(body, n_relations) if number >= n else body


def rule_of(bodies: BodyArrays, number: int, head: int, head_constant: int, n_relations: int) -> Rule:
    """One row of a harvest as a reference rule."""
    k = number % len(bodies.kinds)
    kind, constant = TYPES[int(bodies.kinds[k])], int(bodies.constants[k])
    return Rule(
        kind,
        head,
        None if head_constant < 0 else head_constant,
        relations_of(bodies, number, n_relations),
        None if constant < 0 else constant,
    )


def harvested(
    graph: GraphArrays,
    bodies: BodyArrays,
    limits: Limits,
    heads: HeadArrays | None = None,
    scratch: Scratch | None = None,
    room: int = 0,
) -> dict[Rule, Scores]:
    """Harvest all bodies, call by call; no rule may come twice."""
    heads = head_arrays(graph) if heads is None else heads
    scratch = empty_scratch(graph, bodies.relations.shape[1]) if scratch is None else scratch
    out = empty_harvest(room or max(len(graph.segment_relations), 2 * graph.n_relations))
    found: dict[Rule, Scores] = {}
    k = 0
    while k < len(bodies.kinds):
        following, n_rows = harvest(graph, heads, bodies, k, limits, scratch, out)
        assert following > k or scratch.grounding[0].under_way
        for row in range(n_rows):
            assert k <= out.bodies[row] % len(bodies.kinds) < following
            rule, scores = _row(graph, bodies, out, row)
            assert rule not in found
            found[rule] = scores
        k = following
    assert_clean(scratch)
    return found


def assert_clean(scratch: Scratch) -> None:
    """Between bodies no count may be left."""
    assert not scratch.relation_counts.any()
    assert not scratch.tally.counts.any()
    assert not scratch.segment_counts.any()
    assert not scratch.pca.having.any()
    assert not scratch.pca.end_pairs.any()


def _row(graph: GraphArrays, bodies: BodyArrays, out: HarvestArrays, row: int) -> tuple[Rule, Scores]:
    rule = rule_of(bodies, int(out.bodies[row]), int(out.heads[row]), int(out.head_constants[row]), graph.n_relations)
    return rule, (int(out.predictions[row]), int(out.supports[row]), bool(out.exact[row]))
