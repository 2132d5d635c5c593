"""Rules on their way from a worker: nothing is lost or changed, and they take little room."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anyburl import RuleSet, learn, load_dataset
from anyburl.learning import actor as parcels
from anyburl.learning.actor import Outbox, pack, pack_rules, unpack, unpack_rules
from anyburl.rules.columns import REQUIRED
from anyburl.rules.types import PathProfile

PROFILE = PathProfile(rule_length=1, cyclic=True)
NUMBERS = st.one_of(st.integers(-1, 3), st.integers(-(2**31), 2**31 - 1))


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return learn(load_dataset("geo"), paths=1, max_cyclic=1, seed=1)


@given(st.lists(st.tuples(NUMBERS, st.integers(1, 9))), st.sampled_from([np.int32, np.int64]))
def test_a_column_is_the_same_when_it_is_unpacked(runs: list[tuple[int, int]], dtype: Any) -> None:
    column = np.array([number for number, length in runs for _ in range(length)], dtype)
    unpacked = unpack(pack(column))
    assert unpacked.dtype == dtype
    assert unpacked.tolist() == column.tolist()


@given(st.lists(st.booleans()))
def test_marks_are_the_same_when_they_are_unpacked(marks: list[bool]) -> None:
    column: NDArray[np.bool_] = np.array(marks, np.bool_)
    assert unpack(pack(column)).tolist() == marks


@given(st.lists(st.sampled_from([0.0, 0.02, 0.5, float("nan")])))
def test_measures_are_the_same_when_they_are_unpacked(numbers: list[float]) -> None:
    column: NDArray[np.float64] = np.array(numbers, np.float64)
    assert np.array_equal(unpack(pack(column)), column, equal_nan=True)


def test_rules_are_the_same_when_they_are_unpacked_and_take_less_room_before(rules: RuleSet) -> None:
    packed = pack_rules(PROFILE, rules)
    found = unpack_rules(packed, rules.vocabulary)
    assert found.bodies.tolist() == rules.bodies.tolist()
    for name in REQUIRED:
        assert getattr(found, name).tolist() == getattr(rules, name).tolist(), name
        assert not getattr(found, name).flags.writeable, name
    assert (found.margin is None) == (rules.margin is None)
    assert found.measures == rules.measures
    n_bytes = sum(column.values.nbytes for column in packed.columns.values())
    n_bytes += sum(column.lengths.nbytes for column in packed.columns.values() if column.lengths is not None)
    assert n_bytes < 15 * len(rules)  # of 30


def test_rules_are_sent_when_they_are_many_or_the_span_is_over(rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "PARCEL", 2 * len(rules))
    monkeypatch.setattr(parcels, "MOST_WAITING", 2 * len(rules))
    outbox, is_over = Outbox(), Event()

    def run_span() -> None:
        for _ in range(5):
            outbox.put(PROFILE, rules)  # waits if two are there
        is_over.set()
        outbox.wake()

    thread = Thread(target=run_span)
    thread.start()
    sent = []
    was_over = False
    while not was_over:
        taken, was_over = outbox.take(is_over.is_set)
        sent.append(len(taken))
    thread.join()
    assert sum(sent) == 5
    assert max(sent) == 2


def test_few_rules_wait_where_something_else_is_urgent(rules: RuleSet) -> None:
    outbox, is_over = Outbox(), Event()
    outbox.put(PROFILE, rules)
    assert outbox.take(is_over.is_set, is_urgent=lambda: True) == ([], False)
    is_over.set()
    [packed], was_over = outbox.take(is_over.is_set, is_urgent=lambda: True)
    assert was_over
    assert len(unpack_rules(packed, rules.vocabulary)) == len(rules)
