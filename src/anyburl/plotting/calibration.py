"""Calibration: whether predictions with a confidence of 0.8 are true eight times in ten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.plotting.style import COLOURS, ready_axes, say_nothing, short
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.scores import to_confidences
from anyburl.reasoning.reasoner import Reasoner
from anyburl.triples.dataset import SPLITS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    places = np.minimum((confidences * N_BINS).astype(np.int64), N_BINS - 1)
    frame = pl.DataFrame({"bin": places, "confidence": confidences, "true": truths})
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
