"""Choose rules one after the other, each time the one that adds most to what is chosen already.

Every known answer lists rules that predict it, and the value that each would have for it. What a set of rules is worth
to an answer is the highest of their values plus smaller shares of the next ones: they break ties, and some aggregations
add them up. This is monotone and submodular, so that gains only fall: a gain that was computed earlier bounds the one
now, and few have to be computed again (lazy greedy). One pass gives the sets of all sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part


class ValueArrays(NamedTuple):
    """For each rule the answers that it predicts, and what it is worth to each."""

    offsets: NDArray[np.int64]  # rule -> its entries
    answers: NDArray[np.int32]
    values: NDArray[np.float32]
    weights: NDArray[np.float32]  # of the answers
    shares: NDArray[np.float32]  # of the best value of an answer, of the next, ...; falling
    groups: NDArray[np.int32]  # rule -> group, of which only so many are chosen


class ChoiceArrays(NamedTuple):
    """What is chosen so far, and the queue of the others: a heap by gain, the highest first."""

    best: NDArray[np.float32]  # (answers, shares): the values of the chosen rules, the highest first
    gains: NDArray[np.float64]  # rule -> its gain when it was last computed
    computed: NDArray[np.int64]  # rule -> how many were chosen then
    heap: NDArray[np.int32]
    n_left: NDArray[np.int64]  # [0]: rules in the heap
    room: NDArray[np.int64]  # group -> how many more may be chosen
    chosen: NDArray[np.int32]
    gained: NDArray[np.float64]  # by each of the chosen
    n_chosen: NDArray[np.int64]  # [0]


@inlined
def gain_of(table: ValueArrays, best: NDArray[np.float32], rule: int) -> float:
    """Return what a rule would add to the chosen ones."""
    total = 0.0
    n_shares = len(table.shares)
    for entry in range(table.offsets[rule], table.offsets[rule + 1]):
        answer, value = table.answers[entry], table.values[entry]
        gain = 0.0
        moved = value
        for place in range(n_shares):
            if moved > best[answer, place]:
                gain += table.shares[place] * (moved - best[answer, place])
                moved = best[answer, place]  # it moves one place down
        total += table.weights[answer] * gain
    return total


@inlined
def take_rule(table: ValueArrays, best: NDArray[np.float32], rule: int) -> None:
    """Enter the values of a rule that is chosen."""
    for entry in range(table.offsets[rule], table.offsets[rule + 1]):
        answer, moved = table.answers[entry], table.values[entry]
        for place in range(len(table.shares)):
            if moved > best[answer, place]:
                moved, best[answer, place] = best[answer, place], moved


@part
def sift_rule(choice: ChoiceArrays, start: int) -> None:
    """Restore the heap below `start`; of equal gains, the first rule stands above."""
    heap, gains, n_left = choice.heap, choice.gains, choice.n_left[0]
    root = start
    while 2 * root + 1 < n_left:
        child = 2 * root + 1
        if child + 1 < n_left and comes_before(gains, heap[child + 1], heap[child]):
            child += 1
        if not comes_before(gains, heap[child], heap[root]):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


@inlined
def comes_before(gains: NDArray[np.float64], rule: int, other: int) -> bool:
    """Whether a rule has more gain than another or, with the same, is the first of the set."""
    return gains[rule] > gains[other] or (gains[rule] == gains[other] and rule < other)


@kernel
def start_choice(table: ValueArrays, choice: ChoiceArrays) -> None:
    """Compute the gains of all rules and make the heap."""
    n_rules = len(table.offsets) - 1
    for rule in range(n_rules):
        choice.gains[rule] = gain_of(table, choice.best, rule)
        choice.computed[rule] = choice.n_chosen[0]
        choice.heap[rule] = rule
    choice.n_left[0] = n_rules
    for start in range(n_rules // 2 - 1, -1, -1):
        sift_rule(choice, start)


@kernel
def choose_more(table: ValueArrays, choice: ChoiceArrays, most: int, least_gain: float, n_turns: int) -> bool:
    """Choose until there are `most` rules, nothing gains more than `least_gain`, or `n_turns` gains were computed.

    Return whether there is more to choose.
    """
    for _ in range(n_turns):
        n_chosen = choice.n_chosen[0]
        if n_chosen >= most or choice.n_left[0] == 0:
            return False
        rule = int(choice.heap[0])
        is_full = choice.room[table.groups[rule]] <= 0
        if not is_full and choice.computed[rule] != n_chosen:
            choice.gains[rule] = gain_of(table, choice.best, rule)
            choice.computed[rule] = n_chosen
            sift_rule(choice, 0)
            continue
        if not is_full:
            if choice.gains[rule] <= least_gain:
                return False
            choice.chosen[n_chosen] = rule
            choice.gained[n_chosen] = choice.gains[rule]
            choice.n_chosen[0] = n_chosen + 1
            choice.room[table.groups[rule]] -= 1
            take_rule(table, choice.best, rule)
        choice.n_left[0] -= 1
        choice.heap[0] = choice.heap[choice.n_left[0]]
        sift_rule(choice, 0)
    return True
