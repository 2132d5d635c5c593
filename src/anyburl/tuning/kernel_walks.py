"""How near entities are to each other: where a few steps at random lead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import kernel, part
from anyburl.graph.arrays import GraphArrays


class WalkArrays(NamedTuple):
    """What one worker writes to, a row for each step; shares are zeros before and after a question."""

    shares: NDArray[np.float32]  # (steps + 1, entities): which share of walks is where
    reached: NDArray[np.int32]  # (steps + 1, entities): the entities with a share, one after the other
    n_reached: NDArray[np.int64]  # (steps + 1)


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


@part
def walk(graph: GraphArrays, entity: int, least: float, space: WalkArrays) -> None:
    """Find out where walks from an entity are after 0, 1, 2, ... steps. The first step is always taken."""
    space.shares[0, entity], space.reached[0, 0], space.n_reached[0] = 1.0, entity, 1
    for step in range(1, len(space.n_reached)):
        space.n_reached[step] = spread(
            graph,
            space.shares[step - 1],
            space.reached[step - 1],
            int(space.n_reached[step - 1]),
            0.0 if step == 1 else least,
            space.shares[step],
            space.reached[step],
        )


@part
def clear_walk(space: WalkArrays) -> None:
    """Set back to zero what `walk` wrote."""
    for step in range(len(space.n_reached)):
        for i in range(space.n_reached[step]):
            space.shares[step, space.reached[step, i]] = 0.0


@kernel
def fill_walks(
    graph: GraphArrays,
    entities: NDArray[np.int32],
    candidate_offsets: NDArray[np.int64],
    candidates: NDArray[np.int32],
    first: int,
    last: int,
    least: float,
    space: WalkArrays,
    out: NDArray[np.float32],
) -> None:
    """Write which share of walks from an entity is at each of its candidates after one step, after two, ...

    Only the questions from `first` to before `last` are walked for. No walk counts that is back where it started.
    """
    for question in range(first, last):
        entity = int(np.int64(entities[question]))
        walk(graph, entity, least, space)
        for i in range(candidate_offsets[question], candidate_offsets[question + 1]):
            candidate = int(np.int64(candidates[i]))
            for step in range(out.shape[1]):
                out[i, step] = 0.0 if candidate == entity else space.shares[step + 1, candidate]
        clear_walk(space)
