"""Estimates from the last spans how much of each profile a run has seen, and what more time would bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anyburl.learning.history import ProfileSpan, SpanRecord
from anyburl.paths.profile import PathProfile

RECENT = 0.25  # of a profile's core-seconds: its last spans, which tell what comes next


@dataclass(frozen=True)
class Outlook:
    """One profile at the end of a run.

    `seen` is the share of further paths that would lead to a body that is known: one less the share of recent paths
    that led to a new one (Good and Turing). `rules_per_second` are new rules per core-second, recently.
    """

    profile: PathProfile
    core_seconds: float
    bodies: int
    seen: float
    rules_per_second: float

    def to_json(self) -> dict[str, object]:
        """Return plain values."""
        return {
            "profile": str(self.profile),
            "core_seconds": round(self.core_seconds, 1),
            "bodies": self.bodies,
            "seen": round(self.seen, 4),
            "rules_per_core_second": round(self.rules_per_second, 1),
        }


def outlook(history: Sequence[SpanRecord], start: float = 0.0) -> list[Outlook]:
    """Return the outlook of every profile that had a core, in the order in which profiles come first.

    The first span of `history` began after `start` seconds of learning.
    """
    spans: dict[PathProfile, list[tuple[float, ProfileSpan]]] = {}
    elapsed = start
    for record in history:
        seconds, elapsed = record.elapsed - elapsed, record.elapsed
        for entry in record.profiles:
            spans.setdefault(entry.profile, []).append((entry.cores * seconds, entry))
    return [_outlook(profile, own) for profile, own in spans.items()]


def _outlook(profile: PathProfile, spans: Sequence[tuple[float, ProfileSpan]]) -> Outlook:
    """Return the outlook of one profile from its spans, each with its core-seconds."""
    core_seconds, bodies = sum(seconds for seconds, _ in spans), sum(entry.entered for _, entry in spans)
    if spans[-1][1].exhausted:
        return Outlook(profile, core_seconds, bodies, 1.0, 0.0)
    recent, paths, entered, rules = 0.0, 0, 0, 0
    for seconds, entry in reversed(spans):
        if recent >= RECENT * core_seconds and paths:
            break
        recent, paths = recent + seconds, paths + entry.paths
        entered, rules = entered + entry.entered, rules + entry.new_rules
    seen = max(0.0, 1 - entered / paths) if paths else 0.0
    return Outlook(profile, core_seconds, bodies, seen, rules / recent if recent else 0.0)
