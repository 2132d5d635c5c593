"""The page of a run: figures, charts and snapshots, read from its folder without contacting the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.evaluation.kept_metrics import read_metrics
from anyburl.learning.progress import Progress, read_progress
from anyburl.ruleset.files.run_folder import described_run
from anyburl.web.charts import Series, inks, lines, stacked, stepped

MOST_MOMENTS = 300


@dataclass(frozen=True)
class Chart:
    """A picture with its caption, and the inks of its series."""

    caption: str
    picture: str
    inks: Mapping[str, str]


@dataclass(frozen=True)
class RunView:
    """What is shown of a run: figures and path profiles of its last time span; None before there is one."""

    progress: Progress
    last: Mapping[str, Any] | None
    profiles: Sequence[Mapping[str, Any]]
    charts: tuple[Chart, ...]
    options: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]


def view_run(folder: Path) -> RunView:
    """Read a run folder, finished or not."""
    progress = read_progress(folder)
    last = progress.spans.row(-1, named=True) if len(progress.spans) else None
    now = progress.profiles.filter(pl.col("elapsed") == last["elapsed"]) if last else progress.profiles
    options, metrics = described_run(folder)["options"], read_metrics(folder)
    return RunView(progress, last, now.rows(named=True), _charts(progress), options, metrics)


def _charts(progress: Progress) -> tuple[Chart, ...]:
    if not len(progress.spans):
        return ()
    times = _moments(progress.spans["elapsed"].to_list())
    profiles = _by_time(progress.profiles, "profile")
    colours = inks(sorted(profiles, key=lambda name: (name.startswith("acyclic"), name)))
    saturation = dict(zip(*progress.spans.select("elapsed", "saturation").get_columns(), strict=True))
    reward = progress.profiles.with_columns(reward=pl.col("reward") / pl.col("seconds"))
    per_profile = _series(_by_time(reward, "profile", "reward"), colours, times)
    cores = _series(_by_time(progress.profiles, "profile", "cores"), colours, times)
    return (
        _rules_chart(progress, times),
        _chart("Cores per path profile", stepped, times, cores, colours),
        _chart("Reward per second and path profile", lines, times, per_profile, colours),
        Chart(
            "Saturation",
            lines("Saturation", times, [Series("", "c3", [saturation[time] for time in times])], highest=1.0),
            {},
        ),
    )


def _rules_chart(progress: Progress, times: Sequence[float]) -> Chart:
    """Draw the rules by type and length or, where the trace of an older version does not tell, by path profile."""
    if len(progress.types):
        named = progress.types.with_columns(name=pl.concat_str("type", "length", separator=" "))
        found, caption = _by_time(named, "name", "rules"), "Rules by type and length"
        kinds = {"B": "cyclic", "Uc": "acyclic", "Ud": "dangling"}
        shown = {name: f"{kinds.get(name.split()[0], 'cyclic')} {name.split()[1]}" for name in sorted(found)}
    else:
        found, caption = _by_time(progress.profiles, "profile", "rules"), "Rules by path profile"
        shown = {name: name for name in sorted(found)}
    chosen = inks(list(shown.values()))
    colours = {name: chosen[profile] for name, profile in shown.items()}
    return _chart(caption, stacked, times, _series(found, colours, times, grows=True), colours)


def _chart(caption: str, draw: Any, times: Sequence[float], series: list[Series], colours: Mapping[str, str]) -> Chart:
    return Chart(caption, draw(caption, times, series), colours)


def _moments(times: Sequence[float]) -> list[float]:
    """Return enough moments for a picture, the last among them."""
    step = -(-len(times) // MOST_MOMENTS)
    return list(times[::-1][::step])[::-1]


def _by_time(frame: pl.DataFrame, key: str, value: str = "rules") -> dict[str, dict[float, float]]:
    """Return the values of each series by moment."""
    found: dict[str, dict[float, float]] = {}
    for name, time, number in frame.select(key, "elapsed", value).iter_rows():
        found.setdefault(name, {})[time] = number or 0.0
    return found


def _series(
    found: Mapping[str, Mapping[float, float]],
    colours: Mapping[str, str],
    times: Sequence[float],
    *,
    grows: bool = False,
) -> list[Series]:
    """Return series in the order of their colours; a moment without a value has none or, where it grows, the last."""
    return [Series(name, colours[name], _values(found[name], times, grows)) for name in colours]


def _values(values: Mapping[float, float], times: Sequence[float], grows: bool) -> list[float | None]:
    if not grows:
        return [values.get(time) for time in times]
    known, last, shown = sorted(values.items()), 0.0, []
    for time in times:
        while known and known[0][0] <= time:
            last = known.pop(0)[1]
        shown.append(last)
    return list(shown)
