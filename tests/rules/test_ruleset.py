"""Rule sets: what can be done with columns of rules."""

from __future__ import annotations

import inspect

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import OptionError, RuleError, UnknownLabelError
from anyburl.cli.rules import ORDERS, SMOOTHING
from anyburl.data import Vocabulary
from anyburl.rules import selection
from anyburl.rules.rule import Rule
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import RuleType
from rules.samples import assert_same, make_rules, rule_sets
from rules.strategies import rules as rule_objects


@pytest.fixture
def rules() -> RuleSet:
    return make_rules(
        [
            ("speaks(X,Y) <= lives(X,A), lang(A,Y)", (10, 8)),
            ("speaks(X,dutch) <= lives(X,nl)", (5, 4)),
            ("speaks(ed,Y) <= lang(A,Y)", (20, 2)),
            ("married(X,me_myself_i) <= born(A,X)", (4, 0)),
            ("speaks(X,english) <= ", (100, 80)),
            ("born(X,Y) <= lives(X,Y)", (0, 0)),
        ]
    )


def test_columns_follow_the_conventions(rules: RuleSet) -> None:
    vocabulary = rules.vocabulary
    assert vocabulary.relations.to_list() == ["born", "lang", "lives", "married", "speaks"]
    assert vocabulary.entities.to_list() == ["dutch", "ed", "english", "nl"]
    assert rules.type.tolist() == [RuleType(name).code for name in ("B", "Uc", "Ud", "Ud", "Z", "B")]
    assert rules.head.tolist() == [4, 4, 4 + 5, 3, 4, 0]
    assert rules.head_constant.tolist() == [-1, 0, 1, vocabulary.self_id, 2, -1]
    assert rules.body_constant.tolist() == [-1, 3, -1, -1, -1, -1]
    assert rules.bodies[rules.body].tolist() == [[2, 1], [2, -1], [1 + 5, -1], [0 + 5, -1], [-1, -1], [2, -1]]
    assert len(np.unique(rules.bodies, axis=0)) == len(rules.bodies)
    assert rules.lengths.tolist() == [2, 1, 1, 1, 0, 1]
    assert rules.n_rules == len(rules) == 6


def test_h_of_self_and_y_is_a_backward_head() -> None:
    rules = make_rules([("h(me_myself_i,Y) <= b(Y,me_myself_i)", (7, 7))])
    assert rules.head.tolist() == [1 + 2]
    assert rules.head_constant.tolist() == rules.body_constant.tolist() == [rules.vocabulary.self_id]
    assert rules.texts().to_list() == ["h(me_myself_i,Y) <= b(Y,me_myself_i)"]


def test_confidence_is_support_by_predictions_with_smoothing(rules: RuleSet) -> None:
    assert rules.confidence().tolist() == [0.8, 0.8, 0.1, 0.0, 0.8, 0.0]
    assert rules.confidence(5).tolist() == [8 / 15, 0.4, 2 / 25, 0.0, 80 / 105, 0.0]


@given(rule_sets())
def test_a_rule_is_the_same_as_object_and_as_text(rules: RuleSet) -> None:
    assert rules.texts().to_list() == [str(rule) for rule in rules]


@given(st.lists(rule_objects()))
def test_objects_survive_the_columns(objects: list[Rule]) -> None:
    assert list(make_rules([(rule, (2, 1)) for rule in objects])) == objects


def test_an_index_gives_a_rule(rules: RuleSet) -> None:
    assert str(rules[0]) == "speaks(X,Y) <= lives(X,A), lang(A,Y)"
    assert str(rules[-1]) == str(rules.rule(5)) == str(rules[np.int64(5)]) == "born(X,Y) <= lives(X,Y)"
    for row in (6, -7):
        with pytest.raises(IndexError, match=f"one of 6 rules, got {row}"):
            rules[row]
    for wrong in ("head", 1.5, None):
        with pytest.raises(TypeError):
            rules[wrong]  # type: ignore[call-overload]


@given(rule_sets(), st.slices(8))
def test_a_slice_gives_a_set(rules: RuleSet, rows: slice) -> None:
    assert isinstance(rules[rows], RuleSet)
    assert list(rules[rows]) == list(rules)[rows]
    assert rules[rows].support.tolist() == rules.support[rows].tolist()


def test_rows_and_masks_give_a_set(rules: RuleSet) -> None:
    mask = rules.support > 3
    for index in (mask, mask.tolist(), pl.Series(mask), np.array([0, 1, 4]), [0, 1, 4], [0, -5, -2]):
        assert_same(rules[index], rules.take([0, 1, 4]))
    assert_same(rules[np.array([3])], rules.slice(3, 4))
    assert len(rules[[]]) == 0
    with pytest.raises(IndexError):
        rules[[6]]
    with pytest.raises(TypeError, match="numbers of rules or a mask, got 2 dimensions"):
        rules[np.zeros((2, 2), np.int64)]


def test_take_accepts_rows_and_masks(rules: RuleSet) -> None:
    assert rules.take([3, 0]).texts().to_list() == rules.texts()[[3, 0]].to_list()
    assert_same(rules.take(rules.support > 3), rules.take([0, 1, 4]))
    assert len(rules.take([])) == 0
    assert_same(rules.slice(1, 3), rules.take([1, 2]))


