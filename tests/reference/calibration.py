"""Isotonic regression, and the probability of a proposal, in the most obvious way."""

from __future__ import annotations

from collections.abc import Sequence


def isotonic(part: Sequence[float], whole: Sequence[float]) -> list[float]:
    """The max-min formula: of all stretches that end at or after a bin, the lowest share, and of all starts the
    highest of these."""

    def share(first: int, last: int) -> float:
        return sum(part[first : last + 1]) / sum(whole[first : last + 1])

    n = len(part)
    return [max(min(share(first, last) for last in range(k, n)) for first in range(k + 1)) for k in range(n)]


def probability(share: float, missing: float, elsewhere: float, certain: float) -> float:
    """Of 1,000 proposals, a share was hidden; for each of these, so many are missing, and so many stated elsewhere."""
    hidden = 1000 * share
    left = 1000 - hidden - elsewhere * hidden
    true = missing * hidden
    if not true:
        return 0.0
    return certain if true >= certain * left else true / left
