"""What speaks for a candidate, as numbers that a tuned aggregation decides on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, part
from anyburl.ranking.arrays import CandidateArrays, FiringArrays

UNIT = float(1 << 44)  # of scores

N_BEST = 5  # the highest scores that are told one by one
PER_GROUP = 3  # highest score, sum of scores, number of rules


def n_columns(groups: NDArray[np.uint8]) -> int:
    """Return how many numbers tell the evidence for a candidate; none without groups of rules."""
    return N_BEST + PER_GROUP * (int(groups.max()) + 1) if len(groups) else 0


@inlined
def add_evidence(row: NDArray[np.float32], score: int, group: int) -> None:
    """Add a rule's score to the evidence for a candidate: to its best scores, and to those of the rule's group.

    Scores are told as -log(1 - confidence); a sum of them is what noisy-or looks at.
    """
    told = np.float32(score / UNIT)
    if told > row[N_BEST - 1]:
        place = N_BEST - 1
        while place > 0 and row[place - 1] < told:
            row[place] = row[place - 1]
            place -= 1
        row[place] = told
    own = N_BEST + PER_GROUP * group
    row[own] = max(row[own], told)
    row[own + 1] += score / UNIT
    row[own + 2] += 1.0


@part
def tell_evidence(
    candidates: CandidateArrays,
    firings: FiringArrays,
    entity: int,
    groups: NDArray[np.uint8],
    row: NDArray[np.float32],
) -> None:
    """Write the evidence for `entity`: its best scores, then per group of rules the best, their sum and number."""
    row[:] = 0.0
    i = int(candidates.firsts[entity])
    while i >= 0:
        add_evidence(row, int(firings.scores[i]), int(groups[firings.rules[i]]))
        i = int(firings.following[i])
