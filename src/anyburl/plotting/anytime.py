"""Anytime curves: how good a run's rules are over the seconds of learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyburl.errors import OptionError
from anyburl.evaluation.metrics import HITS, Metrics
from anyburl.learning.run import RunDirectory
from anyburl.plotting.style import COLOURS, ready_axes, say_nothing
from anyburl.ranking.options import RankOptions
from anyburl.reasoning.shortcuts import evaluate
from anyburl.ruleset.files.run_folder import snapshot_names
from anyburl.triples.dataset import Dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = ("mrr", *(f"hits@{k}" for k in HITS))


@dataclass(frozen=True)
class AnytimePoint:
    """The metrics of a run's rules after some seconds."""

    seconds: float
    metrics: Metrics


def anytime_points(
    run: RunDirectory,
    dataset: Dataset,
    *,
    split: str = "test",
    options: RankOptions | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[AnytimePoint]:
    """Evaluate the snapshots of a run and its last state; `progress` is called with the seconds of each beforehand."""
    points = []
    for seconds, name in _moments(run):
        if progress:
            progress(seconds)
        points.append(AnytimePoint(seconds, evaluate(run.load_rules(name), dataset, split=split, options=options)))
    return points


def _moments(run: RunDirectory) -> list[tuple[float, str | None]]:
    """Return the seconds of each snapshot with its name, and those of the end, which has none."""
    names = snapshot_names(run.path)
    end = max((float(line["elapsed"]) for line in run.trace()), default=0.0)
    return sorted([*((float(name), name) for name in names), (end, None)], key=lambda moment: moment[0])


def plot_anytime(runs: Mapping[str, Sequence[AnytimePoint]], *, metric: str = "mrr", axes: Axes | None = None) -> Axes:
    """Draw a metric over the seconds of learning, one line for each run, with its 95 % interval."""
    if metric not in METRICS:
        raise OptionError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    word = metric.upper() if metric == "mrr" else metric
    axes = ready_axes(axes, f"{word} over time", "seconds of learning", word)
    drawn = {label: points for label, points in runs.items() if points}
    if not drawn:
        say_nothing(axes, "no snapshot")
        return axes
    for (label, points), colour in zip(drawn.items(), COLOURS * len(drawn), strict=False):
        seconds = [point.seconds for point in points]
        values = [float(point.metrics.metrics[metric]) for point in points]
        low, high = zip(*(point.metrics.metrics["interval"][metric] for point in points), strict=True)
        axes.fill_between(seconds, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.plot(seconds, values, color=colour, marker="o", markersize=4, label=label)
        axes.annotate(f"{values[-1]:.3f}", (seconds[-1], values[-1]), (5, 0), textcoords="offset points", fontsize=9)
    axes.set_xlim(left=0)
    axes.margins(x=0.1)
    if len(runs) > 1:
        axes.legend(frameon=False, fontsize=9, loc="lower right")
    return axes
