"""Whether a binary body joins two given entities, without walking everywhere that it leads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, part
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import has_edge, inverse, lower_bound, steps


@inlined
def share(graph: GraphArrays, start: int, end: int, far_start: int, far_end: int, barred: int) -> bool:
    """Whether two ranges of `targets` share an entity other than `barred`."""
    if end - start > far_end - far_start:
        start, end, far_start, far_end = far_start, far_end, start, end
    for row in range(start, end):
        entity = int(graph.targets[row])
        if entity == barred:
            continue
        far_start = lower_bound(graph.targets, far_start, far_end, entity)
        if far_start == far_end:
            return False
        if graph.targets[far_start] == entity:
            return True
    return False


@part
def joins_by_two(graph: GraphArrays, body: NDArray[np.int32], x: int, y: int) -> bool:
    """Whether x - a - y."""
    start, end = steps(graph, x, int(body[0]))
    far_start, far_end = steps(graph, y, inverse(graph, int(body[1])))
    return share(graph, start, end, far_start, far_end, -1)


@part
def joins_by_three(graph: GraphArrays, body: NDArray[np.int32], x: int, y: int, object_identity: bool) -> bool:
    """Whether x - a - b - y, from the side with fewer steps."""
    second = int(body[1])
    start, end = steps(graph, x, int(body[0]))
    far_start, far_end = steps(graph, y, inverse(graph, int(body[2])))
    if end - start > far_end - far_start:
        start, end, far_start, far_end = far_start, far_end, start, end
        second, x, y = inverse(graph, second), y, x
    for row in range(start, end):
        a = int(graph.targets[row])
        if object_identity and a == y:
            continue
        first, last = steps(graph, a, second)
        if share(graph, first, last, far_start, far_end, x if object_identity else -1):
            return True
    return False


@inlined
def joins_pair(graph: GraphArrays, body: NDArray[np.int32], length: int, x: int, y: int, object_identity: bool) -> bool:
    """Whether `body` leads from x to y."""
    if object_identity and x == y:
        return False
    if length == 1:
        return has_edge(graph, x, int(body[0]), y)
    if length == 2:
        return joins_by_two(graph, body, x, y)
    return joins_by_three(graph, body, x, y, object_identity)
