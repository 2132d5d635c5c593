"""Policies: which profile each core works on in the next time span (paper, sections 3.2 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from anyburl.errors import InvalidOptionError
from anyburl.learning.history import SpanRecord, last_values
from anyburl.paths.profile import PathProfile

History = Sequence[SpanRecord]
Profiles = Sequence[PathProfile]


class Policy(Protocol):
    """Divides the cores between the profiles."""

    def allocate(self, history: History, profiles: Profiles, cores: int, rng: Generator) -> list[PathProfile]:
        """Return one of `profiles` (those not exhausted, never empty) for each core."""
        ...


def _untried_first(
    history: History, profiles: Profiles, cores: int, relative: bool
) -> tuple[list[PathProfile], dict[PathProfile, float]]:
    """Give a core to each profile that has no value yet, the shortest first; return those, and the known values.

    The paper's Q(pf, last(pf, t)) is not defined for a profile that was never used.
    """
    values = last_values(history, profiles, relative=relative)
    return [profile for profile in profiles if profile not in values][:cores], values


@dataclass(frozen=True)
class EpsilonGreedy:
    """With probability epsilon a core gets a random profile; all other cores get argmax Q(pf, last(pf, t_k)).

    epsilon = 1 is the random policy.
    """

    epsilon: float = 0.1
    relative: bool = False

    def allocate(self, history: History, profiles: Profiles, cores: int, rng: Generator) -> list[PathProfile]:
        """Return a profile for each core."""
        if self.epsilon >= 1:
            return [profiles[i] for i in rng.integers(len(profiles), size=cores)]
        chosen, values = _untried_first(history, profiles, cores, self.relative)
        best = max(values, key=lambda profile: values[profile]) if values else profiles[0]
        for _ in range(cores - len(chosen)):
            explore = rng.random() < self.epsilon
            chosen.append(profiles[int(rng.integers(len(profiles)))] if explore else best)
        return chosen


@dataclass(frozen=True)
class Weighted:
    """With probability epsilon a core gets a random profile, else pf with P_k(pf) = Q(pf, last(pf)) / sum of Q(pf',
    last(pf')).

    Where all values are zero, every profile is equally likely. With `same_lengths`, every length gets the same share,
    which the values divide between its profiles: on a large graph, unary rules without end would get nearly all spans
    otherwise.
    """

    epsilon: float = 0.1
    same_lengths: bool = False

    def allocate(self, history: History, profiles: Profiles, cores: int, rng: Generator) -> list[PathProfile]:
        """Return a profile for each core."""
        chosen, values = _untried_first(history, profiles, cores, relative=False)
        weights = np.array([values.get(profile, 0.0) for profile in profiles])
        if self.same_lengths:
            lengths = np.array([profile.rule_length for profile in profiles])
            of_length = np.bincount(lengths, weights=weights)[lengths]
            weights = np.divide(weights, of_length, where=of_length > 0, out=np.zeros(len(profiles)))
        total = weights.sum()
        shares = weights / total if total > 0 else np.full(len(profiles), 1 / len(profiles))
        for _ in range(cores - len(chosen)):
            explore = rng.random() < self.epsilon
            number = rng.integers(len(profiles)) if explore else rng.choice(len(profiles), p=shares)
            chosen.append(profiles[int(number)])
        return chosen


@dataclass(frozen=True)
class Saturation:
    """Spans alternate between cyclic and acyclic paths; each starts at length 1 and moves up when saturated.

    A span is saturated if |R_s'| / |R_s| is above `boundary`: R_s the rules found in it, R_s' those known before.
    """

    boundary: float = 0.99

    def allocate(self, history: History, profiles: Profiles, cores: int, rng: Generator) -> list[PathProfile]:
        """Return the same profile for all cores."""
        cyclic = len(history) % 2 == 0
        if all(profile.cyclic != cyclic for profile in profiles):
            cyclic = not cyclic
        lengths = [profile.rule_length for profile in profiles if profile.cyclic == cyclic]
        wanted = self.current_length(history, cyclic)
        length = min((n for n in lengths if n >= wanted), default=max(lengths))
        return [PathProfile(cyclic, length)] * cores

    def current_length(self, history: History, cyclic: bool) -> int:
        """Return the length reached by the spans so far, skipping lengths that have no body left."""
        length = 1
        exhausted: set[PathProfile] = set()
        for record in history:
            exhausted.update(entry.profile for entry in record.profiles if entry.exhausted)
            entry = record.of(PathProfile(cyclic, length))
            if entry and entry.cores and entry.saturation > self.boundary:
                length += 1
            while PathProfile(cyclic, length) in exhausted:
                length += 1
        return length


def make_policy(name: str, *, epsilon: float = 0.1, saturation: float = 0.99, large: bool = False) -> Policy:
    """Return the policy of that name."""
    policies: dict[str, Policy] = {
        "weighted": Weighted(epsilon, large),
        "greedy": EpsilonGreedy(epsilon, large),
        "random": EpsilonGreedy(1.0),
        "saturation": Saturation(saturation),
    }
    if name not in policies:
        raise InvalidOptionError("policy", f"one of {', '.join(policies)}", name)
    return policies[name]
