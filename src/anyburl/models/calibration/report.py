"""`CalibrationReport`: which score means which precision, and how well that held.

How far probabilities are from observed shares.

Which score promises which precision.

Fit a calibration to held-out facts, and check it on others.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.data.vocabulary import Vocabulary
from anyburl.models.calibration.fit import (
    Calibration,
    answer_weights,
    count_answers,
    fit_overall,
    fit_relations,
    fit_whole,
    make_edges,
)
from anyburl.models.calibration.observations import FactCounts, HeldOut
from anyburl.models.tuned.observations import Observations

N_BINS = 15
N_WIDTHS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers with about the same probability: its mean, the share that is stated, and how many there are."""

    probability: float
    share_stated: float
    answers: int


def reliability(probabilities: Floats, is_stated: NDArray[np.bool_], n_bins: int = N_BINS) -> list[ReliabilityBin]:
    """Return bins with equally many answers each, by probability."""
    order = np.argsort(probabilities, kind="stable")
    return _summarised(np.array_split(order, n_bins), probabilities, is_stated)


def reliability_by_width(probabilities: Floats, is_stated: NDArray[np.bool_]) -> list[ReliabilityBin]:
    """Return ten bins that are equally wide: most answers are in the lowest, but the highest can be seen."""
    places = np.minimum((probabilities * N_WIDTHS).astype(np.int64), N_WIDTHS - 1)
    parts = [np.flatnonzero(places == place) for place in range(N_WIDTHS)]
    return _summarised(parts, probabilities, is_stated)


def _summarised(
    parts: list[NDArray[np.int64]], probabilities: Floats, is_stated: NDArray[np.bool_]
) -> list[ReliabilityBin]:
    return [
        ReliabilityBin(float(probabilities[part].mean()), float(is_stated[part].mean()), len(part))
        for part in parts
        if len(part)
    ]


def expected_calibration_error(bins: list[ReliabilityBin]) -> float | None:
    """Return the mean distance of probability and share, over all answers; None if there are none."""
    n_answers = sum(found.answers for found in bins)
    if not n_answers:
        return None
    return sum(abs(found.probability - found.share_stated) * found.answers for found in bins) / n_answers


def precision_above(scores: Floats, is_stated: NDArray[np.bool_], least: float) -> tuple[float | None, int]:
    """Return the share of answers with at least this score that is stated, None if there are none, and how many."""
    chosen = is_stated[scores >= least]
    return (float(chosen.mean()) if len(chosen) else None), len(chosen)


PROMISES = (0.5, 0.8, 0.9, 0.95)
FEWEST_ANSWERS = 100  # above a threshold; fewer cannot tell its precision
MOST_ERROR = 0.05  # of a promise, by chance; with more, it is none (set after a look at test precisions)
ROWS_PER_TRIPLE = 2  # a triple answers two questions: its rows are not independent


@dataclass(frozen=True)
class Threshold:
    """The lowest score that keeps a promise: on average, this share of the answers with at least this score is stated.

    `score` is None where there is none, or where the answers are too few to tell. `facts` is how many facts that no
    split states have such a score, `precision` what was measured on the `answers` of the split that this was checked
    on. By chance alone, promise and measurement differ by about `sampling_error`. `closed_world` is the share of all
    facts outside train with such a score that the valid split states.
    """

    score: float | None
    facts: int | None = None
    precision: float | None = None
    answers: int = 0
    sampling_error: float | None = None
    closed_world: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def find_threshold(
    fitted: Observations, probabilities: Floats, hidden: float, promised: float, checked: Observations
) -> Threshold:
    """Return the threshold for a precision of `promised`.

    It is found with the probabilities of the answers, which never fall as the score rises, and not with raw counts,
    among which the best place is a lucky one.
    """
    order = np.argsort(-fitted.scores, kind="stable")
    scores, weights = fitted.scores[order], answer_weights(fitted, hidden)[order]
    n_answers, expected = np.cumsum(weights), np.cumsum(weights * probabilities[order])
    is_last = np.append(scores[1:] != scores[:-1], True)[: len(scores)]
    kept = np.flatnonzero(is_last & (n_answers >= FEWEST_ANSWERS) & (expected >= promised * n_answers))
    if not len(kept):
        return Threshold(None)
    place = kept[-1]
    n_hidden = hidden * float(fitted.has_others[order][: place + 1].sum())
    variance = _variance(promised, float(n_answers[place]), n_hidden * (1 + hidden))
    if variance > MOST_ERROR**2:
        return Threshold(None)
    precision, n_checked = precision_above(checked.scores, checked.is_stated, float(scores[place]))
    error = float(np.sqrt(variance + _variance(promised, n_checked))) if n_checked else None
    return Threshold(float(scores[place]), None, precision, n_checked, error)


