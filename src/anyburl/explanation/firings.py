"""The rules that predict a triple, what they add up to, and where that ranks it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.groundings import Ids
from anyburl.explanation.known import neighbours
from anyburl.ranking.arrays import empty_candidates
from anyburl.ranking.index import to_confidences
from anyburl.ranking.kernel_order import MAXIMUM, MOST_EVIDENCE, NOISY_OR_TOP, count_better, link_firings, set_keys
from anyburl.ranking.options import parse_aggregation
from anyburl.ranking.ranker import Ranker

Rows = NDArray[np.int64]
Scores = NDArray[np.int64]


class QueryFirings:
    """What fires for one query, and of that what answers it with one entity."""

    def __init__(self, ranker: Ranker, entity: int, relation: int, answer: int) -> None:
        self.entity, self.relation, self.answer = entity, relation, answer
        self._fired = ranker.fire(entity, relation)
        places = np.flatnonzero(self._fired.candidates == answer)
        self.rows: Rows = self._fired.rules[places].astype(np.int64)
        self.scores: Scores = self._fired.scores[places]

    def rank(self, ranker: Ranker, others: NDArray[np.int32]) -> float | None:
        """Return the filtered rank of the answer, ties counted half, as `Ranker.answer` does; None if it has none.

        `others` are known answers. The rules have fired already: to ask the ranker would fire them again.
        """
        excluded = np.zeros(ranker.graph.n_entities + 1, np.bool_)
        excluded[others] = True
        if ranker.block_connected:
            excluded[neighbours(ranker.graph, self.entity)] = True
        if not len(self.rows) or excluded[self.answer]:
            return None
        kept = np.flatnonzero(~excluded[self._fired.candidates])
        firings = self._fired._replace(
            candidates=self._fired.candidates[kept],
            scores=self._fired.scores[kept],
            following=np.empty_like(kept, np.int32),
        )
        candidates = empty_candidates(ranker.graph.n_entities, len(kept))
        aggregation, n_best = parse_aggregation(ranker.fixed_aggregation)
        n_candidates = link_firings(candidates, firings, len(kept), 1)
        set_keys(candidates, firings, n_candidates, aggregation, n_best)
        no_targets = np.zeros(ranker.graph.n_entities + 1, np.int64)
        better, equal = count_better(candidates, firings, n_candidates, self.answer, no_targets, 1, aggregation)
        return better + equal / 2 + 1


class Firings:
    """The rules that predict one triple, in either direction, best first.

    The two queries of a triple have the same rules but for those without a body: h(X,c) <= answers (s, h, ?) only.
    """

    def __init__(self, ranker: Ranker, triple: Ids) -> None:
        subject, relation, object = triple
        self._ranker = ranker
        self._aggregation, self._n_best = parse_aggregation(ranker.fixed_aggregation)
        backward = relation + ranker.vocabulary.n_relations
        self.of_object = QueryFirings(ranker, subject, relation, object)
        self.of_subject = QueryFirings(ranker, object, backward, subject)
        either = (self.of_object, self.of_subject)
        rows, firsts = np.unique(np.concatenate([query.rows for query in either]), return_index=True)
        scores = np.concatenate([query.scores for query in either])[firsts]
        support = ranker.rules.support[rows]
        self.rows: Rows = rows[np.lexsort((rows, -support, -scores))]
        self._scores = dict(zip(rows.tolist(), scores.tolist(), strict=True))
        has_score = [len(query.rows) > 0 and bool(query.scores.any()) for query in either]
        use_subject = not len(self.of_object.rows) or (has_score[1] and not has_score[0])
        ranked = set((self.of_subject if use_subject else self.of_object).rows.tolist())
        self._counted: list[int] = [row for row in self.rows.tolist() if row in ranked]
        self._total = self._sum(self._counted)

    def _sum(self, rows: list[int]) -> int:
        """Add up the scores that count, of `rows` best first."""
        n = self._n_best if self._aggregation == NOISY_OR_TOP else len(rows)
        return int(min(sum(self._scores[row] for row in rows[:n]), MOST_EVIDENCE))

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
