"""The rules that predict a triple, their combined score, and the resulting rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.lookup import Ids, neighbours
from anyburl.ranking.arrays import empty_candidates
from anyburl.ranking.kernel_rank import rank_candidate
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.scores import to_confidences

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

    def rank(self, lister: Ranker, others: NDArray[np.int32]) -> float | None:
        """Return the filtered rank of the answer, ties counted half, as `Ranker.answer` does; None if it has none.

        `others` are known answers. The rules have fired already: to ask the ranker would fire them again.
        """
        graph = lister.graph
        excluded = np.zeros(graph.n_entities + 1, np.bool_)
        excluded[others] = True
        if lister.block_connected:
            excluded[neighbours(graph, self.entity)] = True
        if not len(self.rows) or excluded[self.answer]:
            return None
        kept = np.flatnonzero(~excluded[self._fired.candidates])
        firings = self._fired._replace(
            candidates=self._fired.candidates[kept],
            scores=self._fired.scores[kept],
            following=np.empty(len(kept), np.int32),
            lists=np.empty(len(kept), np.int64),
        )
        candidates, protocol = empty_candidates(graph.n_entities), lister.ready.protocol(lister.aggregation, 0)
        better, equal = rank_candidate(
            candidates, firings, len(kept), self.answer, protocol.n_counted, protocol.breaks_ties
        )
        return better + equal / 2 + 1


class Firings:
    """The rules that predict one triple, in either direction, best first.

    The two queries of a triple have the same rules but for those without a body: h(X,c) <= answers (s, h, ?) only.
    `lister` is a ranker without a re-ranker.
    """

    def __init__(self, lister: Ranker, triple: Ids) -> None:
        subject, relation, object = triple
        self._lister = lister
        backward = relation + lister.vocabulary.n_relations
        self.of_object = QueryFirings(lister, subject, relation, object)
        self.of_subject = QueryFirings(lister, object, backward, subject)
        either = (self.of_object, self.of_subject)
        rows, firsts = np.unique(np.concatenate([query.rows for query in either]), return_index=True)
        scores = np.concatenate([query.scores for query in either])[firsts]
        support = lister.rules.support[rows]
        self.rows: Rows = rows[np.lexsort((rows, -support, -scores))]
        self._scores: dict[int, int] = dict(zip(rows.tolist(), scores.tolist(), strict=True))
        has_score = [len(query.rows) > 0 and bool(query.scores.any()) for query in either]
        use_subject = not len(self.of_object.rows) or (has_score[1] and not has_score[0])
        ranked = set((self.of_subject if use_subject else self.of_object).rows.tolist())
        self._counted: list[int] = [row for row in self.rows.tolist() if row in ranked]

    def score(self, rows: Rows) -> float:
        """Return the score that `rows` give together."""
        if not len(rows):
            return 0.0
        aggregation, scores = (
            self._lister.aggregation,
            sorted((self._scores[row] for row in rows.tolist()), reverse=True),
        )
        summed = float(to_confidences(np.array(aggregation.key(scores))))
        return aggregation.score(summed, float(self._lister.confidences(rows).max()))

    def contribution(self, row: int) -> tuple[float, bool]:
        """Return a rule's share of the score, and whether it only decides between candidates that tie."""
        if row not in self._counted:
            return 0.0, False
        aggregation, place = self._lister.aggregation, self._counted.index(row)
        share = aggregation.contribution([self._scores[counted] for counted in self._counted], place)
        return share, aggregation.breaks_ties and share == 0.0
