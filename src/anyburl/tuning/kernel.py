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
    forest: ForestArrays,
    rows: NDArray[np.float32],
    first: int,
    last: int,
    nodes: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Write the score of each row from `first` to before `last`: the sum of the leaves where it ends, tree by tree.

    As many rows as there is room for in `nodes` go down a tree together: the processor need not wait for one row's next
    node to look for another's.
    """
    for start in range(first, last, len(nodes)):
        n = min(len(nodes), last - start)
        for i in range(n):
            out[start + i] = 0.0
        for tree in range(len(forest.roots)):
            for i in range(n):
                nodes[i] = forest.roots[tree]
            n_inside = n if forest.roots[tree] >= 0 else 0
            while n_inside > 0:
                n_inside = 0
                for i in range(n):
                    node = int(nodes[i])
                    if node >= 0:
                        is_right = np.float64(rows[start + i, forest.columns[node]]) > forest.thresholds[node]
                        nodes[i] = forest.children[2 * node + is_right]  # no branch: it could not be guessed
                        n_inside += nodes[i] >= 0
            for i in range(n):
                out[start + i] += forest.leaves[-1 - nodes[i]]
