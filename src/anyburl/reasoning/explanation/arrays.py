"""What a search for groundings is told, and what it writes to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class GroundingSearch(NamedTuple):
    """Where a depth-first search stands; one place per variable of a body."""

    nodes: NDArray[np.int32]  # place on the body's path -> entity, `self`, or -1 where anything would do
    taken: NDArray[np.int32]  # the same entities in the order in which they were chosen
    next_rows: NDArray[np.int64]  # depth -> the next choice to try
    end_rows: NDArray[np.int64]


class Sought(NamedTuple):
    """What a walk is to look like."""

    start: int
    end: int  # an entity, `self`, or -1 for anywhere
    avoided: int  # an entity that may only be the end
    object_identity: bool


def empty_search(longest: int) -> GroundingSearch:
    """Return room for bodies of up to `longest` atoms."""
    nodes, taken = np.zeros(longest + 2, np.int32), np.zeros(longest + 2, np.int32)
    return GroundingSearch(nodes, taken, np.zeros(longest + 2, np.int64), np.zeros(longest + 2, np.int64))
