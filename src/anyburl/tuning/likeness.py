"""Candidates as seen by entities that are like the question's: who shares facts, shares more of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays
from anyburl.tuning.kernel_likeness import N_COLUMNS, FactArrays, LikenessArrays, fill_lengths, fill_likeness

MOST_TOLD = 20_000  # entities that a fact is told of, and answers of a relation: with more, they say little
LEAST_LENGTH = 1e-3
QUESTIONS_AT_A_TIME = 64

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

    def columns(self, entities: Ints, relations: Ints, questions: NDArray[np.int64], candidates: Ints) -> Floats:
        """Return what a model is told of each candidate of the questions (entity, directed relation, ?)."""
        told = np.empty((len(candidates), N_COLUMNS), np.float32)
        offsets = np.searchsorted(questions, np.arange(len(entities) + 1)).astype(np.int64)
        facts, starts = self.facts, range(0, len(entities), QUESTIONS_AT_A_TIME)
        asked = entities.astype(np.int32), relations.astype(np.int32), offsets, candidates.astype(np.int32)

        def fill(own: range) -> None:
            space = self._space()
            for start in own:
                last = min(start + QUESTIONS_AT_A_TIME, len(entities))
                fill_likeness(self.graph, facts, *asked, start, last, MOST_TOLD, space, told)

        shares = [share for share in (starts[turn :: self.threads] for turn in range(self.threads)) if share]
        if len(shares) == 1:
            fill(shares[0])
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(fill, shares))
        return told

    def _space(self) -> LikenessArrays:
        n_segments = len(self.graph.segment_relations)
        return LikenessArrays(np.zeros(self.graph.n_entities + 1), np.zeros(n_segments), np.zeros(n_segments))
