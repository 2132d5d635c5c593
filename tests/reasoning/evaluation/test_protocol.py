"""Ranks among a few entities drawn at random, drawn or estimated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anyburl
from anyburl.base.errors import InvalidOptionError
from anyburl.ranking.queries import Ranks
from anyburl.reasoning.evaluation import N_NEGATIVES, estimate_sampled, sample_ranks

cases = st.tuples(st.integers(0, 80), st.integers(0, 30), st.integers(0, 200))


def ranks_of(drawn: list[tuple[int, int, int]]) -> tuple[Ranks, np.ndarray]:
    better, tied, worse = np.array(drawn, np.int64).reshape(-1, 3).T
    return Ranks(1 + better, 1 + better + tied), better + tied + worse


@given(st.lists(cases, max_size=5), st.integers(0, 9))
def test_sampled_ranks_stay_within_what_can_be_drawn(drawn: list[tuple[int, int, int]], seed: int) -> None:
    ranks, n_rivals = ranks_of(drawn)
    sampled = sample_ranks(ranks, n_rivals, seed)
    assert (sampled.optimistic >= 1).all()
    assert (sampled.pessimistic <= np.minimum(ranks.pessimistic, N_NEGATIVES + 1)).all()
    few = n_rivals <= N_NEGATIVES
    assert (sampled.optimistic[few] == ranks.optimistic[few]).all()
    assert (sampled.pessimistic[few] == ranks.pessimistic[few]).all()


@given(st.lists(cases, min_size=1, max_size=3))
def test_the_estimate_is_the_mean_over_draws(drawn: list[tuple[int, int, int]]) -> None:
    ranks, n_rivals = ranks_of(drawn)
    estimated = estimate_sampled(ranks, n_rivals)
    times = 3000
    many = sample_ranks(
        Ranks(np.tile(ranks.optimistic, times), np.tile(ranks.pessimistic, times)), np.tile(n_rivals, times)
    )
    assert estimated["hits@10"] == pytest.approx((many.realistic <= 10).mean(), abs=0.06)
    assert estimated["mrr"] == pytest.approx((1 / many.realistic).mean(), abs=0.06)


def test_of_the_best_answer_every_draw_says_so() -> None:
    estimated = estimate_sampled(*ranks_of([(0, 0, 500)]))
    assert estimated == pytest.approx({"hits@1": 1, "hits@3": 1, "hits@10": 1, "mrr": 1})


def test_protocols_of_an_evaluation() -> None:
    data = anyburl.load_dataset("geo")
    reasoner = anyburl.Reasoner(anyburl.learn(data, paths=5000, seed=1, threads=2), data, threads=2)
    plain, estimated = reasoner.evaluate(), reasoner.evaluate(protocol="estimated")
    assert plain.protocol["ranked_against"] == "all"
    assert "estimated" not in plain.metrics
    assert estimated.mrr == plain.mrr
    sampled = reasoner.evaluate(protocol="sampled")
    assert sampled.protocol["negatives"] == N_NEGATIVES
    assert sampled.mrr > plain.mrr
    assert sampled.mrr == pytest.approx(estimated.metrics["estimated"]["mrr"], abs=0.05)
    assert sampled.mrr == reasoner.evaluate(protocol="sampled").mrr
    with pytest.raises(InvalidOptionError, match="protocol"):
        reasoner.evaluate(protocol="some")
