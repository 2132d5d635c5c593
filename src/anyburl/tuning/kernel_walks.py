"""How near entities are to each other: where a few steps at random lead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel, part
from anyburl.graph.arrays import GraphArrays


@part
def spread(
    graph: GraphArrays,
    before: NDArray[np.float32],
    reached: NDArray[np.int32],
    n_reached: int,
    least: float,
    after: NDArray[np.float32],
    following: NDArray[np.int32],
) -> int:
    """Take one step from each of the first `n_reached` entities, along any of its edges; return how many are reached.

    `before` and `after` hold the share of walks at each entity; `after` is zero on entry. An entity whose edges would
    get less than `least` each is left out.
    """
    n_following = 0
    for i in range(n_reached):
        entity = int(reached[i])
        first = int(graph.segment_starts[graph.segment_offsets[entity]])
        last = int(graph.segment_starts[graph.segment_offsets[entity + 1]])
        share = np.float32(before[entity] / np.float32(max(1, last - first)))
        if share < least:
            continue
        for row in range(first, last):
            target = int(graph.neighbours[row])
            if target == graph.n_entities:  # the token self
                target = entity
            if after[target] == 0.0:
                following[n_following] = target
                n_following += 1
            after[target] += share
    return n_following


@kernel
def fill_walks(
    graph: GraphArrays,
    entities: NDArray[np.int32],
    least: float,
    reached: NDArray[np.int32],
    out: NDArray[np.float32],
) -> None:
    """Write which share of walks from each entity is where after 0, 1, 2, ... steps: (entities, steps, all entities).

    The first step is always taken. `out` is zero on entry; `reached` has room for two rows of all entities.
    """
    for i in range(len(entities)):
        reached[0, 0], n_reached = entities[i], 1
        out[i, 0, entities[i]] = 1.0
        for step in range(1, out.shape[1]):
            smallest = 0.0 if step == 1 else least
            n_reached = spread(
                graph,
                out[i, step - 1],
                reached[(step - 1) % 2],
                n_reached,
                smallest,
                out[i, step],
                reached[step % 2],
            )
