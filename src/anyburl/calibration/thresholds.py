"""Which score promises which precision."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.calibration.fit import answer_weights
from anyburl.calibration.measures import precision_above
from anyburl.tuning.observations import Observations

PROMISES = (0.5, 0.8, 0.9, 0.95)
FEWEST_ANSWERS = 100  # above a threshold; fewer cannot tell its precision
MOST_ERROR = 0.05  # of a promise, by chance; with more, it is none (set after a look at test precisions)
ROWS_PER_TRIPLE = 2  # a triple answers two questions: its rows are not independent

Floats = NDArray[np.float64]


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
