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

    `seen` estimates how much is known. Where bodies are sampled, it is the share of further paths that would lead to a
    known body: one less the share of recent paths that led to a new one (Good and Turing). Where they are listed, it is
    the share of the listed bodies, and of the others as many as were known of those listed recently.
    `rules_per_second` are new rules per core-second, recently.
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
    first = _first_recent(spans, RECENT * core_seconds)
    recent, entries = sum(seconds for seconds, _ in spans[first:]), [entry for _, entry in spans]
    rules = sum(entry.new_rules for entry in entries[first:])
    seen, listed = _known_share(entries[first:]), entries[-1].listed
    if listed is not None:
        began = 1 + max((number for number, entry in enumerate(entries) if entry.listed is None), default=-1)
        whole = began if profile.rule_length == 1 else began + 1  # longer bodies were sampled before, in that span too
        done = listed.done / listed.n_bodies if listed.n_bodies else 0.0
        seen = done + (1 - done) * _known_share(entries[max(first, whole) :] or entries[first:])
    return Outlook(profile, core_seconds, bodies, seen, rules / recent if recent else 0.0)


def _first_recent(spans: Sequence[tuple[float, ProfileSpan]], core_seconds: float) -> int:
    """Return the number of the first of the last spans that took so many core-seconds and found a path."""
    recent, paths = 0.0, 0
    for number in reversed(range(len(spans))):
        recent, paths = recent + spans[number][0], paths + spans[number][1].paths
        if recent >= core_seconds and paths:
            return number
    return 0


def _known_share(entries: Sequence[ProfileSpan]) -> float:
    """Return the share of the bodies met in these spans that were known; 0 if none was met."""
    paths = sum(entry.paths for entry in entries)
    return max(0.0, 1 - sum(entry.entered for entry in entries) / paths) if paths else 0.0
