"""Columns of rules: checked when made, so that no kernel ever meets an id that is not there."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from anyburl.errors import RuleError
from anyburl.rules.types import RuleType
from anyburl.ruleset import RuleColumns, RuleSet
from anyburl.ruleset.columns import COLUMN_TYPES
from anyburl.triples import Vocabulary
from ruleset.samples import assert_same, make_rules, rule_sets


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
    assert {str(name): name.code for name in RuleType} == {"B": 0, "Uc": 1, "Ud": 2, "Z": 3}


@pytest.mark.parametrize(
    ("column", "wrong", "expected"),
    [
        ("type", 4, "numbers from 0 to 3 in the column 'type', got 4"),
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
    with pytest.raises(RuleError, match="rows of a matrix, got 1 dimensions"):
        rules.replace(bodies=np.zeros(3))


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
    assert all(getattr(columns, name) is getattr(rules, name) for name in ("vocabulary", "bodies", *COLUMN_TYPES))
    assert_same(RuleSet.of(columns), rules)


def test_columns_are_read_only_also_in_another_process(rules: RuleSet) -> None:
    for found in (rules, rules.slice(0, 2), rules.take([1, 0]), pickle.loads(pickle.dumps(rules))):
        assert not any(getattr(found, name).flags.writeable for name in ("bodies", *COLUMN_TYPES))
    assert_same(pickle.loads(pickle.dumps(rules)), rules)
