"""Policies give each core a profile for the next span (paper, sections 3.2 and 3.3); rewards are what they follow.

A policy reads what happened in earlier spans, by profile (`SpanRecord`), as traces and displays do. A reward is what a
set of new rules is worth (paper, section 3.3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from anyburl.base.checking import MOST
from anyburl.base.errors import InvalidOptionError
from anyburl.learning.source import Listed
from anyburl.rules.types import PathProfile, RuleType


@dataclass(frozen=True)
class ProfileSpan:
    """What one profile yielded in one time span."""

    profile: PathProfile
    cores: int
    attempts: int = 0
    paths: int = 0
    new_bodies: int = 0  # harvested
    entered: int = 0  # new bodies found, harvested in this span or later
    new_rules: int = 0
    known_rules: int = 0
    reward: float = 0.0
    exhausted: bool = False
    new_by_type: tuple[int, ...] = ()  # the new rules of each type, by its code
    listed: Listed | None = None  # where bodies are listed instead of sampled: how far that has come

    @property
    def value(self) -> float:
        """Q(pf, t) = R(S(pf, t) without the rules of earlier spans) / N_t(pf): reward per core (section 3.3)."""
        return self.reward / self.cores if self.cores else 0.0

    @property
    def saturation(self) -> float:
        """|R_s'| / |R_s|: the share of the rules found in this span that were known before (section 3.2)."""
        n_rules = self.new_rules + self.known_rules
        return self.known_rules / n_rules if n_rules else 1.0


@dataclass(frozen=True)
class SpanRecord:
    """One time span."""

    number: int
    elapsed: float
    profiles: tuple[ProfileSpan, ...]

    @classmethod
    def from_trace(cls, line: Mapping[str, Any]) -> SpanRecord:
        """Read a span from its line of trace.jsonl; what an older version did not write is 0."""
        listed = listed_in(line)
        entries = [
            (profile, entry)
            for entry in line["profiles"]
            if (profile := PathProfile.parse(str(entry["profile"]))) is not None
        ]
        return cls(
            int(line["number"]),
            float(line["elapsed"]),
            tuple(_from_trace(profile, entry, listed.get(profile)) for profile, entry in entries),
        )

    def limited_to(self, exhausted: Collection[PathProfile]) -> SpanRecord:
        """Return the span of an earlier run, in which no profile is exhausted that is not so now."""
        entries = [replace(entry, exhausted=entry.exhausted and entry.profile in exhausted) for entry in self.profiles]
        return replace(self, profiles=tuple(entries))

    def of(self, profile: PathProfile) -> ProfileSpan | None:
        """Return what `profile` yielded, or None if it had no core."""
        return next((entry for entry in self.profiles if entry.profile == profile), None)


def listed_in(line: Mapping[str, Any]) -> dict[PathProfile, Listed]:
    """Return how far the lists of bodies had come at the end of the span of a line of trace.jsonl."""
    written = line.get("listed")
    positions = dict[PathProfile, Listed]()
    for name, position in written.items() if isinstance(written, dict) else ():
        profile = PathProfile.parse(name)
        if profile is not None and isinstance(position, dict):
            positions[profile] = Listed(_whole(position, "done"), _whole(position, "of"))
    return positions


def complete_in(line: Mapping[str, Any]) -> frozenset[PathProfile]:
    """Return the profiles that had no body left at the end of the span of a line of trace.jsonl."""
    written = line.get("complete")
    parsed = (PathProfile.parse(str(name)) for name in (written if isinstance(written, list) else ()))
    return frozenset(profile for profile in parsed if profile is not None)


def _from_trace(profile: PathProfile, entry: Mapping[str, Any], listed: Listed | None) -> ProfileSpan:
    by_type, reward = entry.get("new_by_type"), entry.get("reward")
    return ProfileSpan(
        profile,
        cores=_whole(entry, "cores"),
        attempts=_whole(entry, "attempts"),
        paths=_whole(entry, "paths"),
        new_bodies=_whole(entry, "new_bodies"),
        entered=_whole(entry, "entered" if "entered" in entry else "new_bodies"),
        new_rules=_whole(entry, "new_rules"),
        known_rules=_whole(entry, "known_rules"),
        reward=float(reward) if isinstance(reward, int | float) and 0 <= reward < MOST else 0.0,
        exhausted=entry["exhausted"] is True,
        new_by_type=tuple(_whole(by_type, str(kind)) for kind in RuleType) if isinstance(by_type, dict) else (),
        listed=listed,
    )


def _whole(values: Mapping[str, Any], name: str) -> int:
    """Return a count, or 0 if there is none."""
    value = values.get(name)
    return value if isinstance(value, int) and 0 <= value < MOST else 0


def last_values(
    history: Sequence[SpanRecord], profiles: Sequence[PathProfile], *, relative: bool = False
) -> dict[PathProfile, float]:
    """Return Q(pf, last(pf, t)) of each profile that was used before: its value the last time it was; `relative` to all
    that the profile has yielded.
    """
    values: dict[PathProfile, float] = {}
    rewards = dict.fromkeys(profiles, 0.0)
    for record in history:
        for entry in record.profiles:
            if entry.profile not in rewards:
                continue
            rewards[entry.profile] += entry.reward
            if entry.cores:
                values[entry.profile] = entry.value
    if relative:
        return {profile: value / rewards[profile] if value else 0.0 for profile, value in values.items()}
    return values


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
        current = self.current_length(history, cyclic)
        length = min((n for n in lengths if n >= current), default=max(lengths))
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


class Reward(Protocol):
    """The value of a set of rules, given as columns.

    With `pca`, their `predictions` are only those that the partial completeness assumption can judge.
    """

    pca: bool

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the reward of rules of one length."""
        ...


class Support:
    """R_s(S) = sum of support(r) over the rules r in S."""

    pca = False

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the sum of the supports."""
        return float(supports.sum(dtype=np.float64))


class SupportConfidence:
    """R_sxc(S) = sum of support(r) * conf(r) over the rules r in S."""

    pca = False

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the sum of support times confidence."""
        products = supports.astype(np.float64)
        np.square(products, out=products)
        return float((products / np.maximum(predictions, 1)).sum())


class LengthDiscounted(SupportConfidence):
    """R_sxc/2^l(S) = sum of support(r) * conf(r) / 2^l(r) over the rules r in S, l(r) the length of r."""

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the sum of support times confidence, halved for each body atom."""
        return float(super().of(supports, predictions, length) / 2**length)


class SupportPca(SupportConfidence):
    """R_sxpca(S) = sum of support(r) * PCA conf(r) over the rules r in S, as AMIE would value them."""

    pca = True


def make_reward(name: str) -> Reward:
    """Return the reward of that name."""
    rewards: dict[str, type[Reward]] = {
        "support": Support,
        "support-confidence": SupportConfidence,
        "length-discounted": LengthDiscounted,
        "support-pca": SupportPca,
    }
    if name not in rewards:
        raise InvalidOptionError("reward", f"one of {', '.join(rewards)}", name)
    return rewards[name]()
