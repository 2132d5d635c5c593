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
    edges = _edges(np.concatenate([right, wrong]))
    n_bins, bins = len(edges) + 1, np.searchsorted(edges, right)
    of_right = _counts(bins, right_relations, n_relations, n_bins)
    of_wrong = _counts(np.searchsorted(edges, wrong), wrong_relations, n_relations, n_bins)
    odds, weights = _log_shares(of_right) - _log_shares(of_wrong), of_right + of_wrong + PRIOR / n_bins
    table = np.array([_rising(*row) for row in zip(odds, weights, strict=True)]).reshape(n_relations, n_bins)
    found: Floats = table[right_relations, bins]
    return found


def _edges(scores: Floats) -> Floats:
    """Return the highest score of each bin but the last, so that about as many are in each and none is empty."""
    if not len(scores):
        return scores
    levels = np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1], method="lower")
    different = np.unique(levels)
    return np.asarray(different[different < scores.max()], np.float64)


def _counts(bins: NDArray[np.int64], relations: NDArray[np.int32], n_relations: int, n_bins: int) -> Floats:
    counts = np.bincount(relations.astype(np.int64) * n_bins + bins, minlength=n_relations * n_bins)
    return counts.reshape(n_relations, n_bins).astype(np.float64)


def _log_shares(counts: Floats) -> Floats:
    """Return the logarithm of the share of each bin, by relation, drawn towards that of all relations."""
    overall = (counts.sum(axis=0) + 1) / (counts.sum() + counts.shape[1])
    shares: Floats = (counts + PRIOR * overall) / (counts.sum(axis=1, keepdims=True) + PRIOR)
    return np.log(shares)


def _rising(values: Floats, weights: Floats) -> Floats:
    """Return the nearest values that never fall: where they do, neighbours are given their common mean."""
    means, sums, sizes = list[float](), list[float](), list[int]()
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, size = value, weight, 1
        while means and means[-1] > mean:
            before = sums.pop()
            mean = (means.pop() * before + mean * total) / (before + total)
            total, size = total + before, size + sizes.pop()
        means.append(mean)
        sums.append(total)
        sizes.append(size)
    return np.repeat(np.array(means), sizes)
