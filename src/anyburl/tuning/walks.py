"""How near candidates are to the question's entity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays
from anyburl.tuning.kernel_walks import WalkArrays, fill_walks
from anyburl.tuning.sharing import share_questions

STEPS = 3
LEAST_SHARE = 1e-4  # of walks that an edge must get to be followed

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Walks:
    """Takes a few steps at random, along any edge, on one graph."""

    graph: GraphArrays
    threads: int = 1

    def shares(self, entities: Ints, offsets: NDArray[np.int64], candidates: Ints) -> Floats:
        """Return which share of walks from the entity is at each of its candidates after each step."""
        out = np.empty((len(candidates), STEPS), np.float32)
        asked = entities.astype(np.int32), offsets, candidates.astype(np.int32)

        def fill(first: int, last: int, space: WalkArrays) -> None:
            fill_walks(self.graph, *asked, first, last, LEAST_SHARE, space, out)

        share_questions(len(entities), self.threads, self._space, fill)
        return out

    def _space(self) -> WalkArrays:
        shape = (STEPS + 1, self.graph.n_entities)
        return WalkArrays(np.zeros(shape, np.float32), np.empty(shape, np.int32), np.zeros(STEPS + 1, np.int64))
