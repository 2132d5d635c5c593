"""What the trees of a model are fitted to: how a loss changes with the score of each candidate.

A candidate stands for `weights` of its kind: of those far down a list, few are looked at. Answers stand for themselves.

The trees of a model, walked for many rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import kernel, part

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


@part
def put_in_order(scores: Doubles, first: int, last: int, order: NDArray[np.int64]) -> None:
    """Sort the rows of a list by their scores, the highest first; of equal scores, the first row first.

    From one round to the next, little changes: insertion takes hardly more than one look at each row.
    """
    for place in range(first + 1, last):
        row, i = order[place], place
        while i > first and (
            scores[order[i - 1]] < scores[row] or (scores[order[i - 1]] == scores[row] and order[i - 1] > row)
        ):
            order[i] = order[i - 1]
            i -= 1
        order[i] = row


@part
def fill_gains(weights: Doubles, first: int, last: int, order: NDArray[np.int64], gains: Doubles) -> None:
    """Write what an answer would be worth where each candidate ranks, as in DCG."""
    before = 0.0
    for place in range(first, last):
        row = order[place]
        gains[row] = 1.0 / np.log2(2.0 + before + 0.5 * (weights[row] - 1.0))
        before += weights[row]


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
    order: NDArray[np.int64],
    gains: Doubles,
    gradients: Doubles,
    hessians: Doubles,
) -> None:
    """The loss is that of LambdaMART: pairs in the wrong order, each by what the order would gain if it were right.

    As in LightGBM, pairs with close scores count more, and the logarithm keeps lists with many pairs in check. `order`
    holds the rows of each list, in any order on the first call.
    """
    for i in range(len(offsets) - 1):
        first, last = int(offsets[i]), int(offsets[i + 1])
        put_in_order(scores, first, last, order)
        fill_gains(weights, first, last, order, gains)
        gradients[first:last], hessians[first:last] = 0.0, 0.0
        total = add_pairs(scores, labels, weights, first, last, gains, gradients, hessians)
        if total > 0.0:
            scale = np.log2(1.0 + total) / total
            for row in range(first, last):
                gradients[row] *= scale
                hessians[row] *= scale


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
