"""Checks of stored models, whose trees kernels walk unchecked. Invalid models raise ValueError."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.tuning.kernel import ForestArrays
from anyburl.tuning.observations import Observations

_FOREST = (np.int32, np.int32, np.float64, np.int32, np.float64)
_OBSERVED = {
    "relations": np.int32,
    "scores": np.float64,
    "is_stated": np.bool_,
    "has_others": np.bool_,
    "folds": np.uint8,
}


def checked_forest(forest: ForestArrays) -> ForestArrays:
    """Return trees that every row leaves again: children come after their parents, and leaves are there."""
    arrays: tuple[NDArray[Any], ...] = tuple(forest)
    if any(array.dtype != dtype or array.ndim != 1 for array, dtype in zip(arrays, _FOREST, strict=True)):
        raise ValueError("its trees have unexpected types")
    n_nodes = len(forest.columns)
    if len(forest.thresholds) != n_nodes or len(forest.children) != 2 * n_nodes:
        raise ValueError("its trees have missing nodes")
    if forest.columns.min(initial=0) < 0:
        raise ValueError("its trees ask for a column below 0")
    parents = np.repeat(np.arange(n_nodes), 2)
    _check_places(forest.roots, np.full(len(forest.roots), -1), forest)
    _check_places(forest.children, parents, forest)
    return forest


def _check_places(places: NDArray[np.int32], after: NDArray[np.int64], forest: ForestArrays) -> None:
    is_node = places >= 0
    within = np.where(is_node, (places > after) & (places < len(forest.columns)), places >= -len(forest.leaves))
    if not within.all():
        raise ValueError("its trees lead nowhere")


def checked_observations(observations: Observations) -> Observations:
    """Return observations whose columns have the right types, and are equally long."""
    for name, dtype in _OBSERVED.items():
        column = getattr(observations, name)
        if column.dtype != dtype or column.shape != (len(observations.scores),):
            raise ValueError(f"its observations have unexpected {name}")
    return observations
