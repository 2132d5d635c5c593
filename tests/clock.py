"""A clock that goes by how often it is looked at: runs of seconds that do the same on any machine, however busy."""

from __future__ import annotations

from itertools import count

import pytest

CLOCKS = ("anyburl.learning.learner.time", "anyburl.learning.threads.time")
"""Where learning looks at the clock."""


class TickingClock:
    """Stands for the module `time`: each look is `tick` seconds later than the one before."""

    def __init__(self, tick: float) -> None:
        self.tick, self._looks = tick, count()

    def monotonic(self) -> float:
        """Return the time."""
        return next(self._looks) * self.tick


def install(monkeypatch: pytest.MonkeyPatch, tick: float = 0.01) -> TickingClock:
    """Let learning go by a ticking clock."""
    clock = TickingClock(tick)
    for place in CLOCKS:
        monkeypatch.setattr(place, clock)
    return clock
