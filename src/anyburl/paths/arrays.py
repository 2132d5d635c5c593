"""Where paths start, and a batch of sampled straight paths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class PathArrays(NamedTuple):
    """One row per path: a head edge from `starts` along `heads` to `others`, then a walk from `starts`.

    The walk goes along the columns of `relations` and arrives at `ends`; on a cyclic path that is `others` again.
    """

    starts: NDArray[np.int32]
    heads: NDArray[np.int32]  # directed relation of the head triple, read from `starts`
    others: NDArray[np.int32]  # the other entity of the head triple, or `self`
    relations: NDArray[np.int32]  # (n, rule length), directed
    ends: NDArray[np.int32]


class HeadTriples(NamedTuple):
    """The triples that paths start from: those listed, or, if `owners` is not empty, all triples of the graph.

    Then a head is an edge drawn by its row, and no list of triples has to be in memory.
    """

    triples: NDArray[np.int32]  # (n, 3)
    owners: NDArray[np.int32]  # block of 64 rows -> the entity that its first row belongs to


def empty_paths(n_paths: int, rule_length: int) -> PathArrays:
    """Return room for `n_paths` paths."""
    return PathArrays(
        starts=np.empty(n_paths, np.int32),
        heads=np.empty(n_paths, np.int32),
        others=np.empty(n_paths, np.int32),
        relations=np.empty((n_paths, rule_length), np.int32),
        ends=np.empty(n_paths, np.int32),
    )
