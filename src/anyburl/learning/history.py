"""What happened in each time span, by profile: the basis of policies, traces and displays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anyburl.paths.profile import PathProfile


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

    def of(self, profile: PathProfile) -> ProfileSpan | None:
        """Return what `profile` yielded, or None if it had no core."""
        return next((entry for entry in self.profiles if entry.profile == profile), None)


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
