"""What the graph is: flat, frozen int arrays that kernels, memory maps and object stores share without copying."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]  # int16 or int32 (relations), int32 or int64 (rows): chosen by size, see `build_graph`


class GraphArrays(NamedTuple):
    """Two views of the same directed edges, and the domain of each directed relation.

    With R relations, directed relation `d` in [0, R) is a relation read forward, `d + R` the same read backward: every
    triple is an edge from its subject along `d` and one from its object along `d + R`. Entity ids are [0,
    n_entities); the id `n_entities` is the token `self`: a reflexive triple h(c, c) is stored as h(c, self), see
    `build_graph`.

    The rows of an entity are the same range in both views, since both list all its edges.
    """

    n_entities: int
    n_relations: int
    segment_offsets: Ints  # entity -> its first segment; one segment per directed relation that it has, sorted
    segment_relations: Ints  # segment -> directed relation
    segment_starts: Ints  # segment -> its first row in `targets`
    targets: NDArray[np.int32]  # by relation: row -> entity reached, sorted within a segment
    neighbours: NDArray[np.int32]  # by neighbour: row -> entity reached, sorted within an entity
    neighbour_relations: Ints  # by neighbour: row -> directed relation, sorted within a neighbour
    partners: Ints  # by relation: row -> the segment of its target that leads back
    domain_offsets: NDArray[np.int64]  # directed relation -> its first row in `domains`
    domains: NDArray[np.int32]  # the entities that have the relation (and lead to an entity by it), sorted


def inverses(relations: NDArray[np.int32], n_relations: int) -> NDArray[np.int32]:
    """Return the directed relations read the other way round; -1 (padding) stays."""
    flipped = np.where(relations < n_relations, relations + n_relations, relations - n_relations)
    return np.where(relations < 0, -1, flipped).astype(np.int32)
