"""The candidates of queries, with all their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.backends.base import Progress
from anyburl.ranking.queries import take_queries
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.ranks import Ranks, target_ranks
from anyburl.tuning.evidence import Floats, Lists, lists_of, rows_of
from anyburl.tuning.fallback import Fallback
from anyburl.tuning.opinion import Opinion, OtherModel
from anyburl.tuning.rerank import find_answers

TOP_K = 100  # candidates of the rules that the model puts in order; what comes after them keeps its place
SHORT = 50  # lists with fewer candidates are filled with those that fit without a rule
MOST_SCORES = 1 << 26  # of all entities, held in memory at a time
QUESTIONS_AT_A_TIME = 1024  # what is known of their candidates is held in memory


@dataclass(frozen=True)
class Listing:
    """The answers of some queries, the candidates that the model puts in order, and a row for each.

    `found` is the place of each candidate among the targets, or -1; `fits` are the columns that no rule is needed for,
    `more` those of another model; `ranks` are those of the targets by rules alone, before any model.
    """

    queries: QueryArrays
    answers: AnswerArrays
    lists: Lists
    found: NDArray[np.int64]
    rows: Floats
    fits: Floats
    more: Floats | None
    ranks: Ranks


def list_candidates(
    lister: Ranker,
    queries: QueryArrays,
    groups: NDArray[np.uint8],
    fallback: Fallback,
    other: OtherModel | None = None,
    *,
    top_k: int = 0,
    keep_known: bool = False,
    progress: Progress | None = None,
) -> Listing:
    """Let `lister` answer queries, all at once: at least as many candidates as the model puts in order.

    The best candidates of the `other` model are put behind those of the rules; without one, those of the `fallback`
    are where rules predict few.
    """
    answers = lister.answer(queries, top_k=max(TOP_K, top_k), keep_known=keep_known, groups=groups, progress=progress)
    lists = lists_of(answers, TOP_K)
    ranks = target_ranks(queries, answers, lister.graph.n_entities)
    asked = (lists.sizes < SHORT) | (other is not None)
    opinion = Opinion.of(fallback if other is None else other, lister.ready, queries, asked)
    answers, lists = opinion.add_candidates(answers, lists)
    found = find_answers(lists, queries)
    opinion.rank_the_rest(lists, queries, found, answers)
    fits = fallback.columns(queries.entities, queries.relations, lists.questions, lists.candidates)
    more = None if other is None else opinion.columns(lists)
    rows = rows_of(lister.ready, queries, answers, lists, joined_columns(fits, more))
    return Listing(queries, answers, lists, found, rows, fits, more, ranks)


def joined_columns(fits: Floats, more: Floats | None) -> Floats:
    """Return all columns that are not told by rules."""
    return fits if more is None else np.column_stack([fits, more])


def parts_of(n_queries: int, n_entities: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of queries to be answered at a time."""
    size = max(1, min(QUESTIONS_AT_A_TIME, MOST_SCORES // max(1, n_entities)))
    for start in range(0, n_queries, size):
        yield np.arange(start, min(start + size, n_queries))


def list_in_parts(
    lister: Ranker, queries: QueryArrays, groups: NDArray[np.uint8], other: OtherModel | None
) -> list[Listing]:
    """List the candidates of many queries, in parts."""
    rows = parts_of(len(queries.entities), lister.graph.n_entities)
    fallback = Fallback(lister.graph, lister.backend.threads)
    return [list_candidates(lister, take_queries(queries, part), groups, fallback, other) for part in rows]
