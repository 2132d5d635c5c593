"""Fit a calibration to held-out facts, and check it on others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.calibration.calibration import Calibration
from anyburl.calibration.fit import count_answers, fit_overall, fit_relations, fit_whole, make_edges
from anyburl.calibration.observations import HeldOut
from anyburl.calibration.thresholds import PROMISES, Threshold, find_threshold
from anyburl.tuning.observations import Observations

Floats = NDArray[np.float64]


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
