from __future__ import annotations

import pytest

from reference import search

# Support, confidence, length: worked out by hand below.
RULES = [(10, 0.5, 1), (4, 0.25, 2), (8, 1.0, 3)]


def test_support_reward_is_the_sum_of_supports() -> None:
    assert search.support(RULES) == 10 + 4 + 8


def test_support_confidence_reward_multiplies_by_confidence() -> None:
    assert search.support_confidence(RULES) == 5 + 1 + 8


def test_length_discounted_reward_halves_for_every_body_atom() -> None:
    assert search.length_discounted(RULES) == 5 / 2 + 1 / 4 + 8 / 8


def test_no_rules_give_no_reward() -> None:
    assert search.support([]) == search.support_confidence([]) == search.length_discounted([]) == 0


def test_only_rules_new_to_the_profile_count() -> None:
    assert search.new_rules([{"r1", "r2"}, {"r3"}, {"r2", "r3", "r4"}]) == {"r4"}
    assert search.new_rules([{"r1"}]) == {"r1"}


def test_value_is_the_reward_per_core() -> None:
    assert search.q(22.0, 4) == 5.5


def test_greedy_takes_the_highest_value_and_the_first_of_equals() -> None:
    assert search.greedy_choice([1.0, 5.5, 2.0]) == 1
    assert search.greedy_choice([3.0, 1.0, 3.0]) == 0


def test_weighted_policy_gives_cores_in_proportion_to_value() -> None:
    assert search.weighted_probabilities([6.0, 3.0, 1.0]) == [0.6, 0.3, 0.1]
    assert search.weighted_probabilities([0.0, 0.0]) == [0.5, 0.5]


def test_a_core_is_random_with_probability_epsilon() -> None:
    """Three profiles, epsilon 0.3: 0.1 each at random, 0.7 by the policy."""
    assert search.greedy_core_probabilities([1.0, 5.0, 2.0], 0.3) == pytest.approx([0.1, 0.8, 0.1])
    assert search.weighted_core_probabilities([6.0, 3.0, 1.0], 0.3) == pytest.approx([0.52, 0.31, 0.17])


def test_epsilon_one_is_the_random_policy() -> None:
    for policy in (search.greedy_core_probabilities, search.weighted_core_probabilities):
        assert policy([9.0, 1.0, 0.0, 0.0], 1.0) == [0.25] * 4


def test_saturation_is_the_part_of_the_found_rules_that_was_known() -> None:
    assert search.saturation({"a", "b", "c", "d"}, {"a", "b", "c", "z"}) == 0.75
    assert search.saturation({"a"}, set()) == 0.0
    assert search.saturation(set(), {"a"}) == 1.0
