"""Chooses and trains an aggregation on held-out facts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.data.dataset import Dataset
from anyburl.models.tuned.listing import ENOUGH_QUESTIONS, HeldOutQuestions, Listing, held_out_questions, list_in_parts
from anyburl.models.tuned.model import TunedModel, fit, require_lightgbm, share_of_others
from anyburl.models.tuned.observations import Floats, Observations, join_observations, observe, reorder, rerank
from anyburl.models.tuned.opinion import OtherModel
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.queries import Ranks, take_queries, target_ranks
from anyburl.ranking.ranker import Ranker

MOST_QUESTIONS = 6_500  # that the model learns from
MORE_QUESTIONS = 15_000  # with another model to weigh, or where there is no valid split
FEW_QUESTIONS = 500  # that the fixed aggregations are compared on, first
N_FOLDS = 3  # of questions: with two, models learned from half as much as the last one, and scored otherwise
FEWEST_ANSWERS = 200  # listed; with less, a model would learn chance
LISTERS = ("noisy-or-top:3", "noisy-or-top:5", "noisy-or-top:7", "noisy-or-top:10")  # what a model puts in order
FIXED = ("max", "noisy-or", *LISTERS)
WEAK = 0.005  # confidence of B rules that may be passed over: on FB15k-237 they make half of all firings
MUCH = 0.25  # of the firings have to be theirs
FEW_LOST = 0.02  # of the answers that rules predict: no more may be predicted by them alone


@dataclass(frozen=True)
class Tuning:
    """What came of tuning: a model, or None where no model was better than the best fixed aggregation."""

    model: TunedModel | None
    aggregation: str  # what makes the lists that the model puts in order; without a model, the best fixed one
    validation: dict[str, float]  # MRR on held-out facts; that of "model" by models that have not seen the question
    questions: int
    seconds: float
    stored: bool = False  # whether it was trained before, and kept
    observations: Observations | None = None  # of the model, by models that have not seen the question
    facts: int = 0  # that were asked for to make the observations
    least_binary: float = 0.0  # confidence: B rules below it do not fire for the model

    def described(self) -> dict[str, object]:
        """Return what was chosen, and why, as plain values."""
        chosen = self.aggregation if self.model is None else "model"
        return {
            "chosen": chosen,
            "fixed": self.aggregation,
            "validation_mrr": self.validation,
            "questions": self.questions,
        }


def tune(
    ranker: Ranker, dataset: Dataset, groups: NDArray[np.uint8], *, seed: int = 0, other: OtherModel | None = None
) -> Tuning:
    """Train a model on lists of the best noisy-or-top, and keep it or the best fixed aggregation: whichever is better.

    `groups` are those of the rules, by which evidence is grouped. An `other` model adds candidates, and says what it
    thinks of all of them.

    Only train and valid are looked at, see `held_out_questions`. The model's own MRR comes from three folds of
    questions, each ranked by a model trained on the others: the same question may be asked in test.
    """
    started = time.perf_counter()
    require_lightgbm()
    most = MOST_QUESTIONS if other is None and len(dataset.valid) else MORE_QUESTIONS
    held_out = held_out_questions(ranker, dataset, groups, most=most, seed=seed, from_train=other is None)
    first = held_out[0]
    drawn = np.random.default_rng(seed).permutation(len(first.queries.entities))
    few = take_queries(first.queries, np.sort(drawn[:FEW_QUESTIONS]))
    least = _least_binary(first.ranker, few)
    mrr = {
        name: _mrr(first.ranker.with_aggregation(name, least_binary=least if name in LISTERS else 0.0), few)
        for name in FIXED
    }
    best, lister = (max(names, key=lambda name: mrr[name]) for names in (FIXED, LISTERS))
    tuning = _train(held_out, lister, least, seed, other)
    for name in FIXED if tuning.model is None else (best,):
        if name not in tuning.validation:
            tuning.validation[name] = _mrr(first.ranker.with_aggregation(name), first.queries)
    best = max(tuning.validation, key=lambda name: tuning.validation[name])
    if best != "model":
        tuning = replace(tuning, model=None, observations=None, facts=0, aggregation=best, least_binary=0.0)
    return replace(tuning, seconds=time.perf_counter() - started)


def _mrr(ranker: Ranker, queries: QueryArrays) -> float:
    return _mean([target_ranks(queries, ranker.answer(queries), ranker.graph.n_entities)])


def _mean(parts: Sequence[Ranks]) -> float:
    """Return the mean reciprocal rank over all parts."""
    return float(np.concatenate([1 / ranks.realistic for ranks in parts]).mean())


def _least_binary(ranker: Ranker, queries: QueryArrays) -> float:
    """Return the confidence below which B rules are passed over: much work, for answers that others predict, too."""
    every, strong = (ranker.with_aggregation(LISTERS[0], least_binary=least).answer(queries) for least in (0.0, WEAK))
    is_much = strong.n_firings.sum() <= (1 - MUCH) * every.n_firings.sum()
    loses_few = strong.fired.sum() >= (1 - FEW_LOST) * every.fired.sum()
    return WEAK if is_much and loses_few else 0.0


def _train(
    held_out: Sequence[HeldOutQuestions], lister: str, least_binary: float, seed: int, other: OtherModel | None
) -> Tuning:
    """Train a model to put the candidates of `lister` in order; the first questions tell how well it does."""
    threads = held_out[0].ranker.backend.threads
    listed = [
        list_in_parts(some.ranker.with_aggregation(lister, least_binary=least_binary), some.queries, some.groups, other)
        for some in held_out
    ]
    parts, own = [part for some in listed for part in some], listed[0]
    examples = Examples.of(parts, small=len(held_out[0].queries.entities) < ENOUGH_QUESTIONS)
    validation = {lister: _mean([part.ranks for part in own])}
    nothing = Tuning(None, lister, validation, sum(len(some.queries.entities) for some in held_out), 0.0)
    if examples.is_answer.sum() < FEWEST_ANSWERS:
        return nothing
    folds = np.random.default_rng(seed + 1).permutation(len(examples.sizes)) % N_FOLDS
    scores = np.zeros(len(examples.rows))
    last, *of_folds = examples.fit_all([folds >= 0, *(folds != fold for fold in range(N_FOLDS))], seed, threads)
    for fold, model in enumerate(of_folds):
        in_fold = examples.of_questions(folds == fold)
        scores[in_fold] = model.scores(examples.rows[in_fold])
    judged_parts = np.split(scores, np.cumsum([len(part.rows) for part in parts])[:-1])
    for part, judged in zip(own, judged_parts, strict=False):
        rerank(part.lists, part.queries, part.found, judged, part.answers)
        reorder(part.lists, judged, part.answers)
    graph = held_out[0].ranker.graph
    validation["model"] = _mean([target_ranks(part.queries, part.answers, graph.n_entities) for part in own])
    observations = [observe(part.queries, part.answers, graph.n_relations) for part in own]
    return replace(
        nothing,
        model=last,
        observations=join_observations(observations),
        facts=held_out[0].n_facts,
        least_binary=least_binary,
    )


@dataclass(frozen=True)
class Examples:
    """What a model learns from: rows of candidates, list after list."""

    rows: Floats
    is_answer: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    small: bool  # whether there is little to learn from

    @classmethod
    def of(cls, parts: Sequence[Listing], *, small: bool) -> Examples:
        """Join the candidates of all parts."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.found >= 0 for part in parts]),
            np.concatenate([part.lists.sizes for part in parts]),
            small,
        )

    def of_questions(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows belong to the chosen lists."""
        return np.repeat(chosen, self.sizes)

    def fit_all(self, parts: Sequence[NDArray[np.bool_]], seed: int, threads: int) -> list[TunedModel]:
        """Train one model on each part of the lists, as many at a time as there are threads."""

        def train(chosen: NDArray[np.bool_]) -> TunedModel:
            kept, own_threads = self.of_questions(chosen), max(1, threads // len(parts))
            lists = self.rows[kept], self.is_answer[kept], self.sizes[chosen]
            found = fit(*lists, seed, own_threads, share=share_of_others(len(self.sizes)), small=self.small)
            return replace(found, threads=threads)

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(train, parts))
