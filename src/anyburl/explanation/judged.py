"""Where a tuned model ranks an answer, and what each rule does to its score."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.firings import QueryFirings
from anyburl.ranking.queries import single_query
from anyburl.ranking.ranker import Ranker
from anyburl.tuning.evidence import evidence_row
from anyburl.tuning.opinion import RANK_COLUMN
from anyburl.tuning.rerank import logistic
from anyburl.tuning.reranker import TunedReranker


class Judged:
    """One query and one of its candidates, under a tuned model; `others` are known answers that are not ranked."""

    def __init__(self, lister: Ranker, reranker: TunedReranker, fired: QueryFirings, others: NDArray[np.int32]) -> None:
        self._lister, self._reranker, self._fired = lister, reranker, fired
        query = single_query(fired.entity, fired.relation, others)
        targets = np.array([fired.answer], np.int32)
        self._queries = query._replace(targets=targets, target_offsets=np.array([0, 1], np.int64))
        self._judgement = reranker.judge(lister, self._queries, 0)
        answers = self._judgement.answers
        self.rank = float(answers.better[0] + answers.equal[0] / 2 + 1) if answers.fired[0] else None
        listed = np.flatnonzero(self._judgement.lists.candidates == fired.answer)
        self._place = int(listed[0]) if len(listed) else -1

    @property
    def score(self) -> float | None:
        """The logistic of the model's score; None where the candidate is not among those that the model orders."""
        return float(logistic(self._judgement.scores)[self._place]) if self._place >= 0 else None

    @property
    def rank_other(self) -> int | None:
        """The rank of the candidate among all entities by the other model; None without one."""
        more = self._judgement.listing.more
        return None if more is None or self._place < 0 else round(math.expm1(-more[self._place, RANK_COLUMN])) + 1

    @property
    def share_other(self) -> float | None:
        """The share of the score that would be lost if the other model thought of it as of the median candidate."""
        listing = self._judgement.listing
        if listing.more is None or self._place < 0:
            return None
        more = listing.more.copy()
        more[self._place] = np.median(more, axis=0)
        without = self._reranker.score_evidence(self._lister, replace(listing, more=more), listing.lists.evidence)
        before, after = logistic(np.array([self._judgement.scores[self._place], without[self._place]]))
        return float(1 - after / before)

    def contribution(self, row: int) -> float:
        """Return the share of the score that would be lost without a rule; negative if the rule speaks against."""
        kept = self._fired.rows != row
        if self._place < 0 or kept.all():
            return 0.0
        listing = self._judgement.listing
        evidence = listing.lists.evidence.copy()
        groups = self._reranker.groups[self._fired.rows[kept]]
        evidence[self._place] = evidence_row(self._fired.scores[kept], groups, evidence.shape[1])
        without = self._reranker.score_evidence(self._lister, listing, evidence)
        before, after = logistic(np.array([self._judgement.scores[self._place], without[self._place]]))
        return float(1 - after / before)
