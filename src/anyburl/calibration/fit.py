"""From scores to probabilities: a monotone map for each relation, shrunk to that of the whole.

Scores are put into bins. Isotonic regression (pool adjacent violators) over all relations gives the map of the whole.
A relation's own map comes from its own counts, to which the whole adds `PRIOR` answers in every bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.tuning.observations import Observations

N_QUANTILES = 30
PRIOR = 5.0  # chosen by cross-validation on valid splits: benchmarks/bench_calibrate.py
CERTAIN = 0.999  # no probability is higher: nothing that was counted could tell it from 1
LEAST_SHARE = 0.05  # of what is stated: so much is left of a bin from which more is taken out than it holds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """How many answers there are, and how many of them are stated: arrays of (relations, bins).

    `answers` may be lower than `stated`, since what is taken out of them is an estimate, see `count_answers`.
    """

    answers: Floats
    stated: Floats


def make_edges(scores: Floats, is_stated: NDArray[np.bool_]) -> Floats:
    """Return where bins end and the next ones start, at quantiles of the scores and of those of stated answers."""
    shares = np.linspace(0, 1, N_QUANTILES + 1)[1:]
    some = [np.quantile(part, shares, method="inverted_cdf") for part in (scores, scores[is_stated]) if len(part)]
    return np.unique(np.concatenate([np.empty(0), *some]))


def bins_of(edges: Floats, scores: Floats) -> NDArray[np.int64]:
    """Return the bin of each score; an edge belongs to the bin above it."""
    return np.searchsorted(edges, scores, side="right")


def count_answers(observations: Observations, edges: Floats, n_relations: int, hidden: float = 0.0) -> Counts:
    """Count answers by relation and bin, without those that another split states.

    That split is not looked at. If both were drawn at random, and it has `hidden` times as many facts as this one, then
    for each stated answer to a question with other stated answers, there are on average `hidden` answers with such a
    score which it states: the fact might as well have been drawn into that split, and the question would have been
    asked all the same.
    """
    shape = n_relations, len(edges) + 1
    cells = observations.relations.astype(np.int64) * shape[1] + bins_of(edges, observations.scores)

    def total(weights: Floats) -> Floats:
        return np.bincount(cells, weights=weights, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    return Counts(total(answer_weights(observations, hidden)), total(observations.is_stated.astype(np.float64)))


def answer_weights(observations: Observations, hidden: float) -> Floats:
    """Return what each answer counts for if those that another split states are taken out, see `count_answers`."""
    return np.asarray(1.0 - hidden * observations.has_others, np.float64)


def fit_whole(counts: Counts) -> Floats:
    """Return the probability in each bin, all relations taken together."""
    stated = counts.stated.sum(axis=0)
    answers = np.maximum(counts.answers.sum(axis=0), LEAST_SHARE * stated)
    blocks = np.cumsum(np.diff(isotonic(stated, answers), prepend=-1.0) != 0) - 1
    n_stated, n_answers = (np.bincount(blocks, weights=column)[blocks] for column in (stated, answers))
    shares = (n_stated + 0.5) / (n_answers + 1)  # half an answer on either side: Jeffreys' prior
    return np.asarray(np.clip(shares, 0, CERTAIN), np.float64)


def fit_relations(counts: Counts, whole: Floats, prior: float = PRIOR) -> Floats:
    """Return the probability in each bin for every relation."""
    answers = np.maximum(counts.answers, 0.0) + prior
    stated = counts.stated + prior * whole
    seen = counts.stated.any(axis=1) | counts.answers.any(axis=1)
    fitted = np.tile(whole, (len(stated), 1))
    for relation in np.flatnonzero(seen):
        fitted[relation] = isotonic(stated[relation], answers[relation])
    return np.clip(fitted, 0, CERTAIN)


def isotonic(stated: Floats, answers: Floats) -> Floats:
    """Return shares of `stated` in `answers` that never fall from bin to bin, by pooling neighbours that do."""
    pooled: list[list[float]] = []  # stated, answers and bins of each block
    for n_stated, n_answers in zip(stated.tolist(), answers.tolist(), strict=True):
        pooled.append([n_stated, n_answers, 1])
        while len(pooled) > 1 and pooled[-2][0] * pooled[-1][1] >= pooled[-1][0] * pooled[-2][1]:
            last = pooled.pop()
            pooled[-1] = [own + other for own, other in zip(pooled[-1], last, strict=True)]
    shares = [n_stated / n_answers if n_answers else 0.0 for n_stated, n_answers, _ in pooled]
    return np.repeat(shares, [int(n_bins) for *_, n_bins in pooled])
