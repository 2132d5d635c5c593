"""Choose and train an aggregation on the validation split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.ranks import Ranks, target_ranks
from anyburl.triples.dataset import Dataset
from anyburl.tuning.features import Lists, candidate_lists
from anyburl.tuning.model import TunedModel, fit
from anyburl.tuning.rerank import find_answers, rerank

TOP_K = 100  # candidates that the model puts in order; what comes after them keeps its place
MOST_QUESTIONS = 10_000  # of the validation split that the model learns from
FIXED = ("max", "noisy-or", "noisy-or-top:3", "noisy-or-top:5", "noisy-or-top:7", "noisy-or-top:10", "noisy-or-top:20")


@dataclass(frozen=True)
class Tuning:
    """What came of tuning: a model, or None where no model was better than the best fixed aggregation."""

    model: TunedModel | None
    aggregation: str  # the best fixed one
    validation: dict[str, float]  # MRR on validation; that of "tuned" by models that have not seen the question

    def described(self) -> dict[str, object]:
        """Return what was chosen, and why, as plain values."""
        return {"chosen": self.aggregation if self.model is None else "model", "validation_mrr": self.validation}


def tune(ranker: Ranker, dataset: Dataset, *, seed: int = 0) -> Tuning:
    """Train on the validation split and compare with the fixed aggregations.

    Only train and valid are looked at: filtering with test triples would leak. The model's own figure comes from two
    halves, split by question, each ranked by a model trained on the other: the same question may be asked in test.
    """
    if not len(dataset.valid):
        raise DataError(f'aggregation="tuned" learns from the valid split, and {dataset.name} has none')
    known = [dataset.train.triples, dataset.valid.triples]
    queries, _ = make_queries(dataset.valid.triples, known, dataset.vocabulary.n_relations)
    rng = np.random.default_rng(seed)
    queries = take_queries(queries, np.sort(rng.permutation(len(queries.entities))[:MOST_QUESTIONS]))
    lists = list(candidate_lists(ranker, queries, TOP_K))
    answers = [find_answers(part, queries) for part in lists]
    validation = {name: _mrr(_ranks(ranker.with_aggregation(name), queries)) for name in FIXED}
    best = max(validation, key=lambda name: validation[name])
    ranks = _ranks(ranker.with_aggregation("noisy-or"), queries)
    half = rng.permutation(len(lists)) % 2
    for side in (0, 1):
        model = _fit_some(lists, answers, half != side, seed, ranker.threads)
        for number in np.flatnonzero(half == side):
            rerank(ranks, lists[number], answers[number], model)
    validation["tuned"] = _mrr(ranks)
    if validation["tuned"] <= validation[best]:
        return Tuning(None, best, validation)
    return Tuning(_fit_some(lists, answers, half >= 0, seed, ranker.threads), best, validation)


def _fit_some(
    lists: list[Lists], answers: list[NDArray[np.int64]], chosen: NDArray[np.bool_], seed: int, threads: int
) -> TunedModel:
    numbers = np.flatnonzero(chosen)
    labels = [(answers[number] >= 0).astype(np.int8) for number in numbers]
    return fit([lists[number] for number in numbers], labels, seed, threads)


def _ranks(ranker: Ranker, queries: QueryArrays) -> Ranks:
    return target_ranks(queries, ranker.answer(queries), ranker.graph.n_entities)


def _mrr(ranks: Ranks) -> float:
    return float((1 / ranks.realistic).mean())


def tuned_ranks(ranker: Ranker, tuning: Tuning, queries: QueryArrays, ranks: Ranks) -> Ranks:
    """Return the ranks of the targets under what tuning chose; `ranks` are those by noisy-or."""
    if tuning.model is None:
        return _ranks(ranker.with_aggregation(tuning.aggregation), queries)
    for part in candidate_lists(ranker, queries, TOP_K):
        rerank(ranks, part, find_answers(part, queries), tuning.model)
    return ranks
