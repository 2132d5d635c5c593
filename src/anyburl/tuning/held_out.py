"""The questions that a model learns from: those of the valid split, and hidden facts of train."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.graph.stored import graph_of
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.blocking import joins_unconnected
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.ruleset.rescore import rescore
from anyburl.triples.dataset import Dataset
from anyburl.triples.table import TripleTable

ENOUGH_QUESTIONS = 1_500  # of the valid split: with fewer, facts of train are asked for as well
FEWEST_FOLDS = 10  # of train; there are more of a large one, since a graph that misses less is more like the whole
QUESTIONS_PER_FACT = 1.5  # or more: two, but for facts that answer the same question
MOST_FOLDS = 3  # that are asked for

Groups = NDArray[np.uint8]


@dataclass(frozen=True)
class Questions:
    """Questions whose answers `ranker` has not seen."""

    ranker: Ranker
    queries: QueryArrays
    groups: Groups
    n_facts: int

    def some(self, rows: NDArray[np.int64]) -> Questions:
        """Return some of the questions."""
        return replace(self, queries=take_queries(self.queries, rows))


def held_out_questions(
    ranker: Ranker, dataset: Dataset, groups: Groups, *, most: int, seed: int, from_train: bool = True
) -> list[Questions]:
    """Return at most `most` questions: those of the valid split and, where these are few, of folds of train.

    Only train and valid are looked at: filtering with test triples would leak. Without `from_train`, for a model that
    has seen all of train, valid must be enough.
    """
    rng, found = np.random.default_rng(seed), []
    train, valid = dataset.train.triples, dataset.valid.triples
    if len(valid):
        queries, _ = make_queries(valid, [train, valid], dataset.vocabulary.n_relations)
        drawn = np.sort(rng.permutation(len(queries.entities))[:most])
        found.append(Questions(ranker, queries, groups, len(valid)).some(drawn))
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


def hide(ranker: Ranker, train: TripleTable, chosen: NDArray[np.bool_], groups: Groups) -> Questions:
    """Ask for some facts of train, with rules that are counted, and fire, on the others only.

    Rules with less support than any learned rule would not have been learned: they are left out.
    """
    options, rest = ranker.options, TripleTable(train.vocabulary, train.triples[~chosen])
    rules = rescore(ranker.rules, rest, object_identity=options.object_identity, threads=options.threads)
    least = int(ranker.rules.support.min()) if len(rules) else 1
    kept = np.flatnonzero(rules.support >= least)
    counted = make_ranker(graph_of(rest), rules.take(kept), options, block_connected=ranker.block_connected)
    queries, _ = make_queries(train.triples[chosen], [train.triples], ranker.graph.n_relations)
    return Questions(counted, queries, take_groups(groups, kept), int(chosen.sum()))


def take_groups(groups: Groups, rows: NDArray[np.int64]) -> Groups:
    """Return the groups of some rules, and one of no rule: there are as many groups as before, none without rules."""
    return np.append(groups[rows], groups.max()).astype(np.uint8) if len(groups) else groups
