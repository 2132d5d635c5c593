"""The facts of a data set, in the form that checks use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays
from anyburl.graph.stored import graph_of
from anyburl.triples.dataset import SPLITS, Dataset

Triples = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Facts:
    """A data set, with what several checks need: made when it is first asked for."""

    dataset: Dataset

    @property
    def n_relations(self) -> int:
        return self.dataset.vocabulary.n_relations

    @property
    def n_entities(self) -> int:
        return self.dataset.vocabulary.n_entities

    @property
    def train(self) -> Triples:
        return self.dataset.train.triples

    @cached_property
    def every(self) -> Triples:
        """The facts of all splits; one that several splits state is there as often."""
        return np.concatenate([self.dataset.split(split).triples for split in SPLITS])

    @cached_property
    def graph(self) -> GraphArrays:
        """The graph of train."""
        return graph_of(self.dataset.train)

    def labels(self, triples: Triples) -> pl.DataFrame:
        """Return triples as people read them: subject, relation, object."""
        return self.dataset.vocabulary.decode_triples(triples)

    def relation_labels(self, relations: NDArray[np.int32] | NDArray[np.int64]) -> pl.Series:
        """Return the labels of relations."""
        return self.dataset.vocabulary.relations.gather(relations)


def pairs_of(triples: Triples, n_entities: int, *, back: bool = False) -> NDArray[np.int64]:
    """Return one number for the subject and object of each triple, or for the object and subject."""
    first, second = (2, 0) if back else (0, 2)
    return triples[:, first].astype(np.int64) * n_entities + triples[:, second]


def questions_of(triples: Triples, n_relations: int, *, back: bool = False) -> NDArray[np.int64]:
    """Return one number for the question (subject, relation, ?) of each triple, or for (?, relation, object)."""
    return triples[:, 2 if back else 0].astype(np.int64) * n_relations + triples[:, 1]
