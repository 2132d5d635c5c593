"""Figures made of ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from anyburl.evaluation.metrics import summarise, summarise_random
from anyburl.ranking.ranks import Ranks


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
