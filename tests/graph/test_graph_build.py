"""The index of a graph: both views, segments and domains hold what the reference graph holds."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import empty_scratch, head_arrays
from anyburl.data import TripleTable
from anyburl.graph.build import _Edges, build_graph, lookup_segments, segment_entities, with_loops
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.ranking.index import build_rule_index
from anyburl.ranking.kernel_trie import count_sort
from kernels import arrays_of, examples, table_of
from ranked import Scored, rule_set, scored_rules
from reference.graph import build, inverse
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel

Edge = tuple[int, int, int]


def edges_of(graph: SmallGraph, object_identity: bool = True) -> list[Edge]:
    """Every directed edge (source, relation, target) of the reference graph, in order."""
    n_entities, n_relations, triples = graph
    steps = build(triples, n_entities, n_relations, object_identity).steps
    return sorted((source, d, target) for (source, d), reached in steps.items() for target in reached)


def wide_arrays_of(graph: SmallGraph) -> GraphArrays:
    """The graph, built as if it were so large that rows and segments take 64 bits."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("anyburl.graph.build.MOST_ROWS", 0)
        return build_graph(table_of(graph))


def segments_of(graph: SmallGraph) -> list[tuple[int, int]]:
    return sorted({(source, d) for source, d, _ in edges_of(graph)})


def owners_of(arrays: GraphArrays) -> list[int]:
    """The entity of each segment."""
    return segment_entities(arrays, np.arange(len(arrays.segment_relations))).tolist()


def row_owners(arrays: GraphArrays) -> list[int]:
    """The entity of each row, by the ranges that both views share."""
    bounds = arrays.segment_starts[arrays.segment_offsets]
    return np.repeat(np.arange(arrays.n_entities + 1), np.diff(bounds)).tolist()


@settings(max_examples=examples(150, 60))
@given(graphs(), st.booleans())
def test_both_views_list_every_directed_edge_once_and_in_order(graph: SmallGraph, object_identity: bool) -> None:
    arrays, edges = arrays_of(graph, object_identity), edges_of(graph, object_identity)
    owners = row_owners(arrays)
    by_row = np.repeat(arrays.segment_relations, np.diff(arrays.segment_starts)).tolist()
    assert list(zip(owners, by_row, arrays.targets.tolist(), strict=True)) == edges
    joining = arrays.neighbour_relations.tolist()
    by_neighbour = list(zip(owners, arrays.neighbours.tolist(), joining, strict=True))
    assert by_neighbour == sorted((source, target, d) for source, d, target in edges)


@settings(max_examples=examples(150, 60))
@given(graphs(), st.booleans())
def test_an_entity_has_one_segment_for_each_directed_relation_that_it_has(
    graph: SmallGraph, object_identity: bool
) -> None:
    arrays = arrays_of(graph, object_identity)
    entities, relations = owners_of(arrays), arrays.segment_relations.tolist()
    assert list(zip(entities, relations, strict=True)) == segments_of(graph)
    assert len(arrays.segment_offsets) == graph[0] + 2
    assert len(arrays.segment_starts) == len(relations) + 1


@settings(max_examples=examples(150, 60))
@given(graphs(), st.booleans())
def test_the_domain_of_a_relation_is_who_reaches_an_entity_by_it(graph: SmallGraph, object_identity: bool) -> None:
    n_entities, n_relations, _ = graph
    arrays, edges = arrays_of(graph, object_identity), edges_of(graph, object_identity)
    for d in range(2 * n_relations):
        domain = arrays.domains[arrays.domain_offsets[d] : arrays.domain_offsets[d + 1]].tolist()
        assert domain == sorted({s for s, r, o in edges if r == d and n_entities not in (s, o)})
    assert arrays.domain_offsets[-1] == len(arrays.domains)


@settings(max_examples=examples(150, 60))
@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_the_triples_leaves_no_trace_in_the_arrays(graph: SmallGraph, rng: random.Random) -> None:
    n_entities, n_relations, triples = graph
    shuffled = rng.sample(triples, len(triples)) + triples[:2]
    one, other = arrays_of(graph), arrays_of((n_entities, n_relations, shuffled))
    for field, same in zip(one, other, strict=True):
        assert np.array_equal(field, same)
        assert np.asarray(field).dtype == np.asarray(same).dtype


@settings(max_examples=examples(50, 20))
@given(graphs(), st.booleans())
def test_every_array_is_frozen(graph: SmallGraph, object_identity: bool) -> None:
    arrays = arrays_of(graph, object_identity)
    columns = [field for field in arrays if isinstance(field, np.ndarray)]
    assert len(columns) == len(arrays) - 2
    assert not any(column.flags.writeable for column in columns)
    assert all(column.flags.c_contiguous for column in columns)


@settings(max_examples=examples(100, 40))
@given(graphs(), st.data(), st.booleans())
def test_unary_heads_are_the_segments_of_their_constants(
    graph: SmallGraph, data: st.DataObject, object_identity: bool
) -> None:
    _, n_relations, _ = graph
    asked = data.draw(st.none() | st.lists(st.integers(0, n_relations - 1), unique=True))
    arrays, edges = arrays_of(graph, object_identity), edges_of(graph, object_identity)
    heads = head_arrays(arrays, None if asked is None else np.array(asked, np.int64))
    segments = segments_of(graph)
    back = [segments.index((target, inverse(d, n_relations))) for _, d, target in edges]
    assert arrays.partners.tolist() == back
    wanted = [asked is None or d % n_relations in asked for d in range(2 * n_relations)]
    assert heads.selected.tolist() == wanted
    counts = [sum(d == r for _, r, _ in edges) for d in range(2 * n_relations)]
    assert heads.edge_counts.tolist() == counts


