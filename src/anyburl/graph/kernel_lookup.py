"""Many look-ups at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel
from anyburl.graph.arrays import GraphArrays, Ints
from anyburl.graph.kernel import find_segment


@kernel
def fill_segments(graph: GraphArrays, entities: NDArray[np.int32], relations: NDArray[np.int32], out: Ints) -> None:
    """Write the segment of each entity for its directed relation, -1 where there is none."""
    for i in range(len(entities)):
        out[i] = find_segment(graph, int(entities[i]), int(relations[i]))


@inlined
def is_before(triples: NDArray[np.int32], row: int, wanted: NDArray[np.int32], i: int) -> bool:
    """Whether the triple at `row` comes before the one that is looked for."""
    for column in range(3):
        if triples[row, column] != wanted[i, column]:
            return bool(triples[row, column] < wanted[i, column])
    return False


@kernel
def fill_held(triples: NDArray[np.int32], wanted: NDArray[np.int32], out: NDArray[np.bool_]) -> None:
    """Write which of the triples in `wanted` are among the sorted `triples`."""
    for i in range(len(wanted)):
        low, high = 0, len(triples)
        while low < high:
            middle = (low + high) >> 1
            if is_before(triples, middle, wanted, i):
                low = middle + 1
            else:
                high = middle
        out[i] = low < len(triples)
        if out[i]:
            for column in range(3):
                out[i] &= triples[low, column] == wanted[i, column]
