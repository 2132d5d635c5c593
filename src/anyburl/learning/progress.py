"""`read_progress`: the progress of a run, read from its folder, even while another process is learning.

From the last spans it estimates how much of each profile a run has seen, and what more time would bring.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.base.checking import MOST
from anyburl.base.files import is_text
from anyburl.learning.policy import ProfileSpan, SpanRecord
from anyburl.rules.run_folder import described_run, is_finished, read_trace
from anyburl.rules.types import PathProfile

SPAN = {
    "number": pl.Int64,
    "elapsed": pl.Float64,
    "seconds": pl.Float64,
    "rules": pl.Int64,
    "new_rules": pl.Int64,
    "paths": pl.Int64,
    "bodies": pl.Int64,
    "saturation": pl.Float64,
    "reward": pl.Float64,
}
TYPE = {"elapsed": pl.Float64, "type": pl.String, "length": pl.Int64, "new_rules": pl.Int64}
PROFILE = {
    "elapsed": pl.Float64,
    "seconds": pl.Float64,
    "profile": pl.String,
    "cores": pl.Int64,
    "reward": pl.Float64,
    "value": pl.Float64,
    "new_rules": pl.Int64,
}


@dataclass(frozen=True)
class Snapshot:
    """A moment whose rules were kept: its name, as `--at` takes it, the seconds of learning, and how many rules."""

    name: str
    seconds: float
    rules: int


@dataclass(frozen=True)
class Progress:
    """The progress of a run, from its trace.

    `spans` has one row for each time span; `profiles` one for each span and path profile, with `rules`, the number that
    the profile has found so far; `types` one for each span, type and length of rules that were found in it, with their
    number so far (a trace of an older version does not tell). `notes` are events with their second, such as lost
    workers. `planned_seconds` is None for a run with a budget of paths.
    """

    spans: pl.DataFrame
    profiles: pl.DataFrame
    types: pl.DataFrame
    snapshots: tuple[Snapshot, ...]
    notes: tuple[tuple[float, str], ...]
    planned_seconds: float | None
    is_finished: bool


def read_progress(folder: str | os.PathLike[str]) -> Progress:
    """Read how far a run is. What is missing in a line of its trace is null; a line cut short is left out."""
    path = Path(folder)
    options = described_run(path)["options"]
    lines = [line for line in read_trace(path) if _is_span(line)]
    return Progress(
        spans=pl.DataFrame([_chosen(line, SPAN) for line in lines], schema=SPAN),
        profiles=trace_table(lines).with_columns(rules=pl.col("new_rules").fill_null(0).cum_sum().over("profile")),
        types=_types(lines),
        snapshots=tuple(_snapshots(lines)),
        notes=tuple((float(line["elapsed"]), str(note)) for line in lines for note in _listed(line, "notes")),
        planned_seconds=None if options.get("paths") is not None else _number(options.get("seconds")),
        is_finished=is_finished(path),
    )


def trace_table(trace: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return one row for each time span and path profile of a run's trace."""
    rows = [
        _chosen({**entry, "elapsed": line.get("elapsed"), "seconds": line.get("seconds")}, PROFILE)
        for line in trace
        for entry in _listed(line, "profiles")
        if isinstance(entry, dict)
    ]
    return pl.DataFrame(rows, schema=PROFILE)


def _is_span(line: Mapping[str, Any]) -> bool:
    return _number(line.get("elapsed")) is not None and _number(line.get("number")) is not None


def _number(value: Any) -> float | None:
    """Return a number that a column can hold, else None; JSON as Python reads it has infinite ones, too."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < MOST else None


def _chosen(line: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row; what is missing or no number is null."""
    row: dict[str, Any] = {}
    for name, kind in schema.items():
        value = line.get(name)
        if kind == pl.String:
            row[name] = str(value) if is_text(str(value)) else None
        else:
            number = _number(value)
            row[name] = number if number is None or kind == pl.Float64 else int(number)
    return row


def _listed(line: Mapping[str, Any], name: str) -> list[Any]:
    entries = line.get(name)
    return entries if isinstance(entries, list) else []


def _types(lines: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return the rules found in each span by type and length; the length is that of the path profile."""
    rows = [
        {"elapsed": line["elapsed"], "type": kind, "length": int(length), "new_rules": int(n)}
        for line in lines
        for entry in _listed(line, "profiles")
        if isinstance(entry, dict) and isinstance(entry.get("new_by_type"), dict)
        for length in str(entry.get("profile")).split()[-1:]
        for kind, n in entry["new_by_type"].items()
        if length.isdecimal() and len(length) < 10 and is_text(kind) and _number(n) is not None
    ]
    counts = pl.DataFrame(rows, schema=TYPE).group_by("elapsed", "type", "length", maintain_order=True).sum()
    return counts.with_columns(rules=pl.col("new_rules").cum_sum().over("type", "length"))


def _snapshots(lines: Iterable[Mapping[str, Any]]) -> Iterable[Snapshot]:
    for line in lines:
        if isinstance(line.get("snapshot"), str) and (rules := _number(line.get("rules"))) is not None:
            yield Snapshot(line["snapshot"], float(line["elapsed"]), int(rules))


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
