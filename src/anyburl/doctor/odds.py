"""What a score says about a fact: how much likelier it is among right facts of a relation than among wrong ones.

Right facts are those of train, as far as anyone knows; wrong ones are made of them by putting a random entity in the
place of the subject or the object. Nothing has to be assumed about what a score means: a relation whose facts no rule
supports loses nothing by that, and one whose facts are all supported but for a few makes these few stand out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.doctor.facts import Facts, Triples
from anyburl.graph.lookup import held_by

BINS = 32
PRIOR = 20.0  # facts of all relations that each relation's own are mixed with

Floats = NDArray[np.float64]


class Wrong(NamedTuple):
    """Wrong facts, and which end of each is wrong: 0 for the subject, 1 for the object."""

    triples: Triples
    ends: NDArray[np.int64]


def make_wrong(facts: Facts, most: int, rng: np.random.Generator) -> Wrong:
    """Return up to `most` facts of train with a random subject or object out of train; none that a split states."""
    n_train = len(facts.train)
    rows = np.arange(n_train) if n_train <= most else np.sort(rng.choice(n_train, most, replace=False))
    wrong, ends = facts.train[rows].copy(), rng.integers(0, 2, len(rows))
    wrong[np.arange(len(rows)), 2 * ends] = rng.choice(np.unique(facts.train[:, [0, 2]]), len(rows))
    is_new = held_by(facts.dataset, wrong) == 0
    return Wrong(wrong[is_new], ends[is_new])


def log_odds(
    right: Floats,
    right_relations: NDArray[np.int32],
    wrong: Floats,
    wrong_relations: NDArray[np.int32],
    n_relations: int,
) -> Floats:
    """Return for each right fact the logarithm of right : wrong, given its score and its relation.

    Scores are put into bins; a higher score never speaks against a fact.
    """
    levels = np.linspace(0, 1, BINS + 1)[1:-1]
    edges = np.unique(np.quantile(np.concatenate([right, wrong]), levels)) if len(right) else np.empty(0)
    bins = np.searchsorted(edges, right, side="right")
    of_right = _log_shares(bins, right_relations, n_relations, len(edges) + 1)
    of_wrong = _log_shares(np.searchsorted(edges, wrong, side="right"), wrong_relations, n_relations, len(edges) + 1)
    found: Floats = _rising(of_right - of_wrong)[right_relations, bins]
    return found


def _log_shares(bins: NDArray[np.int64], relations: NDArray[np.int32], n_relations: int, n_bins: int) -> Floats:
    """Return the logarithm of the share of each bin, by relation, drawn towards that of all relations."""
    counts = np.bincount(relations.astype(np.int64) * n_bins + bins, minlength=n_relations * n_bins)
    table = counts.reshape(n_relations, n_bins).astype(np.float64)
    overall = (table.sum(axis=0) + 1) / (table.sum() + n_bins)
    shares: Floats = (table + PRIOR * overall) / (table.sum(axis=1, keepdims=True) + PRIOR)
    return np.log(shares)


def _rising(table: Floats) -> Floats:
    """Return rows that never fall: halfway between the highest value before and the lowest one after."""
    highest = np.maximum.accumulate(table, axis=1)
    lowest = np.minimum.accumulate(table[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((highest + lowest) / 2, np.float64)
