"""Similarity of candidates and entities, by the facts they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays
from anyburl.tuning.kernel_likeness import N_COLUMNS, FactArrays, LikenessArrays, fill_lengths, fill_likeness
from anyburl.tuning.sharing import share_questions

MOST_TOLD = 20_000  # entities per fact, and answers per relation: with more, they say little
LEAST_LENGTH = 1e-3

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Likeness:
    """Compares entities by the facts that they share. Nothing of it is learned: it counts on one graph."""

    graph: GraphArrays
    threads: int = 1

    @cached_property
    def facts(self) -> FactArrays:
        """What facts weigh: one told of few entities says more of them."""
        graph = self.graph
        sizes = np.diff(graph.segment_starts)
        weights = np.log((graph.n_entities + 1) / np.maximum(sizes, 1)) ** 2
        weights[sizes > MOST_TOLD] = 0
        lengths = np.empty(graph.n_entities + 1)
        fill_lengths(graph, weights, LEAST_LENGTH, lengths)
        return FactArrays(weights, lengths)

    def columns(self, entities: Ints, relations: Ints, offsets: NDArray[np.int64], candidates: Ints) -> Floats:
        """Return the features of each candidate of the questions (entity, directed relation, ?)."""
        told, facts = np.empty((len(candidates), N_COLUMNS), np.float32), self.facts
        asked = entities.astype(np.int32), relations.astype(np.int32), offsets, candidates.astype(np.int32)

        def fill(first: int, last: int, space: LikenessArrays) -> None:
            fill_likeness(self.graph, facts, *asked, first, last, MOST_TOLD, space, told)

        share_questions(len(entities), self.threads, self._space, fill)
        return told

    def _space(self) -> LikenessArrays:
        n_segments = len(self.graph.segment_relations)
        return LikenessArrays(np.zeros(self.graph.n_entities + 1), np.zeros(n_segments), np.zeros(n_segments))
