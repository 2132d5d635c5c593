"""Rewards: the paper's three sums (section 3.3) and one more, on numbers worked out by hand and by the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import OptionError
from anyburl.learning.options import REWARDS
from anyburl.learning.policy import LengthDiscounted, Reward, Support, SupportConfidence, SupportPca, make_reward
from reference import search

# Predictions and support of three rules; confidences 1/2, 1/4 and 1.
PREDICTIONS = np.array([20, 16, 8], np.int64)
SUPPORTS = np.array([10, 4, 8], np.int32)

REFERENCE = {
    "support": search.support,
    "support-confidence": search.support_confidence,
    "length-discounted": search.length_discounted,
    "support-pca": search.support_confidence,  # of the predictions that the assumption can judge
}

counts = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)).map(lambda pair: (max(pair), min(pair)))


def test_support_reward_sums_supports() -> None:
    """10 + 4 + 8 = 22."""
    assert Support().of(SUPPORTS, PREDICTIONS, length=2) == 22


def test_support_confidence_reward_weighs_support_by_confidence() -> None:
    """10 * 10/20 + 4 * 4/16 + 8 * 8/8 = 5 + 1 + 8 = 14."""
    assert SupportConfidence().of(SUPPORTS, PREDICTIONS, length=2) == 14


@pytest.mark.parametrize(("length", "expected"), [(1, 7.0), (2, 3.5), (3, 1.75)])
def test_length_discounted_reward_halves_for_each_body_atom(length: int, expected: float) -> None:
    """14 / 2 = 7, 14 / 4 = 3.5, 14 / 8 = 1.75."""
    assert LengthDiscounted().of(SUPPORTS, PREDICTIONS, length) == expected


@pytest.mark.parametrize("name", REWARDS)
def test_no_rules_are_worth_nothing(name: str) -> None:
    assert make_reward(name).of(np.empty(0, np.int32), np.empty(0, np.int64), 1) == 0


@pytest.mark.parametrize("name", REWARDS)
def test_a_rule_that_predicts_nothing_is_worth_nothing(name: str) -> None:
    """With PCA, none of the predictions may be one that can be judged."""
    assert make_reward(name).of(np.zeros(1, np.int32), np.zeros(1, np.int64), 1) == 0


def test_only_the_reward_of_pca_asks_for_the_predictions_that_can_be_judged() -> None:
    assert [name for name in REWARDS if make_reward(name).pca] == ["support-pca"]


@pytest.mark.parametrize("name", REWARDS)
@given(st.lists(counts, max_size=20), st.integers(1, 5))
def test_rewards_equal_the_reference(name: str, rules: list[tuple[int, int]], length: int) -> None:
    predictions, supports = np.array(rules, np.int64).reshape(-1, 2).T
    found = make_reward(name).of(supports.astype(np.int32), predictions, length)
    assert found == pytest.approx(REFERENCE[name]([(s, s / p, length) for p, s in rules]))


@pytest.mark.parametrize("name", REWARDS)
def test_large_supports_do_not_overflow(name: str) -> None:
    """Three rules of support 2^31 - 1 and confidence 1: each is worth its support, and no square fits 32 bits."""
    large = np.full(3, 2**31 - 1, np.int32)
    assert make_reward(name).of(large, large.astype(np.int64), 0) == pytest.approx(3 * (2**31 - 1))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("support", Support),
        ("support-confidence", SupportConfidence),
        ("length-discounted", LengthDiscounted),
        ("support-pca", SupportPca),
    ],
)
def test_a_reward_is_made_by_its_name(name: str, kind: type[Reward]) -> None:
    assert type(make_reward(name)) is kind


def test_an_unknown_reward_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(OptionError, match=r"reward must be one of support, support-confidence, .* got 'most'"):
        make_reward("most")
