"""Harvests, exact and unlimited: of every body every head, with the counts of the reference."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import BINARY, CONSTANT, DANGLING, GROUNDED, BodyArrays, empty_scratch, head_arrays
from anyburl.bodies.paths import make_bodies
from anyburl.graph.kernel import GraphArrays
from harvesting import (
    Scores,
    every_binary,
    every_constant,
    every_dangling,
    harvested,
    joined,
    limits,
)
from kernels import INTERPRETED, arrays_of, examples, random_graph, random_graphs
from reference.scoring import Rule, all_rules, is_tautology
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel


def expected_rules(graph: SmallGraph, length: int, *, object_identity: bool, types: str) -> dict[Rule, Scores]:
    """The reference rules of one length with their counts; `types` is "B", "U" or both."""
    n_entities, n_relations, triples = graph
    binary, unary = length * ("B" in types), length * ("U" in types)
    found = all_rules(
        triples,
        n_entities,
        n_relations,
        max_cyclic=binary,
        max_acyclic=unary,
        max_grounded=unary,
        object_identity=object_identity,
    )
    return {rule: (*counts, True) for rule, counts in found.items() if len(rule.body) == length}


def every_unary(arrays: GraphArrays, length: int) -> BodyArrays:
    parts = [every_constant(arrays, length, kind) for kind in (CONSTANT, GROUNDED)]
    return joined([*parts, every_dangling(arrays, length)])


def assert_binary_harvest(graph: SmallGraph, length: int, object_identity: bool) -> None:
    arrays = arrays_of(graph, object_identity)
    found = harvested(arrays, every_binary(arrays, length), limits(object_identity=object_identity))
    assert found == expected_rules(graph, length, object_identity=object_identity, types="B")


def assert_unary_harvest(graph: SmallGraph, length: int, object_identity: bool) -> None:
    arrays = arrays_of(graph, object_identity)
    found = harvested(arrays, every_unary(arrays, length), limits(object_identity=object_identity))
    assert found == expected_rules(graph, length, object_identity=object_identity, types="U")


@settings(max_examples=examples(200, 40))
@given(graphs(), st.sampled_from([1, 2, 3]), st.booleans())
def test_short_binary_bodies(graph: SmallGraph, length: int, object_identity: bool) -> None:
    assert_binary_harvest(graph, length, object_identity)


@settings(max_examples=examples(150, 30))
@given(graphs(max_relations=2), st.sampled_from([4, 5]), st.booleans())
def test_long_binary_bodies(graph: SmallGraph, length: int, object_identity: bool) -> None:
    assert_binary_harvest(graph, length, object_identity)


@settings(max_examples=examples(100, 20))
@given(random_graphs(8, [1, 2], 28), st.sampled_from([3, 4, 5]), st.booleans())
def test_long_binary_bodies_where_there_are_many_ways(graph: SmallGraph, length: int, object_identity: bool) -> None:
    assert_binary_harvest(graph, length, object_identity)


@settings(max_examples=examples(200, 30))
@given(graphs(), st.sampled_from([1, 2]), st.booleans())
def test_short_unary_bodies(graph: SmallGraph, length: int, object_identity: bool) -> None:
    assert_unary_harvest(graph, length, object_identity)


@settings(max_examples=examples(150, 20))
@given(graphs(), st.booleans())
def test_unary_bodies_of_length_3(graph: SmallGraph, object_identity: bool) -> None:
    assert_unary_harvest(graph, 3, object_identity)


@settings(max_examples=examples(50, 12))
@given(random_graphs(7, [1, 2], 20), st.sampled_from([2, 3, 4]), st.booleans())
def test_unary_bodies_where_there_are_many_ways(graph: SmallGraph, length: int, object_identity: bool) -> None:
    assert_unary_harvest(graph, length, object_identity)


@settings(max_examples=examples(60, 8))
@given(graphs(max_relations=2), st.booleans(), st.randoms(use_true_random=False))
def test_a_body_counts_the_same_in_any_company(graph: SmallGraph, object_identity: bool, rng: random.Random) -> None:
    """One scratch for all lengths, bodies of all kinds mixed, much room or little."""
    arrays = arrays_of(graph, object_identity)
    scratch, heads = empty_scratch(arrays, 3), head_arrays(arrays)
    for length in (3, 1, 2):
        bodies = joined([every_binary(arrays, length), every_unary(arrays, length)])
        order = list(range(len(bodies.kinds)))
        rng.shuffle(order)
        bodies = bodies.take(np.array(order[:150]))
        asked = limits(object_identity=object_identity)
        found = harvested(arrays, bodies, asked, heads, scratch, room=100_000)
        assert harvested(arrays, bodies, limits(object_identity=object_identity, work=0)) == found
        expected = expected_rules(graph, length, object_identity=object_identity, types="BU")
        assert {rule: expected.get(rule) for rule in found} == found


@settings(max_examples=examples(40, 6))
@given(graphs(max_relations=2), st.booleans())
def test_rules_read_heads_forward_leave_tautologies_out_and_put_self_last(
    graph: SmallGraph, object_identity: bool
) -> None:
    n_entities, n_relations, _ = graph
    arrays = arrays_of(graph, object_identity)
    bodies = joined([every_binary(arrays, 1), every_unary(arrays, 1)])
    for rule in harvested(arrays, bodies, limits(object_identity=object_identity)):
        assert not is_tautology(rule)
        if rule.type == "B" or rule.head_constant == n_entities:
            assert rule.head < n_relations


def test_a_body_that_is_its_own_reversal_gives_each_rule_once() -> None:
    """b(X,A), b(Y,A) joins (x, y) and (y, x): what h says of one the reversal says of the other."""
    arrays = arrays_of((4, 2, [(0, 0, 2), (1, 0, 2), (0, 1, 1), (1, 1, 0), (3, 1, 0)]))
    body = make_bodies(arrays, BINARY, np.array([[0, 2]], np.int32))
    assert harvested(arrays, body, limits()) == {Rule("B", 1, None, (0, 2), None): (2, 2, True)}


def test_the_mirror_image_of_a_relation_is_a_rule_and_the_relation_itself_is_none() -> None:
    arrays = arrays_of((3, 1, [(0, 0, 1), (1, 0, 0), (1, 0, 2)]))
    body = make_bodies(arrays, BINARY, np.array([[0]], np.int32))
    assert harvested(arrays, body, limits()) == {Rule("B", 0, None, (1,), None): (3, 2, True)}


def test_rule_13_loses_confidence_under_object_identity() -> None:
    """Two objects of one relation, both ways through c: with object identity c is no way to itself."""
    arrays = arrays_of((3, 2, [(0, 0, 2), (1, 0, 2), (0, 1, 2), (1, 1, 2)]))
    body = make_bodies(arrays, DANGLING, np.array([[0]], np.int32))
    assert harvested(arrays, body, limits()) == {}
    free = harvested(arrays, body, limits(object_identity=False))
    assert free == {Rule("Ud", 0, 2, (0,), None): (2, 2, True), Rule("Ud", 1, 2, (0,), None): (2, 2, True)}


@pytest.mark.kernel
@pytest.mark.skipif(not INTERPRETED, reason="takes interpreted kernels: all of them would be compiled once more")
def test_heads_are_found_where_there_are_more_relations_than_two_bytes_hold() -> None:
    few = random_graph(1, 6, 2, 20)
    large, last = 2**14 + 1, 2**14

    def spread(d: int) -> int:
        return [0, last, large, large + last][d]

    n_entities, _, triples = few
    arrays = arrays_of((n_entities, large, [(s, spread(r), o) for s, r, o in triples]))
    binary = make_bodies(arrays, BINARY, np.array([[0, last], [0, large]], np.int32))
    dangling = make_bodies(arrays, DANGLING, np.array([[0, last], [large, 0]], np.int32))
    constant = make_bodies(
        arrays, CONSTANT, np.array([[0, last], [large + last, 0]], np.int32), np.array([2, 6], np.int32)
    )
    found = harvested(arrays, joined([binary, dangling, constant]), limits())
    expected = expected_rules(few, 2, object_identity=True, types="BU")
    renamed = {
        rule._replace(head=spread(rule.head), body=tuple(spread(d) for d in rule.body)): scores
        for rule, scores in expected.items()
    }
    assert len(found) > 30
    assert {rule: renamed.get(rule) for rule in found} == found
