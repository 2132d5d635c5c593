"""What speaks for a candidate, as figures that a tuned aggregation decides on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel
from anyburl.ranking.arrays import UNIT, CandidateArrays, FiringArrays
from anyburl.ranking.kernel_order import scores_of

N_BEST = 5  # the highest scores that are told one by one
PER_GROUP = 3  # highest score, sum of scores, number of rules


def n_figures(groups: NDArray[np.uint8]) -> int:
    """Return how many figures tell the evidence for a candidate; none without groups of rules."""
    return N_BEST + PER_GROUP * (int(groups.max()) + 1) if len(groups) else 0


@kernel
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
    n = scores_of(candidates, firings, entity, candidates.left)
    for i in range(min(n, N_BEST)):
        row[i] = candidates.left[i] / UNIT
    i = int(candidates.firsts[entity])
    while i >= 0:
        place = N_BEST + PER_GROUP * int(groups[firings.rules[i]])
        score = firings.scores[i] / UNIT
        row[place] = max(row[place], score)
        row[place + 1] += score
        row[place + 2] += 1.0
        i = int(firings.following[i])
