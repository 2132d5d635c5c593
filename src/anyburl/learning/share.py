"""Which worker harvests which bodies: workers that share nothing divide them by a hash of their keys, the shard.

With seconds, every worker owns some of the shards. With a path budget, shards are handed out while a span runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import BodyArrays

N_SHARDS = 4096
ALL_SHARDS = np.ones(N_SHARDS, np.bool_)
LEAST = 32  # of a worker's share of all shards, this part is the smallest piece that is handed out


def shards_of(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the shard of each body: the top bits of its scrambled key (tables of seen bodies go by the low ones)."""
    with np.errstate(over="ignore"):
        mixed = keys + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(52)).astype(np.int64)


def divide(shards: NDArray[np.bool_], n_workers: int) -> list[NDArray[np.bool_]]:
    """Divide the marked shards between `n_workers` workers."""
    parts = []
    for numbers in np.array_split(np.flatnonzero(shards), n_workers):
        mask = np.zeros(N_SHARDS, np.bool_)
        mask[numbers] = True
        parts.append(mask)
    return parts


class Handout:
    """Shards handed out piece by piece, in pieces that become smaller, so that all workers finish at about the same
    time: bodies differ in their work, and cores in their speed.
    """

    def __init__(self, shards: NDArray[np.bool_], n_workers: int) -> None:
        self._left = np.flatnonzero(shards)
        self._n_workers = n_workers

    def next_piece(self) -> NDArray[np.int64]:
        """Return the numbers of the next shards; none if all were handed out."""
        size = max(len(self._left) // (2 * self._n_workers), N_SHARDS // (LEAST * self._n_workers), 1)
        piece, self._left = self._left[:size], self._left[size:]
        return piece


@dataclass(frozen=True)
class Share:
    """One worker's part of all bodies.

    Workers sample independently and drop the bodies of others, so each path counts in proportion to their share of the
    bodies.
    """

    owned: NDArray[np.bool_] | None = None  # shard -> whether its bodies are kept; None: all are

    def owns(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Mark the bodies that this worker owns."""
        return np.ones(len(keys), np.bool_) if self.owned is None else self.owned[shards_of(keys)]

    def of(self, bodies: BodyArrays, attempts: int, paths: int) -> tuple[BodyArrays, int, int]:
        """Return the bodies that this worker owns, and the attempts and paths to count."""
        if self.owned is None:
            return bodies, attempts, paths
        own = bodies.take(np.flatnonzero(self.owns(bodies.keys)))
        weight = float(self.owned.mean())
        return own, round(attempts * weight), round(paths * weight)


WHOLE = Share()
