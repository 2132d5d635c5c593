"""Counts facts outside train by score, and the share of them that is stated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anyburl.calibration.calibration import Calibration
from anyburl.calibration.fit import Counts, bins_of, fit_relations, fit_whole
from anyburl.graph.lookup import held_by
from anyburl.triples.dataset import SPLITS, Dataset

LEAST_SCORE = 0.05  # facts with less are too many to be counted
LEAST_PROBABILITY = 0.5  # from here on they are of interest
VALID = 1 << SPLITS.index("valid")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Facts(Protocol):
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
    parts: Iterable[Facts], dataset: Dataset, calibration: Calibration, scores: Iterable[float], least: Floats
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

    counts = Counts(gather(facts.all), gather(facts.valid))
    shares = fit_relations(counts, fit_whole(counts))
    return np.where(starts >= facts.least[:, None], shares, np.nan)
