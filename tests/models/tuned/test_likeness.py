"""Likeness by shared facts: as the reference defines it, whatever the order, the threads and the limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anyburl
from anyburl.graph.build import build_graph
from anyburl.models.tuned import fallback
from anyburl.models.tuned.fallback import LEAST_LENGTH, Similarity
from kernels import arrays_of
from reference.likeness import ReferenceLikeness
from strategies import SmallGraph, graphs


def all_questions(n_entities: int, n_relations: int) -> tuple[np.ndarray, np.ndarray]:
    entities = np.repeat(np.arange(n_entities, dtype=np.int32), 2 * n_relations)
    return entities, np.tile(np.arange(2 * n_relations, dtype=np.int32), n_entities)


@pytest.mark.kernel
@given(drawn=graphs(), most=st.sampled_from([1, 2, 20_000]), threads=st.sampled_from([1, 2]))
def test_columns_are_those_of_the_reference(drawn: SmallGraph, most: int, threads: int) -> None:
    n_entities, n_relations, triples = drawn
    reference = ReferenceLikeness(triples, n_entities, most, LEAST_LENGTH)
    entities, relations = all_questions(n_entities, n_relations)
    questions = np.repeat(np.arange(len(entities)), n_entities)
    candidates = np.tile(np.arange(n_entities, dtype=np.int32), len(entities))
    offsets = np.arange(len(entities) + 1) * n_entities
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fallback, "MOST_SHARED", most)
        patch.setattr("anyburl.models.tuned.fallback.QUESTIONS_AT_A_TIME", 3)
        told = Similarity(arrays_of(drawn), threads).columns(entities, relations, offsets, candidates)
    for row, question in enumerate(questions):
        relation, backward = int(relations[question]) % n_relations, bool(relations[question] >= n_relations)
        expected = reference.columns(int(entities[question]), relation, backward, int(candidates[row]))
        assert told[row].tolist() == pytest.approx(expected, abs=1e-4, rel=1e-4)


@pytest.mark.kernel
def test_little_is_cleared_one_by_one_and_much_at_once() -> None:
    """A question in a small corner of the graph, one about all of it, in turns: each gets what it gets alone."""
    hub, n_entities = 0, 120
    corners = [(3, 1, 4), (6, 1, 4), (6, 0, 9), *((entity, 0, entity + 1) for entity in range(1, n_entities - 1, 3))]
    graph = arrays_of((n_entities, 2, corners + [(entity, 1, hub) for entity in range(2, n_entities, 3)]))
    entities, relations = np.array([1, 2, 3, hub, 3, 5], np.int32), np.array([0, 1, 0, 3, 0, 2], np.int32)
    listed = np.arange(n_entities, dtype=np.int32)
    offsets = np.arange(len(entities) + 1) * n_entities
    together = Similarity(graph).columns(entities, relations, offsets, np.tile(listed, len(entities)))
    for place in range(len(entities)):
        own = slice(place, place + 1)
        alone = Similarity(graph).columns(entities[own], relations[own], offsets[:2], listed)
        np.testing.assert_array_equal(together[place * n_entities :][:n_entities], alone)
    assert (together[:, 6].reshape(6, -1) > 0).sum(axis=1).tolist() == [0, 39, 1, 0, 1, 39]
    assert together[2 * n_entities + 9, 5] > 0


def test_who_shares_rare_facts_is_more_alike() -> None:
    facts = [(f"person{i}", "lives_in", "Rome") for i in range(8)]
    facts += [("person0", "plays", "theorbo"), ("person1", "plays", "theorbo")]
    facts += [("person1", "speaks", "Latin"), ("person2", "speaks", "Greek")]
    data = anyburl.load_dataset(facts)
    graph, vocabulary = build_graph(data.train), data.vocabulary
    ids = {label: i for i, label in enumerate(vocabulary.entities.to_list())}
    asked = np.array([ids["person0"]], np.int32), np.array([vocabulary.relations.to_list().index("speaks")], np.int32)
    listed = np.array([ids["Latin"], ids["Greek"]], np.int32)
    told = Similarity(graph).columns(*asked, np.array([0, 2]), listed)
    assert told[0, 0] > 2 * told[1, 0] > 0  # who speaks Latin plays the same instrument
