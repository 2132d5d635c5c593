"""The trees of a model, walked for many rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel


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
