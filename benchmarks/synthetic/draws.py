"""Drawing pairs of entities. A pair is one number: subject * size of the object's type + object."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.int64]
ROUNDS = 8
NEAR_ENOUGH = 0.998


def power_ranks(rng: np.random.Generator, size: int, n: int, steepness: float) -> NDArray[np.int64]:
    """Draw n ranks below `size`: floor(size * u ** steepness), so that rank k has a share of about k ** (1/a - 1).

    A steepness of 1 is uniform; the degrees of a steepness a > 1 follow a power law of exponent 1 + a / (a - 1).
    """
    draws = rng.random(n)
    if steepness != 1:
        np.power(draws, steepness, out=draws)
    draws *= size
    return np.minimum(draws.astype(np.int64), size - 1)


def steepest(n_triples: int, n_others: int, size: int) -> float:
    """Return how steep a side of a relation may be: the first of `size` entities shall not need more than half of the
    `n_others` on the other side.
    """
    return math.inf if 2 * n_triples <= n_others else math.log(size) / math.log(2 * n_triples / n_others)


def distinct(draw: Callable[[int], Pairs], n: int) -> Pairs:
    """Call `draw` until there are about n distinct pairs, or it hardly gives new ones; return them in order."""
    found = np.unique(draw(n))
    for _ in range(ROUNDS):
        if len(found) >= NEAR_ENOUGH * n:
            break
        found = np.union1d(found, draw(n - len(found)))
    return found


def n_common(one: Pairs, other: Pairs) -> int:
    """Return how many distinct pairs are in both."""
    return len(np.intersect1d(one, other, assume_unique=True))
