"""The table of distinct bodies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.rules import combine
from anyburl.rules.combine import dense_numbers, distinct_rows, joint_keys, merge_tables, pad_lists, rule_keys
from rules.samples import make_rules

lists = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=12)


@given(lists)
def test_rows_are_the_lists_filled_up_and_numbered_in_order(bodies: list[list[int]]) -> None:
    flat = np.array([step for body in bodies for step in body], dtype=np.int32)
    rows = pad_lists(flat, np.array([len(body) for body in bodies], dtype=np.int64))
    assert [[step for step in row if step >= 0] for row in rows.tolist()] == bodies
    distinct, numbers = distinct_rows(rows)
    assert distinct[numbers].tolist() == rows.tolist()
    assert list(map(tuple, distinct.tolist())) == sorted(set(map(tuple, rows.tolist())))


@given(st.lists(lists.filter(bool), max_size=4))
def test_merged_tables_keep_every_row(groups: list[list[list[int]]]) -> None:
    tables = []
    for bodies in groups:
        flat = np.array([step for body in bodies for step in body], dtype=np.int32)
        tables.append(pad_lists(flat, np.array([len(body) for body in bodies])))
    merged, places = merge_tables(tables)
    assert len(np.unique(merged, axis=0)) == len(merged)
    for bodies, place in zip(groups, places, strict=True):
        assert [[step for step in row if step >= 0] for row in merged[place].tolist()] == bodies


@given(st.lists(st.integers(0, 40), max_size=20))
def test_numbers_by_look_up_and_by_sorting_agree(keys: list[int]) -> None:
    array = np.array(keys, dtype=np.int64)
    looked_up = dense_numbers(array, 41)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combine, "MOST_LOOKED_UP", 0)
        by_sorting = dense_numbers(array, 10**12)
    assert looked_up[0].tolist() == by_sorting[0].tolist()
    assert looked_up[1] == by_sorting[1] == len(set(keys))


@given(st.lists(st.tuples(*[st.sampled_from([-1, 0, 5, 2**31 - 3])] * 4), min_size=1, max_size=20))
def test_joint_keys_tell_rows_apart_and_keep_their_order_however_large_the_ids(rows: list[tuple[int, ...]]) -> None:
    keys = joint_keys([np.array(column, dtype=np.int32) for column in zip(*rows, strict=True)])
    assert len(set(keys.tolist())) == len(set(rows))
    assert len(set(zip(keys.tolist(), rows, strict=True))) == len(set(rows))
    assert [rows[place] for place in np.argsort(keys, kind="stable")] == sorted(rows)


@given(st.lists(st.tuples(st.integers(-1, 1), st.floats(allow_nan=False), st.floats(-2, 2)), min_size=1, max_size=20))
def test_joint_keys_of_floats(rows: list[tuple[float, ...]]) -> None:
    rows = [tuple(number + 0.0 for number in row) for row in rows]  # -0.0 is 0.0
    ids, *floats = (np.array(column) for column in zip(*rows, strict=True))
    keys = joint_keys([ids.astype(np.int32), *floats])
    assert len(set(keys.tolist())) == len(set(rows))
    assert [rows[place] for place in np.argsort(keys, kind="stable")] == sorted(rows)
    with_nan = joint_keys([np.array([0, 0, 0], np.int32), np.array([-np.inf, np.nan, np.nan])])
    assert with_nan[1] == with_nan[2] < with_nan[0]


def test_rules_have_the_same_key_in_sets_with_conditions_and_without() -> None:
    plain, bounded = "r(X,c) <= q(X,A)", "r(X,c) <= size(X) >= 1"
    counts = (4, 2)
    every = make_rules([(plain, counts), (bounded, counts), ("r(X,c) <= size(X) >= 2", counts)])
    some = make_rules([(plain, counts)]).with_vocabulary(every.vocabulary)
    assert some.low is None
    first, others = rule_keys(some, every)
    assert first.tolist() == others[:1].tolist()
    assert len(set(others.tolist())) == 3
