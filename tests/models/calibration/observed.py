"""Observations made up for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.models.tuned.observations import Observations


def observations(
    scores: NDArray[np.float64],
    is_stated: NDArray[np.bool_],
    *,
    relations: NDArray[np.int64] | None = None,
    has_others: NDArray[np.bool_] | None = None,
    folds: NDArray[np.int64] | None = None,
) -> Observations:
    """Return observations, of relation 0 and without other answers unless said otherwise."""
    nothing = np.zeros(len(scores), np.int64)
    return Observations(
        relations=(nothing if relations is None else relations).astype(np.int32),
        scores=scores,
        is_stated=is_stated,
        has_others=nothing.astype(np.bool_) if has_others is None else has_others,
        folds=(nothing if folds is None else folds).astype(np.uint8),
    )


def draw(rng: np.random.Generator, n: int) -> Observations:
    """Draw answers of two relations: a score is the probability in the first, its third power in the second."""
    scores, relations = rng.random(n), rng.integers(2, size=n)
    is_stated = rng.random(n) < np.where(relations == 0, scores, scores**3)
    return observations(scores, is_stated, relations=relations, folds=rng.integers(10, size=n))
