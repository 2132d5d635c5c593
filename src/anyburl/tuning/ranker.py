"""`TunedRanker`: answers queries by what tuning chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import AnswerArrays, QueryArrays, empty_answers
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import take_queries
from anyburl.ranking.ranker import NO_GROUPS, Ranker, fixed_ranker
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.tuning.evidence import Lists, lists_of, rows_of, rule_groups
from anyburl.tuning.rerank import find_answers, reorder, rerank
from anyburl.tuning.train import TOP_K, Tuning, tune

QUESTIONS_AT_A_TIME = 1024  # what is known of their candidates is held in memory


@dataclass(frozen=True)
class Judgement:
    """The answers of some queries, the candidates that the model puts in order, and its score for each."""

    answers: AnswerArrays
    lists: Lists
    scores: NDArray[np.float64]


class TunedRanker(Ranker):
    """A ranker whose best candidates are put in order by a model, where tuning found that this is better."""

    def __init__(self, base: Ranker, tuning: Tuning) -> None:
        self.__dict__.update(base.__dict__)
        self._base, self.tuning = base, tuning
        self._fixed = base.with_aggregation(tuning.aggregation)  # which may answer elsewhere
        self.groups = rule_groups(base.rules)

    @property
    def fixed_aggregation(self) -> str:
        return self.tuning.aggregation

    def with_aggregation(self, aggregation: str) -> Ranker:
        return self if aggregation == "tuned" else self._base.with_aggregation(aggregation)

    def answer(
        self,
        queries: QueryArrays,
        *,
        top_k: int = 0,
        progress: Callable[[int], None] | None = None,
        groups: NDArray[np.uint8] = NO_GROUPS,
    ) -> AnswerArrays:
        if self.tuning.model is None:
            return self._fixed.answer(queries, top_k=top_k, progress=progress, groups=groups)
        n_queries = len(queries.entities)
        out = empty_answers(n_queries, len(queries.targets), top_k)
        for start in range(0, n_queries, QUESTIONS_AT_A_TIME):
            chosen = np.arange(start, min(start + QUESTIONS_AT_A_TIME, n_queries))
            part = self.judge(take_queries(queries, chosen), top_k, progress).answers
            first, last = queries.target_offsets[chosen[0]], queries.target_offsets[chosen[-1] + 1]
            _copy(part, out, slice(chosen[0], chosen[-1] + 1), slice(first, last), top_k)
        return out

    def judge(self, queries: QueryArrays, top_k: int, progress: Callable[[int], None] | None = None) -> Judgement:
        """Answer a few queries, all at once, by the model: at least as many candidates as it puts in order."""
        longest = max(TOP_K, top_k)
        answers = self._fixed.answer(queries, top_k=longest, progress=progress, groups=self.groups)
        lists = lists_of(answers, TOP_K)
        scores = self.score_lists(queries, answers, lists)
        rerank(lists, queries, find_answers(lists, queries), scores, answers)
        reorder(lists, scores, answers)
        return Judgement(answers, lists, scores)

    def score_lists(self, queries: QueryArrays, answers: AnswerArrays, lists: Lists) -> NDArray[np.float64]:
        """Return what the model says of the listed candidates."""
        assert self.tuning.model is not None
        return self.tuning.model.scores(rows_of(self, queries, answers, lists))


def _copy(part: AnswerArrays, out: AnswerArrays, queries: slice, targets: slice, top_k: int) -> None:
    """Write the answers of some queries to their place among all."""
    for name in ("fired", "better", "equal", "best_rules"):
        getattr(out, name)[targets] = getattr(part, name)
    for name in ("n_candidates", "n_excluded", "n_firings"):
        getattr(out, name)[queries] = getattr(part, name)
    out.best[queries], out.best_keys[queries] = part.best[:, :top_k], part.best_keys[:, :top_k]
    out.n_best[queries] = np.minimum(part.n_best, top_k)


def tuned(ranker: Ranker, dataset: Dataset, *, seed: int = 0) -> Ranker:
    """Return the ranker as its options ask for: tuned on the validation split, if they say so and it is not yet."""
    if ranker.options.aggregation != "tuned" or isinstance(ranker, TunedRanker):
        return ranker
    return TunedRanker(ranker, tune(ranker, dataset, seed=seed))


def make_ranker(
    rules: RuleSet, dataset: Dataset, options: RankOptions | None = None, *, seed: int = 0, **changes: Any
) -> Ranker:
    """Make rules of any vocabulary ready on the train split of `dataset`, to answer any number of queries.

    Rules with unknown labels are left out. With `aggregation="tuned"`, it is tuned on the validation split; only
    there does `seed` matter.
    """
    return tuned(fixed_ranker(rules, dataset, replace(options or RankOptions(), **changes)), dataset, seed=seed)
