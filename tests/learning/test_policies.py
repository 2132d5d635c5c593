"""Policies (sections 3.2 and 3.3): one contract for all, then each on numbers worked out by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.errors import OptionError
from anyburl.learning.options import POLICIES
from anyburl.learning.policy import (
    EpsilonGreedy,
    Policy,
    ProfileSpan,
    Saturation,
    SpanRecord,
    Weighted,
    last_values,
    make_policy,
)
from anyburl.rules.types import PathProfile
from kernels import examples
from reference import search

CYCLIC = [PathProfile(True, length) for length in (1, 2, 3)]
ACYCLIC = [PathProfile(False, length) for length in (1, 2)]
PROFILES = sorted([*CYCLIC, *ACYCLIC], key=lambda profile: profile.rule_length)

CHI_SQUARE = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47}
"""Degrees of freedom -> what the statistic exceeds once in a thousand times; the seeds are fixed."""


def spent(profile: PathProfile, reward: float = 0.0, cores: int = 1, **counts: int) -> ProfileSpan:
    return ProfileSpan(profile, cores=cores, reward=reward, **counts)


def saturated(profile: PathProfile, known: int = 100, new: int = 0) -> ProfileSpan:
    return spent(profile, known_rules=known, new_rules=new)


def history_of(*spans: list[ProfileSpan]) -> list[SpanRecord]:
    return [SpanRecord(number, float(number), tuple(span)) for number, span in enumerate(spans, 1)]


def valued(values: dict[PathProfile, float]) -> list[SpanRecord]:
    """One span in which every profile had a core and gave that reward."""
    return history_of([spent(profile, value) for profile, value in values.items()])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def chi_square(drawn: list[PathProfile], profiles: list[PathProfile], shares: list[float]) -> float:
    expected = np.array(shares) * len(drawn)
    observed = np.array([drawn.count(profile) for profile in profiles])
    assert observed[expected == 0].sum() == 0
    return float(((observed - expected)[expected > 0] ** 2 / expected[expected > 0]).sum())


# The contract: every policy, by the name under which people ask for it.

profile_spans = st.builds(
    ProfileSpan,
    profile=st.sampled_from(PROFILES),
    cores=st.integers(0, 4),
    new_rules=st.integers(0, 5),
    known_rules=st.integers(0, 500),
    reward=st.floats(0, 100),
)
histories = st.lists(st.lists(profile_spans, unique_by=lambda entry: entry.profile), max_size=6).map(
    lambda spans: history_of(*spans)
)
available = st.lists(st.sampled_from(PROFILES), unique=True, min_size=1).map(
    lambda chosen: [profile for profile in PROFILES if profile in chosen]
)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=examples(120, 8))
@given(histories, available, st.integers(1, 24), st.integers(0, 2**32))
def test_every_core_gets_a_profile_that_is_not_exhausted(
    name: str, history: list[SpanRecord], profiles: list[PathProfile], cores: int, seed: int
) -> None:
    allocation = make_policy(name).allocate(history, profiles, cores, rng(seed))
    assert len(allocation) == cores
    assert set(allocation) <= set(profiles)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=examples(120, 8))
@given(histories, available, st.integers(1, 24), st.integers(0, 2**32))
def test_the_same_random_numbers_give_the_same_allocation(
    name: str, history: list[SpanRecord], profiles: list[PathProfile], cores: int, seed: int
) -> None:
    first, again = (make_policy(name).allocate(history, profiles, cores, rng(seed)) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=examples(120, 8))
@given(histories, available, st.integers(1, 8))
def test_an_allocation_leaves_history_and_profiles_alone(
    name: str, history: list[SpanRecord], profiles: list[PathProfile], cores: int
) -> None:
    before = list(history), list(profiles)
    make_policy(name).allocate(history, profiles, cores, rng())
    assert (history, profiles) == before


@pytest.mark.parametrize("name", ["weighted", "greedy"])
@settings(max_examples=examples(120, 8))
@given(histories, available, st.integers(1, 24), st.integers(0, 2**32))
def test_profiles_without_a_value_come_first(
    name: str, history: list[SpanRecord], profiles: list[PathProfile], cores: int, seed: int
) -> None:
    allocation = make_policy(name).allocate(history, profiles, cores, rng(seed))
    tried = last_values(history, profiles)
    untried = [profile for profile in profiles if profile not in tried]
    assert allocation[: len(untried)] == untried[:cores]


@pytest.mark.parametrize("name", POLICIES)
def test_a_run_with_no_history_gives_all_cores_work(name: str) -> None:
    assert set(make_policy(name).allocate([], [PROFILES[0]], 5, rng())) == {PROFILES[0]}


# Epsilon-greedy.


def test_greedy_gives_all_cores_to_the_profile_with_the_highest_value() -> None:
    values = {CYCLIC[0]: 3.0, CYCLIC[1]: 7.5, ACYCLIC[0]: 7.0}
    allocation = EpsilonGreedy(0.0).allocate(valued(values), list(values), 6, rng())
    assert allocation == [CYCLIC[1]] * 6
    assert search.greedy_choice(list(values.values())) == 1


def test_greedy_takes_the_first_of_equals() -> None:
    values = {CYCLIC[0]: 3.0, CYCLIC[1]: 1.0, ACYCLIC[0]: 3.0}
    assert EpsilonGreedy(0.0).allocate(valued(values), list(values), 2, rng()) == [CYCLIC[0]] * 2


def test_cores_beyond_the_profiles_without_a_value_go_to_the_best_or_else_to_the_shortest() -> None:
    profiles = [CYCLIC[0], ACYCLIC[0], CYCLIC[1]]
    assert EpsilonGreedy(0.0).allocate([], profiles, 5, rng()) == [*profiles, CYCLIC[0], CYCLIC[0]]
    history = valued({CYCLIC[0]: 1.0, CYCLIC[1]: 2.0})
    assert EpsilonGreedy(0.0).allocate(history, profiles, 1, rng()) == [ACYCLIC[0]]
    assert EpsilonGreedy(0.0).allocate(history, profiles, 3, rng()) == [ACYCLIC[0], CYCLIC[1], CYCLIC[1]]


def test_values_are_rewards_per_core() -> None:
    """cyclic 1: 12 over 4 cores is 3; acyclic 1: 5 over 1 core is 5, so it is better."""
    history = history_of([spent(CYCLIC[0], 12.0, cores=4), spent(ACYCLIC[0], 5.0)])
    assert EpsilonGreedy(0.0).allocate(history, [CYCLIC[0], ACYCLIC[0]], 3, rng()) == [ACYCLIC[0]] * 3


def test_only_the_last_span_of_a_profile_counts() -> None:
    """cyclic 1 gave 100 and then 1; acyclic 1 gave 2, two spans ago: 2 > 1."""
    history = history_of([spent(CYCLIC[0], 100.0)], [spent(ACYCLIC[0], 2.0)], [spent(CYCLIC[0], 1.0)])
    assert EpsilonGreedy(0.0).allocate(history, [CYCLIC[0], ACYCLIC[0]], 2, rng()) == [ACYCLIC[0]] * 2


def test_help_from_other_cores_is_no_value() -> None:
    """A profile that had no core of its own, though others helped with it, has no value yet: it comes first."""
    history = history_of([spent(CYCLIC[0], 5.0), spent(ACYCLIC[0], 9.0, cores=0)])
    assert last_values(history, PROFILES) == {CYCLIC[0]: 5.0}
    allocation = EpsilonGreedy(0.0).allocate(history, [CYCLIC[0], ACYCLIC[0]], 3, rng())
    assert allocation == [ACYCLIC[0], CYCLIC[0], CYCLIC[0]]


def test_relative_values_are_divided_by_all_that_a_profile_has_yielded() -> None:
    """cyclic 1 gave 90 and then 10, a tenth of 100; acyclic 1 gave 4 and then 4, half of 8: it is better."""
    spans = [[spent(CYCLIC[0], 90.0), spent(ACYCLIC[0], 4.0)], [spent(CYCLIC[0], 10.0), spent(ACYCLIC[0], 4.0)]]
    history, profiles = history_of(*spans), [CYCLIC[0], ACYCLIC[0]]
    assert last_values(history, profiles, relative=True) == {CYCLIC[0]: 0.1, ACYCLIC[0]: 0.5}
    for relative, best in ((False, CYCLIC[0]), (True, ACYCLIC[0])):
        assert EpsilonGreedy(0.0, relative).allocate(history, profiles, 2, rng()) == [best] * 2


def test_lengths_get_the_same_share_where_that_is_asked_for() -> None:
    """cyclic 1 and acyclic 1 divide theirs 3 to 1; cyclic 3 was in vain the last time."""
    values = {CYCLIC[0]: 30.0, ACYCLIC[0]: 10.0, CYCLIC[1]: 0.01, CYCLIC[2]: 0.0}
    drawn = Weighted(0.0, same_lengths=True).allocate(valued(values), list(values), 9_000, rng(8))
    assert chi_square(drawn, list(values)[:3], [3 / 8, 1 / 8, 1 / 2]) < 14
    nothing = dict.fromkeys(values, 0.0)
    drawn = Weighted(0.0, same_lengths=True).allocate(valued(nothing), list(values), 9_000, rng(8))
    assert chi_square(drawn, list(values), [1 / 4] * 4) < 17


def test_profiles_that_yielded_nothing_have_no_relative_value() -> None:
    assert last_values(valued({CYCLIC[0]: 0.0}), PROFILES, relative=True) == {CYCLIC[0]: 0.0}


def test_exhausted_profiles_do_not_count_however_valuable_they_were() -> None:
    values = {CYCLIC[0]: 1000.0, CYCLIC[1]: 2.0, ACYCLIC[0]: 1.0}
    assert EpsilonGreedy(0.0).allocate(valued(values), [CYCLIC[1], ACYCLIC[0]], 2, rng()) == [CYCLIC[1]] * 2


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_greedy_cores_are_random_with_probability_epsilon(epsilon: float) -> None:
    """Four profiles, epsilon 0.3: 0.3 / 4 = 0.075 each, and 0.7 more for the best."""
    values = dict(zip(PROFILES[:4], [1.0, 5.0, 2.0, 0.0], strict=True))
    drawn = EpsilonGreedy(epsilon).allocate(valued(values), list(values), 40_000, rng(1))
    shares = search.greedy_core_probabilities(list(values.values()), epsilon)
    if epsilon == 0.3:
        assert shares == pytest.approx([0.075, 0.775, 0.075, 0.075])
    assert chi_square(drawn, list(values), shares) < CHI_SQUARE[3]


# Weighted.


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_weighted_policy_gives_cores_in_proportion_to_value(epsilon: float) -> None:
    """Values 6, 3, 1, 0 give 0.6, 0.3, 0.1, 0; with epsilon 0.1, 0.9 of each and 0.1 / 4 = 0.025 more."""
    values = dict(zip(PROFILES[:4], [6.0, 3.0, 1.0, 0.0], strict=True))
    drawn = Weighted(epsilon).allocate(valued(values), list(values), 8_000, rng(2))
    shares = search.weighted_core_probabilities(list(values.values()), epsilon)
    if epsilon == 0.1:
        assert shares == pytest.approx([0.565, 0.295, 0.115, 0.025])
    assert chi_square(drawn, list(values), shares) < CHI_SQUARE[3]


def test_weighted_policy_goes_by_reward_per_core() -> None:
    """8 over 4 cores and 6 over 1: values 2 and 6, shares 1/4 and 3/4."""
    history = history_of([spent(CYCLIC[0], 8.0, cores=4), spent(ACYCLIC[0], 6.0)])
    profiles = [CYCLIC[0], ACYCLIC[0]]
    drawn = Weighted(0.0).allocate(history, profiles, 8_000, rng(3))
    assert chi_square(drawn, profiles, [0.25, 0.75]) < CHI_SQUARE[1]


def test_small_values_have_the_same_shares_as_large_ones() -> None:
    """0.3 and 0.1: three quarters and one."""
    values = {CYCLIC[0]: 0.3, ACYCLIC[0]: 0.1}
    drawn = Weighted(0.0).allocate(valued(values), list(values), 4_000, rng(11))
    assert chi_square(drawn, list(values), [3 / 4, 1 / 4]) < CHI_SQUARE[1]


def test_where_no_profile_has_any_value_all_are_equally_likely() -> None:
    values = dict.fromkeys(PROFILES[:3], 0.0)
    drawn = Weighted(0.0).allocate(valued(values), list(values), 9_000, rng(4))
    shares = search.weighted_probabilities([0.0] * 3)
    assert chi_square(drawn, list(values), shares) < CHI_SQUARE[2]


def test_weights_of_exhausted_profiles_go_to_the_others() -> None:
    """Values 90, 2, 1, the first exhausted: 2/3 and 1/3."""
    values = {CYCLIC[0]: 90.0, CYCLIC[1]: 2.0, ACYCLIC[0]: 1.0}
    drawn = Weighted(0.0).allocate(valued(values), [CYCLIC[1], ACYCLIC[0]], 9_000, rng(5))
    assert chi_square(drawn, [CYCLIC[1], ACYCLIC[0]], [2 / 3, 1 / 3]) < CHI_SQUARE[1]


def test_cores_beyond_the_profiles_without_a_value_go_by_the_values_that_are_known() -> None:
    """Untried profiles come first and have no weight after that; with nothing known, all have the same."""
    profiles = [CYCLIC[0], ACYCLIC[0], CYCLIC[1]]
    drawn = Weighted(0.0).allocate(valued({CYCLIC[0]: 1.0, CYCLIC[1]: 3.0}), profiles, 6_001, rng(9))
    assert drawn[0] == ACYCLIC[0]
    assert chi_square(drawn[1:], profiles, [1 / 4, 0, 3 / 4]) < CHI_SQUARE[1]
    drawn = Weighted(0.0).allocate([], profiles, 6_003, rng(10))
    assert drawn[:3] == profiles
    assert chi_square(drawn[3:], profiles, [1 / 3] * 3) < CHI_SQUARE[2]


# Random.


def test_random_policy_ignores_values() -> None:
    values = dict(zip(PROFILES, [1000.0, 0.0, 1.0, 5.0, 0.0], strict=True))
    drawn = make_policy("random").allocate(valued(values), PROFILES, 50_000, rng(6))
    assert chi_square(drawn, PROFILES, search.weighted_core_probabilities(list(values.values()), 1.0)) < CHI_SQUARE[4]


def test_random_policy_does_not_favour_profiles_without_a_value() -> None:
    drawn = make_policy("random").allocate(valued({CYCLIC[0]: 5.0}), PROFILES, 50_000, rng(7))
    assert chi_square(drawn, PROFILES, [0.2] * 5) < CHI_SQUARE[4]


def test_random_policy_may_leave_out_profiles_without_a_value() -> None:
    """Two cores, two profiles that were never tried: all four allocations are drawn."""
    drawn = {tuple(make_policy("random").allocate([], PROFILES[:2], 2, rng(seed))) for seed in range(40)}
    assert len(drawn) == 4


# Saturation.


def saturation_choice(history: list[SpanRecord], profiles: list[PathProfile] = PROFILES) -> PathProfile:
    allocation = Saturation(0.99).allocate(history, profiles, 3, rng())
    assert allocation == allocation[:1] * 3
    return allocation[0]


def test_saturation_policy_flips_between_cyclic_and_acyclic_spans() -> None:
    history: list[SpanRecord] = []
    chosen = []
    for _ in range(5):
        chosen.append(saturation_choice(history))
        history = [*history, SpanRecord(len(history) + 1, 1.0, (saturated(chosen[-1], known=1, new=99),))]
    assert chosen == [CYCLIC[0], ACYCLIC[0], CYCLIC[0], ACYCLIC[0], CYCLIC[0]]


def test_a_saturated_span_leads_to_paths_one_longer_of_the_same_kind() -> None:
    history = history_of([saturated(CYCLIC[0])], [saturated(ACYCLIC[0], new=100)])
    assert saturation_choice(history) == CYCLIC[1]
    history = history_of([saturated(CYCLIC[0])], [saturated(ACYCLIC[0], new=100)], [saturated(CYCLIC[1])])
    assert saturation_choice(history) == ACYCLIC[0]
    history += history_of([saturated(ACYCLIC[0])])
    assert saturation_choice(history) == CYCLIC[2]


@pytest.mark.parametrize(("known", "new", "expected"), [(99, 1, 1), (991, 9, 2), (990, 10, 1), (0, 0, 2)])
def test_a_span_is_saturated_only_above_the_boundary(known: int, new: int, expected: int) -> None:
    """Known 99 of 100, and 990 of 1000, is the boundary 0.99 itself; 991 of 1000 is above. No rule at all is
    saturated.
    """
    entry = saturated(CYCLIC[0], known, new)
    found, before = {*range(known + new)}, {*range(known)}
    assert entry.saturation == search.saturation(found, before)
    assert Saturation(0.99).current_length(history_of([entry]), cyclic=True) == expected


def test_the_longest_profile_is_kept_when_it_is_saturated() -> None:
    history = history_of([saturated(ACYCLIC[0])], [saturated(ACYCLIC[1])], [])
    assert Saturation(0.99).current_length(history, cyclic=False) == 3
    assert saturation_choice(history) == ACYCLIC[1]


def test_the_other_kind_gets_the_span_where_one_kind_is_exhausted() -> None:
    assert saturation_choice([], ACYCLIC) == ACYCLIC[0]
    assert saturation_choice(history_of([saturated(ACYCLIC[0])]), [CYCLIC[1], CYCLIC[2]]) == CYCLIC[1]


def test_an_exhausted_length_is_as_good_as_a_saturated_one() -> None:
    """Length 1 was listed to its end in one span, all rules new; when length 2 is saturated, length 3 is next."""
    listed = ProfileSpan(CYCLIC[0], cores=1, new_rules=100, exhausted=True)
    left = [profile for profile in PROFILES if profile != CYCLIC[0]]
    history = history_of([listed], [saturated(ACYCLIC[0], new=100)])
    assert saturation_choice(history, left) == CYCLIC[1]
    history += history_of([saturated(CYCLIC[1])], [saturated(ACYCLIC[0], new=100)])
    assert saturation_choice(history, left) == CYCLIC[2]


def test_a_length_exhausted_with_the_help_of_other_cores_is_passed_over() -> None:
    """Length 2 was ended by cores of another kind while length 1 was under way; then 1 and 3 are saturated:
    4 is next.
    """
    helped = ProfileSpan(CYCLIC[1], cores=0, new_rules=10, exhausted=True)
    history = history_of([saturated(CYCLIC[0], new=100), helped], [saturated(CYCLIC[0])], [saturated(CYCLIC[2])])
    assert Saturation(0.99).current_length(history[:1], cyclic=True) == 1
    assert Saturation(0.99).current_length(history[:2], cyclic=True) == 3
    assert Saturation(0.99).current_length(history, cyclic=True) == 4


def test_help_from_other_cores_saturates_nothing() -> None:
    helped = ProfileSpan(CYCLIC[0], cores=0, known_rules=100)
    assert helped.saturation == 1.0
    assert Saturation(0.99).current_length(history_of([helped]), cyclic=True) == 1


# Names.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("weighted", Weighted(0.2)),
        ("greedy", EpsilonGreedy(0.2)),
        ("random", EpsilonGreedy(1.0)),
        ("saturation", Saturation(0.9)),
    ],
)
def test_a_policy_is_made_by_its_name(name: str, expected: Policy) -> None:
    assert make_policy(name, epsilon=0.2, saturation=0.9) == expected


def test_options_of_a_policy_go_by_their_names() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        make_policy("greedy", 0.2)  # type: ignore[misc]


def test_one_core_in_ten_explores_unless_said_otherwise() -> None:
    assert Weighted() == Weighted(0.1, same_lengths=False)
    assert EpsilonGreedy() == EpsilonGreedy(0.1, relative=False)
    assert Saturation() == Saturation(0.99)


def test_on_large_graphs_values_are_relative_and_lengths_have_the_same_share() -> None:
    assert make_policy("weighted", large=True) == Weighted(0.1, same_lengths=True)
    assert make_policy("greedy", large=True) == EpsilonGreedy(0.1, relative=True)
    assert make_policy("random", large=True) == EpsilonGreedy(1.0, relative=False)
    assert make_policy("saturation", large=True) == Saturation(0.99)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_are_values_that_nothing_changes(name: str) -> None:
    policy = make_policy(name)
    assert {policy, make_policy(name)} == {policy}
    field = "boundary" if name == "saturation" else "epsilon"
    with pytest.raises(FrozenInstanceError):
        setattr(policy, field, 0.5)


def test_an_unknown_policy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(OptionError, match=f"policy must be one of {', '.join(POLICIES)}, got 'best'"):
        make_policy("best")


# What policies look at.


def test_a_value_is_the_reward_per_core() -> None:
    assert spent(CYCLIC[0], 22.0, cores=4).value == search.q(22.0, 4) == 5.5
    assert spent(CYCLIC[0], 22.0, cores=0).value == 0.0


def test_a_record_finds_a_profile_or_none() -> None:
    record = history_of([spent(CYCLIC[0], 1.0)])[0]
    assert record.of(CYCLIC[0]) == spent(CYCLIC[0], 1.0)
    assert record.of(ACYCLIC[0]) is None
