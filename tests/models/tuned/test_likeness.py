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