def test_filter_combines_conditions(rules: RuleSet) -> None:
    def rows(**conditions: object) -> list[int]:
        texts = rules.texts().to_list()
        return [texts.index(text) for text in rules.filter(**conditions).texts()]  # type: ignore[arg-type]

    assert rows() == list(range(6))
    assert rows(type="B") == [0, 5]
    assert rows(type=[RuleType.UNARY_DANGLING, "Z"]) == [2, 3, 4]
    assert rows(relation="speaks") == [0, 1, 2, 4]
    assert rows(min_confidence=0.8, min_support=5) == [0, 4]
    assert rows(contains="lang") == [0, 2]
    assert rows(contains="nl") == [1]
    assert rows(contains="me_myself_i") == [3]
    assert rows(length=1) == [1, 2, 3, 5]
    assert rules.for_relation("married").texts().to_list() == ["married(X,me_myself_i) <= born(A,X)"]


def test_filter_refuses_what_it_does_not_know(rules: RuleSet) -> None:
    with pytest.raises(UnknownLabelError, match="did you mean 'speaks'"):
        rules.filter(relation="speak")
    with pytest.raises(UnknownLabelError, match="entity or relation 'dutsch'; did you mean 'dutch'"):
        rules.filter(contains="dutsch")
    with pytest.raises(OptionError, match="type must be one of B, Uc, Ud, Z, Uv, Bv, got 'U'"):
        rules.filter(type="U")


def test_top_orders_by_a_score_with_fixed_ties(rules: RuleSet) -> None:
    assert rules.top(3).support.tolist() == [80, 8, 4]
    assert [str(rule) for rule in rules.top(1, smoothing=0)] == ["speaks(X,english) <= "]
    assert rules.top(2, by="predictions").predictions.tolist() == [100, 20]
    assert rules.top(2, by="value").support.tolist() == [80, 8]
    assert len(rules.top(0)) == 0
    assert len(rules.top(99, by="support")) == 6
    with pytest.raises(OptionError, match="k must be at least 0, got -1"):
        rules.top(-1)
    with pytest.raises(OptionError, match=r"by must be one of confidence, support, value, .*, got 'size'"):
        rules.top(1, by="size")


def test_top_smooths_confidences_as_the_command_line_does() -> None:
    scores = [(2, 2), (510, 500), (10, 9), (0, 0)]
    rules = make_rules([(f"h(X,c{n}) <= b(X,A)", score) for n, score in enumerate(scores)])
    assert rules.top(4).support.tolist() == [500, 9, 2, 0]
    assert rules.top(4, smoothing=0).support.tolist() == [2, 500, 9, 0]
    assert rules.top(4, by="value", smoothing=1000).support.tolist() == [500, 9, 2, 0]
    assert rules.top(2).predictions.tolist() == [510, 10]
    assert inspect.signature(RuleSet.top).parameters["smoothing"].default == SMOOTHING
    assert set(ORDERS) <= set(selection.ORDERS)
    with pytest.raises(OptionError, match="smoothing must be at least 0, got -1"):
        rules.top(1, smoothing=-1)


@given(
    rule_sets(),
    st.integers(0, 9),
    st.sampled_from(["confidence", "support", "value", "predictions"]),
    st.data(),
)
def test_top_does_not_depend_on_the_order_of_the_rules(rules: RuleSet, k: int, by: str, data: st.DataObject) -> None:
    rules = rules.merge()
    order = data.draw(st.permutations(range(len(rules))))
    assert_same(rules.take(order).top(k, by), rules.top(k, by))  # type: ignore[arg-type]
    assert_same(rules.top(len(rules), by).slice(0, k), rules.top(k, by))  # type: ignore[arg-type]


def test_concat_joins_the_tables_of_bodies(rules: RuleSet) -> None:
    parts = [rules.slice(0, 2), rules.slice(2, 3), rules.slice(3, 6)]
    joint = RuleSet.concat([part.replace(bodies=part.bodies) for part in parts])
    assert_same(joint, rules)
    assert len(np.unique(joint.bodies, axis=0)) == len(joint.bodies)
    with pytest.raises(RuleError, match="different vocabularies"):
        RuleSet.concat([rules, make_rules([("h(X,c) <= ", (2, 1))])])
    with pytest.raises(RuleError, match="at least one"):
        RuleSet.concat([])


def test_merge_keeps_the_first_of_equal_rules(rules: RuleSet) -> None:
    again = rules.take([4, 1]).replace(support=np.array([1, 1]))
    assert_same(rules.merge(again), rules)
    assert_same(again.merge(rules).take([0, 1]), again)
    assert len(again.merge(rules)) == len(rules)


def test_another_vocabulary_drops_rules_with_other_labels(rules: RuleSet) -> None:
    larger = Vocabulary.from_labels(["a", *rules.vocabulary.entities, "z"], ["a", *rules.vocabulary.relations])
    moved = rules.with_vocabulary(larger)
    assert isinstance(moved, RuleSet)
    assert_same(moved, rules)
    smaller = Vocabulary.from_labels(["dutch", "nl"], ["lang", "lives", "speaks"])
    moved = rules.with_vocabulary(smaller)
    assert_same(moved, rules.take([0, 1]))
    assert moved.vocabulary is smaller
    assert_same(moved.with_vocabulary(larger), rules.take([0, 1]))


def test_counts(rules: RuleSet) -> None:
    assert rules.counts_by_type() == {"B": 2, "Uc": 1, "Ud": 2, "Z": 1}
    assert rules.counts_by_length() == {"B 1": 1, "B 2": 1, "Uc 1": 1, "Ud 1": 2, "Z 0": 1}


def test_an_empty_set_can_do_everything() -> None:
    empty = RuleSet.empty(Vocabulary.from_labels([], []))
    assert len(empty) == len(empty.top(3)) == len(empty.merge(empty)) == len(empty.filter(type="B")) == 0
    assert empty.texts().to_list() == []
    assert empty.to_polars().height == 0
    assert len(RuleSet.from_polars(empty.to_polars())) == 0
    assert repr(empty) == "RuleSet(0 rules)"
    assert empty.counts_by_length() == {}
    assert list(empty) == []
