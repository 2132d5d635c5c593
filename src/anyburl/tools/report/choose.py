"""Chooses a few rules for each relation that together explain most of its facts.

Candidates are the rules that are right most often above the base rate of their heads. Which facts a candidate predicts
is looked up for a sample of the relation's facts. Then rules are taken one by one, each time the one that adds most:
the sum over facts of how much surer the best rule of a fact becomes. Short rules and those of a distilled set that are
worth more come first where the difference is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.rescore import base_rates
from anyburl.graph.arrays import GraphArrays
from anyburl.reasoning.explanation.coverage import NEARLY_THE_SAME, similarity
from anyburl.rules.columns import surprise
from anyburl.rules.ruleset import RuleSet

Rows = NDArray[np.int64]

LEAST = 0.25  # how far above the base rate a rule must be to be a law
FEWEST = 3  # right predictions
MOST_BINARY, MOST_UNARY = 60, 120  # candidates of a relation
FEW = 8
OF_A_VALUE = 6  # candidates that predict one and the same value
LEAST_GAIN = 0.01  # of the facts: a rule that adds less is no law
PER_ATOM = 0.85  # what a longer rule counts, for each further atom


@dataclass(frozen=True)
class Choice:
    """The rules chosen for a relation, which of the facts looked at each predicts, and how many others are like it."""

    rows: Rows
    covers: NDArray[np.bool_]  # chosen rules x facts
    stands_for: list[int]


def find_candidates(
    rules: RuleSet, rows: Rows, graph: GraphArrays, *, few: bool = False
) -> tuple[Rows, NDArray[np.float64]]:
    """Return the rules, or a `few`, among those of a relation, that are worth a look, and how surprising each is."""
    part = rules.take(rows)
    kept = (part.support >= FEWEST) & (part.confidence() > LEAST)
    rows, part = rows[kept], part.take(kept)
    scores = surprise(part.support, part.predictions, base_rates(graph, part)).astype(np.float64)
    order = np.argsort(-scores * part.support * PER_ATOM**part.lengths, kind="stable")
    order = order[scores[order] >= LEAST]
    heads = part.head.astype(np.int64) * (rules.vocabulary.n_entities + 2) + part.head_constant
    binary = order[part.is_binary[order]][:MOST_BINARY]
    unary = _first_of_each(heads, order[~part.is_binary[order]], OF_A_VALUE)[:MOST_UNARY]
    chosen = np.concatenate([binary[:FEW], unary[:FEW]] if few else [binary, unary])
    return rows[chosen], scores[chosen]


def _first_of_each(groups: NDArray[np.int64], order: Rows, most: int) -> Rows:
    """Return the first `most` of each group, in their order."""
    ranks = np.empty(len(order), np.int64)
    by_group = np.argsort(groups[order], kind="stable")
    sorted_groups = groups[order][by_group]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]]) if len(order) else np.empty(0, int)
    sizes = np.diff(np.r_[starts, len(order)])
    ranks[by_group] = np.arange(len(order)) - np.repeat(starts, sizes)
    return order[ranks < most]


def choose_laws(
    rules: RuleSet, rows: Rows, scores: NDArray[np.float64], covers: NDArray[np.bool_], most: int
) -> Choice:
    """Take up to `most` of the candidates, each time the one that makes the facts surer by most."""
    counted = scores * PER_ATOM ** np.maximum(rules.take(rows).lengths - 1, 0)
    best = np.zeros(covers.shape[1])
    chosen: list[int] = []
    while len(chosen) < min(most, len(rows)):
        gains = (np.maximum(counted[:, None] - best, 0) * covers).sum(axis=1)
        first = int(np.argmax(gains))
        if gains[first] < LEAST_GAIN * max(1, covers.shape[1]):
            break
        chosen.append(first)
        best = np.maximum(best, counted[first] * covers[first])
    return Choice(rows[chosen], covers[chosen], count_similar(covers, chosen))


def count_similar(covers: NDArray[np.bool_], chosen: list[int]) -> list[int]:
    """Return for each of the chosen rules how many of the others predict nearly the same facts."""
    overlaps = similarity(covers[chosen], covers)
    overlaps[:, chosen] = 0
    closest = overlaps.argmax(axis=0) if len(chosen) else np.empty(0, np.int64)
    near = overlaps.max(axis=0, initial=0) >= NEARLY_THE_SAME
    return np.bincount(closest[near], minlength=len(chosen)).tolist() if len(chosen) else []
