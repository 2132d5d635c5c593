"""Chooses and trains an aggregation on held-out facts; and its file in a run folder.

A model that was read is checked, since kernels walk its trees unchecked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.writing import KeptKey, StoredValues, damaged, load_kept, save_kept
from anyburl.data.dataset import Dataset
from anyburl.models.tuned.kernel import MOST_LEAVES, ForestArrays
from anyburl.models.tuned.listing import (
    ENOUGH_QUESTIONS,
    HeldOutQuestions,
    OtherModel,
    held_out_questions,
    list_in_parts,
)
from anyburl.models.tuned.model import (
    FEW_ROUNDS,
    PARAMETERS,
    ROUNDS,
    SMALL,
    Lessons,
    TunedModel,
    fit,
    require_lightgbm,
    share_of_others,
)
from anyburl.models.tuned.observations import folds_of_other_questions, question_folds, reorder, rerank
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.options import parse_aggregation
from anyburl.ranking.queries import Ranks, take_queries, target_ranks
from anyburl.ranking.ranker import Ranker

MOST_QUESTIONS = 6_500  # to train on
MORE_QUESTIONS = 15_000  # with another model to weigh, or where there is no valid split
N_FOLDS = 3  # of questions: with two, models learned from half as much as the last one, and scored otherwise
FEW_QUESTIONS = 500  # that the fixed aggregations are compared on, first
FEWEST_ANSWERS = 200  # listed; with less, a model would learn chance
LISTERS = ("noisy-or-top:3", "noisy-or-top:5", "noisy-or-top:7", "noisy-or-top:10")  # whose lists a model reorders
FIXED = ("max", "noisy-or", *LISTERS)
WEAK = 0.005  # confidence of B rules that may be passed over: on FB15k-237 they make half of all firings
MUCH = 0.25  # of the firings have to be theirs
FEW_LOST = 0.02  # of the answers that rules predict: no more may be predicted by them alone


@dataclass(frozen=True)
class Tuning:
    """The result of tuning: a model, or None where no model was better than the best fixed aggregation."""

    model: TunedModel | None
    aggregation: str  # makes the lists that the model reorders; without a model, the best fixed one
    validation: dict[str, float]  # MRR on held-out facts; that of "model" by models that have not seen the question
    questions: int
    seconds: float
    stored: bool = False  # whether it was trained before, and kept
    by_fold: tuple[TunedModel, ...] = ()  # models that have not seen the questions of a fold, see `question_folds`
    least_binary: float = 0.0  # confidence: B rules below it do not fire for the model

    def described(self) -> dict[str, object]:
        """Return the choice and the figures behind it as plain values."""
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

    `groups` are those of the rules, by which evidence is grouped. An `other` model adds candidates and scores.

    Only train and valid are used, see `held_out_questions`. The model's own MRR comes from three folds of questions,
    each ranked by a model that was trained on the others, without the answers that are facts of this fold as well.
    """
    started = time.perf_counter()
    require_lightgbm()
    most = MOST_QUESTIONS if other is None and len(dataset.valid) else MORE_QUESTIONS
    held_out = held_out_questions(ranker, dataset, groups, most=most, seed=seed, from_train=other is None)
    first = held_out[0]
    drawn = np.random.default_rng(seed).permutation(len(first.queries.entities))
    few = take_queries(first.queries, np.sort(drawn[:FEW_QUESTIONS]))
    least, by_first = _least_binary(first.ranker, few)
    mrr = {LISTERS[0]: _mean([target_ranks(few, by_first, first.ranker.graph.n_entities)])}
    for name in FIXED:
        if name not in mrr:
            mrr[name] = _mrr(first.ranker.with_aggregation(name, least_binary=least if name in LISTERS else 0.0), few)
    best, lister = (max(names, key=lambda name: mrr[name]) for names in (FIXED, LISTERS))
    tuning = _train(held_out, lister, least, seed, other)
    for name in FIXED if tuning.model is None else (best,):
        if name not in tuning.validation:
            tuning.validation[name] = _mrr(first.ranker.with_aggregation(name), first.queries)
    best = max(tuning.validation, key=lambda name: tuning.validation[name])
    if best != "model":
        tuning = replace(tuning, model=None, by_fold=(), aggregation=best, least_binary=0.0)
    return replace(tuning, seconds=time.perf_counter() - started)


