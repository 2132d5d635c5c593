"""Isotonic regression and calibration error in the most obvious way."""

from __future__ import annotations

from collections.abc import Sequence


def isotonic(stated: Sequence[float], answers: Sequence[float]) -> list[float]:
    """The max-min formula: of all stretches that end at or after a bin, the lowest share, and of all starts the
    highest of these."""

    def share(first: int, last: int) -> float:
        return sum(stated[first : last + 1]) / sum(answers[first : last + 1])

    n = len(stated)
    return [max(min(share(first, last) for last in range(k, n)) for first in range(k + 1)) for k in range(n)]


def expected_calibration_error(probabilities: Sequence[float], is_stated: Sequence[bool], n_bins: int) -> float:
    """Sort, cut into parts of equal size (the first ones take what is left over), compare means."""
    rows = sorted(range(len(probabilities)), key=lambda row: probabilities[row])
    size, more = divmod(len(rows), n_bins)
    total, start = 0.0, 0
    for place in range(n_bins):
        part = rows[start : start + size + (place < more)]
        start += len(part)
        total += abs(sum(probabilities[row] - is_stated[row] for row in part))
    return total / len(rows)
