"""Look-ups in the graph and in the splits, against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.data import Dataset, TripleTable
from anyburl.graph.build import (
    all_known_answers,
    answer_counts,
    degrees,
    held_by,
    holding_splits,
    known_answers,
    lookup_segment,
    lookup_segments,
    neighbours,
    other_answers,
    relation_counts,
    split_names,
)
from anyburl.ranking.index import build_rule_index
from kernels import arrays_of, examples, table_of
from ranked import rule_set
from reference.graph import Triple, build
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel


def questions(graph: SmallGraph) -> tuple[np.ndarray, np.ndarray]:
    """Every entity with every directed relation."""
    asked = [(entity, d) for entity in range(graph[0]) for d in range(2 * graph[1])]
    entities, relations = np.array(asked, np.int32).T
    return entities, relations


def answers_of(graph: SmallGraph, entity: int, d: int) -> set[int]:
    n_relations, triples = graph[1], graph[2]
    if d < n_relations:
        return {o for s, r, o in triples if (s, r) == (entity, d)}
    return {s for s, r, o in triples if (o, r) == (entity, d - n_relations)}


def dataset_of(graph: SmallGraph, valid: list[Triple], test: list[Triple]) -> Dataset:
    train = table_of(graph)
    tables = [TripleTable.from_ids(np.array(part, np.int32).reshape(-1, 3), train.vocabulary) for part in (valid, test)]
    return Dataset("small", train, *tables)


@settings(max_examples=examples(150, 20))
@given(graphs())
def test_known_answers_are_what_triples_state(graph: SmallGraph) -> None:
    arrays, (entities, relations) = arrays_of(graph), questions(graph)
    offsets, every = all_known_answers(arrays, entities, relations)
    assert (offsets[0], offsets[-1]) == (0, len(every))
    assert every.dtype == np.int32
    for place, (entity, d) in enumerate(zip(entities.tolist(), relations.tolist(), strict=True)):
        expected = Counter(answers_of(graph, entity, d))
        one = known_answers(arrays, entity, d)
        of_many = every[offsets[place] : offsets[place + 1]]
        assert Counter(one.tolist()) == Counter(of_many.tolist()) == expected


@settings(max_examples=examples(150, 20))
@given(graphs())
def test_counts_are_those_of_the_steps(graph: SmallGraph) -> None:
    arrays, (entities, relations) = arrays_of(graph), questions(graph)
    steps = build(graph[2], graph[0], graph[1]).steps
    asked = list(zip(entities.tolist(), relations.tolist(), strict=True))
    assert answer_counts(arrays, entities, relations).tolist() == [len(steps.get(pair, ())) for pair in asked]
    everyone = np.arange(graph[0], dtype=np.int32)
    expected = [sum(len(ends) for (start, _), ends in steps.items() if start == entity) for entity in range(graph[0])]
    assert degrees(arrays, everyone).tolist() == expected
    for entity in range(graph[0]):
        joined = {o for s, _, o in graph[2] if s == entity} | {s for s, _, o in graph[2] if o == entity}
        assert set(neighbours(arrays, entity).tolist()) == joined


@settings(max_examples=examples(100, 15))
@given(graphs())
def test_segments_are_found_one_by_one_and_all_at_once(graph: SmallGraph) -> None:
    arrays, (entities, relations) = arrays_of(graph), questions(graph)
    steps = build(graph[2], graph[0], graph[1]).steps
    found = lookup_segments(arrays, entities, relations).tolist()
    assert found == [lookup_segment(arrays, int(e), int(d)) for e, d in zip(entities, relations, strict=True)]
    for segment, entity, d in zip(found, entities.tolist(), relations.tolist(), strict=True):
        assert (segment >= 0) == bool(steps.get((entity, d)))
        assert segment < 0 or arrays.segment_relations[segment] == d


@settings(max_examples=examples(100, 15))
@given(graphs())
def test_relations_have_edges_ends_and_starts(graph: SmallGraph) -> None:
    n_relations = graph[1]
    arrays = arrays_of(graph)
    index = build_rule_index(arrays, rule_set(graph, []))
    edges, n_ends, n_starts = relation_counts(arrays, index.edges.starts)
    for d in range(2 * n_relations):
        pairs = {(s, o) if d < n_relations else (o, s) for s, r, o in graph[2] if r == d % n_relations and s != o}
        assert edges[d] == len(pairs)
        assert n_starts[d] == len({start for start, _ in pairs})
        assert n_ends[d] == len({end for _, end in pairs})


TRIPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=12)


@settings(max_examples=examples(150, 20))
@given(graphs(), TRIPLES, TRIPLES, TRIPLES)
def test_splits_tell_what_they_hold(
    graph: SmallGraph, valid: list[Triple], test: list[Triple], asked: list[Triple]
) -> None:
    n_entities, n_relations, train = graph
    valid, test, asked = (
        [(s % n_entities, r % n_relations, o % n_entities) for s, r, o in part] for part in (valid, test, asked)
    )
    dataset, wanted = dataset_of(graph, valid, test), [*asked, *train]
    parts = {"train": train, "valid": valid, "test": test}
    expected = [tuple(name for name, part in parts.items() if triple in part) for triple in wanted]
    assert [split_names(int(bits)) for bits in held_by(dataset, np.array(wanted, np.int32).reshape(-1, 3))] == expected
    assert [holding_splits(dataset, triple) for triple in wanted] == expected


@settings(max_examples=examples(150, 20))
@given(graphs(), TRIPLES, TRIPLES, st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)))
def test_other_answers_are_all_but_the_own(
    graph: SmallGraph, valid: list[Triple], test: list[Triple], drawn: Triple
) -> None:
    n_entities, n_relations, train = graph
    (s, r, o), valid, test = (
        (drawn[0] % n_entities, drawn[1] % n_relations, drawn[2] % n_entities),
        *([(a % n_entities, d % n_relations, b % n_entities) for a, d, b in part] for part in (valid, test)),
    )
    dataset = dataset_of(graph, valid, test)
    objects, subjects = other_answers(dataset, arrays_of(graph), (s, r, o))
    stated = {*train, *valid, *test}
    assert set(objects.tolist()) == {b for a, d, b in stated if (a, d) == (s, r)} - {o}
    assert set(subjects.tolist()) == {a for a, d, b in stated if (b, d) == (o, r)} - {s}


def test_no_questions_have_no_answers() -> None:
    arrays, nothing = arrays_of((3, 1, [(0, 0, 1)])), np.empty(0, np.int32)
    offsets, answers = all_known_answers(arrays, nothing, nothing)
    assert (offsets.tolist(), answers.tolist()) == ([0], [])
    assert held_by(dataset_of((3, 1, []), [], []), np.empty((0, 3), np.int32)).tolist() == []
    assert split_names(0) == ()
    assert split_names(5) == ("train", "test")
