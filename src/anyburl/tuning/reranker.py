"""`TunedReranker`: orders candidates by the model that tuning chose."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.aggregation import Aggregation, parse_aggregation
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.backends.base import Progress
from anyburl.ranking.ranker import Ranker
from anyburl.tuning.evidence import Floats, Lists, rows_of
from anyburl.tuning.fallback import Fallback
from anyburl.tuning.filled import FilledReranker, answer_in_parts
from anyburl.tuning.listing import Listing, joined_columns, list_candidates
from anyburl.tuning.model import TunedModel
from anyburl.tuning.opinion import OtherModel
from anyburl.tuning.rerank import reorder, rerank
from anyburl.tuning.train import Tuning


@dataclass(frozen=True)
class Judgement:
    """The candidates that the model puts in order, and its score for each."""

    listing: Listing
    scores: NDArray[np.float64]

    @property
    def answers(self) -> AnswerArrays:
        return self.listing.answers

    @property
    def lists(self) -> Lists:
        return self.listing.lists


@dataclass(frozen=True)
class TunedReranker:
    """Lists candidates by the best fixed aggregation and puts them in the order of the model, if there is one."""

    tuning: Tuning
    groups: NDArray[np.uint8]  # the group of each rule, by which evidence is grouped
    other: OtherModel | None = None  # whose candidates and scores the model knows as well
    _fallbacks: dict[int, Fallback] = field(default_factory=dict, repr=False, compare=False)

    @property
    def aggregation(self) -> Aggregation:
        return replace(parse_aggregation(self.tuning.aggregation), least_binary=self.tuning.least_binary)

    @property
    def model(self) -> TunedModel | None:
        return self.tuning.model

    def fallback(self, lister: Ranker) -> Fallback:
        """Return what scores answers without a rule on the graph that is asked; what it counts there is kept."""
        return self._fallbacks.setdefault(id(lister.graph), Fallback(lister.graph, lister.backend.threads))

    def answer(
        self, lister: Ranker, queries: QueryArrays, *, top_k: int, keep_known: bool, progress: Progress | None
    ) -> AnswerArrays:
        """Answer queries, many of them in parts."""
        if self.model is None:
            filled = FilledReranker(self.aggregation, self.fallback(lister))
            return filled.answer(lister, queries, top_k=top_k, keep_known=keep_known, progress=progress)

        def answer(part: QueryArrays) -> AnswerArrays:
            return self.judge(lister, part, top_k, keep_known, progress).answers

        return answer_in_parts(queries, top_k, lister.graph.n_entities, answer)

    def judge(
        self,
        lister: Ranker,
        queries: QueryArrays,
        top_k: int,
        keep_known: bool = False,
        progress: Progress | None = None,
    ) -> Judgement:
        """Answer a few queries, all at once, by the model: at least as many candidates as it puts in order."""
        assert self.model is not None
        listing = list_candidates(
            lister,
            queries,
            self.groups,
            self.fallback(lister),
            self.other,
            top_k=top_k,
            keep_known=keep_known,
            progress=progress,
        )
        scores = self.model.scores(listing.rows)
        rerank(listing.lists, queries, listing.found, scores, listing.answers)
        reorder(listing.lists, scores, listing.answers)
        return Judgement(listing, scores)

    def score_evidence(self, lister: Ranker, listing: Listing, evidence: Floats) -> NDArray[np.float64]:
        """Return what the model would say of the listed candidates if rules gave other evidence."""
        assert self.model is not None
        lists = replace(listing.lists, evidence=evidence)
        more = joined_columns(listing.fits, listing.more)
        return self.model.scores(rows_of(lister.ready, listing.queries, listing.answers, lists, more))
