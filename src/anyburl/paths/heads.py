"""The triples that paths start from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import frozen
from anyburl.paths.arrays import HeadTriples
from anyburl.paths.kernel import BLOCK_BITS, list_owners


def listed_heads(triples: NDArray[np.int32]) -> HeadTriples:
    """Let paths start from `triples`."""
    return HeadTriples(frozen(triples), frozen(np.empty(0, np.int32)))


def heads_of_graph(graph: GraphArrays) -> HeadTriples:
    """Let paths start from every triple of `graph`: a sixteenth of a byte a row instead of twelve bytes a triple."""
    owners: NDArray[np.int32] = np.zeros((len(graph.targets) >> BLOCK_BITS) + 1, np.int32)
    list_owners(graph, owners)
    return HeadTriples(frozen(np.empty((0, 3), np.int32)), frozen(owners))