def _variance(share: float, n_answers: float, uncertain: float = 0.0) -> float:
    """Return the variance of a share of some answers.

    How many of them another split states is an estimate, which has the variance `uncertain`, as counts do.
    """
    return float(ROWS_PER_TRIPLE * (share * (1 - share) / n_answers + (share / n_answers) ** 2 * uncertain))


@dataclass(frozen=True)
class Fitted:
    """A calibration, the answers that it was fitted to and checked on, and the probabilities of the latter."""

    calibration: Calibration
    fitted_on: HeldOut
    checked_on: HeldOut
    probabilities: Floats
    thresholds: dict[str, Threshold]


def fit_calibration(observations: Observations, n_relations: int, hidden: float = 0.0) -> Calibration:
    """Return the calibration of held-out answers; another split has `hidden` times as many facts, see `count_answers`.

    The closed world is not known yet.
    """
    edges = make_edges(observations.scores, observations.is_stated)
    counts = count_answers(observations, edges, n_relations, hidden)
    probability = fit_relations(counts, fit_whole(counts))
    return Calibration(edges, probability, np.full_like(probability, np.nan))


def cross_fit(observations: Observations, n_relations: int) -> Floats:
    """Return the probability of each answer by a calibration that was fitted to the other half of the facts."""
    probabilities = np.empty(len(observations))
    for side in (0, 1):
        own = observations.folds % 2 == side
        calibration = fit_calibration(observations.take(~own), n_relations)
        probabilities[own] = calibration.probabilities(observations.relations[own], observations.scores[own])
    return probabilities


def fit_and_check(held_out: HeldOut, test: HeldOut | None, n_relations: int) -> Fitted:
    """Calibrate on `held_out` and check on `test` or, if there is none, by cross-fitting.

    Of `test`, only its number of facts is used to fit.
    """
    found, hidden = held_out.observations, 0.0 if test is None else test.n_facts / held_out.n_facts
    calibration = fit_calibration(found, n_relations, hidden)
    checked = held_out if test is None else test
    if test is None:
        probabilities = cross_fit(found, n_relations)
    else:
        probabilities = calibration.probabilities(test.observations.relations, test.observations.scores)
    overall = fit_overall(found, hidden)
    thresholds = {
        str(promised): find_threshold(found, overall, hidden, promised, checked.observations) for promised in PROMISES
    }
    return Fitted(calibration, held_out, checked, probabilities, thresholds)


@dataclass(frozen=True)
class CalibrationReport:
    """What calibration found.

    The errors are expected calibration errors on the split used for checking, in 15 bins with equally many answers.
    `thresholds` covers all relations together; `by_relation` has the thresholds of each relation, those with the most
    facts first. `before` and `after` are equally wide bins of scores and of probabilities, for plots.
    """

    expected_calibration_error: float | None
    uncalibrated_error: float | None
    thresholds: dict[str, Threshold]
    by_relation: list[dict[str, Any]]
    calibrated_on: dict[str, Any]
    checked_on: dict[str, Any]
    protocol: dict[str, Any]
    before: list[ReliabilityBin]
    after: list[ReliabilityBin]
    calibration: Calibration

    def to_json(self) -> dict[str, Any]:
        """Return everything but the calibration itself as plain values."""
        return {
            "protocol": self.protocol,
            "expected_calibration_error": self.expected_calibration_error,
            "uncalibrated_error": self.uncalibrated_error,
            "thresholds": {name: threshold.to_json() for name, threshold in self.thresholds.items()},
            "by_relation": self.by_relation,
            "calibrated_on": self.calibrated_on,
            "checked_on": self.checked_on,
        }

    def __str__(self) -> str:
        promises = ", ".join(f"{name}: {threshold.score}" for name, threshold in self.thresholds.items())
        return (
            f"expected calibration error {self.expected_calibration_error:.4f} on {self.checked_on['split']}, before "
            f"{self.uncalibrated_error:.4f}; lowest scores for a precision of {promises}"
        )


