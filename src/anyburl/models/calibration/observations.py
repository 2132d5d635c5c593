"""Held-out facts, and how rules score the answers to their questions.

Counts facts outside train by score, and the share of them that is stated.

A calibration in a run folder, with a record of what it was fitted to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.base.writing import KeptKey, StoredValues, damaged, load_kept, save_kept
from anyburl.bodies.rescore import rescore
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.table import TripleTable
from anyburl.graph.lookup import held_by
from anyburl.graph.stored import graph_of
from anyburl.models.calibration.fit import N_QUANTILES, PRIOR, BinCounts, Calibration, bins_of, fit_relations, fit_whole
from anyburl.models.tuned.observations import Observations, join_observations, observe
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker, make_ranker

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


LEAST_SCORE = 0.05  # facts with less are too many to be counted
LEAST_PROBABILITY = 0.5  # from here on they are of interest
VALID = 1 << SPLITS.index("valid")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ImpliedFacts(Protocol):
    """Some facts that rules imply."""

    @property
    def triples(self) -> NDArray[np.int32]: ...

    @property
    def scores(self) -> Floats: ...


@dataclass(frozen=True)
class FactCounts:
    """Numbers of facts that train does not state, by relation and bin of the score, none below `least`."""

    edges: Floats
    least: Floats
    all: Ints
    valid: Ints
    unstated: Ints  # by any split

    def share_above(self, score: float) -> float | None:
        """Return the share of facts with at least this score that the valid split states; None if unknown."""
        first = bins_of(self.edges, np.array([score]))[0]
        n_facts = int(self.all[:, first:].sum())
        return float(self.valid[:, first:].sum()) / n_facts if n_facts and (self.least <= score).all() else None

    def above(self, score: float, relation: int | None = None) -> int | None:
        """Return how many facts that no split states have at least this score, which is an edge; None if unknown."""
        rows = slice(None) if relation is None else slice(relation, relation + 1)
        if (self.least[rows] > score).any():
            return None
        return int(self.unstated[rows, bins_of(self.edges, np.array([score]))[0] :].sum())


def least_counted(calibration: Calibration, overall: float | None) -> Floats:
    """Return from which score on facts are counted: where they are at least as likely as not, in their relation or (the
    score `overall`) on the whole.
    """
    own = calibration.least_scores(LEAST_PROBABILITY)
    return np.maximum(np.minimum(own, np.inf if overall is None else overall), LEAST_SCORE)


def count_facts(
    parts: Iterable[ImpliedFacts], dataset: Dataset, calibration: Calibration, scores: Iterable[float], least: Floats
) -> FactCounts:
    """Count facts in one pass, so that counts above each of `scores` are known."""
    edges = np.unique([*calibration.edges, *scores])
    shape = len(least), len(edges) + 1
    counts = np.zeros((3, *shape), np.int64)
    for part in parts:
        cells = part.triples[:, 1].astype(np.int64) * shape[1] + bins_of(edges, part.scores)
        held = held_by(dataset, part.triples)
        for place, chosen in enumerate((held >= 0, held & VALID > 0, held == 0)):
            counts[place] += np.bincount(cells[chosen], minlength=shape[0] * shape[1]).reshape(shape)
    return FactCounts(edges, least, *counts)


def fit_closed_world(facts: FactCounts, calibration: Calibration) -> Floats:
    """Return the share of facts that the valid split states, by relation and bin of the calibration."""
    starts = np.concatenate([[0.0], calibration.edges])
    bins = bins_of(calibration.edges, np.concatenate([[0.0], facts.edges]))

    def gather(column: Ints) -> Floats:
        gathered = np.zeros((len(starts), len(column)))
        np.add.at(gathered, bins, column.T)
        return gathered.T

    counts = BinCounts(gather(facts.all), gather(facts.valid))
    shares = fit_relations(counts, fit_whole(counts))
    return np.where(starts >= facts.least[:, None], shares, np.nan)


CALIBRATION = "calibration"  # the folder in a run folder
FORMAT = 1
ARRAYS = tuple(field.name for field in fields(Calibration))


def calibration_key(rules: str, data: str, options: dict[str, Any]) -> KeptKey:
    """Return what a calibration depends on: the rules, the data, how answers are scored, and how it is fitted."""
    return KeptKey(rules, data, options, [FORMAT, TOP_K, N_QUANTILES, PRIOR, LEAST_SCORE, LEAST_PROBABILITY])


def save_calibration(run: Path, calibration: Calibration, report: dict[str, Any], key: KeptKey) -> Path:
    """Write a calibration, and the report on it; return the file."""
    arrays = {name: getattr(calibration, name) for name in ARRAYS}
    return save_kept(run / CALIBRATION, key, StoredValues({"report": report}, arrays))


def load_calibration(run: Path, key: KeptKey, n_relations: int) -> Calibration | str:
    """Return the calibration that was kept, or why it cannot be used: "" if there is none."""
    found = load_kept(run / CALIBRATION, key)
    if isinstance(found, str):
        return found
    try:
        return _checked(Calibration(*(found.arrays[name] for name in ARRAYS)), n_relations)
    except (KeyError, ValueError) as error:
        return damaged(run / CALIBRATION / key.name, error)


def _checked(calibration: Calibration, n_relations: int) -> Calibration:
    edges, tables = calibration.edges, (calibration.probability, calibration.closed)
    if any(array.dtype != np.float64 for array in (edges, *tables)) or edges.ndim != 1:
        raise ValueError("its tables have unexpected types")
    if any(table.shape != (n_relations, len(edges) + 1) for table in tables) or not (np.diff(edges) > 0).all():
        raise ValueError("its tables have unexpected sizes")
    return calibration
