"""What the counts of rules say about them."""

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