def make_report(
    fitted: Fitted, facts: FactCounts, vocabulary: Vocabulary, protocol: dict[str, Any]
) -> CalibrationReport:
    """Put together what was found."""
    checked, calibration = fitted.checked_on.observations, fitted.calibration
    values = checked.scores, fitted.probabilities
    before, after = (reliability_by_width(part, checked.is_stated) for part in values)
    errors = [expected_calibration_error(reliability(part, checked.is_stated)) for part in values]
    has_valid = fitted.fitted_on.split == "valid"
    thresholds = fitted.thresholds.items()
    how = {} if fitted.checked_on is not fitted.fitted_on else {"cross_fitted": True}
    return CalibrationReport(
        expected_calibration_error=errors[1],
        uncalibrated_error=errors[0],
        thresholds={name: _with_facts(found, facts, has_valid=has_valid) for name, found in thresholds},
        by_relation=_relations(fitted, facts, vocabulary),
        calibrated_on=fitted.fitted_on.described(),
        checked_on={**fitted.checked_on.described(), **how},
        protocol=protocol,
        before=before,
        after=after,
        calibration=calibration,
    )


def _with_facts(threshold: Threshold, facts: FactCounts, *, has_valid: bool) -> Threshold:
    if threshold.score is None:
        return threshold
    closed_world = facts.share_above(threshold.score) if has_valid else None
    return replace(threshold, facts=facts.above(threshold.score), closed_world=closed_world)


def _relations(fitted: Fitted, facts: FactCounts, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Return a row for each relation that was asked for, or has facts."""
    found, checked, labels = fitted.fitted_on.observations, fitted.checked_on.observations, vocabulary.relations
    least = {str(promised): fitted.calibration.least_scores(promised) for promised in PROMISES}
    n_relations = len(labels)
    answers = np.bincount(found.relations, minlength=n_relations)
    stated = np.bincount(found.relations, weights=found.is_stated, minlength=n_relations).astype(np.int64)
    order = np.argsort(checked.relations, kind="stable")
    ends = np.searchsorted(checked.relations[order], np.arange(n_relations + 1))
    rows = []
    for relation in range(n_relations):
        own = order[ends[relation] : ends[relation + 1]]
        thresholds = {name: _relation_threshold(scores, relation, facts) for name, scores in least.items()}
        if not (answers[relation] or len(own) or any(found["facts"] for found in thresholds.values())):
            continue
        values = (fitted.probabilities[own], checked.scores[own])
        after, before = (expected_calibration_error(reliability(part, checked.is_stated[own])) for part in values)
        rows.append(
            {
                "relation": labels[relation],
                "answers": int(answers[relation]),
                "stated": int(stated[relation]),
                "expected_calibration_error": after,
                "uncalibrated_error": before,
                "thresholds": thresholds,
            }
        )
    first = str(PROMISES[0])
    return sorted(rows, key=lambda row: (-(row["thresholds"][first]["facts"] or 0), -row["stated"]))


def _relation_threshold(scores: NDArray[np.float64], relation: int, facts: FactCounts) -> dict[str, Any]:
    score = float(scores[relation])
    if not np.isfinite(score):
        return {"score": None, "facts": 0}
    return {"score": score, "facts": facts.above(score, relation)}
