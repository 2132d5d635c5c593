"""Plots of a run: quality over time, path profiles, rules, calibration and reliability."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, MissingExtraError, OptionError
from anyburl.base.writing import replacing
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.learning.progress import trace_table
from anyburl.learning.run import RunDirectory
from anyburl.models.distilling.distil import Distilled
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.index import to_confidences
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.completion.promises import CalibrationReport
from anyburl.reasoning.metrics import HITS, Metrics
from anyburl.reasoning.reasoner import Reasoner
from anyburl.reasoning.shortcuts import evaluate
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import snapshot_names
from anyburl.rules.types import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SIZE = (6.4, 4.0)
DOTS_PER_INCH = 150
PLOT_SUFFIXES = (".png", ".svg", ".pdf")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
TEXT, FAINT = "#333333", "#dddddd"


def new_figure(width: float = SIZE[0], height: float = SIZE[1]) -> Figure:
    """Return an empty figure; nothing is shown, and no state is shared."""
    try:
        figure: Figure = import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    except ImportError as error:
        raise MissingExtraError("plotting", "plot") from error
    return figure


def ready_axes(axes: Axes | None, title: str, x: str, y: str) -> Axes:
    """Return axes with title and labels; without `axes`, those of a new figure."""
    ready: Any = new_figure().add_subplot() if axes is None else axes
    ready.set_title(title, loc="left", fontsize=11, color=TEXT)
    ready.set_xlabel(x, color=TEXT)
    ready.set_ylabel(y, color=TEXT)
    for side in ("top", "right"):
        ready.spines[side].set_visible(False)
    ready.grid(axis="y", color=FAINT, linewidth=0.7)
    ready.set_axisbelow(True)
    ready.tick_params(colors=TEXT, labelsize=9)
    return ready


def say_nothing(axes: Axes, why: str) -> None:
    """Write into an empty plot why it is empty."""
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=TEXT)
    axes.set_xticks([])
    axes.set_yticks([])


def short(n: int) -> str:
    """Return a short count: 930, 16k, 2.3M."""
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if n >= unit:
            return f"{n / unit:.{0 if n >= 10 * unit else 1}f}{name}"
    return str(n)


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file in the format of its suffix."""
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise DataError(f"{path}: expected a file that ends in one of {', '.join(PLOT_SUFFIXES)}")
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=DOTS_PER_INCH, format=path.suffix[1:].lower())


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


SHADES = {
    "cyclic": ("#b3d7ee", "#62a9d8", "#1f6fb4", "#0b3c6f", "#041c38"),
    "acyclic": ("#fdae6b", "#f16913", "#a63603", "#7f2704"),
}


def plot_rewards(trace: Iterable[Mapping[str, Any]], *, axes: Axes | None = None) -> Axes:
    """Draw the reward per second of each profile, span by span, on a logarithmic scale."""
    axes = ready_axes(axes, "reward per profile", "seconds", "reward a second")
    table = trace_table(trace).filter(pl.col("reward") > 0)
    if not len(table):
        say_nothing(axes, "no profile earned a reward")
        return axes
    for profile, rows in _by_profile(table):
        rewards = rows["reward"] / rows["seconds"]
        axes.plot(rows["elapsed"], rewards, color=_colour(profile), marker="o", markersize=3, label=profile)
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    axes.legend(frameon=False, fontsize=9)
    return axes


def plot_cores(trace: Iterable[Mapping[str, Any]], *, axes: Axes | None = None) -> Axes:
    """Draw how the cores were divided between profiles, one bar for each span; sweeps come on top of that."""
    axes = ready_axes(axes, "cores per profile", "seconds", "cores")
    table = trace_table(trace)
    if not table["cores"].sum():
        say_nothing(axes, "no cores were given to a profile")
        return axes
    spans = table.select("elapsed", "seconds").unique(maintain_order=True)
    below = pl.Series([0.0] * len(spans))
    for profile, rows in _by_profile(table):
        cores = spans.join(rows, on="elapsed", how="left", maintain_order="left")["cores"].fill_null(0)
        if not cores.sum():
            continue
        starts = spans["elapsed"] - spans["seconds"]
        style = {"color": _colour(profile), "label": profile, "edgecolor": "white", "linewidth": 0.4}
        axes.bar(starts, cores, spans["seconds"], below, align="edge", **style)
        below = below + cores
    axes.set_xlim(0, float(spans["elapsed"].max()))  # type: ignore[arg-type]
    axes.set_ylim(0, float(below.max()) * 1.25)  # type: ignore[arg-type]
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="upper center")
    return axes