def _mrr(ranker: Ranker, queries: QueryArrays) -> float:
    return _mean([target_ranks(queries, ranker.answer(queries), ranker.graph.n_entities)])


def _mean(parts: Sequence[Ranks]) -> float:
    """Return the mean reciprocal rank over all parts."""
    return float(np.concatenate([1 / ranks.realistic for ranks in parts]).mean())


def _least_binary(ranker: Ranker, queries: QueryArrays) -> tuple[float, AnswerArrays]:
    """Return the confidence below which B rules do not fire: 0, unless they make much work for little; and the answers
    of the first of `LISTERS` with it.
    """
    every, strong = (ranker.with_aggregation(LISTERS[0], least_binary=least).answer(queries) for least in (0.0, WEAK))
    is_much = strong.n_firings.sum() <= (1 - MUCH) * every.n_firings.sum()
    loses_few = strong.fired.sum() >= (1 - FEW_LOST) * every.fired.sum()
    return (WEAK, strong) if is_much and loses_few else (0.0, every)


def _train(
    held_out: Sequence[HeldOutQuestions], lister: str, least_binary: float, seed: int, other: OtherModel | None
) -> Tuning:
    """Train a model to reorder the candidates of `lister`; it is validated on the first questions."""
    threads = held_out[0].ranker.backend.threads
    listed = [
        list_in_parts(some.ranker.with_aggregation(lister, least_binary=least_binary), some.queries, some.groups, other)
        for some in held_out
    ]
    parts, own = [part for some in listed for part in some], listed[0]
    rows = np.concatenate([part.rows for part in parts])
    is_answer = np.concatenate([part.target_rows >= 0 for part in parts])
    sizes = np.concatenate([part.lists.sizes for part in parts])
    validation = {lister: _mean([part.ranks for part in own])}
    nothing = Tuning(None, lister, validation, sum(len(some.queries.entities) for some in held_out), 0.0)
    if is_answer.sum() < FEWEST_ANSWERS:
        return nothing
    folds = np.concatenate([question_folds(part.queries.entities, part.queries.relations, N_FOLDS) for part in parts])
    n_relations = held_out[0].ranker.graph.n_relations
    other_folds = np.concatenate(
        [folds_of_other_questions(part.queries.relations, part.lists, n_relations, N_FOLDS) for part in parts]
    )
    scores = np.zeros(len(rows))
    small = len(held_out[0].queries.entities) < ENOUGH_QUESTIONS
    own_folds = np.repeat(folds, sizes)
    lessons = Lessons.of(rows, is_answer, sizes, share_of_others(len(sizes)), seed)
    in_folds, of_others = own_folds[lessons.positions], other_folds[lessons.positions]
    unseen = [(in_folds != fold) & ~((lessons.labels > 0) & (of_others == fold)) for fold in range(N_FOLDS)]
    last, *of_folds = fit(lessons, seed, threads, parts=unseen, small=small)
    for fold, model in enumerate(of_folds):
        in_fold = own_folds == fold
        scores[in_fold] = model.scores(rows[in_fold])
    judged_parts = np.split(scores, np.cumsum([len(part.rows) for part in parts])[:-1])
    for part, judged in zip(own, judged_parts, strict=False):
        rerank(part.lists, part.queries, part.target_rows, judged, part.answers)
        reorder(part.lists, judged, part.answers)
    graph = held_out[0].ranker.graph
    validation["model"] = _mean([target_ranks(part.queries, part.answers, graph.n_entities) for part in own])
    return replace(
        nothing,
        model=last,
        by_fold=tuple(of_folds),
        least_binary=least_binary,
    )


_FOREST = (np.int32, np.int32, np.float64, np.int32, np.float64)


