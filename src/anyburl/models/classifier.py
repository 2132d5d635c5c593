"""Tells true facts from false ones, learned from facts that people judged.

A fact is described by both its questions, (subject, relation, ?) and (?, relation, object): the evidence of rules and
where it ranks, see `fact_features`. Judged facts with the same relation and object say more. Forests of LightGBM learn
from that, each without the judged facts of some questions, so that every judged fact can be scored by a forest that has
not seen its question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.data.table import find_keys
from anyburl.graph.build import all_known_answers
from anyburl.models.calibration import logistic
from anyburl.models.tuned.fallback import Fallback
from anyburl.models.tuned.listing import answer_in_parts, list_candidates
from anyburl.models.tuned.model import require_lightgbm
from anyburl.models.tuned.observations import question_folds, rule_groups
from anyburl.models.tuned.reranker import TunedReranker, behind_best, unseeing
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.index import to_confidences
from anyburl.ranking.ranker import Ranker

FEWEST = 50  # true and false facts, to learn from
N_FOLDS = 5
ROUNDS = 250
PARAMETERS = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 7,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "verbose": -1,
    "deterministic": True,
}
PRIOR = 3.0  # facts, half of them true, beside the judged ones with the same relation and object

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Triples = NDArray[np.int32]
Bools = NDArray[np.bool_]


def fact_features(ranker: Ranker, triples: Triples) -> Floats:
    """Return a row of features for each fact: those of both its questions, and its relation.

    What train states is left out of the answers. Columns that come from rules are nan where the fact is not among the
    best answers; how well its entities fit the relation is known of every fact.
    """
    ranker = unseeing(ranker)
    fallback, n_relations = Fallback(ranker.graph, ranker.backend.threads), ranker.graph.n_relations
    subjects, relations, objects = triples.T
    columns = [
        _question_features(ranker, fallback, *question)
        for question in ((subjects, relations, objects), (objects, relations + n_relations, subjects))
    ]
    return np.column_stack([*columns, relations])


def _question_features(ranker: Ranker, fallback: Fallback, entities: Any, relations: Any, candidates: Any) -> Floats:
    """Return the features of each candidate as an answer to (entity, directed relation, ?)."""
    n_entities, n_directed = ranker.graph.n_entities, 2 * ranker.graph.n_relations
    questions, of_facts = np.unique(entities.astype(np.int64) * n_directed + relations, return_inverse=True)
    ids = (questions // n_directed).astype(np.int32), (questions % n_directed).astype(np.int32)
    offsets, known = all_known_answers(ranker.graph, *ids)
    no_targets = np.zeros(len(questions) + 1, np.int64), np.empty(0, np.int32)
    queries = QueryArrays(*ids, *no_targets, offsets, known)
    keys, parts, part_keys = of_facts * n_entities + candidates, list[Floats](), list[Ints]()
    lister = ranker.lister()
    listings = answer_in_parts(lister, queries, lambda part: _listed_features(ranker, lister, fallback, part))
    for chosen, (features, of_answers, answers) in listings:
        own = chosen[of_answers] * n_entities + answers
        is_fact = np.isin(own, keys)
        parts.append(features[is_fact])
        part_keys.append(own[is_fact])
    order = np.argsort(of_facts, kind="stable")
    fits = np.empty((len(keys), 0))
    if len(keys):
        sorted_fits = fallback.columns(*ids, of_facts[order], candidates[order])
        fits = np.empty(sorted_fits.shape)
        fits[order] = sorted_fits
    listed, listed_keys = np.concatenate(parts), np.concatenate(part_keys)
    order = np.argsort(listed_keys)
    rows = find_keys(keys, listed_keys[order])
    features = np.full((len(keys), listed.shape[1]), np.nan)
    features[rows >= 0] = listed[order[rows[rows >= 0]]]
    return np.column_stack([features, fits])


def _listed_features(
    ranker: Ranker, lister: Ranker, fallback: Fallback, queries: QueryArrays
) -> tuple[Floats, Ints, Any]:
    """Return the features of the best answers to some questions, the question of each, and the answers."""
    reranker = ranker.reranker
    tuned = reranker if isinstance(reranker, TunedReranker) and reranker.model is not None else None
    groups = rule_groups(ranker.rules) if tuned is None else tuned.groups
    listing = list_candidates(lister, queries, groups, fallback, None if tuned is None else tuned.other)
    lists = listing.lists
    if tuned is None:
        scores = to_confidences(listing.answers.best_keys[lists.questions, lists.positions])
    else:
        scores = tuned.scores(listing.rows, queries, lists)
    behind = behind_best(scores, lists)
    order = np.lexsort((-scores, lists.questions))
    ranks = np.empty(len(scores))
    ranks[order] = lists.positions
    n_fits = listing.fits.shape[1] + (0 if listing.more is None else listing.more.shape[1])
    columns = listing.rows[:, : listing.rows.shape[1] - n_fits]
    features = np.column_stack([columns, scores, behind, np.log1p(ranks)]).astype(np.float64)
    return features, lists.questions, lists.candidates


@dataclass(frozen=True)
class FactClassifier:
    """Scores facts by forests that learned from `judged` facts, each without one fold of their questions."""

    ranker: Ranker
    judged: Triples
    is_true: Bools
    forests: tuple[Any, ...]  # of LightGBM

    def probabilities(self, triples: Triples) -> Floats:
        """Return how likely facts are, if as many of them are true as of the judged ones.

        A judged fact, or another answer to its question, is scored by the forest that has not seen the question; the
        other facts are scored by all forests.
        """
        features = fact_features(self.ranker, triples)
        scores = np.column_stack(
            [
                forest.predict(self._with_neighbours(features, triples, fold), raw_score=True)
                for fold, forest in enumerate(self.forests)
            ]
        )
        n_relations = self.ranker.graph.n_relations
        of_judged, of_facts = (_question_keys(facts, n_relations) for facts in (self.judged, triples))
        folds = _folds(triples)
        single = scores[np.arange(len(triples)), folds]
        return logistic(np.where(np.isin(of_facts, of_judged), single, scores.mean(axis=1)))

    def _with_neighbours(self, features: Floats, triples: Triples, fold: int) -> Floats:
        seen = _folds(self.judged) != fold
        return np.column_stack([features, neighbour_features(triples, self.judged[seen], self.is_true[seen])])


def fit_classifier(ranker: Ranker, true: Triples, false: Triples, seed: int = 0) -> FactClassifier:
    """Learn to tell true facts from false ones; what the graph of the ranker states must not be among them."""
    if min(len(true), len(false)) < FEWEST:
        raise DataError(
            f"expected at least {FEWEST} facts that are known to be true and {FEWEST} that are known to be false, "
            f"whose entities are in the data and which train does not state, got {len(true)} and {len(false)}"
        )
    lightgbm = require_lightgbm()
    judged = np.concatenate([true, false])
    is_true, folds = np.arange(len(judged)) < len(true), _folds(judged)
    features, forests = fact_features(ranker, judged), []
    parameters = {**PARAMETERS, "seed": seed, "num_threads": 1}
    for fold in range(N_FOLDS):
        seen = folds != fold
        neighbours = neighbour_features(judged[seen], judged[seen], is_true[seen], each_without_itself=True)
        rows = np.column_stack([features[seen], neighbours])
        # Relations as categories: log loss .304 instead of .308, cross-validated on CoDEx-S's valid (max).
        data = lightgbm.Dataset(rows, is_true[seen], categorical_feature=[features.shape[1] - 1])
        forests.append(lightgbm.train(parameters, data, num_boost_round=ROUNDS))
    return FactClassifier(ranker, judged, is_true, tuple(forests))


def neighbour_features(
    triples: Triples, judged: Triples, is_true: Bools, *, each_without_itself: bool = False
) -> Floats:
    """Return how many judged facts have the relation and object of each fact, and how far the share of true ones among
    them is above a half, a few of either kind added.

    If the facts are the judged ones, a fact is no neighbour of its own.
    """
    ends = np.concatenate([judged[:, 1:], triples[:, 1:]])
    groups = np.unique(ends, axis=0, return_inverse=True)[1].ravel()
    of_judged, of_facts = groups[: len(judged)], groups[len(judged) :]
    n_groups, surplus = int(groups.max(initial=-1)) + 1, is_true - 0.5
    counts = np.bincount(of_judged, minlength=n_groups)[of_facts].astype(np.float64)
    sums = np.bincount(of_judged, surplus, n_groups)[of_facts]
    if each_without_itself:
        counts, sums = counts - 1, sums - surplus
    return np.column_stack([sums / (counts + PRIOR), np.log1p(counts)])


def _folds(triples: Triples) -> Ints:
    return question_folds(triples[:, 0], triples[:, 1], N_FOLDS)


def _question_keys(triples: Triples, n_relations: int) -> Ints:
    return triples[:, 0].astype(np.int64) * n_relations + triples[:, 1]
