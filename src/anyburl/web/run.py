"""The page of a run: figures and charts of how its rules are learned, read from its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from anyburl.learning.progress import Progress, read_progress
from anyburl.reasoning.metrics import read_metrics
from anyburl.rules.run_folder import described_run
from anyburl.rules.types import KINDS
from anyburl.web.site import HTML, CurrentSite

WIDTH, HEIGHT = 520.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 12.0, 12.0, 30.0
N_TICKS = 4


@dataclass(frozen=True)
class Series:
    """One line or area: its name, its CSS class, and a value for each moment (None: no value)."""

    name: str
    ink: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Frame:
    """Maps times and values to coordinates of the SVG."""

    times: Sequence[float]
    highest: float
    lowest: float = 0.0
    is_log: bool = False

    def x(self, time: float) -> float:
        first, last = (self.times[0], self.times[-1]) if self.times else (0.0, 1.0)
        return LEFT + (time - first) / ((last - first) or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high, value = (self._scaled(number) for number in (self.lowest, self.highest, value))
        return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1.0) * (HEIGHT - TOP - BOTTOM)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, 1e-9)) if self.is_log else value

    def ticks(self) -> list[float]:
        """Return round numbers between the lowest and the highest value."""
        if self.is_log:
            low, high = math.floor(math.log10(self.lowest)), math.ceil(math.log10(self.highest))
            powers = range(low, high + 1, max(1, (high - low) // N_TICKS))
            return [10.0**power for power in powers if self.lowest <= 10.0**power <= self.highest]
        step = _round_step(self.highest / N_TICKS)
        return [step * i for i in range(int(self.highest / step + 1e-9) + 1)]


def stepped(title: str, times: Sequence[float], series: Sequence[Series]) -> str:
    """Return stacked areas with steps: a value holds from the previous moment to its own."""
    twice = [time for time in (0.0, *times) for _ in range(2)][1:-1]
    doubled = [Series(one.name, one.ink, [value for value in one.values for _ in range(2)]) for one in series]
    return stacked(title, twice, doubled)


def stacked(title: str, times: Sequence[float], series: Sequence[Series]) -> str:
    """Return stacked areas as SVG; the page's style sheet colours them."""
    tops = [0.0] * len(times)
    for one in series:
        tops = [top + (value or 0.0) for top, value in zip(tops, one.values, strict=True)]
    frame, below, parts = Frame(times, max(tops, default=0.0) or 1.0), [0.0] * len(times), []
    for one in series:
        above = [low + (value or 0.0) for low, value in zip(below, one.values, strict=True)]
        upper, lower = ([(frame.x(t), frame.y(v)) for t, v in zip(times, edge, strict=True)] for edge in (above, below))
        parts.append(f'<path class="area {one.ink}" d="{_path([*upper, *reversed(lower)])}Z"/>')
        below = above
    return _picture(title, frame, "".join(parts))


def lines(title: str, times: Sequence[float], series: Sequence[Series], *, highest: float | None = None) -> str:
    """Return lines; with a fixed `highest` value the scale starts at 0, otherwise it is logarithmic."""
    values = [value for one in series for value in one.values if value is not None and value > 0]
    if highest is not None:
        frame = Frame(times, highest)
    else:
        frame = Frame(times, max(values, default=10.0) * 1.2, min(values, default=1.0) / 1.2, is_log=True)
    parts = []
    for one in series:
        points = [
            (frame.x(time), frame.y(value))
            for time, value in zip(times, one.values, strict=True)
            if value is not None and (value > 0 or not frame.is_log)
        ]
        parts.append(f'<path class="line {one.ink}" d="{_path(points)}"/>' if points else "")
        parts += [f'<circle class="{one.ink}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>' for x, y in points[:1] + points[-1:]]
    return _picture(title, frame, "".join(parts))


def _picture(title: str, frame: Frame, inside: str) -> str:
    grid = "".join(_tick(frame, value) for value in frame.ticks())
    ends = [frame.times[0], frame.times[-1]] if frame.times else []
    below = "".join(
        f'<text class="{anchor}" x="{frame.x(time):.1f}" y="{HEIGHT - 8:.0f}">{time:.3g} s</text>'
        for time, anchor in zip(ends[-1:] if len(frame.times) < 2 else ends, ("start", "end"), strict=False)
    )
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(title)}">'
        f"{grid}{inside}{below}</svg>"
    )


