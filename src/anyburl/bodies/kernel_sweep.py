"""Which directed relations can follow each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import inverse


@kernel
def mark_followers(graph: GraphArrays, follows: NDArray[np.bool_]) -> None:
    """Mark (d, e) where some entity is reached along d and left along e; `follows` is all False on entry."""
    for entity in range(graph.n_entities):
        first, last = graph.segment_offsets[entity], graph.segment_offsets[entity + 1]
        for into in range(first, last):
            arriving = inverse(graph, int(graph.segment_relations[into]))
            for out_of in range(first, last):
                follows[arriving, graph.segment_relations[out_of]] = True
