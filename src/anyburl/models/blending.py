"""Puts a model's score of a proposed fact and the score of its best rule into one.

A model learns the order of the answers to one question. It tells facts of different questions apart less well than the
best rule, which looks at nothing else: what either says leaves out something of the other. So the share of true
proposals is fitted to each score (see `models.calibration.fit_true`), and a line puts the two together:

    logit t = a + b logit t_model + c logit t_rule

The line is fitted to shares that other subjects' facts tell, in `N_FOLDS` parts: noise in few counts, and what both say
alike, make b and c small. Then each relation has a line through that, close to it where the relation has few facts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.models.calibration import (
    CERTAIN,
    LEAST,
    LEAST_SLOPE,
    SLOPE_SPREAD,
    SPREAD,
    STEPS,
    Blend,
    ProposalCounts,
    bins_of,
    choose_bins,
    fit_true,
    line_parameters,
    logistic,
    narrow_middles,
)

N_FOLDS = 5
"""Two would tell too little: on UMLS, the log loss of other subjects' facts is 1,109 with two, 1,069 with five, 1,072
with ten (geo: 1,567, 1,554, 1,559; CoDEx-S: 2,759, 2,730, 2,721); a model alone has 1,153 (1,619, 2,847).
"""

RELATION_SPREAD, RELATION_SLOPE_SPREAD = 0.2, 0.1
"""Standard deviations of a and b of one relation's line. On Debian, the log loss is 77,590 in place of 77,679 without
such lines, and `multi_arch` is promised 0.08 too little in place of 0.19; small data loses a little (geo 1,558 for
1,554, UMLS 1,073 for 1,069, CoDEx-S 2,740 for 2,730), and more with wider ones (1 and 1/2: 1,574, 1,104, 2,769).
"""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ScoredFacts:
    """Proposed facts: their relations and contexts, what the model and the best rule say, and which came back."""

    subjects: NDArray[np.int32]
    relations: NDArray[np.int32]
    contexts: Ints
    scores: Floats
    rule_scores: Floats
    is_back: NDArray[np.bool_]

    def counts(self, rows: NDArray[np.bool_], scores: Floats, n_relations: int) -> ProposalCounts:
        """Count some of the facts by `scores`, one for each of them."""
        return ProposalCounts.of(n_relations, self.relations[rows], self.contexts[rows], scores, self.is_back[rows])

    def tables(self, rows: NDArray[np.bool_], most: Floats) -> list[tuple[Ints, Floats]]:
        """Return for either score the bins, and the logit of the share of true proposals among some of the facts."""
        tables = []
        for scores in (self.scores, self.rule_scores):
            counts = self.counts(rows, scores[rows], len(most))
            starts = choose_bins(counts)
            shares = fit_true(counts, starts, most)
            tables.append((starts, np.log(shares / (1 - shares))))
        return tables

    def logits(self, tables: list[tuple[Ints, Floats]], rows: NDArray[np.bool_]) -> Floats:
        """Return what either table says about some of the facts: one column for each."""
        relations, contexts = self.relations[rows], self.contexts[rows]
        return np.column_stack(
            [
                logits[relations, contexts, bins_of(starts, scores[rows])]
                for (starts, logits), scores in zip(tables, (self.scores, self.rule_scores), strict=True)
            ]
        )

    def lines(self, rows: NDArray[np.bool_], shares: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Return a and b of each relation: of some of the facts, what came back follows a + b logit of their shares."""
        counts = self.counts(rows, shares[rows], len(most))
        proposed, back = counts.proposed.sum(axis=1), counts.back.sum(axis=1)
        base = np.broadcast_to(np.clip(narrow_middles(), LEAST, CERTAIN), back.shape)
        a, b = line_parameters(proposed, back, base, most[:, None], RELATION_SPREAD, RELATION_SLOPE_SPREAD)
        return a[:, 0], np.maximum(b[:, 0], LEAST_SLOPE)


def fit_blend(facts: ScoredFacts, is_made: NDArray[np.bool_], most: Floats) -> tuple[Blend, Floats]:
    """Return what puts both scores into one, and what that says about each of the facts if its subject tells nothing.

    `is_made` says which facts would be proposed; if all proposals of a relation are true, `most` of them come back.
    """
    folds, logits = facts.subjects % N_FOLDS, np.empty((len(facts.subjects), 2))
    for fold in range(N_FOLDS):
        own = folds == fold
        logits[own] = facts.logits(facts.tables(~own, most), own)
    a, *slopes = fit_score_line(logits[is_made], facts.is_back[is_made], most[facts.relations[is_made]])
    by_others = logistic(a + logits @ slopes)
    own_a, own_b = facts.lines(is_made, by_others, most)
    (starts, terms), (rule_starts, rule_terms) = facts.tables(np.ones(len(folds), np.bool_), most)
    every_a, every_b = own_a[:, None, None], own_b[:, None, None]
    blend = Blend(starts, every_a + every_b * (a + slopes[0] * terms), rule_starts, every_b * slopes[1] * rule_terms)
    moved = own_a[facts.relations] + own_b[facts.relations] * (a + logits @ slopes)
    return blend, np.clip(logistic(moved), LEAST, CERTAIN)


def fit_score_line(logits: Floats, is_back: NDArray[np.bool_], most: Floats) -> Floats:
    """Return a and the slope of each column, for the most likely logit t = a + slopes * logits, where t * `most` come
    back.

    Slopes are near the same share of one each, a near 0, by normal priors; none lets shares fall.
    """
    columns = np.column_stack([np.ones(len(logits)), logits])
    around = np.append(0.0, np.full(logits.shape[1], 1 / logits.shape[1]))
    precisions = np.append(SPREAD**-2, np.full(logits.shape[1], SLOPE_SPREAD**-2))
    weights = around.copy()
    for _ in range(STEPS):
        expected = np.minimum(logistic(columns @ weights), 1 - LEAST**2)
        slopes = (1 - expected) / (1 - expected * most)  # by the chain rule: of the logit of t, not of t * most
        toward = columns.T @ ((is_back - expected * most) * slopes) - precisions * (weights - around)
        curvature = columns.T * (expected * most * (1 - expected) * slopes) @ columns + np.diag(precisions)
        weights += np.clip(np.linalg.solve(curvature, toward), -1, 1)
    return np.append(weights[0], np.maximum(weights[1:], LEAST_SLOPE))
