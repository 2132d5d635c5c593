"""The steps that every kernel is made of, against sets and dicts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.graph.kernel import GraphArrays
from called import entity_rows, find_segment, has_edge, inverse, joins, lower_bound, steps
from kernels import arrays_of, examples
from reference import graph as reference
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel


def built(graph: SmallGraph) -> tuple[GraphArrays, reference.Graph]:
    n_entities, n_relations, triples = graph
    return arrays_of(graph), reference.build(triples, n_entities, n_relations)


@settings(max_examples=examples(100))
@given(graphs())
def test_steps_lead_to_the_entities_reached_and_never_to_self(graph: SmallGraph) -> None:
    arrays, expected = built(graph)
    for x, d in product(range(graph[0] + 1), range(2 * graph[1])):
        first, last = steps(arrays, x, d)
        assert arrays.targets[first:last].tolist() == sorted(expected.steps.get((x, d), set()) - {graph[0]})


@settings(max_examples=examples(100))
@given(graphs())
def test_a_segment_is_found_where_there_is_a_step(graph: SmallGraph) -> None:
    arrays, expected = built(graph)
    for x, d in product(range(graph[0] + 1), range(2 * graph[1])):
        segment = find_segment(arrays, x, d)
        assert (segment >= 0) == ((x, d) in expected.steps)
        if segment >= 0:
            rows = slice(arrays.segment_starts[segment], arrays.segment_starts[segment + 1])
            assert arrays.targets[rows].tolist() == sorted(expected.steps[x, d])


@settings(max_examples=examples(100))
@given(graphs())
def test_an_edge_is_there_if_the_reference_has_it(graph: SmallGraph) -> None:
    arrays, expected = built(graph)
    terms = range(graph[0] + 1)
    for x, d, y in product(terms, range(2 * graph[1]), terms):
        assert has_edge(arrays, x, d, y) == (y in expected.steps.get((x, d), ()))


@settings(max_examples=examples(100))
@given(graphs())
def test_joins_are_the_relations_between_two_entities(graph: SmallGraph) -> None:
    arrays, expected = built(graph)
    terms = range(graph[0] + 1)
    for x, y in product(terms, terms):
        first, last = joins(arrays, x, y)
        assert arrays.neighbour_relations[first:last].tolist() == sorted(expected.joins.get((x, y), ()))


@settings(max_examples=examples(100))
@given(graphs())
def test_the_rows_of_an_entity_are_all_its_edges(graph: SmallGraph) -> None:
    arrays, expected = built(graph)
    for x in range(graph[0] + 1):
        first, last = entity_rows(arrays, x)
        reached = [y for (s, _), found in expected.steps.items() if s == x for y in found]
        assert arrays.neighbours[first:last].tolist() == sorted(reached)
        assert sorted(arrays.targets[first:last].tolist()) == sorted(reached)


@settings(max_examples=examples(100, 100))
@given(st.lists(st.integers(-3, 3)), st.integers(-4, 4), st.data())
def test_lower_bound_is_the_first_place_not_below(values: list[int], wanted: int, data: st.DataObject) -> None:
    ordered = sorted(values)
    start = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(start, len(values)))
    found = lower_bound(np.array(ordered, np.int32), start, end, wanted)
    assert found == next((i for i in range(start, end) if ordered[i] >= wanted), end)


def test_a_relation_turned_twice_is_itself() -> None:
    arrays = arrays_of((1, 3, []))
    assert [inverse(arrays, d) for d in range(6)] == [3, 4, 5, 0, 1, 2]
    assert [inverse(arrays, d) for d in range(6)] == [reference.inverse(d, 3) for d in range(6)]


@pytest.mark.parametrize("n_relations", [2**14 - 1, 2**14 + 1])
def test_kernels_read_graphs_with_many_relations(n_relations: int) -> None:
    """With more than 2^14 relations, directed ones take four bytes: another type, compiled anew."""
    graph: SmallGraph = (3, n_relations, [(0, n_relations - 1, 1), (1, 0, 2), (2, n_relations - 1, 2)])
    arrays, expected = built(graph)
    for (x, d), reached in expected.steps.items():
        first, last = steps(arrays, x, d)
        assert set(arrays.targets[first:last].tolist()) == reached - {3}
        assert all(has_edge(arrays, x, d, y) for y in reached)
        assert not has_edge(arrays, x, d, x)
    for (x, y), relations in expected.joins.items():
        first, last = joins(arrays, x, y)
        assert arrays.neighbour_relations[first:last].tolist() == sorted(relations)
