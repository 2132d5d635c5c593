"""What the trees of a model are fitted to: how a loss changes with the score of each candidate.

A candidate stands for `weights` of its kind: of those far down a list, few are looked at. Answers stand for themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel, part

LEAST_HESSIAN = 1e-6
LEAST_DISTANCE = 0.01  # of scores

Doubles = NDArray[np.float64]


@kernel
def fill_choice(
    scores: Doubles,
    labels: NDArray[np.float32],
    weights: Doubles,
    offsets: NDArray[np.int64],
    gradients: Doubles,
    hessians: Doubles,
) -> None:
    """The loss is the cross-entropy of a choice among the candidates of each list.

    A list with several answers counts as one choice for each.
    """
    for i in range(len(offsets) - 1):
        highest, n_answers, total = -np.inf, 0.0, 0.0
        for row in range(offsets[i], offsets[i + 1]):
            highest = max(highest, scores[row])
            n_answers += labels[row]
        for row in range(offsets[i], offsets[i + 1]):
            hessians[row] = weights[row] * np.exp(scores[row] - highest)
            total += hessians[row]
        for row in range(offsets[i], offsets[i + 1]):
            share = hessians[row] / total
            gradients[row] = n_answers * share - labels[row]
            hessians[row] = max(n_answers * share * (1.0 - share), LEAST_HESSIAN)


@inlined
def gain(scores: Doubles, weights: Doubles, first: int, last: int, row: int) -> float:
    """Return what an answer is worth where this candidate ranks, as in DCG; of equal scores, the first ranks first."""
    before = 0.5 * (weights[row] - 1.0)
    for other in range(first, last):
        if scores[other] > scores[row] or (scores[other] == scores[row] and other < row):
            before += weights[other]
    return float(1.0 / np.log2(2.0 + before))


@part
def ideal_gain(labels: NDArray[np.float32], first: int, last: int) -> float:
    """Return what all answers are worth that rank first."""
    total, n_answers = 0.0, 0
    for row in range(first, last):
        if labels[row] > 0.0:
            total += 1.0 / np.log2(2.0 + n_answers)
            n_answers += 1
    return total


@part
def add_pairs(
    scores: Doubles,
    labels: NDArray[np.float32],
    weights: Doubles,
    first: int,
    last: int,
    gains: Doubles,
    gradients: Doubles,
    hessians: Doubles,
) -> float:
    """Add what every pair of an answer and another candidate says; return how much that is."""
    total, ideal = 0.0, ideal_gain(labels, first, last)
    for answer in range(first, last):
        if labels[answer] == 0.0:
            continue
        for other in range(first, last):
            if labels[other] > 0.0:
                continue
            distance = scores[answer] - scores[other]
            wrong = 1.0 / (1.0 + np.exp(distance))
            lost = abs(gains[answer] - gains[other]) / ideal / (LEAST_DISTANCE + abs(distance))
            gradient = weights[other] * lost * wrong
            hessian = gradient * (1.0 - wrong)
            gradients[answer] -= gradient
            gradients[other] += gradient
            hessians[answer] += hessian
            hessians[other] += hessian
            total += 2.0 * gradient
    return total


@kernel
def fill_pairs(
    scores: Doubles,
    labels: NDArray[np.float32],
    weights: Doubles,
    offsets: NDArray[np.int64],
    gains: Doubles,
    gradients: Doubles,
    hessians: Doubles,
) -> None:
    """The loss is that of LambdaMART: pairs in the wrong order, each by what the order would gain if it were right.

    As in LightGBM, pairs with close scores count more, and the logarithm keeps lists with many pairs in check.
    """
    for i in range(len(offsets) - 1):
        first, last = int(offsets[i]), int(offsets[i + 1])
        for row in range(first, last):
            gains[row] = gain(scores, weights, first, last, row)
            gradients[row], hessians[row] = 0.0, 0.0
        total = add_pairs(scores, labels, weights, first, last, gains, gradients, hessians)
        if total > 0.0:
            scale = np.log2(1.0 + total) / total
            for row in range(first, last):
                gradients[row] *= scale
                hessians[row] *= scale
