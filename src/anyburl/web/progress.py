"""What a run folder tells about learning, read from its files: the run itself is not asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from anyburl.ruleset.files.run_folder import PARTS, RULES, described_run, read_trace
from anyburl.web.charts import Series, inks, lines, stacked, stepped

MOST_MOMENTS = 300


@dataclass(frozen=True)
class Chart:
    """A picture with its caption, and the inks of its series."""

    caption: str
    picture: str
    inks: Mapping[str, str]


@dataclass(frozen=True)
class Progress:
    """How far a run is, and pictures of how it got there."""

    is_learning: bool
    last: Mapping[str, Any] | None
    n_spans: int
    charts: tuple[Chart, ...]
    snapshots: tuple[tuple[str, int | None], ...]
    options: Mapping[str, Any]
    data: Mapping[str, Any]


def read_run_progress(folder: Path) -> Progress:
    """Read options.json and trace.jsonl; a last line that is half written is left out."""
    described, trace = described_run(folder), list(read_trace(folder))
    is_learning = not (folder / RULES).is_file() or any((folder / PARTS).glob("*.columns"))
    return Progress(
        is_learning,
        trace[-1] if trace else None,
        len(trace),
        _charts(_thinned(trace)),
        _snapshots(folder, trace),
        described["options"],
        described["data"],
    )


def _thinned(trace: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return enough spans for a picture; sums over those between go into the next."""
    step = -(-len(trace) // MOST_MOMENTS) or 1
    ends = range((len(trace) - 1) % step + 1, len(trace) + 1, step)
    return [_summed(trace[max(0, end - step) : end]) for end in ends]


def _summed(spans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    profiles: dict[str, dict[str, float]] = {}
    for span in spans:
        for entry in span["profiles"]:
            found = profiles.setdefault(entry["profile"], {"cores": 0.0, "new_rules": 0.0, "reward": 0.0})
            for name in found:
                found[name] += entry[name]
    seconds = sum(span["seconds"] for span in spans)
    for found in profiles.values():
        found["cores"] /= len(spans)
        found["reward"] /= seconds or 1.0
    return {**spans[-1], "profiles": profiles}


def _charts(moments: Sequence[dict[str, Any]]) -> tuple[Chart, ...]:
    if not moments:
        return ()
    times = [moment["elapsed"] for moment in moments]
    names = sorted({name for moment in moments for name in moment["profiles"]}, key=_order)
    colours = inks(names)

    def series(field: str) -> dict[str, list[float]]:
        return {name: [moment["profiles"].get(name, {}).get(field, 0.0) for moment in moments] for name in names}

    def drawn(values: Mapping[str, Sequence[float]]) -> list[Series]:
        return [Series(name, colours[name], found) for name, found in values.items()]

    found = {name: list(accumulate(values)) for name, values in series("new_rules").items()}
    saturation = [moment["saturation"] for moment in moments]
    captions = ("Rules found, by path profile", "Cores per profile", "Reward a second per profile", "Saturation")
    return (
        Chart(captions[0], stacked(captions[0], times, drawn(found)), colours),
        Chart(captions[1], stepped(captions[1], times, drawn(series("cores"))), colours),
        Chart(captions[2], lines(captions[2], times, drawn(series("reward"))), colours),
        Chart(captions[3], lines(captions[3], times, [Series("saturation", "c3", saturation)], highest=1.0), {}),
    )


def _order(profile: str) -> tuple[bool, str]:
    return profile.startswith("acyclic"), profile


def _snapshots(folder: Path, trace: Sequence[dict[str, Any]]) -> tuple[tuple[str, int | None], ...]:
    """Return the snapshots after so many seconds, and their numbers of rules where the trace tells them."""
    counts = {span["snapshot"]: int(span["rules"]) for span in trace if span.get("snapshot")}
    files = {file.stem.removeprefix("rules-"): None for file in folder.glob("rules-*.parquet")}
    return tuple(sorted({**files, **counts}.items(), key=lambda one: (len(one[0]), one[0])))
