"""A small gradient-boosted ranker over the evidence of rules."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import MissingExtraError

PARAMETERS: dict[str, Any] = {
    "objective": "lambdarank",
    "num_leaves": 15,
    "min_data_in_leaf": 200,
    "learning_rate": 0.1,
    "lambdarank_truncation_level": 100,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
ROUNDS = 150
ROWS_OF_A_THREAD = 1_000_000  # with fewer, threads wait for each other longer than they work


@dataclass(frozen=True)
class TunedModel:
    """Scores candidates by their rows of figures; higher is better."""

    booster: Any
    threads: int

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return a score for each row."""
        if not len(rows):
            return np.empty(0)
        return np.asarray(self.booster.predict(rows, num_threads=useful_threads(rows, self.threads)), np.float64)


def useful_threads(rows: NDArray[np.float32], threads: int) -> int:
    """Return how many of the threads so many rows are worth."""
    return min(threads, 1 + len(rows) // ROWS_OF_A_THREAD)


def require_lightgbm() -> Any:
    """Return the library, or say how it can be had.

    Its threads wait for each other without spinning: where others use the cores too, spinning takes many times as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtraError('aggregation="tuned"', "tuned") from error
    return lightgbm


def fit(
    rows: NDArray[np.float32], labels: NDArray[np.bool_], sizes: NDArray[np.int64], seed: int, threads: int
) -> TunedModel:
    """Train on lists of candidates (`sizes`), each an answer or not; lists without an answer teach nothing."""
    lightgbm = require_lightgbm()
    questions = np.repeat(np.arange(len(sizes)), sizes)
    useful = (np.bincount(questions, weights=labels, minlength=len(sizes)) > 0) & (sizes > 1)
    kept = useful[questions]
    data = lightgbm.Dataset(rows[kept], labels[kept].astype(np.int8), group=sizes[useful])
    parameters = {**PARAMETERS, "seed": seed, "num_threads": useful_threads(rows, threads)}
    return TunedModel(lightgbm.train(parameters, data, num_boost_round=ROUNDS), threads)
