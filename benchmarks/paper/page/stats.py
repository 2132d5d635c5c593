"""Means, spreads and Welch's t-test, computed plainly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

ALPHA = 0.05


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation over runs, 0 for a single one."""
    return stdev(values) if len(values) > 1 else 0.0


def over_seeds(values: Sequence[float]) -> str:
    """Return the mean and, over several runs, the standard deviation, as they are shown."""
    return f"{fmean(values):.3f}" + (f" ± {spread(values):.3f}" if len(values) > 1 else "")


def welch(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the two-sided p-value for equal means (Welch's t-test), None where it is not defined."""
    if len(one) < 2 or len(other) < 2:
        return None
    errors = [stdev(values) ** 2 / len(values) for values in (one, other)]
    total = sum(errors)
    if total == 0:
        return None if fmean(one) == fmean(other) else 0.0
    t = (fmean(one) - fmean(other)) / math.sqrt(total)
    freedom = total**2 / sum(e**2 / (len(v) - 1) for e, v in zip(errors, (one, other), strict=True))
    return two_sided(t, freedom)


def two_sided(t: float, freedom: float, steps: int = 2000) -> float:
    """Return how likely |T| >= |t| is for Student's T.

    With T = sqrt(freedom) tan(a), the density of a is cos(a) ** (freedom - 1) up to a constant: Simpson's rule does it.
    """
    norm = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    start = math.atan(abs(t) / math.sqrt(freedom))
    width = (math.pi / 2 - start) / steps
    weights = (1 if i in (0, steps) else 4 if i % 2 else 2 for i in range(steps + 1))
    values = (max(math.cos(start + i * width), 0.0) ** (freedom - 1) for i in range(steps + 1))
    area = sum(weight * value for weight, value in zip(weights, values, strict=True)) * width / 3
    return min(1.0, 2 * norm * area)
