"""What happened in each time span, by profile: the basis of policies, traces and displays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anyburl.checking import MOST
from anyburl.learning.source import Listed
from anyburl.paths.profile import PathProfile
from anyburl.rules.types import RuleType


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
        found = self.new_rules + self.known_rules
        return self.known_rules / found if found else 1.0


@dataclass(frozen=True)
class SpanRecord:
    """One time span."""

    number: int
    elapsed: float
    profiles: tuple[ProfileSpan, ...]

    @classmethod
    def from_trace(cls, line: Mapping[str, Any]) -> SpanRecord:
        """Return a span as its line of trace.jsonl tells it; what a line of an older version lacks is 0."""
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
    found = dict[PathProfile, Listed]()
    for name, place in written.items() if isinstance(written, dict) else ():
        profile = PathProfile.parse(name)
        if profile is not None and isinstance(place, dict):
            found[profile] = Listed(_whole(place, "done"), _whole(place, "of"))
    return found


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
