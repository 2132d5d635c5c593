"""Finds the strongest rule that predicts a fact, among rules that are grouped by head, the strongest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import kernel
from anyburl.graph.arrays import GraphArrays
from anyburl.reasoning.explanation.kernel import GroundingSearch, WalkGoal, find_walks


class CheckedRules(NamedTuple):
    """Rules in groups: those of one head relation without constants (B), or with the same constant (U_c, U_d)."""

    offsets: NDArray[np.int64]  # group -> its rules, those with the highest scores first
    bodies: NDArray[np.int32]  # (rules, longest), from the head's variable, padded with -1
    lengths: NDArray[np.int32]
    ends: NDArray[np.int32]  # the constant at the end of the body, -1 where that is a variable
    scores: NDArray[np.float64]
    rows: NDArray[np.int32]  # of the rule set


TWO_VARIABLES, FORWARD = 0, 1  # places in `groups`, of heads h(X, Y) and h(X, c); the third is for h(c, Y)


@kernel
def find_support(
    graph: GraphArrays,
    rules: CheckedRules,
    triples: NDArray[np.int32],
    groups: NDArray[np.int32],
    constants: NDArray[np.int32],
    object_identity: bool,
    search: GroundingSearch,
    walk: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Write to `out`, for each triple, the place of the strongest rule that predicts it, -1 if none does.

    `groups` are those of the rules that may: without constants, with the object and with the subject as constant (-1:
    there are none). `constants` are object and subject as heads name them. `search` and `walk`, one row, are scratch.
    """
    for i in range(len(triples)):
        out[i] = -1
        best = -1.0
        for place in range(3):
            group = groups[i, place]
            if group < 0:
                continue
            start = int(np.int64(triples[i, 0 if place <= FORWARD else 2]))
            avoided = -1 if place == TWO_VARIABLES else int(np.int64(constants[i, place - 1]))
            for rule in range(rules.offsets[group], rules.offsets[group + 1]):
                if rules.scores[rule] <= best:
                    break
                end = int(np.int64(triples[i, 2] if place == TWO_VARIABLES else rules.ends[rule]))
                if end == start and object_identity:
                    continue
                goal = WalkGoal(start, end, avoided, object_identity)
                if find_walks(graph, rules.bodies[rule, : rules.lengths[rule]], goal, 0, search, walk) > 0:
                    out[i], best = rule, rules.scores[rule]
                    break
