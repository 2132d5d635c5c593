"""Where a body leads: a few witnesses for each end stand for all ways to it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import NO_LIMIT, empty_scratch
from anyburl.graph.kernel import GraphArrays
from anyburl.rules.types import MAX_LENGTH
from called import reach
from kernels import arrays_of, examples, random_graphs
from reference.graph import Body, build
from reference.scoring import Walk, walks
from strategies import SmallGraph

pytestmark = pytest.mark.kernel

Ways = dict[int, list[set[int]]]
"""The ends of a body, each with the inner entities of the ways kept for it."""

dense_graphs = random_graphs(8, [1, 2], 30)


def reached(arrays: GraphArrays, body: Body, start: int, extra: int, object_identity: bool = True) -> Ways:
    length = len(body)
    scratch = empty_scratch(arrays, length)
    levels = scratch.levels
    side, n_ends, _ = reach(
        arrays, np.array(body, np.int32), length, start, extra, object_identity, levels, scratch.clock, NO_LIMIT
    )
    ends = levels.nodes[side, :n_ends].tolist()
    assert len(set(ends)) == n_ends
    counts = levels.n_witnesses[side]
    return {
        end: [set(way[: length - 1].tolist()) for way in levels.witnesses[side, slot, : counts[slot]]]
        for slot, end in enumerate(ends)
    }


def walked(graph: SmallGraph, body: Body, start: int, object_identity: bool = True) -> set[Walk]:
    n_entities, n_relations, triples = graph
    return walks(build(triples, n_entities, n_relations, object_identity), body, start, object_identity)


def draw_body(data: st.DataObject, graph: SmallGraph, lengths: list[int]) -> Body:
    length = data.draw(st.sampled_from(lengths))
    directed = st.integers(0, 2 * graph[1] - 1)
    return tuple(data.draw(st.lists(directed, min_size=length, max_size=length)))


@settings(max_examples=examples(300, 40))
@given(dense_graphs, st.data())
def test_the_ends_are_those_of_the_reference_walks(graph: SmallGraph, data: st.DataObject) -> None:
    body, arrays = draw_body(data, graph, [1, 2, 3, 4, 5, 6, MAX_LENGTH]), arrays_of(graph)
    for start in range(graph[0]):
        expected = {walk[-1] for walk in walked(graph, body, start)}
        assert set(reached(arrays, body, start, extra=0)) == expected
        assert set(reached(arrays, body, start, extra=1)) == expected


@settings(max_examples=examples(200, 20))
@given(dense_graphs, st.data())
def test_a_way_that_avoids_one_more_entity_is_kept(graph: SmallGraph, data: st.DataObject) -> None:
    body, arrays = draw_body(data, graph, [2, 3, 4, 5, 6]), arrays_of(graph)
    for start in range(graph[0]):
        found = reached(arrays, body, start, extra=1)
        every = walked(graph, body, start)
        for end, ways in found.items():
            inner = {frozenset(walk[1:-1]) for walk in every if walk[-1] == end}
            # What is kept is some of the ways, and for each entity as good as all of them.
            assert {frozenset(way) for way in ways} <= inner
            for c in range(graph[0]):
                assert any(c not in way for way in ways) == any(c not in way for way in inner)


@settings(max_examples=examples(100, 10))
@given(random_graphs(9, [1], 40), st.data())
def test_no_more_ways_are_kept_than_the_theorem_allows(graph: SmallGraph, data: st.DataObject) -> None:
    """For n - 1 inner entities and one to avoid: n choose 1."""
    body, arrays = draw_body(data, graph, [3, 4, 5, 6]), arrays_of(graph)
    for start in range(graph[0]):
        assert all(len(ways) <= 1 for ways in reached(arrays, body, start, extra=0).values())
        found = reached(arrays, body, start, extra=1)
        assert all(1 <= len(ways) <= len(body) for ways in found.values())


@settings(max_examples=examples(100, 15))
@given(dense_graphs, st.data())
def test_without_object_identity_a_walk_may_come_back(graph: SmallGraph, data: st.DataObject) -> None:
    body, arrays = draw_body(data, graph, [1, 2, 3, 4]), arrays_of(graph, False)
    for start in range(graph[0]):
        expected = {walk[-1] for walk in walked(graph, body, start, object_identity=False)}
        assert set(reached(arrays, body, start, extra=1, object_identity=False)) == expected


@settings(max_examples=examples(100, 15))
@given(dense_graphs, st.data())
def test_from_self_a_walk_starts_and_never_returns(graph: SmallGraph, data: st.DataObject) -> None:
    """A U_c body that ends in `self` is walked from there."""
    n_entities, n_relations, triples = graph
    body, arrays = draw_body(data, graph, [1, 2, 3, 4]), arrays_of(graph)
    built = build(triples, n_entities, n_relations)
    first = built.steps.get((n_entities, body[0]), set())
    expected = {walk[-1] for entity in first for walk in walks(built, body[1:], entity, True)}
    assert set(reached(arrays, body, n_entities, extra=1)) == expected


def test_two_ways_that_share_nothing_are_both_kept() -> None:
    graph: SmallGraph = (6, 1, [(0, 0, 1), (1, 0, 2), (2, 0, 5), (0, 0, 3), (3, 0, 4), (4, 0, 5)])
    assert reached(arrays_of(graph), (0, 0, 0), 0, extra=1) == {5: [{1, 2}, {3, 4}]}
    assert set(reached(arrays_of(graph), (0, 0, 0), 0, extra=0)) == {5}


@pytest.mark.parametrize("width", [2, 3, 4])
def test_every_middle_of_a_complete_graph_can_be_avoided(width: int) -> None:
    entities = range(width + 2)
    graph: SmallGraph = (width + 2, 1, [(a, 0, b) for a, b in combinations(entities, 2)])
    graph[2].extend((b, 0, a) for a, b in combinations(entities, 2))
    for length in range(2, width + 1):
        found = reached(arrays_of(graph), (0,) * length, 0, extra=1)
        assert set(found) == set(entities) - {0}
        assert all(not set.intersection(*ways) for ways in found.values())
