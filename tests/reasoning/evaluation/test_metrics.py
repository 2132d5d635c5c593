"""Figures made of ranks."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import OptionError
from anyburl.ranking.queries import Ranks
from anyburl.reasoning.metrics import Metrics, bootstrap_interval, grouped, mrr_lower_bound, summarise, summarise_random


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


def test_the_metrics_of_some_ranks() -> None:
    """Of the ranks 1, 3, 4 and 20."""
    expected = {"hits@1": 1 / 4, "hits@3": 2 / 4, "hits@10": 3 / 4, "mrr": (1 + 1 / 3 + 1 / 4 + 1 / 20) / 4}
    assert summarise(np.array([1.0, 3.0, 4.0, 20.0])) == pytest.approx(expected)
    assert summarise(np.empty(0)) == dict.fromkeys(expected, 0.0)


def test_the_lower_bound_counts_ranks_beyond_k_as_nothing() -> None:
    assert mrr_lower_bound(np.array([1.0, 10.0, 11.0, 2.5]), 10) == pytest.approx((1 + 1 / 10 + 1 / 2.5) / 4)
    assert mrr_lower_bound(np.array([2.0]), 1) == 0
    assert mrr_lower_bound(np.empty(0), 10) == 0


def test_groups_have_their_own_metrics_and_sizes() -> None:
    ranks, groups = np.array([1.0, 2.0, 4.0]), ["b", "a", "b"]
    found = grouped(ranks, groups)
    assert list(found) == ["a", "b"]
    assert found["a"] == {"queries": 1, "hits@1": 0.0, "hits@3": 1.0, "hits@10": 1.0, "mrr": 0.5}
    assert found["b"] == {"queries": 2, "hits@1": 0.5, "hits@3": 0.5, "hits@10": 1.0, "mrr": 0.625}
    assert [type(key) for key in grouped(ranks, np.array([0, 1, 0]))] == [int, int]


def test_intervals_are_percentiles_of_resampled_triples() -> None:
    """Both queries of a triple, the first and the second half of the ranks, are drawn together: a thousand times."""
    ranks = np.random.default_rng(1).integers(1, 30, 60).astype(np.float64)
    found, again = bootstrap_interval(ranks, seed=5), bootstrap_interval(ranks)
    assert found != again == bootstrap_interval(ranks, seed=0)
    rng, drawn = np.random.default_rng(5), []
    for _ in range(1000):
        triples = rng.integers(30, size=30)
        drawn.append(summarise(np.concatenate([ranks[:30][triples], ranks[30:][triples]])))
    for name, interval in found.items():
        values = [one[name] for one in drawn]
        assert interval == pytest.approx((np.percentile(values, 2.5), np.percentile(values, 97.5)))
    assert list(found) == ["hits@1", "hits@3", "hits@10", "mrr"]
    assert bootstrap_interval(np.array([1.0])) == bootstrap_interval(np.empty(0)) == {}
    assert bootstrap_interval(np.array([1.0, 4.0]))["mrr"] == (0.625, 0.625)


PROTOCOL = {
    "data": "geo",
    "split": "test",
    "queries": 4,
    "ties": "optimistic",
    "aggregation": "max",
    "smoothing": 5.0,
    "block_connected": True,
}


def test_metrics_are_written_with_their_protocol() -> None:
    ranks = Ranks(np.array([1, 1, 2, 4]), np.array([1, 3, 2, 4]))
    metrics = Metrics(PROTOCOL, summarise(ranks.of("optimistic")), {"object": {}}, [{"a": 1}], {"B": {}}, {}, ranks)
    assert str(metrics) == (
        "hits@1 0.5000, hits@3 0.7500, hits@10 1.0000, mrr 0.6875  [geo test, 4 queries, filtered, optimistic ties, "
        "max, smoothing 5, connected pairs blocked]"
    )
    other = Metrics({**PROTOCOL, "block_connected": False}, metrics.metrics, {}, [], {}, {}, ranks)
    assert str(other).endswith("connected pairs not blocked]")
    assert metrics.hits(1) == 0.5
    assert other.hits(2) == 0.75


@pytest.mark.parametrize(("seconds", "rate"), [(0.3, 13.3), (0.0, None)])
def test_metrics_as_plain_values(seconds: float, rate: float | None) -> None:
    ranks = Ranks(np.array([1]), np.array([1]))
    metrics = Metrics(PROTOCOL, {"mrr": 1.0}, {"object": {}}, [{"a": 1}], {"B": {}}, {"rank": seconds}, ranks)
    assert metrics.to_json() == {
        "protocol": PROTOCOL,
        "metrics": {"mrr": 1.0},
        "by_direction": {"object": {}},
        "by_relation": [{"a": 1}],
        "by_rule_type": {"B": {}},
        "seconds": {"rank": seconds},
        "queries_per_second": rate,
    }


def test_metrics_cannot_be_replaced() -> None:
    metrics = metrics_of(Ranks(np.array([1]), np.array([1])))
    with pytest.raises(FrozenInstanceError):
        metrics.metrics = {}  # type: ignore[misc]
