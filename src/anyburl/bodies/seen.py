"""The bodies seen before: the unit of duplicate detection and of saturation."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import SeenArrays
from anyburl.bodies.kernel_seen import enter_keys, move_keys, record_rules

Harvested = tuple[NDArray[np.uint64], NDArray[np.int32]]
"""Keys of bodies, and how many rules each gave."""


def join_harvested(parts: Iterable[Harvested]) -> Harvested:
    """Concatenate lists of harvested bodies."""
    columns = list(zip(*parts, strict=True)) or [(), ()]
    return np.concatenate([np.empty(0, np.uint64), *columns[0]]), np.concatenate([np.empty(0, np.int32), *columns[1]])


def _empty_table(size: int) -> SeenArrays:
    return SeenArrays(
        keys=np.zeros(size, np.uint64),
        first_spans=np.full(size, -1, np.int32),
        last_spans=np.full(size, -1, np.int32),
        n_rules=np.zeros(size, np.int32),
    )


class SeenBodies:
    """A growing set of body keys that all workers share, with how many rules each body gave."""

    def __init__(self) -> None:
        self._table = _empty_table(1 << 16)
        self._lock = Lock()
        self._log: list[Harvested] = []
        self.n_bodies = 0

    def enter(self, keys: NDArray[np.uint64], span: int) -> tuple[NDArray[np.bool_], int]:
        """Enter `keys`; return which were new, and how many rules of earlier spans were met again in this one."""
        is_new = np.empty(len(keys), np.bool_)
        with self._lock:
            self._make_room(len(keys))
            n_new, n_known_rules = enter_keys(self._table, keys, span, is_new)
            self.n_bodies += n_new
        return is_new, n_known_rules

    def record(self, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
        """Note how many rules each of these bodies gave when it was harvested just now."""
        self.note((keys, counts))
        self._log.append((keys, counts.astype(np.int32)))

    def note(self, harvested: tuple[NDArray[np.uint64], NDArray[np.integer]]) -> None:
        """Note how many rules bodies gave that were harvested earlier or elsewhere."""
        keys, counts = harvested
        with self._lock:
            record_rules(self._table, keys, counts.astype(np.int64))

    def take_harvested(self) -> Harvested:
        """Return what was recorded since the last call."""
        log, self._log = self._log, []
        return join_harvested(log)

    def _make_room(self, n_keys: int) -> None:
        """Keep the table at most half full."""
        size = len(self._table.keys)
        while 2 * (self.n_bodies + n_keys) > size:
            size *= 2
        if size > len(self._table.keys):
            larger = _empty_table(size)
            move_keys(self._table, larger)
            self._table = larger
