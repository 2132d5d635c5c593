"""Small sets of entities: a start that leads to a few hundred of ten million should not touch as many cache lines.

A stamp array over all entities is a set, too, and the faster one as long as it fits the caches: `hashed` tells which
one it is. Both use the same arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined
from anyburl.bodies.arrays import HASHED_PLACES, Limits


@inlined
def is_hashed(length: int, limits: Limits) -> bool:
    """Whether the walk from one start of a B body is so short that its entities are hashed."""
    by_hand = length == 2 or (length == 3 and limits.object_identity)
    return bool(by_hand and limits.start <= HASHED_PLACES // 4)


@inlined
def place_of(entity: int, keys: NDArray[np.int32], stamps: NDArray[np.int64], clock: int, hashed: bool) -> int:
    """Return the place of `entity`, or the one where it belongs: it is there if the place has the stamp `clock`."""
    if not hashed:
        return int(entity)
    place = ((int(entity) * 0x9E3779B1) >> 12) & (HASHED_PLACES - 1)
    while stamps[place] == clock and keys[place] != entity:
        place = (place + 1) & (HASHED_PLACES - 1)
    return place