def _tick(frame: Frame, value: float) -> str:
    y = frame.y(value)
    return (
        f'<path class="grid" d="M{LEFT:.0f},{y:.1f}H{WIDTH - RIGHT:.0f}"/>'
        f'<text class="end" x="{LEFT - 6:.0f}" y="{y + 4:.1f}">{short_number(value)}</text>'
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step)) if step > 0 else 1.0
    return next((power * factor for factor in (1, 2, 5) if power * factor >= step), power * 10)


def short_number(value: float) -> str:
    """Return a number with at most three digits: 1.2 M, 340 k."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


INKS = {"cyclic": "c", "acyclic": "a", **{str(kind): kind.form.ink for kind in KINDS}}


def inks(names: Sequence[str]) -> Mapping[str, str]:
    """Return a class for each series, named by path profile or type and length: an ink for each, darker with length."""
    classes = {}
    for name in names:
        kind, _, length = name.partition(" ")
        number = min(int(length), 4) if length.isdecimal() else 1
        classes[name] = f"{INKS.get(kind, 'c')}{max(number, 1)}"
    return classes


MOST_MOMENTS = 300


@dataclass(frozen=True)
class Chart:
    """An SVG with its caption, and the CSS classes of its series."""

    caption: str
    picture: str
    inks: Mapping[str, str]


@dataclass(frozen=True)
class RunView:
    """A run for its page; `last` and `profiles` are those of its last time span, None and empty before there is one."""

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
    """Draw the rules by type and length or, for traces of older versions, by path profile."""
    if len(progress.types):
        named = progress.types.with_columns(name=pl.concat_str("type", "length", separator=" "))
        rules, caption = _by_time(named, "name", "rules"), "Rules by type and length"
    else:
        rules, caption = _by_time(progress.profiles, "profile", "rules"), "Rules by path profile"
    colours = inks(sorted(rules))
    return _chart(caption, stacked, times, _series(rules, colours, times, grows=True), colours)


def _chart(caption: str, draw: Any, times: Sequence[float], series: list[Series], colours: Mapping[str, str]) -> Chart:
    return Chart(caption, draw(caption, times, series), colours)


def _moments(times: Sequence[float]) -> list[float]:
    """Return at most `MOST_MOMENTS` of the times, evenly, the last among them."""
    step = -(-len(times) // MOST_MOMENTS)
    return list(times[::-1][::step])[::-1]


def _by_time(frame: pl.DataFrame, key: str, value: str = "rules") -> dict[str, dict[float, float]]:
    """Return the values of each series by moment."""
    series: dict[str, dict[float, float]] = {}
    for name, time, number in frame.select(key, "elapsed", value).iter_rows():
        series.setdefault(name, {})[time] = number or 0.0
    return series


def _series(
    by_time: Mapping[str, Mapping[float, float]],
    colours: Mapping[str, str],
    times: Sequence[float],
    *,
    grows: bool = False,
) -> list[Series]:
    """Return series in the order of their colours; between its values, one that `grows` has the last one."""
    return [Series(name, colours[name], _values(by_time[name], times, grows)) for name in colours]


def _values(values: Mapping[float, float], times: Sequence[float], grows: bool) -> list[float | None]:
    if not grows:
        return [values.get(time) for time in times]
    known, last, shown = sorted(values.items()), 0.0, []
    for time in times:
        while known and known[0][0] <= time:
            last = known.pop(0)[1]
        shown.append(last)
    return list(shown)


SECONDS_BETWEEN = 3

router = APIRouter()


@router.get("/run")
async def run(site: CurrentSite) -> Response:
    """Show the run; its folder is read on every request."""
    folder = site.explorer.run
    if folder is None:
        raise HTTPException(404, "these rules are not a run folder")

    def make() -> bytes:
        view = view_run(folder)
        seconds = 0 if view.progress.is_finished else SECONDS_BETWEEN
        context = {"path": "/run", "view": view, "progress": view.progress, "seconds": seconds}
        return site.render("run.html", context)

    return Response(await site.quick.run(make), media_type=HTML)
