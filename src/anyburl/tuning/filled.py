"""`FilledReranker`: a fixed aggregation, followed by candidates that fit without a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.aggregation import Aggregation
from anyburl.ranking.arrays import AnswerArrays, QueryArrays, empty_answers
from anyburl.ranking.backends.base import Progress
from anyburl.ranking.queries import take_queries
from anyburl.ranking.ranker import Ranker
from anyburl.tuning.evidence import lists_of
from anyburl.tuning.fallback import Fallback
from anyburl.tuning.listing import parts_of
from anyburl.tuning.opinion import Opinion
from anyburl.tuning.rerank import find_answers

MOST_CANDIDATES = 1000  # of the rules: behind more, nothing is added


@dataclass(frozen=True)
class FilledReranker:
    """Keeps the order of `aggregation`; what no rule predicts comes after it, in the order of the fallback."""

    aggregation: Aggregation
    fallback: Fallback

    def answer(
        self, lister: Ranker, queries: QueryArrays, *, top_k: int, keep_known: bool, progress: Progress | None
    ) -> AnswerArrays:
        """Answer queries, many of them in parts."""

        def answer(part: QueryArrays) -> AnswerArrays:
            answers = lister.answer(part, top_k=max(top_k, MOST_CANDIDATES), keep_known=keep_known, progress=progress)
            return fill(answers, lister, part, self.fallback)

        return answer_in_parts(queries, top_k, lister.graph.n_entities, answer)


def fill(answers: AnswerArrays, lister: Ranker, queries: QueryArrays, fallback: Fallback) -> AnswerArrays:
    """Return answers with more of them behind, where all candidates of the rules are listed."""
    width = answers.best.shape[1]
    lists = lists_of(answers, width)
    opinion = Opinion.of(fallback, lister.ready, queries, lists.sizes < width)
    opinion.rank_the_rest(lists, queries, find_answers(lists, queries), answers)
    return opinion.add_candidates(answers, lists)[0]


def answer_in_parts(
    queries: QueryArrays, top_k: int, n_entities: int, answer: Callable[[QueryArrays], AnswerArrays]
) -> AnswerArrays:
    """Let `answer` answer some queries at a time; return the answers to all."""
    n_queries = len(queries.entities)
    out = empty_answers(n_queries, len(queries.targets), top_k)
    for chosen in parts_of(n_queries, n_entities):
        part = answer(take_queries(queries, chosen))
        _copy(part, out, chosen, queries.target_offsets, top_k)
    return out


def _copy(
    part: AnswerArrays, out: AnswerArrays, chosen: NDArray[np.int64], offsets: NDArray[np.int64], top_k: int
) -> None:
    """Write the answers of some queries to their place among all."""
    queries, targets = slice(chosen[0], chosen[-1] + 1), slice(offsets[chosen[0]], offsets[chosen[-1] + 1])
    for name in ("fired", "better", "equal", "target_rules"):
        getattr(out, name)[targets] = getattr(part, name)
    for name in ("n_candidates", "n_excluded", "n_firings"):
        getattr(out, name)[queries] = getattr(part, name)
    for name in ("best", "best_keys", "best_rules", "best_counts"):
        getattr(out, name)[queries] = getattr(part, name)[:, :top_k]
    out.n_best[queries] = np.minimum(part.n_best, top_k)
