"""How far probabilities are from observed shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_BINS = 15
N_WIDTHS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers with about the same probability: its mean, the share that is stated, and how many there are."""

    probability: float
    share_stated: float
    answers: int


def reliability(probabilities: Floats, is_stated: NDArray[np.bool_], n_bins: int = N_BINS) -> list[ReliabilityBin]:
    """Return bins with equally many answers each, by probability."""
    order = np.argsort(probabilities, kind="stable")
    return _summarised(np.array_split(order, n_bins), probabilities, is_stated)


def reliability_by_width(probabilities: Floats, is_stated: NDArray[np.bool_]) -> list[ReliabilityBin]:
    """Return ten bins that are equally wide: most answers are in the lowest, but the highest can be seen."""
    places = np.minimum((probabilities * N_WIDTHS).astype(np.int64), N_WIDTHS - 1)
    parts = [np.flatnonzero(places == place) for place in range(N_WIDTHS)]
    return _summarised(parts, probabilities, is_stated)


def _summarised(
    parts: list[NDArray[np.int64]], probabilities: Floats, is_stated: NDArray[np.bool_]
) -> list[ReliabilityBin]:
    return [
        ReliabilityBin(float(probabilities[part].mean()), float(is_stated[part].mean()), len(part))
        for part in parts
        if len(part)
    ]


def expected_calibration_error(bins: list[ReliabilityBin]) -> float | None:
    """Return the mean distance of probability and share, over all answers; None if there are none."""
    n_answers = sum(found.answers for found in bins)
    if not n_answers:
        return None
    return sum(abs(found.probability - found.share_stated) * found.answers for found in bins) / n_answers


def precision_above(scores: Floats, is_stated: NDArray[np.bool_], least: float) -> tuple[float | None, int]:
    """Return the share of answers with at least this score that is stated, None if there are none, and how many."""
    chosen = is_stated[scores >= least]
    return (float(chosen.mean()) if len(chosen) else None), len(chosen)
