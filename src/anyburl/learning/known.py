"""The bodies behind the rules of an earlier run, so that a resumed run does not harvest them again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.generalisation import with_keys
from anyburl.graph.arrays import GraphArrays
from anyburl.learning.options import LearnOptions
from anyburl.ruleset.counting import rule_bodies
from anyburl.ruleset.ruleset import RuleSet


def known_keys(
    graph: GraphArrays, rules: RuleSet, options: LearnOptions
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Yield, length by length, the keys of the bodies behind `rules` and how many rules each gave."""
    for length in np.unique(rules.lengths):
        if length == 0:
            continue
        bodies = rule_bodies(graph, rules.take(rules.lengths == length), int(length))
        if options.heads == "all":
            bodies.heads[:] = -1
            bodies.head_constants[:] = -1
        keys, counts = np.unique(with_keys(graph, bodies).keys, return_counts=True)
        yield keys, counts
