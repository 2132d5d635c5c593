"""Held-out facts, and how rules score the answers to their questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.graph.stored import graph_of
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.ruleset.rescore import rescore
from anyburl.triples.dataset import Dataset
from anyburl.triples.table import TripleTable
from anyburl.tuning.observations import Observations, join_observations, observe
from anyburl.tuning.reranker import TunedReranker

TOP_K = 100  # answers of each question
QUESTIONS_AT_A_TIME = 4096
FEWEST_STATED = 20
HELD_OUT_SHARE = 0.1  # of train, where there is no valid split

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class HeldOut:
    """The answers to the questions of a split, which has `n_facts` facts."""

    split: str
    observations: Observations
    n_facts: int

    def described(self) -> dict[str, object]:
        """Return what this is, as plain values."""
        found = self.observations
        n_stated = int(found.is_stated.sum())
        return {"split": self.split, "facts": self.n_facts, "answers": len(found), "stated": n_stated}


def observe_triples(ranker: Ranker, triples: Triples, known: list[Triples]) -> Observations:
    """Ask both questions of every triple, and return the best answers that `known` does not state."""
    n_relations = ranker.graph.n_relations
    queries, _ = make_queries(triples, known, n_relations)
    parts = []
    for start in range(0, len(queries.entities), QUESTIONS_AT_A_TIME):
        chosen = np.arange(start, min(start + QUESTIONS_AT_A_TIME, len(queries.entities)))
        part = take_queries(queries, chosen)
        parts.append(observe(part, ranker.answer(part, top_k=TOP_K), n_relations))
    return join_observations(parts)


def hold_out(ranker: Ranker, dataset: Dataset, seed: int) -> HeldOut:
    """Return what to calibrate on: the valid split or, if there is none, a tenth of train.

    A tuned model has seen the valid split: scores are those of models that were trained without the question.
    """
    valid, reranker = dataset.valid.triples, ranker.reranker
    tuning = reranker.tuning if isinstance(reranker, TunedReranker) else None
    if tuning is not None and tuning.observations is not None:
        found = HeldOut("valid" if len(valid) else "train", tuning.observations, tuning.facts)
    elif len(valid):
        found = HeldOut("valid", observe_triples(ranker, valid, [dataset.train.triples]), len(valid))
    else:
        found = _hold_out_of_train(ranker.lister(), dataset, seed)
    return _enough(found, dataset)


def observe_test(ranker: Ranker, dataset: Dataset) -> HeldOut | None:
    """Return what to check a calibration on, None if there is no test split."""
    test, known = dataset.test.triples, [dataset.train.triples, dataset.valid.triples]
    return HeldOut("test", observe_triples(ranker, test, known), len(test)) if len(test) else None


def _hold_out_of_train(ranker: Ranker, dataset: Dataset, seed: int) -> HeldOut:
    """Hold out facts of train, count the rules again on the rest, and let the rest answer."""
    train, options = dataset.train, ranker.options
    drawn = np.random.default_rng(seed).permutation(len(train))
    chosen = np.zeros(len(train), np.bool_)
    chosen[drawn[: round(HELD_OUT_SHARE * len(train))]] = True
    if not chosen.any():
        return HeldOut("train", join_observations([]), 0)
    rest = TripleTable(train.vocabulary, train.triples[~chosen])
    rules = rescore(ranker.rules, rest, object_identity=options.object_identity, threads=options.threads)
    recounted = make_ranker(graph_of(rest), rules, options, block_connected=ranker.block_connected)
    recounted = recounted.with_aggregation(ranker.aggregation.name)
    held_out = train.triples[chosen]
    return HeldOut("train", observe_triples(recounted, held_out, [rest.triples]), len(held_out))


def _enough(found: HeldOut, dataset: Dataset) -> HeldOut:
    n_stated = int(found.observations.is_stated.sum())
    if n_stated < FEWEST_STATED:
        raise DataError(
            f"{dataset.name} has too few facts to calibrate on: the rules predict {n_stated} held-out answers, "
            f"expected at least {FEWEST_STATED}"
        )
    return found
