"""Sorting tens of millions of rules by small whole numbers, and edges by their relation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import find_segment, inverse, steps


@kernel
def count_sort(
    keys: NDArray[np.int32], order: NDArray[np.int32], starts: NDArray[np.int64], out: NDArray[np.int32]
) -> None:
    """Write `order` to `out`, sorted by `keys[order]`, equal keys in the order they had.

    `starts` has room for every key and one more, and is all zero on entry; spent on exit.
    """
    for i in range(len(keys)):
        starts[keys[i] + 1] += 1
    for key in range(1, len(starts)):
        starts[key] += starts[key - 1]
    for i in range(len(order)):
        row = order[i]
        key = keys[row]
        out[starts[key]] = row
        starts[key] += 1


@kernel
def find_segments(
    graph: GraphArrays, entities: NDArray[np.int32], relations: NDArray[np.int32], out: NDArray[np.int32]
) -> None:
    """Write the segment of each entity for its relation read backward, -1 where there is none."""
    for i in range(len(entities)):
        out[i] = find_segment(graph, int(entities[i]), inverse(graph, int(relations[i])))


@kernel
def count_steps(graph: GraphArrays, sizes: NDArray[np.int64]) -> None:
    """Write for each place in `domains` how many entities its entity reaches by its relation."""
    for relation in range(2 * graph.n_relations):
        for place in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
            first, last = steps(graph, int(graph.domains[place]), relation)
            sizes[place] = last - first


@kernel
def copy_steps(graph: GraphArrays, starts: NDArray[np.int64], ends: NDArray[np.int32]) -> None:
    """Write those entities from `starts[place]` on."""
    for relation in range(2 * graph.n_relations):
        for place in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
            first, last = steps(graph, int(graph.domains[place]), relation)
            for row in range(first, last):
                ends[starts[place] + row - first] = graph.targets[row]
