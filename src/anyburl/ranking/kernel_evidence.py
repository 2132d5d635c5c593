"""What speaks for a candidate, as numbers that a tuned aggregation decides on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import part
from anyburl.ranking.arrays import CandidateArrays, FiringArrays
from anyburl.ranking.kernel_order import list_scores

UNIT = float(1 << 44)  # of scores

N_BEST = 5  # the highest scores that are told one by one
PER_GROUP = 3  # highest score, sum of scores, number of rules


def n_columns(groups: NDArray[np.uint8]) -> int:
    """Return how many numbers tell the evidence for a candidate; none without groups of rules."""
    return N_BEST + PER_GROUP * (int(groups.max()) + 1) if len(groups) else 0


@part
def tell_evidence(
    candidates: CandidateArrays,
    firings: FiringArrays,
    entity: int,
    groups: NDArray[np.uint8],
    row: NDArray[np.float32],
) -> None:
    """Write the evidence for `entity`: its best scores, then per group of rules the best score, their sum and number.

    Scores are told as -log(1 - confidence); a sum of them is what noisy-or looks at.
    """
    row[:] = 0.0
    start = list_scores(candidates, firings, entity)
    for i in range(min(candidates.list_sizes[entity], N_BEST)):
        row[i] = firings.lists[start + i] / UNIT
    i = int(candidates.firsts[entity])
    while i >= 0:
        place = N_BEST + PER_GROUP * int(groups[firings.rules[i]])
        score = firings.scores[i] / UNIT
        row[place] = max(row[place], score)
        row[place + 1] += score
        row[place + 2] += 1.0
        i = int(firings.following[i])
