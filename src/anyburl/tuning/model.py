"""The tuned aggregation: a small gradient-boosted ranker over the evidence of rules, trained on the
validation split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import MissingExtraError
from anyburl.tuning.features import Lists

PARAMETERS: dict[str, Any] = {
    "objective": "lambdarank",
    "num_leaves": 15,
    "min_data_in_leaf": 200,
    "learning_rate": 0.1,
    "lambdarank_truncation_level": 20,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
ROUNDS = 150


@dataclass(frozen=True)
class TunedModel:
    """Scores candidates by their features; higher is better."""

    booster: Any

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return a score for each row of features."""
        return np.asarray(self.booster.predict(rows), np.float64) if len(rows) else np.empty(0)


def fit(lists: list[Lists], labels: list[NDArray[np.int8]], seed: int, threads: int) -> TunedModel:
    """Train on lists of candidates, each marked as answer (1) or not (0); lists without an answer teach nothing."""
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtraError('aggregation="tuned"', "tuned") from error
    rows, marks, sizes = [], [], []
    for part, label in zip(lists, labels, strict=True):
        answered = np.bincount(
            np.repeat(np.arange(len(part.sizes)), part.sizes), weights=label, minlength=len(part.sizes)
        )
        useful = (answered > 0) & (part.sizes > 1)
        kept = np.repeat(useful, part.sizes)
        rows.append(part.rows[kept])
        marks.append(label[kept])
        sizes.append(part.sizes[useful])
    data = lightgbm.Dataset(np.vstack(rows), np.concatenate(marks), group=np.concatenate(sizes))
    parameters = {**PARAMETERS, "seed": seed, "num_threads": threads}
    return TunedModel(lightgbm.train(parameters, data, num_boost_round=ROUNDS))
