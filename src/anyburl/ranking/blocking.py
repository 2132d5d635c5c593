"""Whether predictions between connected entities are blocked (paper, section 4.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.queries import rows_about
from anyburl.triples.dataset import Dataset

FEWEST_VALID = 50  # triples: if one pair in ten were connected, seeing none among this many has a chance of 1 in 194


def connected_share(dataset: Dataset) -> float:
    """Return the share of validation triples whose two entities are connected in train by any relation, either way."""
    valid = dataset.valid.triples
    asked = pairs_of(valid)
    is_known = np.zeros(len(asked), np.bool_)
    for piece in rows_about(np.unique(valid[:, 0]), dataset.train.triples):
        is_known |= np.isin(asked, pairs_of(piece))
    return float(is_known.mean()) if len(asked) else 1.0


def blocks_connected(choice: str, dataset: Dataset) -> bool:
    """Return whether to block: `on`, `off`, or `auto`, which blocks if no validation triple joins connected
    entities, and there are enough of them for this not to be chance.
    """
    if choice == "auto":
        return len(dataset.valid) >= FEWEST_VALID and connected_share(dataset) == 0.0
    return choice == "on"


def joins_unconnected(triples: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which triples join entities that no other of them joins, either way."""
    _, numbers, counts = np.unique(pairs_of(triples), return_inverse=True, return_counts=True)
    alone: NDArray[np.bool_] = counts[numbers] == 1
    return alone


def pairs_of(triples: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return each triple's two entities as one number, whichever comes first."""
    low, high = triples[:, [0, 2]].min(axis=1), triples[:, [0, 2]].max(axis=1)
    pairs: NDArray[np.int64] = low.astype(np.int64) << 32 | high
    return pairs
