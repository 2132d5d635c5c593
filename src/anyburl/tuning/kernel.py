"""The trees of a model, walked for many rows, and what they are fitted to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel

LEAST_HESSIAN = 1e-6


class ForestArrays(NamedTuple):
    """Binary trees, one after the other. A row goes left where its value is at most the threshold, and ends at a leaf.

    Children are nodes if they are not negative, otherwise leaves, as -1 - leaf.
    """

    roots: NDArray[np.int32]  # tree -> its first node, or leaf
    columns: NDArray[np.int32]  # node -> the column that it asks for
    thresholds: NDArray[np.float64]
    children: NDArray[np.int32]  # left and right of each node, side by side
    leaves: NDArray[np.float64]  # leaf -> what it adds to the score


@kernel
def score_rows(
    forest: ForestArrays, rows: NDArray[np.float32], first: int, last: int, out: NDArray[np.float64]
) -> None:
    """Write the score of each row from `first` to before `last`: the sum of the leaves where it ends, tree by tree."""
    for row in range(first, last):
        score = 0.0
        for tree in range(len(forest.roots)):
            node = int(forest.roots[tree])
            while node >= 0:
                is_right = np.float64(rows[row, forest.columns[node]]) > forest.thresholds[node]
                node = int(forest.children[2 * node + is_right])  # no branch: it could not be guessed
            score += forest.leaves[-1 - node]
        out[row] = score


@kernel
def fill_gradients(
    scores: NDArray[np.float64],
    labels: NDArray[np.float32],
    offsets: NDArray[np.int64],
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
) -> None:
    """Write how the loss changes with each score: the cross-entropy of a choice among the candidates of each list.

    A list with several answers counts as one choice for each.
    """
    for i in range(len(offsets) - 1):
        highest, n_answers, total = -np.inf, 0.0, 0.0
        for row in range(offsets[i], offsets[i + 1]):
            highest = max(highest, scores[row])
            n_answers += labels[row]
        for row in range(offsets[i], offsets[i + 1]):
            hessians[row] = np.exp(scores[row] - highest)
            total += hessians[row]
        for row in range(offsets[i], offsets[i + 1]):
            share = hessians[row] / total
            gradients[row] = n_answers * share - labels[row]
            hessians[row] = max(n_answers * share * (1.0 - share), LEAST_HESSIAN)
