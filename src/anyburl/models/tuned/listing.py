"""The candidates of queries, with all their features.

The questions that a model learns from: those of the valid split, and hidden facts of train.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.bodies.rescore import rescore
from anyburl.data.dataset import Dataset
from anyburl.data.table import TripleTable
from anyburl.graph.stored import graph_of
from anyburl.models.tuned.fallback import Fallback
from anyburl.models.tuned.observations import Floats, Lists, find_answers, lists_of, rows_of
from anyburl.models.tuned.opinion import Opinion, OtherModel
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.backend import Progress
from anyburl.ranking.queries import Ranks, joins_unconnected, make_queries, take_queries, target_ranks
from anyburl.ranking.ranker import Ranker, make_ranker

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


def query_slices(n_queries: int, n_entities: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of queries to be answered at a time."""
    size = max(1, min(QUESTIONS_AT_A_TIME, MOST_SCORES // max(1, n_entities)))
    for start in range(0, n_queries, size):
        yield np.arange(start, min(start + size, n_queries))


def list_in_parts(
    lister: Ranker, queries: QueryArrays, groups: NDArray[np.uint8], other: OtherModel | None
) -> list[Listing]:
    """List the candidates of many queries, in parts."""
    rows = query_slices(len(queries.entities), lister.graph.n_entities)
    fallback = Fallback(lister.graph, lister.backend.threads)
    return [list_candidates(lister, take_queries(queries, part), groups, fallback, other) for part in rows]


ENOUGH_QUESTIONS = 1_500  # of the valid split: with fewer, facts of train are asked for as well
FEWEST_FOLDS = 10  # of train; there are more of a large one, since a graph that misses less is more like the whole
QUESTIONS_PER_FACT = 1.5  # or more: two, but for facts that answer the same question
MOST_FOLDS = 3  # that are asked for

Groups = NDArray[np.uint8]


@dataclass(frozen=True)
class HeldOutQuestions:
    """Questions whose answers `ranker` has not seen."""

    ranker: Ranker
    queries: QueryArrays
    groups: Groups
    n_facts: int

    def some(self, rows: NDArray[np.int64]) -> HeldOutQuestions:
        """Return some of the questions."""
        return replace(self, queries=take_queries(self.queries, rows))


def held_out_questions(
    ranker: Ranker, dataset: Dataset, groups: Groups, *, most: int, seed: int, from_train: bool = True
) -> list[HeldOutQuestions]:
    """Return at most `most` questions: those of the valid split and, where these are few, of folds of train.

    Only train and valid are looked at: filtering with test triples would leak. Without `from_train`, for a model that
    has seen all of train, valid must be enough.
    """
    rng, found = np.random.default_rng(seed), []
    train, valid = dataset.train.triples, dataset.valid.triples
    if len(valid):
        queries, _ = make_queries(valid, [train, valid], dataset.vocabulary.n_relations)
        drawn = np.sort(rng.permutation(len(queries.entities))[:most])
        found.append(HeldOutQuestions(ranker, queries, groups, len(valid)).some(drawn))
    can_be_hidden = np.ones(len(train), np.bool_)
    if ranker.block_connected:  # answers that are connected would be blocked: the facts to come are not
        can_be_hidden = joins_unconnected(train)
    n_folds = max(FEWEST_FOLDS, int(QUESTIONS_PER_FACT * can_be_hidden.sum()) // most)
    folds = np.where(can_be_hidden, np.random.default_rng(seed).permutation(len(train)) % n_folds, n_folds)
    enough = min(ENOUGH_QUESTIONS, most) if len(valid) else most
    for fold in range(MOST_FOLDS if from_train else 0):
        n_found, chosen = sum(len(part.queries.entities) for part in found), folds == fold
        if n_found >= enough or not chosen.any() or chosen.all():
            break
        hidden = hide(ranker, dataset.train, chosen, groups)
        drawn = np.sort(rng.permutation(len(hidden.queries.entities))[: most - n_found])
        found.append(hidden.some(drawn))
    if not found:
        lacks = "too few facts" if from_train else "no valid split"
        raise DataError(f"tuning needs held-out facts, and {dataset.name} has {lacks}")
    return found


def hide(ranker: Ranker, train: TripleTable, chosen: NDArray[np.bool_], groups: Groups) -> HeldOutQuestions:
    """Ask for some facts of train, with rules that are counted, and fire, on the others only.

    Rules with less support than any learned rule would not have been learned: they are left out.
    """
    options, rest = ranker.options, TripleTable(train.vocabulary, train.triples[~chosen])
    rules = rescore(ranker.rules, rest, object_identity=options.object_identity, threads=options.threads)
    least = int(ranker.rules.support.min()) if len(rules) else 1
    kept = np.flatnonzero(rules.support >= least)
    counted = make_ranker(graph_of(rest), rules.take(kept), options, block_connected=ranker.block_connected)
    queries, _ = make_queries(train.triples[chosen], [train.triples], ranker.graph.n_relations)
    return HeldOutQuestions(counted, queries, take_groups(groups, kept), int(chosen.sum()))


def take_groups(groups: Groups, rows: NDArray[np.int64]) -> Groups:
    """Return the groups of some rules, and one of no rule: there are as many groups as before, none without rules."""
    return np.append(groups[rows], groups.max()).astype(np.uint8) if len(groups) else groups
