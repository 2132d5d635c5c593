"""Choose and train an aggregation on the validation split."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.ranks import target_ranks
from anyburl.triples.dataset import Dataset
from anyburl.tuning.evidence import Lists, lists_of, rows_of
from anyburl.tuning.model import TunedModel, fit, require_lightgbm
from anyburl.tuning.observations import Observations, observe
from anyburl.tuning.rerank import find_answers, reorder, rerank

TOP_K = 100  # candidates that the model puts in order; what comes after them keeps its place
MOST_QUESTIONS = 10_000  # of the validation split that the model learns from
FEW_QUESTIONS = 1_000  # that the fixed aggregations are compared on, first
N_FOLDS = 5  # of questions: with two, models learned from half as much as the last one, and scored otherwise
FEWEST_ANSWERS = 200  # listed; with less, a model would learn chance
FIXED = ("max", "noisy-or", "noisy-or-top:3", "noisy-or-top:5", "noisy-or-top:7", "noisy-or-top:10")


@dataclass(frozen=True)
class Tuning:
    """What came of tuning: a model, or None where no model was better than the best fixed aggregation."""

    model: TunedModel | None
    aggregation: str  # the best fixed one: what makes the lists that the model puts in order
    validation: dict[str, float]  # MRR on valid; that of "model" by models that have not seen the question
    questions: int
    seconds: float
    stored: bool = False  # whether it was trained before, and kept
    observations: Observations | None = None  # of the model, by models that have not seen the question

    def described(self) -> dict[str, object]:
        """Return what was chosen, and why, as plain values."""
        chosen = self.aggregation if self.model is None else "model"
        return {
            "chosen": chosen,
            "fixed": self.aggregation,
            "validation_mrr": self.validation,
            "questions": self.questions,
        }


def tune(ranker: Ranker, dataset: Dataset, groups: NDArray[np.uint8], *, seed: int = 0) -> Tuning:
    """Choose the best fixed aggregation, train a model on its lists, and keep whichever is better.

    `groups` are those of the rules, which evidence is told by.

    Only train and valid are looked at: filtering with test triples would leak. The model's own MRR comes from five
    folds of questions, each ranked by a model trained on the others: the same question may be asked in test.
    """
    started = time.perf_counter()
    require_lightgbm()
    if not len(dataset.valid):
        raise DataError(f'aggregation="tuned" learns from the valid split, and {dataset.name} has none')
    known = [dataset.train.triples, dataset.valid.triples]
    queries, _ = make_queries(dataset.valid.triples, known, dataset.vocabulary.n_relations)
    drawn = np.random.default_rng(seed).permutation(len(queries.entities))
    few = take_queries(queries, np.sort(drawn[:FEW_QUESTIONS]))
    queries = take_queries(queries, np.sort(drawn[:MOST_QUESTIONS]))
    best, _ = _best_fixed(ranker, few)
    tuning = _train(ranker.with_aggregation(best), queries, groups, seed)
    if tuning.model is None:
        best, fixed = _best_fixed(ranker, queries)
        tuning = replace(tuning, aggregation=best, validation={**tuning.validation, **fixed})
    return replace(tuning, seconds=time.perf_counter() - started)


def _best_fixed(ranker: Ranker, queries: QueryArrays) -> tuple[str, dict[str, float]]:
    """Return the fixed aggregation with the highest MRR, and the MRR of all."""
    mrr = {}
    for name in FIXED:
        answers = ranker.with_aggregation(name).answer(queries)
        mrr[name] = _mrr(queries, answers, ranker)
    return max(mrr, key=lambda name: mrr[name]), mrr


def _mrr(queries: QueryArrays, answers: AnswerArrays, ranker: Ranker) -> float:
    return float((1 / target_ranks(queries, answers, ranker.graph.n_entities).realistic).mean())


def _train(ranker: Ranker, queries: QueryArrays, groups: NDArray[np.uint8], seed: int) -> Tuning:
    """Train a model, and keep it if it is better than the ranker's own order."""
    own_name = ranker.aggregation.name
    answers = ranker.answer(queries, top_k=TOP_K, groups=groups)
    validation = {own_name: _mrr(queries, answers, ranker)}
    nothing = Tuning(None, own_name, validation, len(queries.entities), 0.0)
    lists = lists_of(answers, TOP_K)
    rows, targets = rows_of(ranker.ready, queries, answers, lists), find_answers(lists, queries)
    if (targets >= 0).sum() < FEWEST_ANSWERS:
        return nothing
    folds = np.random.default_rng(seed + 1).permutation(len(lists.sizes)) % N_FOLDS
    scores = np.zeros(len(rows))
    for fold in range(N_FOLDS):
        model = _fit_some(rows, targets, lists, folds != fold, seed, ranker.backend.threads)
        own = (folds == fold)[lists.questions]
        scores[own] = model.scores(rows[own])
    rerank(lists, queries, targets, scores, answers)
    validation["model"] = _mrr(queries, answers, ranker)
    if validation["model"] <= validation[own_name]:
        return nothing
    reorder(lists, scores, answers)
    model = _fit_some(rows, targets, lists, folds >= 0, seed, ranker.backend.threads)
    return replace(nothing, model=model, observations=observe(queries, answers, ranker.graph.n_relations))


def _fit_some(
    rows: NDArray[np.float32],
    targets: NDArray[np.int64],
    lists: Lists,
    chosen: NDArray[np.bool_],
    seed: int,
    threads: int,
) -> TunedModel:
    kept = chosen[lists.questions]
    return fit(rows[kept], targets[kept] >= 0, lists.sizes[chosen], seed, threads)
