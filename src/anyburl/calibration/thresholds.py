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
ROWS_PER_TRIPLE = 2  # a triple answers two questions: its rows are not independent

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Threshold:
    """The lowest score that keeps a promise: of the answers with at least this score, so many are stated on average.

    `score` is None where there is none. `facts` is how many facts that no split states have such a score, `precision`
    what was measured on the `answers` of the split that this was checked on. By chance alone, promise and
    measurement differ by about `sampling_error`.
    """

    score: float | None
    facts: int | None = None
    precision: float | None = None
    answers: int = 0
    sampling_error: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def find_threshold(
    fitted: Observations, probabilities: Floats, hidden: float, promised: float, checked: Observations
) -> Threshold:
    """Return the threshold for a precision of `promised`.

    It is found with the probabilities of the answers, which are smooth, and not with raw counts, among which the best
    place is a lucky one.
    """
    order = np.argsort(-fitted.scores, kind="stable")
    scores, weights = fitted.scores[order], answer_weights(fitted, hidden)[order]
    n_answers, expected = np.cumsum(weights), np.cumsum(weights * probabilities[order])
    is_last = np.append(scores[1:] != scores[:-1], True)[: len(scores)]
    kept = np.flatnonzero(is_last & (n_answers >= FEWEST_ANSWERS) & (expected >= promised * n_answers))
    if not len(kept):
        return Threshold(None)
    place = kept[-1]
    precision, n_checked = precision_above(checked.scores, checked.is_stated, float(scores[place]))
    n_hidden = hidden * float(fitted.has_others[order][: place + 1].sum())
    error = _sampling_error(promised, float(n_answers[place]), n_hidden, hidden, n_checked)
    return Threshold(float(scores[place]), None, precision, n_checked, error)


def _sampling_error(precision: float, n_answers: float, n_hidden: float, hidden: float, n_checked: int) -> float | None:
    """Return the standard deviation of the difference between the promise and what is measured.

    Both are shares of a sample; and the number of answers that another split states is an estimate, about as uncertain
    as two counts of that size are.
    """
    if not n_checked:
        return None
    shares = precision * (1 - precision) * (1 / n_answers + 1 / n_checked)
    taken_out = (precision / n_answers) ** 2 * n_hidden * (1 + hidden)
    return float(np.sqrt(ROWS_PER_TRIPLE * (shares + taken_out)))
