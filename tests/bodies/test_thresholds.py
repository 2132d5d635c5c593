"""Conditions that are learned: planted ones are, shuffled values give none, and cuts are round."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl import Dataset, LearnOptions, RuleSet, learn
from anyburl.bodies.kernel_values import SMOOTHING, surest_confidences, total_heads
from anyburl.bodies.thresholds import choose_cuts, discoveries, round_cut
from anyburl.data.attributes import Attribute, AttributeKind, Attributes, parse_value
from anyburl.graph.build import find_segments
from anyburl.graph.stored import graph_of
from anyburl.learning.learner import Learner
from kernels import examples, table_of
from reference.conditions import surest_confidence
from reference.graph import build
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel

N = 600


@pytest.fixture(scope="module")
def planted() -> Dataset:
    """Games are large, short books are old, and makers of many parts are big; half of each holds anyway."""
    rng = np.random.default_rng(1)
    size, born, staff = rng.integers(1, 1000, N), rng.integers(-40_000, 20_000, N), rng.integers(1, 200, 60)
    makers = rng.integers(0, 60, N)
    triples = [(f"e{i}", "made_by", f"m{makers[i]}") for i in range(N)]
    triples += [(f"e{i}", "section", "games" if size[i] >= 500 and rng.random() < 0.9 else "misc") for i in range(N)]
    triples += [(f"e{i}", "era", "old" if born[i] < -25_567 and rng.random() < 0.9 else "new") for i in range(N)]
    triples += [
        (f"e{i}", "team", "small" if staff[makers[i]] < 50 and rng.random() < 0.9 else "large") for i in range(N)
    ]
    triples += [(f"e{i}", "shelf", "middle" if 300 <= size[i] < 500 else "side") for i in range(N)]
    data = Dataset.from_triples(triples)
    ids = data.vocabulary.encode_entities([f"e{i}" for i in range(N)])
    owners = data.vocabulary.encode_entities([f"m{i}" for i in range(60)])
    known = owners >= 0
    return Dataset(
        "planted",
        data.train,
        data.valid,
        data.test,
        attributes=Attributes.of(
            [
                Attribute.of("size", AttributeKind.NUMBER, ids, size),
                Attribute.of("born", AttributeKind.DATE, ids, born),
                Attribute.of("staff", AttributeKind.NUMBER, owners[known], staff[known]),
            ]
        ),
    )


def conditions(data: Dataset) -> RuleSet:
    rules = learn(data, paths=100, seed=1, max_cyclic=1, max_acyclic=0, keep="all")
    return rules.take(rules.has_condition)


def test_planted_conditions_are_learned_with_round_cuts(planted: Dataset) -> None:
    rules = conditions(planted)
    texts = dict(zip(rules.texts(), rules.confidence(), strict=True))
    large = next(text for text in texts if text.startswith("section(X,games) <= size(X) >= "))
    assert 0.8 < texts[large] < 1
    assert 480 <= float(large.split()[-1]) <= 520
    middle = next(text for text in texts if text.startswith("shelf(X,middle) <= ") and " < " in text and ">=" in text)
    assert texts[middle] > 0.95
    old = next(text for text in texts if text.startswith("era(X,old) <= born(X) < "))
    assert abs(float(parse_value(old.split()[-1], AttributeKind.DATE) or 0) + 25_567) < 1000
    assert any(text.startswith("team(X,small) <= made_by(X,A), staff(A) < ") for text in texts)
    assert len(rules) < 25


def test_a_relation_with_one_object_may_have_a_condition() -> None:
    rng = np.random.default_rng(3)
    size = rng.integers(1, 1000, N)
    triples = [(f"e{i}", "near", f"e{rng.integers(N)}") for i in range(N)]
    triples += [(f"e{i}", "kind", "large") for i in range(N) if size[i] >= 500 and rng.random() < 0.6]
    data = Dataset.from_triples(triples)
    ids = data.vocabulary.encode_entities([f"e{i}" for i in range(N)])
    sizes = Attributes.of([Attribute.of("size", AttributeKind.NUMBER, ids, size)])
    rules = conditions(Dataset("large", data.train, data.valid, data.test, attributes=sizes))
    assert any(text.startswith("kind(X,large) <= size(X) >= ") for text in rules.texts())


@given(graphs())
@settings(max_examples=examples(100))
def test_the_surest_rule_of_length_one_is_that_of_the_reference(small: SmallGraph) -> None:
    n_entities, n_relations, triples = small
    triples = [(int(s), int(r), int(o)) for s, r, o in triples if s != o]
    graph, reference = graph_of(table_of((n_entities, n_relations, triples))), build(triples, n_entities, n_relations)
    members = np.arange(n_entities, dtype=np.int32)
    for head, constant in {(r, o) for _, r, o in triples}:
        (own,) = find_segments(graph, np.array([constant]), np.array([head + n_relations]))
        stated = [s for s, r, o in triples if (r, o) == (head, constant)]
        totals, touched = (np.zeros(len(graph.segment_relations), np.int32) for _ in range(2))
        total_heads(graph, np.array(stated, np.int32), totals, touched)
        having = [sum(bool(reference.steps.get((s, b))) for s in stated) for b in range(2 * n_relations)]
        expected = np.array([surest_confidence(reference, x, head, constant, SMOOTHING) for x in range(n_entities)])
        for enough in (np.inf, 0.25):
            surest = np.empty(n_entities)
            surest_confidences(graph, members, int(own), totals, np.array(having, np.int64), enough, surest)
            np.testing.assert_array_equal(surest < enough, expected < enough)
            np.testing.assert_allclose(surest[surest < enough], expected[surest < enough])


def test_shuffled_values_give_no_conditions(planted: Dataset) -> None:
    rng = np.random.default_rng(2)
    moved = [
        Attribute.of(one.name, one.kind, rng.permutation(one.entities), one.values)
        for one in planted.attributes.values()
    ]
    shuffled = Dataset("shuffled", planted.train, planted.valid, planted.test, attributes=Attributes.of(moved))
    assert len(conditions(shuffled)) == 0


def test_conditions_can_be_left_out_and_are_learned_once(planted: Dataset) -> None:
    assert not learn(planted, paths=100, max_cyclic=1, max_acyclic=0, conditions=False).has_condition.any()
    options = LearnOptions(paths=100, max_cyclic=1, max_acyclic=0)
    learner = Learner(planted.train, options, known=conditions(planted))
    assert sum(span.new_rules for span in learner.spans()) == len(learner.rules()) - len(conditions(planted))


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_a_cut_is_round_and_between_the_values(before: float, gap: float) -> None:
    at = before + gap
    rounded = round_cut(before, at, AttributeKind.NUMBER)
    assert before < rounded <= at or before == at
    assert len(repr(rounded).strip("-").replace(".", "").rstrip("0")) <= len(repr(at).strip("-").replace(".", "")) + 1


@pytest.mark.parametrize(
    ("before", "at", "expected"),
    [
        ("1899-12-01", "1900-03-05", "1900-01-01"),
        ("1951-02-03", "1951-02-20", "1951-02-20"),
        ("1953-02-03", "1969-02-20", "1960-01-01"),
    ],
)
def test_a_date_is_cut_at_the_start_of_a_year_if_that_loses_nothing(before: str, at: str, expected: str) -> None:
    days = [float(parse_value(text, AttributeKind.DATE) or 0) for text in (before, at, expected)]
    assert round_cut(days[0], days[1], AttributeKind.DATE) == days[2]


def test_values_that_many_have_are_cut_before_and_after() -> None:
    cuts = choose_cuts(np.array([1.0] * 10 + [2.0] * 500 + [3.0] * 10))
    assert cuts.firsts.tolist() == [-math.inf, 2.0, 3.0]
    assert cuts.befores.tolist() == [-math.inf, 1.0, 2.0]


def test_few_discoveries_are_due_to_chance() -> None:
    chances = np.log([1e-9, 0.004, 0.9, 1e-5])
    assert discoveries(chances, 4).tolist() == [0, 1, 3]
    assert discoveries(chances, 1000).tolist() == [0, 3]
    assert discoveries(np.empty(0), 0).tolist() == []
