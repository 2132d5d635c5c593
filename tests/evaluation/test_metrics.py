"""Figures made of ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.errors import OptionError
from anyburl.evaluation.metrics import Metrics, summarise, summarise_random
from anyburl.ranking.ranks import Ranks


def metrics_of(ranks: Ranks) -> Metrics:
    return Metrics({"ties": "realistic"}, summarise(ranks.realistic), {}, [], {}, {}, ranks)


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 5)), max_size=9), st.integers(1, 15))
def test_hits_are_the_share_of_ranks_up_to_any_k(drawn: list[tuple[int, int]], k: int) -> None:
    first, ties = np.array(drawn, np.int64).reshape(-1, 2).T
    metrics = metrics_of(Ranks(first, first + ties))
    within = [a + b / 2 <= k for a, b in drawn]
    assert metrics.hits(k) == pytest.approx(sum(within) / len(within) if within else 0.0)
    assert metrics.mrr == pytest.approx(sum(1 / (a + b / 2) for a, b in drawn) / len(drawn) if drawn else 0.0)
    for k in (1, 3, 10):
        assert metrics.hits(k) == metrics.metrics[f"hits@{k}"]


@pytest.mark.parametrize("k", [0, -1])
def test_hits_are_of_at_least_one(k: int) -> None:
    with pytest.raises(OptionError, match=f"k must be at least 1, got {k}"):
        metrics_of(Ranks(np.array([1]), np.array([1]))).hits(k)


def test_ties_broken_at_random_are_the_mean_over_all_ways_to_break_them() -> None:
    ranks = Ranks(np.array([1, 2, 9, 4]), np.array([3, 2, 12, 5]))
    places = [range(first, last + 1) for first, last in zip(ranks.optimistic, ranks.pessimistic, strict=True)]
    ways = [summarise(np.array(way, np.float64)) for way in itertools.product(*places)]
    found = summarise_random(ranks)
    for name, value in found.items():
        assert value == pytest.approx(np.mean([way[name] for way in ways])), name


def test_without_ties_all_treatments_agree_and_no_ranks_give_nothing() -> None:
    ranks = Ranks(np.array([1, 5, 3]), np.array([1, 5, 3]))
    assert summarise_random(ranks) == pytest.approx(summarise(ranks.realistic))
    assert set(summarise_random(Ranks(np.empty(0, np.int64), np.empty(0, np.int64))).values()) == {0.0}
