"""From confidences to scores and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.aggregation import UNIT
from anyburl.ranking.options import RankOptions
from anyburl.rules.types import RuleType

MOST_CERTAIN = 1.0 - 2.0**-40
DIGITS = 12
"""Decimals of a score that people see: what lies beyond is rounding."""


def to_scores(confidences: NDArray[np.float64] | float) -> NDArray[np.int64]:
    """Return -log(1 - confidence) in whole units; a confidence of 1 is taken as just below."""
    scores: NDArray[np.int64] = np.rint(-np.log1p(-np.minimum(confidences, MOST_CERTAIN)) * UNIT).astype(np.int64)
    return scores


def to_confidences(scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the confidence behind a score, or behind a sum of scores (noisy-or)."""
    return -np.expm1(-scores / UNIT)


def shown_scores(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the scores, from 0 to 1, that people see of candidates with these keys."""
    return to_confidences(keys).round(DIGITS) + 0.0  # 0, not -0, for a key of 0


def count_confidences(
    options: RankOptions, types: NDArray[np.uint8], support: NDArray[np.int32], predictions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return what rules with these counts count for: their smoothed confidence times the factor of their type."""
    factors = np.ones(256)
    for name, factor in options.weights.items():
        factors[RuleType(name).code] = factor
    divisors = predictions + np.float64(options.smoothing)
    divisors[predictions == 0] = np.inf
    confidences: NDArray[np.float64] = support / divisors * factors[types]
    return confidences
