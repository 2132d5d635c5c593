"""Predictions that the partial completeness assumption can judge, counted by kernels as the reference counts them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import BINARY, CONSTANT, GROUNDED, BodyArrays, empty_harvest, empty_scratch, head_arrays
from anyburl.bodies.kernel import harvest
from anyburl.bodies.paths import make_bodies
from anyburl.graph.kernel import GraphArrays
from harvesting import (
    UNLIMITED,
    assert_clean,
    distinct,
    every_binary,
    every_constant,
    every_dangling,
    harvested,
    joined,
    limits,
    rule_of,
)
from kernels import arrays_of, examples, random_graphs
from reference.measures import Measurer
from reference.scoring import Rule
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel


def judged(
    arrays: GraphArrays,
    bodies: BodyArrays,
    object_identity: bool = True,
    work: int = UNLIMITED,
    budget: int = UNLIMITED,
) -> dict[Rule, int]:
    """Harvest all bodies, call by call; return what the assumption can judge of each rule's predictions."""
    heads, scratch = head_arrays(arrays), empty_scratch(arrays, bodies.relations.shape[1], pca=True)
    out = empty_harvest(max(len(arrays.segment_relations), 2 * arrays.n_relations), pca=True)
    asked = limits(object_identity=object_identity, work=work, budget=budget)._replace(pca=True)
    found: dict[Rule, int] = {}
    k = 0
    while k < len(bodies.kinds):
        k, n_rows = harvest(arrays, heads, bodies, k, asked, scratch, out)
        for row in range(n_rows):
            head, constant = int(out.heads[row]), int(out.head_constants[row])
            rule = rule_of(bodies, int(out.bodies[row]), head, constant, arrays.n_relations)
            found[rule] = int(out.pca_predictions[row])
    assert_clean(scratch)
    return found


def every_body(arrays: GraphArrays, length: int) -> BodyArrays:
    unary = [every_dangling(arrays, length), *(every_constant(arrays, length, kind) for kind in (CONSTANT, GROUNDED))]
    return joined([every_binary(arrays, length), *unary])


@settings(max_examples=examples(80, 8))
@given(st.one_of(graphs(max_relations=2), random_graphs(6, [2], 14)), st.integers(1, 3), st.booleans(), st.data())
def test_a_harvest_judges_what_the_reference_does(
    graph: SmallGraph, length: int, object_identity: bool, data: st.DataObject
) -> None:
    n_entities, n_relations, triples = graph
    reference = Measurer(triples, n_entities, n_relations, object_identity)
    arrays = arrays_of(graph, object_identity)
    bodies = every_body(arrays, length)
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(bodies.kinds))[:60]
    bodies = distinct(bodies.take(order))
    found = judged(arrays, bodies, object_identity)
    assert found == {rule: reference.measures(rule).pca_predictions for rule in found}
    assert judged(arrays, bodies, object_identity, work=0) == found
    assert found.keys() == harvested(arrays, bodies, limits(object_identity=object_identity)).keys()


def test_what_is_judged_is_estimated_from_the_starts_that_were_visited() -> None:
    """Of 100 subjects, each with one object, about half are visited: the estimate is for all."""
    triples = [(x, 0, 100 + x) for x in range(100)] + [(x, 1, 100 + x) for x in range(100)]
    arrays = arrays_of((200, 2, triples))
    body = make_bodies(arrays, BINARY, np.array([[0]], np.int32))
    rule = Rule("B", 1, None, (0,), None)
    assert judged(arrays, body)[rule] == 100
    assert harvested(arrays, body, limits(budget=100))[rule] == (100, 100, False)
    assert judged(arrays, body, budget=100)[rule] == 100
