"""Which worker owns which bodies: workers that share nothing divide them by a hash of their keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import BodyArrays

N_SHARDS = 4096
ALL_SHARDS = np.ones(N_SHARDS, np.bool_)


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


@dataclass(frozen=True)
class Share:
    """One worker's part of all bodies.

    Workers that all sample the same paths count them in full (`weight` 1), and the engine counts them once. Those that
    sample independently drop the bodies of others, so each path counts in proportion to their share of the bodies.
    """

    owned: NDArray[np.bool_] | None = None  # shard -> whether its bodies are kept; None: all are
    weight: float = 1.0

    def owns(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Mark the bodies that this worker owns."""
        return np.ones(len(keys), np.bool_) if self.owned is None else self.owned[shards_of(keys)]

    def of(self, bodies: BodyArrays, attempts: int, paths: int) -> tuple[BodyArrays, int, int]:
        """Return the bodies that this worker owns, and the attempts and paths to count."""
        if self.owned is None:
            return bodies, attempts, paths
        own = bodies.take(np.flatnonzero(self.owns(bodies.keys)))
        return own, round(attempts * self.weight), round(paths * self.weight)


WHOLE = Share()
