"""Columns of rules: checked when made, so that no kernel ever meets an id that is not there."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from anyburl.base.errors import RuleError
from anyburl.data import Vocabulary
from anyburl.rules.columns import REQUIRED, RuleColumns
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import RuleType
from rules.samples import assert_same, make_rules, rule_sets


@pytest.fixture
def rules() -> RuleSet:
    """Over 3 relations and 3 entities, with 3 bodies."""
    return make_rules(
        [
            ("speaks(X,Y) <= lives(X,A), lang(A,Y)", (10, 8)),
            ("speaks(X,dutch) <= lives(X,nl)", (5, 4)),
            ("speaks(ed,Y) <= lang(A,Y)", (20, 2)),
        ]
    )


def test_the_codes_of_types_count_from_0_in_their_order() -> None:
    assert [name.code for name in RuleType] == list(range(len(RuleType)))
    assert {str(name): name.code for name in RuleType} == {"B": 0, "Uc": 1, "Ud": 2, "Z": 3, "Uv": 4, "Bv": 5}


@pytest.mark.parametrize(
    ("column", "wrong", "expected"),
    [
        ("type", 6, "numbers from 0 to 5 in the column 'type', got 6"),
        ("head", 6, "numbers from 0 to 5 in the column 'head', got 6"),
        ("head", -1, "numbers from 0 to 5 in the column 'head', got -1"),
        ("body", 3, "numbers from 0 to 2 in the column 'body', got 3"),
        ("body", -1, "numbers from 0 to 2 in the column 'body', got -1"),
        ("head_constant", 4, "numbers from -1 to 3 in the column 'head_constant', got 4"),
        ("body_constant", 4, "numbers from -1 to 3 in the column 'body_constant', got 4"),
        ("body_constant", -2, "numbers from -1 to 3 in the column 'body_constant', got -2"),
    ],
)
def test_ids_that_are_not_there_are_refused(rules: RuleSet, column: str, wrong: int, expected: str) -> None:
    changed = getattr(rules, column).astype(np.int64)
    changed[1] = wrong
    with pytest.raises(RuleError, match=expected):
        rules.replace(**{column: changed})


def test_bodies_hold_relations_and_then_padding(rules: RuleSet) -> None:
    for body, expected in (([6, -1], "got 6"), ([0, -2], "got -2"), ([-1, 0], "-1 before a relation")):
        with pytest.raises(RuleError, match=expected):
            rules.replace(bodies=np.array([body] * 3))


def test_the_ids_of_another_vocabulary_are_refused(rules: RuleSet) -> None:
    smaller = Vocabulary.from_labels(["nl"], ["lang"])
    with pytest.raises(RuleError, match="do the rules belong to another vocabulary"):
        rules.replace(vocabulary=smaller)
    larger = Vocabulary.from_labels([*"abcdef"], [*"abcdef"])
    assert rules.replace(vocabulary=larger).vocabulary is larger


def test_self_is_the_last_constant(rules: RuleSet) -> None:
    constants = np.array([-1, rules.vocabulary.self_id, 1])
    assert rules.replace(head_constant=constants).head_constant.tolist() == [-1, 3, 1]


def test_numbers_that_a_column_cannot_hold_are_refused(rules: RuleSet) -> None:
    with pytest.raises(RuleError, match="numbers of type int32 in the column 'support', got int64"):
        rules.replace(support=np.array([1, 2, 2**32]))
    with pytest.raises(RuleError, match="numbers of type int64 in the column 'predictions', got float64"):
        rules.replace(predictions=np.array([1.0, 2.5, 3.0]))
    with pytest.raises(RuleError, match="numbers of type int32 in the column 'head', got int64"):
        rules.replace(head=np.array([0, 0, 2**32]))
    assert rules.replace(support=[1, 2, 3]).support.dtype == np.int32


def test_columns_have_one_length_and_bodies_two_dimensions(rules: RuleSet) -> None:
    with pytest.raises(RuleError, match="columns of 3 rules, got another length for 'support'"):
        rules.replace(support=np.zeros(2))
    for bodies in (np.zeros(3), np.zeros((3, 0))):
        with pytest.raises(RuleError, match="bodies as the rows of a matrix, got an array of shape"):
            rules.replace(bodies=bodies)


def test_ids_without_labels_are_checked_all_the_same(rules: RuleSet) -> None:
    unnamed = Vocabulary.unnamed(n_entities=3, n_relations=3)
    assert (unnamed.n_entities, unnamed.n_relations, unnamed.self_id) == (3, 3, 3)
    assert rules.replace(vocabulary=unnamed).head.tolist() == rules.head.tolist()
    with pytest.raises(RuleError, match="'head_constant', got 2"):
        rules.replace(vocabulary=Vocabulary.unnamed(n_entities=1, n_relations=3), head_constant=np.array([-1, 2, 1]))


@given(rule_sets())
def test_the_same_rules_as_another_class_share_their_columns(rules: RuleSet) -> None:
    columns = RuleColumns.of(rules)
    assert type(columns) is RuleColumns
    assert type(columns.slice(0, 1)) is type(columns.take([])) is RuleColumns
    assert all(getattr(columns, name) is getattr(rules, name) for name in ("vocabulary", "bodies", *REQUIRED))
    assert_same(RuleSet.of(columns), rules)


def test_columns_are_read_only_also_in_another_process(rules: RuleSet) -> None:
    for found in (rules, rules.slice(0, 2), rules.take([1, 0]), pickle.loads(pickle.dumps(rules))):
        assert not any(getattr(found, name).flags.writeable for name in ("bodies", *REQUIRED))
    assert_same(pickle.loads(pickle.dumps(rules)), rules)


def test_bodies_have_as_many_atoms_as_there_are_letters(rules: RuleSet) -> None:
    assert rules.replace(bodies=np.zeros((3, 24))).lengths.tolist() == [24] * 3
    with pytest.raises(RuleError, match="expected at most 24 body atoms, got 25"):
        rules.replace(bodies=np.zeros((3, 25)))


@pytest.mark.parametrize("wrong", [None, ["a", "b", "c"], [b"1", b"2", b"3"], [{}, {}, {}], [1j, 2j, 3j]])
def test_what_is_no_number_is_refused(rules: RuleSet, wrong: object) -> None:
    with pytest.raises(RuleError, match="expected numbers in the column 'support', got"):
        rules.replace(support=wrong)


def test_nan_is_no_count(rules: RuleSet) -> None:
    for wrong in (np.nan, np.inf, -np.inf):
        with pytest.raises(RuleError, match="numbers of type int64 in the column 'predictions', got float64"):
            rules.replace(predictions=np.array([10, wrong, 20]))


@pytest.mark.parametrize(
    ("support", "predictions", "found"),
    [
        ([8, 4, -1], [10, 5, 20], "-1 and 20 in row 2"),
        ([8, 4, 2], [10, -5, 20], "4 and -5"),
        ([8, 6, 2], [9, 5, 9], "6"),
    ],
)
def test_support_is_at_most_the_predictions(
    rules: RuleSet, support: list[int], predictions: list[int], found: str
) -> None:
    with pytest.raises(RuleError, match=f"expected 0 <= support <= predictions, got {found}"):
        rules.replace(support=support, predictions=predictions)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"type": [1, 1, 2]}, "rules of type B or Bv, and no others, have no constant in the head: row 0"),
        ({"head_constant": [-1, -1, 1]}, "rules of type B or Bv, and no others, have no constant in the head: row 1"),
        ({"head": [5, 2, 5]}, "the head of a rule of type B or Bv is read forward: row 0"),
        ({"type": [0, 2, 2]}, "rules of type Uc, and no others, have a constant in the body: row 1"),
        ({"body_constant": [-1, 1, 1]}, "rules of type Uc, and no others, have a constant in the body: row 2"),
        ({"type": [0, 1, 3]}, "rules of type Z, and no others, have an empty body: row 2"),
        ({"bodies": [[-1, -1]] * 3}, "rules of type Z, and no others, have an empty body: row 0"),
    ],
)
def test_a_type_fits_head_and_body(rules: RuleSet, changes: dict[str, object], expected: str) -> None:
    with pytest.raises(RuleError, match=expected):
        rules.replace(**changes)


def test_rules_need_a_vocabulary(rules: RuleSet) -> None:
    with pytest.raises(RuleError, match="expected rules with a Vocabulary, got NoneType"):
        rules.replace(vocabulary=None)


def test_a_set_does_not_change_with_the_arrays_that_it_was_made_of(rules: RuleSet) -> None:
    columns = {name: np.array(getattr(rules, name)) for name in ("bodies", *REQUIRED)}
    made = rules.replace(**columns, lift=(lift := np.ones(3)))
    for column in columns.values():
        column[...] = 1
    lift[...] = 7
    assert_same(made, rules.replace(lift=[1.0, 1.0, 1.0]))


def test_arrays_that_nobody_can_write_to_are_not_copied(rules: RuleSet) -> None:
    assert np.shares_memory(rules.replace(exact=[True] * 3).support, rules.support)


def test_a_read_only_view_of_what_can_be_written_to_is_copied(rules: RuleSet) -> None:
    support = rules.support.copy()
    view = support.view()
    view.flags.writeable = False  # as pandas gives its columns
    changed = rules.replace(support=view)
    support[0] = 10**9
    assert changed.support.tolist() == rules.support.tolist()
    assert changed[:1].replace().support.base is changed.support  # a part of a set shares its arrays
