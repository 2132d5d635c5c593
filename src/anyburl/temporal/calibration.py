"""Turn scores into probabilities: what share of the answers with such a score turned out to be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.learning.options import TemporalOptions
from anyburl.models.calibration import isotonic
from anyburl.temporal.evaluation import Protocol, ranked_parts, split_questions
from anyburl.temporal.facts import TemporalDataset
from anyburl.temporal.learner import is_answer

N_BINS = 200
LEAST_RIGHT = 20  # right candidates of a bin
N_ERROR_BINS = 15
TOLD = 0.5  # of the held-out facts in time, which calibration looks at

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TemporalCalibration:
    """The share of right candidates by the probability that their scores give them among those of their question."""

    aggregation: str
    edges: Floats  # ascending; the bin of a value is how many edges are at or below it
    shares: Floats

    def probabilities(self, scores: Floats, sizes: NDArray[np.int64]) -> Floats:
        """Return a probability for each candidate, given that its question has an answer; lists are of `sizes`."""
        return np.asarray(
            self.shares[np.searchsorted(self.edges, spread_scores(self.aggregation, scores, sizes), "right")]
        )


@dataclass(frozen=True)
class TemporalCalibrationReport:
    """A calibration, and how far it is off on facts that it was not fitted on."""

    calibration: TemporalCalibration
    expected_calibration_error: float
    uncalibrated_error: float
    n_candidates: int
    bins: list[dict[str, float]]
    protocol: str

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "expected_calibration_error": self.expected_calibration_error,
            "uncalibrated_error": self.uncalibrated_error,
            "candidates": self.n_candidates,
            "bins": self.bins,
            "protocol": self.protocol,
        }

    def __str__(self) -> str:
        return (
            f"expected calibration error {self.expected_calibration_error:.4f} "
            f"(before: {self.uncalibrated_error:.4f}), {self.n_candidates:,} candidates  [{self.protocol}]"
        )


def spread_scores(aggregation: str, scores: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Return what scores say as probabilities: those of a model compete within a list, all others are shares."""
    if aggregation != "model" or not len(scores):
        return np.clip(scores, 0, 1)
    used = sizes[sizes > 0]
    starts = np.cumsum(used) - used
    weights = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), used))
    return np.asarray(weights / np.repeat(np.add.reduceat(weights, starts), used))


def fit_calibration(aggregation: str, told: Floats, right: NDArray[np.bool_]) -> TemporalCalibration:
    """Return the calibration that makes what scores `told` agree with what was right: never falling, by bins.

    Bins have as many right candidates each: few candidates are likely, and bins of equal width would be nearly empty
    where it matters most.
    """
    n_bins = int(np.clip(right.sum() // LEAST_RIGHT, 1, N_BINS))
    edges = np.unique(np.quantile(told[right] if right.any() else told, np.linspace(0, 1, n_bins + 1)[:-1]))
    bins = np.searchsorted(edges, told, "right")
    n = np.bincount(bins, minlength=len(edges) + 1).astype(np.float64)
    n_right = np.bincount(bins, right.astype(np.float64), len(edges) + 1)
    middles = np.clip(np.concatenate([edges[:1] / 2, (edges[1:] + edges[:-1]) / 2, [(edges[-1] + 1) / 2]]), 0, 1)
    return TemporalCalibration(aggregation, edges, isotonic(n_right + middles, n + 1.0))


def calibration_error(chances: Floats, right: NDArray[np.bool_]) -> tuple[float, list[dict[str, float]]]:
    """Return the expected calibration error over bins of equal width, weighed by their candidates, and the bins."""
    bins = np.minimum((chances * N_ERROR_BINS).astype(np.int64), N_ERROR_BINS - 1)
    rows: list[dict[str, float]] = []
    error = 0.0
    for number in np.unique(bins):
        own = bins == number
        told, true = float(chances[own].mean()), float(right[own].mean())
        error += abs(told - true) * float(own.mean())
        rows.append({"promised": round(told, 5), "true": round(true, 5), "candidates": int(own.sum())})
    return error, rows


def scored_candidates(reasoner: Any, split: str) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Return what scores say of the best candidates of all questions of a split, which are right, and their places."""
    questions, _ = split_questions(reasoner.dataset, reasoner.facts, Protocol(split, filter="raw"))
    told, right, places = [], [], []
    for part in ranked_parts(reasoner.asked, questions, reasoner.model, reasoner.rules.options.candidates):
        used = part.rows()
        told.append(spread_scores(reasoner.aggregation, part.scores[used], part.sizes))
        right.append(is_answer(questions, part.start + used // part.n_kept, part.kept[used]))
        places.append(used % part.n_kept)
    return np.concatenate(told), np.concatenate(right), np.concatenate(places)


def calibrate_temporal(
    dataset: TemporalDataset,
    options: TemporalOptions,
    aggregation: str,
    make: Callable[[TemporalDataset], Any],
    say: Callable[[str], None],
) -> TemporalCalibrationReport:
    """Learn without the last part of valid (of train, if there is none), and see which of its answers come out.

    The first half of that part, by question, fits the calibration that the report measures on the other half; the one
    that is kept is fitted on both.
    """
    held = dataset.valid if len(dataset.valid) else dataset.train
    times = np.unique(held.times)
    if len(times) < 2:
        raise DataError(f"{dataset.name} has too few moments to calibrate on: it needs at least two in valid or train")
    cut = int(held.times[min(int(len(held) * TOLD), len(held) - 1)])
    cut = max(cut, int(times[1]))
    first, last = int(held.times[0]), int(held.times[-1]) + 1
    told = held.between(cut, last)
    if len(dataset.valid):
        without = replace(dataset, valid=dataset.valid.between(first, cut), test=told)
    else:
        without = replace(dataset, train=dataset.train.between(first, cut), test=told)
    say("learning without the facts to be calibrated on")
    reasoner = make(without)
    say("calibrating")
    chances, right, places = scored_candidates(reasoner, "test")
    half = np.cumsum(places == 0) % 2 == 0
    trial = fit_calibration(aggregation, chances[half], right[half])
    tried = trial.shares[np.searchsorted(trial.edges, chances[~half], "right")]
    error, bins = calibration_error(tried, right[~half])
    before, _ = calibration_error(chances[~half], right[~half])
    n = int((~half).sum())
    protocol = f"{dataset.name}, {len(told)} facts held out, single-step, {aggregation}"
    return TemporalCalibrationReport(fit_calibration(aggregation, chances, right), error, before, n, bins, protocol)
