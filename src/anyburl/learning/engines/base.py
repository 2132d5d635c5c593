"""The engine protocol: run one time span on some cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

import numpy as np

from anyburl.bodies.seen import Harvested
from anyburl.learning.history import ProfileSpan
from anyburl.learning.known import Earlier
from anyburl.learning.source import Listed
from anyburl.learning.store import most_valuable
from anyburl.paths.profile import PathProfile
from anyburl.rules.types import RuleType
from anyburl.ruleset.combine import concatenate
from anyburl.ruleset.ruleset import RuleSet


@dataclass
class CoreSpan:
    """What one core found for one profile in one time span."""

    profile: PathProfile
    attempts: int = 0
    paths: int = 0
    entered: int = 0  # new bodies found
    new_bodies: int = 0  # new bodies harvested
    known_rules: int = 0
    reward: float = 0.0
    rules: list[RuleSet] = field(default_factory=list)
    cut: Counter[RuleType] = field(default_factory=Counter)  # rules found that a cap has dropped again

    @property
    def n_held(self) -> int:
        """How many rules are in memory."""
        return sum(len(rules) for rules in self.rules)

    @property
    def new_rules(self) -> int:
        """How many rules were found."""
        return self.n_held + self.cut.total()

    def count_type(self, kind: RuleType) -> int:
        """Return how many rules of a type were found."""
        return self.cut[kind] + sum(_count(rules, kind) for rules in self.rules)

    def cut_to(self, n_rules: int) -> None:
        """Keep the most valuable rules, in their order: a long span may find more than fit into memory."""
        found = concatenate(self.rules)
        kept = found.take(most_valuable(found, n_rules))
        self.cut.update({kind: _count(found, kind) - _count(kept, kind) for kind in RuleType})
        self.rules = [kept]


def _count(rules: RuleSet, kind: RuleType) -> int:
    return int(np.count_nonzero(rules.type == kind.code))


class Engine(Protocol):
    """Runs time spans. `workers` is the number of cores that it can run them on now."""

    floor: float  # support x confidence: rules that are worth less need not be found

    @property
    def workers(self) -> int: ...

    def run_span(self, number: int, allocation: Sequence[PathProfile], deadline: float | None) -> list[CoreSpan]:
        """Let each core work on its profile until `deadline` (on time.monotonic), or for its share of paths if None."""
        ...

    def after_span(self, found: Sequence[ProfileSpan]) -> None:
        """Learn what the span yielded, by profile."""
        ...

    def exhausted(self) -> set[PathProfile]:
        """Return the profiles that have no body left."""
        ...

    def listed(self) -> dict[PathProfile, Listed]:
        """Return how far the profiles have come whose bodies are listed, without those that have no body left."""
        ...

    def take_harvested(self) -> Harvested:
        """Return the bodies harvested since the last call."""
        ...

    def go_on(self, rules: RuleSet, earlier: Earlier) -> None:
        """Go on where an earlier run ended, before the first span; its `rules` are those that may be met again."""
        ...

    def take_notes(self) -> list[str]:
        """Return what happened to the workers since the last call, in words."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether the run should end: because of `stop`, or of Ctrl-C during a span."""
        ...

    def stop(self) -> None:
        """End the current span soon, from another thread or a signal handler."""
        ...

    def close(self) -> None:
        """Release threads and memory."""
        ...


class Stoppable:
    """The part of an engine that ends a run."""

    floor = 0.0

    def __init__(self) -> None:
        self._stop = Event()

    @property
    def stopped(self) -> bool:
        """Whether the run should end."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End the current span soon."""
        self._stop.set()


def by_profile(cores: Sequence[CoreSpan], allocation: Sequence[PathProfile]) -> list[ProfileSpan]:
    """Add up the results of the cores by profile; cores are counted as the policy allocated them."""
    profiles = dict.fromkeys([*allocation, *(core.profile for core in cores)])
    return [_add_up(profile, [core for core in cores if core.profile == profile], allocation) for profile in profiles]


def _add_up(profile: PathProfile, cores: list[CoreSpan], allocation: Sequence[PathProfile]) -> ProfileSpan:
    return ProfileSpan(
        profile,
        cores=sum(given == profile for given in allocation),
        attempts=sum(core.attempts for core in cores),
        paths=sum(core.paths for core in cores),
        new_bodies=sum(core.new_bodies for core in cores),
        entered=sum(core.entered for core in cores),
        new_rules=sum(core.new_rules for core in cores),
        known_rules=sum(core.known_rules for core in cores),
        reward=sum(core.reward for core in cores),
        new_by_type=tuple(sum(core.count_type(kind) for core in cores) for kind in RuleType),
    )
