"""A tuned model in a run folder, with a record of what it was trained on.

Checks of stored models, whose trees kernels walk unchecked. Invalid models raise ValueError.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.writing import KeptKey, StoredValues, damaged, load_kept, save_kept
from anyburl.models.tuned.kernel_gradients import ForestArrays
from anyburl.models.tuned.model import FEW_ROUNDS, PARAMETERS, ROUNDS, SMALL, TunedModel
from anyburl.models.tuned.observations import Observations
from anyburl.models.tuned.train import FEW_LOST, MORE_QUESTIONS, MOST_QUESTIONS, MUCH, N_FOLDS, WEAK, Tuning
from anyburl.ranking.options import parse_aggregation

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


TUNED = "tuned"  # the folder in a run folder
FORMAT = 7
COLUMNS = tuple(field.name for field in fields(Observations))


def tuning_key(rules: str, data: str, options: dict[str, Any]) -> KeptKey:
    """Return what a model depends on: the rules, the data, how rules are applied, and how it is trained."""
    return KeptKey(
        rules,
        data,
        options,
        [FORMAT, ROUNDS, PARAMETERS, FEW_ROUNDS, SMALL, N_FOLDS, MOST_QUESTIONS, MORE_QUESTIONS, WEAK, MUCH, FEW_LOST],
    )


def save_tuning(run: Path, tuning: Tuning, key: KeptKey) -> Path:
    """Write what tuning chose; return the file."""
    about = {
        "aggregation": tuning.aggregation,
        "validation": tuning.validation,
        "questions": tuning.questions,
        "seconds": tuning.seconds,
        "facts": tuning.facts,
        "least_binary": tuning.least_binary,
        "has_model": tuning.model is not None,
    }
    arrays = {} if tuning.model is None else tuning.model.forest._asdict()
    if tuning.observations is not None:
        arrays |= {name: getattr(tuning.observations, name) for name in COLUMNS}
    return save_kept(run / TUNED, key, StoredValues(about, arrays))


def load_tuning(run: Path, key: KeptKey, threads: int) -> Tuning | str:
    """Return what tuning chose before, or why that cannot be used: "" if there is nothing."""
    found = load_kept(run / TUNED, key)
    if isinstance(found, str):
        return found
    about, arrays = found.about, found.arrays
    try:
        model = observations = None
        if about["has_model"]:
            model = TunedModel(checked_forest(ForestArrays(*(arrays[name] for name in ForestArrays._fields))), threads)
            observations = checked_observations(Observations(*(arrays[name] for name in COLUMNS)))
        parse_aggregation(about["aggregation"])
        chosen = about["aggregation"], dict(about["validation"]), int(about["questions"]), float(about["seconds"])
        facts, least_binary = int(about["facts"]), float(about["least_binary"])
        if not 0 <= least_binary < 1:
            raise ValueError(f"a least confidence of {least_binary}")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        return damaged(run / TUNED / key.name, error)
    return Tuning(model, *chosen, stored=True, observations=observations, facts=facts, least_binary=least_binary)
