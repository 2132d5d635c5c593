"""`TunedReranker` orders candidates by the tuned model; `FilledReranker` adds candidates that no rule predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.models.tuned.fallback import Fallback
from anyburl.models.tuned.listing import Listing, Opinion, OtherModel, answer_in_parts, joined_columns, list_candidates
from anyburl.models.tuned.model import TunedModel
from anyburl.models.tuned.observations import (
    Floats,
    Lists,
    find_answers,
    lists_of,
    question_folds,
    reorder,
    rerank,
    rows_of,
)
from anyburl.models.tuned.train import Tuning
from anyburl.ranking.arrays import AnswerArrays, QueryArrays, empty_answers
from anyburl.ranking.options import Aggregation, parse_aggregation
from anyburl.ranking.ranker import Progress, Ranker

MOST_CANDIDATES = 1000  # of the rules: after more, nothing is added


@dataclass(frozen=True)
class FilledReranker:
    """Keeps the order of `aggregation`; entities that no rule predicts follow, in the order of the fallback."""

    aggregation: Aggregation
    fallback: Fallback

    def answer(
        self, lister: Ranker, queries: QueryArrays, *, top_k: int, keep_known: bool, progress: Progress | None
    ) -> AnswerArrays:
        """Answer queries, many of them in parts."""

        def answer(part: QueryArrays) -> AnswerArrays:
            answers = lister.answer(part, top_k=max(top_k, MOST_CANDIDATES), keep_known=keep_known, progress=progress)
            return fill(answers, lister, part, self.fallback)

        return joined_answers(lister, queries, top_k, answer)


def fill(answers: AnswerArrays, lister: Ranker, queries: QueryArrays, fallback: Fallback) -> AnswerArrays:
    """Return answers with more candidates at the end, where all candidates of the rules are listed."""
    width = answers.best.shape[1]
    lists = lists_of(answers, width)
    opinion = Opinion.of(fallback, lister.ready, queries, lists.sizes < width)
    opinion.rank_the_rest(lists, queries, find_answers(lists, queries), answers)
    return opinion.add_candidates(answers, lists)[0]


def joined_answers(
    lister: Ranker, queries: QueryArrays, top_k: int, answer: Callable[[QueryArrays], AnswerArrays]
) -> AnswerArrays:
    """Call `answer` with some queries at a time; return the answers to all."""
    out = empty_answers(len(queries.entities), len(queries.targets), top_k)
    for chosen, part in answer_in_parts(lister, queries, answer):
        _copy(part, out, chosen, queries.target_offsets, top_k)
    return out


def _copy(
    part: AnswerArrays, out: AnswerArrays, chosen: NDArray[np.int64], offsets: NDArray[np.int64], top_k: int
) -> None:
    """Copy the answers of some queries to those of all."""
    queries, targets = slice(chosen[0], chosen[-1] + 1), slice(offsets[chosen[0]], offsets[chosen[-1] + 1])
    for name in ("fired", "better", "equal", "target_rules"):
        getattr(out, name)[targets] = getattr(part, name)
    for name in ("n_candidates", "n_excluded", "n_firings"):
        getattr(out, name)[queries] = getattr(part, name)
    for name in ("best", "best_keys", "best_rules", "best_counts"):
        getattr(out, name)[queries] = getattr(part, name)[:, :top_k]
    out.n_best[queries] = np.minimum(part.n_best, top_k)


@dataclass(frozen=True)
class Judgement:
    """The candidates that the model reorders, and its score for each."""

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
    """Lists candidates by the best fixed aggregation and reorders them by the model, if there is one."""

    tuning: Tuning
    groups: NDArray[np.uint8]  # the group of each rule, by which evidence is grouped
    other: OtherModel | None = None  # whose candidates and scores are features as well
    unseen: bool = False  # whether each question is judged by a model that was trained without it
    _fallbacks: dict[int, Fallback] = field(default_factory=dict, repr=False, compare=False)

    @property
    def aggregation(self) -> Aggregation:
        return replace(parse_aggregation(self.tuning.aggregation), least_binary=self.tuning.least_binary)

    @property
    def model(self) -> TunedModel | None:
        return self.tuning.model

    def fallback(self, lister: Ranker) -> Fallback:
        """Return the fallback of the graph of `lister`, which is cached."""
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

        return joined_answers(lister, queries, top_k, answer)

    def judge(
        self,
        lister: Ranker,
        queries: QueryArrays,
        top_k: int,
        keep_known: bool = False,
        progress: Progress | None = None,
    ) -> Judgement:
        """Answer a few queries by the model, all at once: at least as many candidates as it reorders."""
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
        scores = self.scores(listing.rows, queries, listing.lists)
        rerank(listing.lists, queries, listing.target_rows, scores, listing.answers)
        reorder(listing.lists, scores, listing.answers)
        return Judgement(listing, scores)

    def scores(self, rows: Floats, queries: QueryArrays, lists: Lists) -> NDArray[np.float64]:
        """Return the model's scores of listed candidates, given their features.

        Where questions are unseen, facts of different questions are to be compared, which a ranking is not trained for:
        how far a candidate is behind the best one of its question counts as well.
        """
        assert self.model is not None
        if not self.unseen:
            return self.model.scores(rows)
        models, scores = self.tuning.by_fold or (self.model,), np.empty(len(rows))
        folds = question_folds(queries.entities, queries.relations, len(models))[lists.questions]
        for fold, model in enumerate(models):
            scores[folds == fold] = model.scores(rows[folds == fold])
        return scores - behind_best(scores, lists)

    def in_one_thread(self) -> TunedReranker:
        """Return a copy whose models use no threads, to be called in one."""
        tuning, models = self.tuning, tuple(replace(model, threads=1) for model in self.tuning.by_fold)
        last = None if tuning.model is None else replace(tuning.model, threads=1)
        return replace(self, tuning=replace(tuning, model=last, by_fold=models), _fallbacks={})

    def score_evidence(self, lister: Ranker, listing: Listing, evidence: Floats) -> NDArray[np.float64]:
        """Return the model's scores of the listed candidates for other evidence."""
        assert self.model is not None
        lists = replace(listing.lists, evidence=evidence)
        more = joined_columns(listing.fits, listing.more)
        rows = rows_of(lister.ready, listing.queries, listing.answers, lists, more)
        return self.scores(rows, listing.queries, lists)


def behind_best(scores: NDArray[np.float64], lists: Lists) -> NDArray[np.float64]:
    """Return how much lower the score of each candidate is than the highest of those in its list that rules predict."""
    best, predicted = np.full(len(lists.sizes), -np.inf), lists.evidence.any(axis=1)
    np.maximum.at(best, lists.questions[predicted], scores[predicted])
    return np.asarray(np.maximum(best[lists.questions] - scores, 0.0), np.float64)


def unseeing(ranker: Ranker) -> Ranker:
    """Return a ranker that answers each question by models that were trained without it.

    A model knows the answers that it was trained on, and takes other true answers to the same questions for wrong: its
    scores of facts that were held out, and of facts that are missing, would not mean the same.
    """
    if not isinstance(ranker.reranker, TunedReranker):
        return ranker
    return replace(ranker, reranker=replace(ranker.reranker, unseen=True))
