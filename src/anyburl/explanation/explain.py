"""`explain`: the rules that predict a triple, best first, with their facts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError, OptionError
from anyburl.explanation.explanation import Explanation, Fact, Reason
from anyburl.explanation.groundings import Ids, find_groundings, triple_ids
from anyburl.explanation.known import are_connected, both_queries, holding_splits
from anyburl.explanation.nearmiss import find_near_miss
from anyburl.ranking.blocking import blocks_connected
from anyburl.ranking.index import to_confidences
from anyburl.ranking.kernel_order import MAXIMUM, NOISY_OR_TOP
from anyburl.ranking.options import RankOptions, parse_aggregation
from anyburl.ranking.ranker import Ranker
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset

Rows = NDArray[np.int64]
Scores = NDArray[np.int64]


def explain(
    rules: RuleSet,
    dataset: Dataset,
    triple: Fact,
    *,
    options: RankOptions | None = None,
    top: int = 5,
    groundings: int = 3,
    ranker: Ranker | None = None,
) -> Explanation:
    """Say which rules predict `triple` (subject, relation, object), which need not be known or true.

    The `top` best rules are given, each with up to `groundings` ways in which facts of the train split make it fire.
    If none fires, `near_miss` is the strongest rule that lacks one fact. A `ranker`, made of the same rules and
    data, is used as it is; without one, it is made from `options` first, which takes most of the time.
    """
    if top < 1 or groundings < 0:
        raise OptionError(f"explain needs top of at least 1 and groundings of at least 0, got {top} and {groundings}")
    ids = triple_ids(dataset.vocabulary, triple)
    ranker = _checked(ranker, dataset, options) if ranker else _make_ranker(rules, dataset, options or RankOptions())
    firings = _Firings(ranker, ids)
    ranks = _ranks(ranker, dataset, ids)
    return Explanation(
        triple=(str(triple[0]), str(triple[1]), str(triple[2])),
        known=holding_splits(dataset, ids),
        rank=ranks[0],
        rank_subject=ranks[1],
        score=firings.score(firings.of_object),
        score_subject=firings.score(firings.of_subject),
        aggregation=ranker.options.aggregation,
        blocked=ranker.block_connected and are_connected(ranker.graph, ids[0], ids[2]),
        n_reasons=len(firings.rows),
        reasons=tuple(_reason(ranker, firings, int(row), ids, groundings) for row in firings.rows[:top]),
        near_miss=None if len(firings.rows) else find_near_miss(ranker, ids),
    )


def _make_ranker(rules: RuleSet, dataset: Dataset, options: RankOptions) -> Ranker:
    if rules.vocabulary is not dataset.vocabulary:
        rules, _ = rules.with_vocabulary(dataset.vocabulary)
    return Ranker(rules, dataset.train, options, block_connected=blocks_connected(options.block_connected, dataset))


def _checked(ranker: Ranker, dataset: Dataset, options: RankOptions | None) -> Ranker:
    if options is not None and options != ranker.options:
        raise OptionError(f"explain was given a ranker with other options ({ranker.options}) than {options}; give one")
    if not ranker.vocabulary.same_labels(dataset.vocabulary):
        raise DataError(f"explain was given a ranker over other labels than those of {dataset.name}")
    return ranker


class _Firings:
    """The rules that predict one triple, in either direction, best first.

    The two queries of a triple have the same rules but for those without a body: h(X,c) <= answers (s, h, ?) only.
    """

    def __init__(self, ranker: Ranker, triple: Ids) -> None:
        subject, relation, object = triple
        self._ranker = ranker
        self._aggregation, self._n_best = parse_aggregation(ranker.options.aggregation)
        backward = relation + ranker.vocabulary.n_relations
        self.of_object, object_scores = self._fire(subject, relation, object)
        self.of_subject, subject_scores = self._fire(object, backward, subject)
        rows, firsts = np.unique(np.concatenate([self.of_object, self.of_subject]), return_index=True)
        scores = np.concatenate([object_scores, subject_scores])[firsts]
        support = ranker.rules.support[rows]
        self.rows: Rows = rows[np.lexsort((rows, -support, -scores))]
        self._scores = dict(zip(rows.tolist(), scores.tolist(), strict=True))
        ranked = set((self.of_object if len(self.of_object) else self.of_subject).tolist())
        self._counted: list[int] = [row for row in self.rows.tolist() if row in ranked]
        self._total = self._sum(self._counted)

    def _fire(self, entity: int, relation: int, answer: int) -> tuple[Rows, Scores]:
        fired = self._ranker.fire(entity, relation)
        places = np.flatnonzero(fired.candidates == answer)
        return fired.rules[places].astype(np.int64), fired.scores[places]

    def _sum(self, rows: list[int]) -> int:
        """Add up the scores that count, of `rows` best first."""
        n = self._n_best if self._aggregation == NOISY_OR_TOP else len(rows)
        return sum(self._scores[row] for row in rows[:n])

    def score(self, rows: Rows) -> float:
        """Return the confidence that `rows` give together."""
        if not len(rows):
            return 0.0
        if self._aggregation == MAXIMUM:
            return float(self._ranker.confidences[rows].max())
        best_first = sorted(rows.tolist(), key=lambda row: -self._scores[row])
        return float(to_confidences(np.array(self._sum(best_first))))

    def contribution(self, row: int) -> tuple[float, bool]:
        """Return a rule's share of the score, and whether it only decides between candidates that tie."""
        place = self._counted.index(row) if row in self._counted else -1
        if self._aggregation == MAXIMUM:
            return float(place == 0), place > 0
        if place < 0 or not self._total or (self._aggregation == NOISY_OR_TOP and place >= self._n_best):
            return 0.0, False
        return self._scores[row] / self._total, False


def _reason(ranker: Ranker, firings: _Firings, row: int, triple: Ids, groundings: int) -> Reason:
    rules = ranker.rules
    contribution, breaks_ties = firings.contribution(row)
    return Reason(
        rule=rules.rule(row),
        confidence=float(ranker.confidences[row]),
        predictions=int(rules.predictions[row]),
        support=int(rules.support[row]),
        exact=bool(rules.exact[row]),
        contribution=contribution,
        breaks_ties=breaks_ties,
        groundings=find_groundings(ranker, row, triple, groundings),
    )


def _ranks(ranker: Ranker, dataset: Dataset, triple: Ids) -> list[float | None]:
    """Return the filtered realistic ranks of object and subject; None where they are no candidates."""
    answers = ranker.answer(both_queries(dataset, triple))
    ranks = answers.better + answers.equal / 2 + 1
    return [float(rank) if fired else None for rank, fired in zip(ranks, answers.fired, strict=True)]