def _by_profile(table: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the rows of each profile: cyclic ones first, short ones first."""
    parts = {str(key[0]): rows for key, rows in table.group_by("profile", maintain_order=True)}
    return sorted(parts.items(), key=lambda part: (part[0].startswith("acyclic"), part[0]))


def _colour(profile: str) -> str:
    kind, _, length = profile.partition(" ")
    shades = SHADES.get(kind, COLOURS)
    return shades[min(int(length or 1), len(shades)) - 1]


N_RULE_BINS = 25


def plot_rules(rules: RuleSet, *, axes: Axes | None = None) -> Axes:
    """Draw how many rules there are of each type and confidence; the count is on a logarithmic scale."""
    axes = ready_axes(axes, f"{len(rules):,} rules by type and confidence", "confidence", "rules")
    if not len(rules):
        say_nothing(axes, "no rules")
        return axes
    confidence, edges = rules.confidence(), np.linspace(0, 1, N_RULE_BINS + 1)
    for kind in KINDS:
        of_type = confidence[rules.type == kind.code]
        if not len(of_type):
            continue
        colour = kind.form.colour
        counts = np.histogram(of_type, edges)[0]
        axes.stairs(counts, edges, color=colour, linewidth=1.8, label=f"{kind}: {len(of_type):,}", baseline=None)
        axes.stairs(counts, edges, color=colour, alpha=0.08, fill=True)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.set_xlim(0, 1)
    axes.legend(frameon=False, fontsize=9)
    return axes


N_BINS = 10
MOST_QUESTIONS = 1000


def calibration_table(
    reasoner: Reasoner, *, split: str = "test", questions: int = MOST_QUESTIONS, seed: int = 0
) -> pl.DataFrame:
    """Return, by the confidence of the best rule behind a prediction, how many predictions there are, and the share
    that the split states.

    Predictions are all candidates of up to `questions` queries of the split that the other splits do not state. What
    no split states counts as false, which much of it may not be: shares are lower bounds.
    """
    ranker, dataset = reasoner.ranker, reasoner.dataset
    if not len(dataset.split(split)):
        raise DataError(f"{dataset.name} has no triples in its {split} split")
    others = [dataset.split(name).triples for name in SPLITS if name != split]
    queries, _ = make_queries(dataset.split(split).triples, others, dataset.vocabulary.n_relations)
    chosen = np.random.default_rng(seed).permutation(len(queries.entities))[:questions]
    queries = take_queries(queries, np.sort(chosen))
    parts = [_predictions(ranker, queries, number) for number in range(len(queries.entities))]
    confidences = np.concatenate([confidence for confidence, _ in parts])
    truths = np.concatenate([truth for _, truth in parts])
    bins = np.minimum((confidences * N_BINS).astype(np.int64), N_BINS - 1)
    frame = pl.DataFrame({"bin": bins, "confidence": confidences, "true": truths})
    return (
        frame.group_by("bin")
        .agg(pl.len().alias("predictions"), pl.col("confidence").mean(), pl.col("true").mean().alias("share_true"))
        .sort("bin")
    )


def _predictions(ranker: Ranker, queries: QueryArrays, number: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the highest confidence behind each new candidate of a query, and whether the split states it."""
    firings = ranker.fire(int(queries.entities[number]), int(queries.relations[number]))
    order = np.lexsort((-firings.scores, firings.candidates))
    candidates, firsts = np.unique(firings.candidates[order], return_index=True)
    scores = firings.scores[order][firsts]
    known = queries.excluded[slice(*queries.excluded_offsets[number : number + 2])]
    targets = queries.targets[slice(*queries.target_offsets[number : number + 2])]
    is_new = ~np.isin(candidates, known)
    return to_confidences(scores[is_new]), np.isin(candidates[is_new], targets)


def plot_calibration(table: pl.DataFrame, *, split: str = "test", axes: Axes | None = None) -> Axes:
    """Draw a `calibration_table`: on the dashed line, confidence and share would be the same."""
    axes = ready_axes(
        axes,
        "calibration of new predictions, with how many there are",
        "confidence of the best rule",
        f"share stated by {split}",
    )
    if not len(table):
        say_nothing(axes, "no rule predicts anything new")
        return axes
    axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1)
    axes.plot(table["confidence"], table["share_true"], color=COLOURS[0], marker="o", markersize=5)
    for confidence, share, n in table.select("confidence", "share_true", "predictions").iter_rows():
        axes.annotate(short(n), (confidence, share), (0, 7), textcoords="offset points", ha="center", fontsize=7)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(0, 1.08)
    return axes


def plot_reliability(report: CalibrationReport, *, axes: Axes | None = None) -> Axes:
    """Draw the bins of a calibration report: on the dashed line, probability and share would be the same."""
    axes = ready_axes(
        axes,
        f"{report.protocol['data']}, {report.protocol['aggregation']}: before and after calibration",
        "score or probability, with how many facts there are",
        f"share true, by {report.checked_on['split']}",
    )
    axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1)
    drawn = (
        ("score", report.before, report.uncalibrated_error, COLOURS[1], -11),
        ("probability", report.after, report.expected_calibration_error, COLOURS[0], 7),
    )
    for name, bins, error, colour, shift in drawn:
        label = name if error is None else f"{name}: expected calibration error {error:.4f}"
        points = [(one.probability, one.came_back) for one in bins]
        axes.plot([x for x, _ in points], [y for _, y in points], color=colour, marker="o", markersize=5, label=label)
        style = {"textcoords": "offset points", "ha": "center", "fontsize": 7, "color": colour}
        for one, point in zip(bins, points, strict=True):
            axes.annotate(short(one.facts), point, (0, shift), **style)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.05, 1.08)
    axes.legend(loc="upper left", fontsize=8, frameon=False)
    return axes


def plot_distilled(distilled: Distilled, path: str | Path) -> None:
    """Draw which share of the MRR of all rules how many of them have, and where the kept ones stand."""
    axes = ready_axes(None, f"{len(distilled.rules):,} of {distilled.n_rules:,} rules", "rules", "share of the MRR")
    sizes, shares = zip(*distilled.curve, strict=True)
    axes.plot(sizes, shares, color=COLOURS[0], marker="o", markersize=4)
    axes.plot([len(distilled.rules)], [distilled.quality], color=COLOURS[1], marker="o", linestyle="none")
    axes.axhline(1.0, color=FAINT, linewidth=1)
    axes.set_xscale("log")
    axes.set_ylim(0, max(1.02, *shares))
    save(axes.figure, Path(path))
