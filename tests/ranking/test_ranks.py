"""Ranks of targets, worked out by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.queries import Ranks, target_ranks


def test_ranks_follow_from_the_counts_of_answers() -> None:
    """Ten entities; the first query has two targets, the second has one, the third none, the fourth one.

    Of the first two, one is predicted, with three candidates before it and two beside it. The other comes after the
    five candidates that are no target, and ties with all of the seven that are neither a target nor excluded. More
    candidates than that may be left where some are known by other tables only, as in the second query. The last target
    is first, alone.
    """
    queries = SimpleNamespace(target_offsets=np.array([0, 2, 3, 3, 4]))
    answers = SimpleNamespace(
        fired=np.array([True, False, False, True]),
        better=np.array([3, 0, 0, 0]),
        equal=np.array([2, 0, 0, 0]),
        n_candidates=np.array([6, 9, 1, 1]),
        n_excluded=np.array([1, 8, 0, 0]),
    )
    ranks = target_ranks(cast(QueryArrays, queries), cast(AnswerArrays, answers), 10)
    assert ranks.optimistic.tolist() == [4, 6, 10, 1]
    assert ranks.pessimistic.tolist() == [6, 8, 10, 1]
    assert ranks.realistic.tolist() == [5, 7, 10, 1]


def test_ranks_are_told_for_each_treatment_of_ties_and_in_any_order() -> None:
    ranks = Ranks(np.array([1, 2, 5]), np.array([4, 2, 6]))
    assert ranks.of("optimistic").tolist() == [1, 2, 5]
    assert ranks.of("pessimistic").tolist() == [4, 2, 6]
    assert ranks.of("realistic").tolist() == [2.5, 2, 5.5]
    assert {ranks.of(ties).dtype for ties in ("optimistic", "pessimistic", "realistic")} == {np.dtype(np.float64)}
    turned = ranks.at(np.array([2, 0]))
    assert (turned.optimistic.tolist(), turned.pessimistic.tolist()) == ([5, 1], [6, 4])


def test_ranks_cannot_be_replaced() -> None:
    ranks = Ranks(np.array([1]), np.array([4]))
    with pytest.raises(FrozenInstanceError):
        ranks.optimistic = np.array([2])  # type: ignore[misc]
