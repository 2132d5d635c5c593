"""The formulas of confidence and other measures, from the counts of rules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int32] | NDArray[np.int64]


def confidence(support: Counts, predictions: Counts, smoothing: float = 0) -> NDArray[np.float64]:
    """Return support / (predictions + smoothing), 0 where there are no predictions."""
    divisors = predictions + np.float64(smoothing)
    divisors[predictions == 0] = np.inf
    return support / divisors


def value(support: Counts, predictions: Counts) -> NDArray[np.float64]:
    """Return support times confidence: how much a rule says, and how surely."""
    return support * confidence(support, predictions)


def pca_confidence(support: Counts, pca_predictions: Counts) -> NDArray[np.float64]:
    """Return the confidence under the partial completeness assumption: support / the predictions that it can judge."""
    return confidence(support, pca_predictions)


def head_coverage(support: Counts, head_facts: Counts) -> NDArray[np.float64]:
    """Return which part of the facts of the head's relation a rule predicts."""
    return confidence(support, head_facts)


def lift(support: Counts, predictions: Counts, head_probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many times likelier the head is where the body holds than anywhere, 0 where it never holds."""
    return confidence(support, predictions) / np.where(head_probability > 0, head_probability, np.inf)