@pytest.mark.parametrize(("n_relations", "kind"), [(2**14 - 1, np.int16), (2**14, np.int32)])
def test_relations_take_two_bytes_where_they_fit(n_relations: int, kind: type) -> None:
    graph: SmallGraph = (3, n_relations, [(0, n_relations - 1, 1), (2, 0, 2)])
    arrays = arrays_of(graph)
    assert arrays.segment_relations.dtype == arrays.neighbour_relations.dtype == kind
    assert arrays.segment_relations.min() >= 0
    owners = owners_of(arrays)
    assert list(zip(owners, arrays.segment_relations.tolist(), strict=True)) == segments_of(graph)


@settings(max_examples=examples(100, 30))
@given(graphs(), st.integers(1, 8))
def test_sorting_a_few_edges_at_a_time_gives_the_same_graph(graph: SmallGraph, most_keys: int) -> None:
    table = table_of(graph)
    for field, same in zip(build_graph(table), build_graph(table, most_keys=most_keys), strict=True):
        np.testing.assert_array_equal(field, same)


def test_ids_too_large_for_one_integer_together_are_sorted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few bits for the source, as where entities and relations take many, each block holds few sources."""
    graph: SmallGraph = (9, 2, [(s, r, o) for s in range(9) for r in range(2) for o in range(0, 9, 1 + s % 3)])
    table = table_of(graph)
    whole = build_graph(table)
    blocks = _Edges._blocks
    monkeypatch.setattr(_Edges, "_blocks", lambda edges, bits: blocks(edges, 1))
    for field, same in zip(whole, build_graph(table), strict=True):
        np.testing.assert_array_equal(field, same)


@settings(max_examples=examples(30, 10))
@given(graphs(min_triples=1))
def test_rows_and_segments_of_64_bits_where_32_are_too_few(graph: SmallGraph) -> None:
    wide = wide_arrays_of(graph)
    assert {wide.segment_starts.dtype, wide.segment_offsets.dtype, wide.partners.dtype} == {np.dtype(np.int64)}
    for field, same in zip(wide, arrays_of(graph), strict=True):
        np.testing.assert_array_equal(field, same)


@settings(max_examples=examples(30, 10))
@given(graphs(min_triples=1), st.data())
def test_whoever_keeps_the_numbers_of_segments_keeps_64_bits(graph: SmallGraph, data: st.DataObject) -> None:
    """And says the same as with 32."""
    wide, narrow, asked = wide_arrays_of(graph), arrays_of(graph), data.draw(scored_rules(graph))
    assert empty_scratch(wide, 2).touched.dtype == np.int64
    assert empty_scratch(narrow, 2).touched.dtype == np.int32
    pairs = np.array([(s, r) for s, r, _ in graph[2]], np.int32)
    found, same = (lookup_segments(arrays, *pairs.T) for arrays in (wide, narrow))
    assert found.dtype == np.int64
    assert found.tolist() == same.tolist()
    indexed, alike = (build_rule_index(arrays, rule_set(graph, asked)) for arrays in (wide, narrow))
    assert {indexed.short.bodies.dtype, indexed.short.head_bodies.dtype} == {np.dtype(np.int64)}
    for field, expected in zip(indexed.short, alike.short, strict=True):
        np.testing.assert_array_equal(field, expected)


def test_rules_are_sorted_by_segments_as_the_graph_numbers_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph with more than 2^31 segments does not fit here; the type of what is sorted by does."""
    sorted_by: list[np.dtype] = []

    def sort(keys: np.ndarray, *others: np.ndarray) -> None:
        sorted_by.append(keys.dtype)
        count_sort(keys, *others)

    monkeypatch.setattr("anyburl.ranking.index.count_sort", sort)
    graph: SmallGraph = (3, 1, [(0, 0, 1), (2, 0, 1)])
    rules = rule_set(graph, [Scored(("Uc", 0, 0, (0,), 1), 1, 2)])
    build_rule_index(arrays_of(graph), rules)
    assert set(sorted_by) == {np.dtype(np.int32)}
    build_rule_index(wide_arrays_of(graph), rules)
    assert np.dtype(np.int64) in sorted_by


@settings(max_examples=examples(50, 20))
@given(graphs())
def test_edges_to_oneself_are_added_once_and_only_where_facts_are_reflexive(graph: SmallGraph) -> None:
    plain, wide = arrays_of(graph), wide_arrays_of(graph)
    looped = with_loops(plain)
    assert with_loops(looped) is looped
    if all(s != o for s, _, o in graph[2]):
        assert looped is plain
    for field, same, kept in zip(looped, with_loops(wide), plain, strict=True):
        np.testing.assert_array_equal(field, same)
        assert np.asarray(field).dtype == np.asarray(kept).dtype


def test_relations_turn_round_and_padding_stays() -> None:
    assert inverses(np.array([[0, 3, -1], [2, 5, -1]], np.int32), 3).tolist() == [[3, 0, -1], [5, 2, -1]]


def test_a_graph_without_triples_has_no_edges() -> None:
    table = table_of((2, 1, []))
    arrays = build_graph(TripleTable(table.vocabulary, table.triples))
    assert len(arrays.targets) == len(arrays.domains) == len(arrays.segment_relations) == 0
    assert arrays.segment_offsets.tolist() == [0, 0, 0, 0]
