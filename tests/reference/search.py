"""Rewards, policies and saturation (sections 3.2 and 3.3), formula by formula."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

ScoredRule = tuple[int, float, int]
"""Support, confidence, length."""


def support(rules: Iterable[ScoredRule]) -> float:
    """R_s: the sum of the supports."""
    return float(sum(s for s, _, _ in rules))


def support_confidence(rules: Iterable[ScoredRule]) -> float:
    """R_sxc: the sum of support times confidence."""
    return float(sum(s * c for s, c, _ in rules))


def length_discounted(rules: Iterable[ScoredRule]) -> float:
    """R_sxc/2^l: the sum of support times confidence, halved for every body atom."""
    return float(sum(s * c / 2**length for s, c, length in rules))


def new_rules(spans: Sequence[AbstractSet[T]]) -> set[T]:
    """S(pf, t_i) without the union of S(pf, t_j), j < i: what the last of a profile's spans added."""
    *earlier, last = spans
    return set(last).difference(*earlier)


def q(reward: float, cores: int) -> float:
    """Q(pf, t): the reward of the new rules, divided by the cores that the profile had."""
    return reward / cores


def greedy_choice(values: Sequence[float]) -> int:
    """pf*: the profile of the highest value; of several, the first."""
    return max(range(len(values)), key=lambda i: values[i])


def weighted_probabilities(values: Sequence[float]) -> list[float]:
    """P_k(pf): every profile in proportion to its value; all alike if all values are 0."""
    total = sum(values)
    if total == 0:
        return [1 / len(values)] * len(values)
    return [value / total for value in values]


def greedy_core_probabilities(values: Sequence[float], epsilon: float) -> list[float]:
    """What one core gets under the epsilon-greedy policy: a random profile below epsilon, else pf*."""
    best = greedy_choice(values)
    return [epsilon / len(values) + (1 - epsilon) * (i == best) for i in range(len(values))]


def weighted_core_probabilities(values: Sequence[float], epsilon: float) -> list[float]:
    """What one core gets under the weighted policy: a random profile below epsilon, else by P_k."""
    return [epsilon / len(values) + (1 - epsilon) * p for p in weighted_probabilities(values)]


def saturation(found: AbstractSet[Hashable], known: AbstractSet[Hashable]) -> float:
    """|R_s'| / |R_s|: which part of the rules found in a span was known; 1 if none was found."""
    return len(found & known) / len(found) if found else 1.0
