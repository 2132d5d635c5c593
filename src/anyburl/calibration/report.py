"""`CalibrationReport`: which score means which precision, and how well that held."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.calibration.calibrate import Fitted
from anyburl.calibration.calibration import Calibration
from anyburl.calibration.facts import FactCounts
from anyburl.calibration.measures import ReliabilityBin, expected_calibration_error, reliability, reliability_by_width
from anyburl.calibration.thresholds import PROMISES, Threshold
from anyburl.triples.vocabulary import Vocabulary


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
