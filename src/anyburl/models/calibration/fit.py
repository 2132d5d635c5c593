"""From scores to probabilities: a monotone map per relation, shrunk towards the overall map.

Scores are put into bins, and maps are made in three steps, each shrunk to the one before:

1. the whole: isotonic regression (pool adjacent violators) over all relations;
2. a line for each relation, logit p = a + b logit whole, with priors around a = 0 and b = 1;
3. isotonic regression for each relation, where its line adds `PRIOR` answers to every bin.

A relation without held-out facts has the map of the whole, one with many its own.

`Calibration`: what the score of a fact means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError
from anyburl.models.tuned.observations import Observations

N_QUANTILES = 30
N_NARROW = 200
PRIOR = 5.0  # values from 1 to 20 differ by 1.5 % in loss on valid splits, 20 being best: benchmarks/bench_calibrate.py
SPREAD, SLOPE_SPREAD = 1.0, 0.5  # standard deviations of a and b
LEAST_SLOPE = 0.02
STEPS = 25  # of Newton's method; it ends long before
CERTAIN = 0.999  # no probability is higher: nothing that was counted could tell it from 1
LEAST_SHARE = 0.05  # of what is stated: so much is left of a bin from which more is taken out than it holds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BinCounts:
    """How many answers there are, and how many of them are stated: arrays of (relations, bins).

    `answers` may be lower than `stated`, since what is taken out of them is an estimate, see `count_answers`.
    """

    answers: Floats
    stated: Floats


def make_edges(scores: Floats, is_stated: NDArray[np.bool_], n_quantiles: int = N_QUANTILES) -> Floats:
    """Return where bins end and the next ones start, at quantiles of the scores and of those of stated answers."""
    shares = np.linspace(0, 1, n_quantiles + 1)[1:]
    some = [np.quantile(part, shares, method="inverted_cdf") for part in (scores, scores[is_stated]) if len(part)]
    return np.unique(np.concatenate([np.empty(0), *some]))


def bins_of(edges: Floats, scores: Floats) -> NDArray[np.int64]:
    """Return the bin of each score; an edge belongs to the bin above it."""
    return np.searchsorted(edges, scores, side="right")


def fit_overall(observations: Observations, hidden: float) -> Floats:
    """Return the probability of each answer whatever its relation, in narrow bins."""
    edges = make_edges(observations.scores, observations.is_stated, N_NARROW)
    together = replace(observations, relations=np.zeros_like(observations.relations))
    return fit_whole(count_answers(together, edges, 1, hidden))[bins_of(edges, observations.scores)]


def count_answers(observations: Observations, edges: Floats, n_relations: int, hidden: float = 0.0) -> BinCounts:
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

    return BinCounts(total(answer_weights(observations, hidden)), total(observations.is_stated.astype(np.float64)))


def answer_weights(observations: Observations, hidden: float) -> Floats:
    """Return what each answer counts for if those that another split states are taken out, see `count_answers`."""
    return np.asarray(1.0 - hidden * observations.has_others, np.float64)


def fit_whole(counts: BinCounts) -> Floats:
    """Return the probability in each bin, all relations taken together."""
    stated = counts.stated.sum(axis=0)
    answers = np.maximum(counts.answers.sum(axis=0), LEAST_SHARE * stated)
    blocks = np.cumsum(np.diff(isotonic(stated, answers), prepend=-1.0) != 0) - 1
    n_stated, n_answers = (np.bincount(blocks, column).astype(np.float64) for column in (stated, answers))
    # Half an answer on either side is Jeffreys' prior. It moves small blocks most, even below the one before.
    shares = isotonic(n_stated + 0.5, n_answers + 1)
    return np.asarray(np.clip(shares[blocks], 0, CERTAIN), np.float64)


def fit_relations(counts: BinCounts, whole: Floats, prior: float = PRIOR) -> Floats:
    """Return the probability in each bin for every relation."""
    lines = fit_lines(counts, whole)
    answers = np.maximum(counts.answers, 0.0) + prior
    stated = counts.stated + prior * lines
    fitted = lines.copy()
    for relation in np.flatnonzero(counts.answers.any(axis=1)):
        fitted[relation] = isotonic(stated[relation], answers[relation])
    return np.asarray(np.clip(fitted, 0, CERTAIN), np.float64)


def fit_lines(counts: BinCounts, whole: Floats) -> Floats:
    """Return the probability in each bin for every relation: a line through the logit of the whole."""
    shares, blocks = np.unique(whole, return_inverse=True)
    stated, answers = (
        np.stack([column[:, blocks == block].sum(axis=1) for block in range(len(shares))], axis=1)
        for column in (counts.stated, counts.answers)
    )
    answers, x = np.maximum(answers, stated), _logit(shares)
    a, b = np.zeros((len(stated), 1)), np.ones((len(stated), 1))
    for _ in range(STEPS):
        expected = _logistic(a + b * x)
        surplus, weights = stated - answers * expected, answers * expected * (1 - expected)
        toward_a = _total(surplus) - a / SPREAD**2
        toward_b = _total(surplus * x) - (b - 1) / SLOPE_SPREAD**2
        aa, ab = _total(weights) + SPREAD**-2, _total(weights * x)
        bb = _total(weights * x * x) + SLOPE_SPREAD**-2
        determinant = aa * bb - ab * ab
        a += np.clip((bb * toward_a - ab * toward_b) / determinant, -1, 1)
        b += np.clip((aa * toward_b - ab * toward_a) / determinant, -1, 1)
    return _logistic(a + np.maximum(b, LEAST_SLOPE) * _logit(whole))


def _total(rows: Floats) -> Floats:
    return np.asarray(rows.sum(axis=1, keepdims=True), np.float64)


def _logit(shares: Floats) -> Floats:
    return np.log(shares / (1 - shares))


def _logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)), np.float64)


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


Ids = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True)
class Calibration:
    """Turns scores into probabilities, by two tables of (relations, bins of scores).

    `probability` is the chance that an answer is stated if the question has an answer in the held-out split. `closed`
    is the share of all facts outside train with such a score that the held-out split states; nan where facts were not
    counted. Within a relation, neither falls as the score rises.
    """

    edges: Floats
    probability: Floats
    closed: Floats

    def probabilities(self, relations: Ids, scores: Floats) -> Floats:
        """Return the probability of facts with these relations and scores."""
        return self.probability[relations, bins_of(self.edges, scores)]

    def closed_world(self, relations: Ids, scores: Floats) -> Floats:
        """Return the closed-world probability, a lower bound; nan where it is unknown."""
        return self.closed[relations, bins_of(self.edges, scores)]

    def least_scores(self, probability: float) -> Floats:
        """Return, for each relation, the lowest score from which the probability is at least this; inf if there is
        none.
        """
        if not 0 <= probability <= 1:
            raise InvalidOptionError("probability", "from 0 to 1", probability)
        enough = self.probability >= probability
        starts = np.concatenate([[0.0], self.edges])
        return np.where(enough.any(axis=1), starts[enough.argmax(axis=1)], np.inf)