def checked_forest(forest: ForestArrays) -> ForestArrays:
    """Return trees in which every row reaches a leaf: children come after their parents, and leaves exist."""
    arrays: tuple[NDArray[Any], ...] = tuple(forest)
    if any(array.dtype != dtype or array.ndim != 1 for array, dtype in zip(arrays, _FOREST, strict=True)):
        raise ValueError("its trees have unexpected types")
    n_nodes = len(forest.columns)
    if len(forest.thresholds) != n_nodes or len(forest.children) != 2 * n_nodes:
        raise ValueError("its trees have missing nodes")
    if forest.columns.min(initial=0) < 0:
        raise ValueError("its trees ask for a column below 0")
    parents = np.repeat(np.arange(n_nodes), 2)
    _check_links(forest.roots, np.full(len(forest.roots), -1), forest)
    _check_links(forest.children, parents, forest)
    n_leaves = np.ones(n_nodes + 1)  # below each node; the last stands for a leaf
    for node in range(n_nodes - 1, -1, -1):
        n_leaves[node] = n_leaves[np.maximum(forest.children[2 * node : 2 * node + 2], -1)].sum()
    if n_leaves[np.maximum(forest.roots, -1)].max(initial=0) > MOST_LEAVES or np.isnan(forest.thresholds).any():
        raise ValueError(f"its trees have more than {MOST_LEAVES} leaves or compare with no number")
    return forest


def _check_links(links: NDArray[np.int32], after: NDArray[np.int64], forest: ForestArrays) -> None:
    is_node = links >= 0
    within = np.where(is_node, (links > after) & (links < len(forest.columns)), links >= -len(forest.leaves))
    if not within.all():
        raise ValueError("its trees lead nowhere")


TUNED = "tuned"  # the folder in a run folder
FORMAT = 11


def tuning_key(rules: str, data: str, options: dict[str, Any]) -> KeptKey:
    """Return the cache key of a model: the rules, the data, how rules are applied, and how it is trained."""
    return KeptKey(
        rules,
        data,
        options,
        [FORMAT, ROUNDS, PARAMETERS, FEW_ROUNDS, SMALL, MOST_QUESTIONS, MORE_QUESTIONS, WEAK, MUCH, FEW_LOST],
    )


def save_tuning(run: Path, tuning: Tuning, key: KeptKey) -> Path:
    """Write the result of tuning; return the file."""
    models = [] if tuning.model is None else [tuning.model, *tuning.by_fold]
    about = {
        "aggregation": tuning.aggregation,
        "validation": tuning.validation,
        "questions": tuning.questions,
        "seconds": tuning.seconds,
        "least_binary": tuning.least_binary,
        "models": len(models),
    }
    arrays = {f"{name}_{n}": array for n, model in enumerate(models) for name, array in model.forest._asdict().items()}
    return save_kept(run / TUNED, key, StoredValues(about, arrays))


def load_tuning(run: Path, key: KeptKey, threads: int) -> Tuning | str:
    """Return the stored result of tuning, or the reason why it cannot be used: "" if there is none."""
    stored = load_kept(run / TUNED, key)
    if isinstance(stored, str):
        return stored
    about, arrays = stored.about, stored.arrays
    try:
        forests = [
            checked_forest(ForestArrays(*(arrays[f"{name}_{n}"] for name in ForestArrays._fields)))
            for n in range(int(about["models"]))
        ]
        if len(forests) not in (0, 1 + N_FOLDS):
            raise ValueError(f"{len(forests)} models")
        models = [TunedModel(forest, threads) for forest in forests]
        parse_aggregation(about["aggregation"])
        chosen = about["aggregation"], dict(about["validation"]), int(about["questions"]), float(about["seconds"])
        least_binary = float(about["least_binary"])
        if not 0 <= least_binary < 1:
            raise ValueError(f"a least confidence of {least_binary}")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        return damaged(run / TUNED / key.name, error)
    model = models[0] if models else None
    return Tuning(model, *chosen, stored=True, by_fold=tuple(models[1:]), least_binary=least_binary)
