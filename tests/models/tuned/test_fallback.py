"""Answers without rules: walks as in the reference, fit and popularity as counted by hand, and no question without an
answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import anyburl
from anyburl.graph.build import build_graph
from anyburl.models.tuned.fallback import N_FALLBACK_COLUMNS, Fallback, make_relation_end
from anyburl.models.tuned.kernel import WalkArrays, fill_walks
from kernels import arrays_of
from reference.walks import walk_shares
from strategies import SmallGraph, graphs


@pytest.mark.kernel
@given(graphs(), st.sampled_from([Fraction(0), Fraction(1, 77), Fraction(1, 10)]))
def test_walks_are_those_of_the_reference(drawn: SmallGraph, least: Fraction) -> None:
    n_entities, _, triples = drawn
    starts, everything = (
        np.arange(n_entities, dtype=np.int32),
        np.tile(np.arange(n_entities, dtype=np.int32), n_entities),
    )
    shape, walks = (4, n_entities), np.empty((n_entities * n_entities, 3), np.float32)
    space = WalkArrays(np.zeros(shape, np.float32), np.empty(shape, np.int32), np.zeros(4, np.int64))
    offsets = np.arange(n_entities + 1, dtype=np.int64) * n_entities
    fill_walks(arrays_of(drawn), starts, offsets, everything, 0, n_entities, float(least), space, walks)
    assert not space.shares.any()
    for start in range(n_entities):
        shares, tried = walk_shares(triples, start, 3, least)
        assume(all(abs(part - least) > 1e-5 for part in tried))
        for step, expected in enumerate(shares[1:]):
            told = [0.0 if entity == start else float(expected.get(entity, 0)) for entity in range(n_entities)]
            assert walks[start * n_entities :, step][:n_entities].tolist() == pytest.approx(told, abs=1e-5)


@given(graphs(min_triples=1))
def test_shares_and_scores_are_finite_and_the_best_place_is_zero(drawn: SmallGraph) -> None:
    n_entities, n_relations, triples = drawn
    graph = arrays_of(drawn)
    for relation in range(n_relations):
        place = make_relation_end(graph, relation)
        n_facts = sum(r == relation for _, r, _ in triples)
        counts = [sum(r == relation and s == entity for s, r, _ in triples) for entity in range(n_entities)]
        assert place.shares.tolist() == pytest.approx([count / max(1, n_facts) for count in counts])
        assert np.isfinite(place.fit).all()
        assert place.score.max() == pytest.approx(0)


@given(graphs(min_triples=1), st.data())
def test_columns_hold_what_scores_are_made_of(drawn: SmallGraph, data: st.DataObject) -> None:
    n_entities, n_relations, _ = drawn
    fallback = Fallback(arrays_of(drawn))
    entities = np.array(data.draw(st.lists(st.integers(0, n_entities - 1), min_size=1, max_size=4)), np.int32)
    relations = np.array([data.draw(st.integers(0, 2 * n_relations - 1)) for _ in entities], np.int32)
    scores = fallback.scores(entities, relations)
    questions = np.repeat(np.arange(len(entities)), n_entities)
    candidates = np.tile(np.arange(n_entities, dtype=np.int32), len(entities))
    columns = fallback.columns(entities, relations, questions, candidates)
    assert columns.shape == (len(candidates), N_FALLBACK_COLUMNS)
    assert np.isfinite(columns).all()
    assert columns[:, 0].tolist() == pytest.approx(scores.ravel().tolist(), abs=1e-2)


@pytest.mark.kernel
@given(graphs(min_triples=1), st.data())
def test_questions_about_one_entity_share_what_is_found_about_it(drawn: SmallGraph, data: st.DataObject) -> None:
    """Asked together, in any order, questions get what each gets alone."""
    graph = arrays_of(drawn)
    n, directed = graph.n_entities, 2 * graph.n_relations
    asked = data.draw(st.lists(st.tuples(st.integers(0, min(n, 3) - 1), st.integers(0, directed - 1)), min_size=1))
    entities, relations = (np.array(column, np.int32) for column in zip(*asked, strict=True))
    everything = np.arange(n, dtype=np.int32)
    together = Fallback(graph).columns(
        entities, relations, np.repeat(np.arange(len(asked)), n), np.tile(everything, len(asked))
    )
    for place in range(len(asked)):
        own = slice(place, place + 1)
        alone = Fallback(graph).columns(entities[own], relations[own], np.zeros(n, np.int64), everything)
        np.testing.assert_array_equal(together[place * n : (place + 1) * n], alone)


def test_an_entity_fits_where_entities_like_it_stand() -> None:
    facts = [(f"person{i}", "speaks", f"language{i % 2}") for i in range(6)]
    facts += [(f"person{i}", "lives_in", f"town{i % 3}") for i in range(8)]
    data = anyburl.load_dataset(facts)
    graph, vocabulary = build_graph(data.train), data.vocabulary
    fit = make_relation_end(graph, vocabulary.relations.to_list().index("speaks")).fit
    labels = vocabulary.entities.to_list()
    assert fit[labels.index("person7")] > max(fit[labels.index("town0")], fit[labels.index("language0")])


def test_a_tuned_model_leaves_no_question_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 500)
    monkeypatch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 500)
    data = anyburl.load_dataset("geo")
    rules = anyburl.learn(data, paths=20_000, seed=1, threads=2)
    reasoner = anyburl.Reasoner(rules.filter(relation="capital"), data, aggregation="tuned", threads=2)
    answers = reasoner.predict("France", "official_language", None)
    assert len(answers) == 10
    assert all(answer.rule is None and answer.n_rules == 0 for answer in answers)
