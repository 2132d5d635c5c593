"""The model on top of rules: orders the best candidates of a question by their evidence.

A conditional logit has one weight for each column; a forest (LightGBM) gets the score of the logit as a column besides.
Both are fitted on questions after the facts that the rules were counted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.models.tuned.kernel import ForestArrays
from anyburl.models.tuned.model import (
    PARAMETERS,
    SHARE_OF_OTHERS,
    Lessons,
    TunedModel,
    join_forests,
    require_lightgbm,
    share_of_others,
    to_forest,
)
from anyburl.temporal.kernel_answer import (
    LAST_FAVOUR,
    LAST_SEEN,
    LATELY,
    N_SEEN,
    OPPOSITE,
    OWN_SHARE,
    REVERSE,
    SCORE,
    SIMILAR,
)

LEAST = np.array([1e-4] * 8 + [1] * 7 + [1e-4] * 3 + [1e-5] * 3 + [1e-4] * 3, np.float32)
"""What is added to values, popularity and components before their logarithm is taken."""
STEPS = 20
PENALTY = 2e-4  # of squared weights of scaled columns, for each list
NEAR_ZERO = 1e-6
FOREST = {"num_leaves": 15, "max_bin": 63, "lambda_l2": 5.0}
ROUNDS = 100
ROWS_OF_A_THREAD = 100_000
MOST_LISTS = 4_000  # that the few weights of a logit are fitted on

Rows = NDArray[np.float32]
Doubles = NDArray[np.float64]


def logit_columns(rows: Rows) -> Rows:
    """Return the columns of the logit: logarithms of evidence, and what it is relative to the question."""
    logs = np.log(rows[:, : len(LEAST)] + LEAST)
    more = np.stack(
        [
            np.log(rows[:, LAST_SEEN] + 1),
            np.log(rows[:, N_SEEN] + 1),
            rows[:, OWN_SHARE],
            np.log(rows[:, OWN_SHARE] + 0.01),
            np.log(rows[:, SCORE] + 1e-6),
            np.log(rows[:, OPPOSITE] + 1),
            np.log(np.maximum(rows[:, LAST_FAVOUR], 0) + 1),
            rows[:, SIMILAR],
            np.log(rows[:, LATELY] + 1),
            np.log((rows[:, REVERSE] + 1e-3) / (rows[:, OPPOSITE] + 1)),
        ],
        axis=1,
    )
    return np.concatenate([logs, more], axis=1).astype(np.float32)


@dataclass(frozen=True)
class ListModel:
    """Scores candidates by their features: by a logit, and a forest on top of it if there is one."""

    weights: Doubles
    forest: ForestArrays | None
    threads: int

    def scores(self, rows: Rows, sizes: NDArray[np.int64]) -> Doubles:
        """Return a score for each row; rows are lists of candidates of `sizes`."""
        logits = logit_columns(rows) @ self.weights
        if self.forest is None or not len(rows):
            return logits
        return TunedModel(self.forest, self.threads).scores(_with_logits(rows, logits, sizes))


FEWEST_ROWS = 500  # candidates that a forest is fitted on; LightGBM refuses a handful


def _with_logits(rows: Rows, logits: Doubles, sizes: NDArray[np.int64]) -> Rows:
    """Return rows with the score of the logit, and how far it is below the best of its list."""
    used = sizes[sizes > 0]
    highest = np.maximum.reduceat(logits, np.cumsum(used) - used) if len(used) else np.empty(0)
    below = logits - np.repeat(highest, used)
    return np.concatenate([rows, np.stack([logits, below], axis=1).astype(np.float32)], axis=1)


def fit_logit(lessons: Lessons) -> Doubles:
    """Return the most likely weights for the choice of an answer from each list (Newton's method)."""
    columns, sizes = lessons.rows, lessons.sizes
    starts = np.cumsum(sizes) - sizes
    labels = lessons.labels.astype(np.float64)
    labels /= np.repeat(np.add.reduceat(labels, starts), sizes)
    stand_for = np.log(lessons.weights)
    mean, deviation = columns.mean(axis=0, dtype=np.float64), columns.std(axis=0, dtype=np.float64) + NEAR_ZERO
    scaled = ((columns - mean) / deviation).astype(np.float32)
    n, width = len(sizes), scaled.shape[1]
    weights, penalty = np.zeros(width), PENALTY * n

    def chances_of(tried: Doubles) -> tuple[float, Doubles]:
        """Return the penalised log-likelihood of weights, and the chance that they give each candidate."""
        logits = (scaled @ tried.astype(np.float32)).astype(np.float64) + stand_for
        logits -= np.repeat(np.maximum.reduceat(logits, starts), sizes)
        chances = np.exp(logits)
        totals = np.add.reduceat(chances, starts)
        likelihood = float(labels @ logits - np.log(totals).sum() - 0.5 * penalty * tried @ tried)
        return likelihood, chances / np.repeat(totals, sizes)

    likelihood, chances = chances_of(weights)
    for _ in range(STEPS):
        slope = (labels - chances).astype(np.float32) @ scaled - penalty * weights
        weighted = scaled * np.sqrt(chances).astype(np.float32)[:, None]
        means = np.add.reduceat(scaled * chances.astype(np.float32)[:, None], starts, axis=0)
        curvature = (weighted.T @ weighted - means.T @ means).astype(np.float64)
        step = np.linalg.solve(curvature + penalty * np.eye(width), slope)
        tried, chances_then = chances_of(weights + step)
        while tried < likelihood and np.abs(step).max() > NEAR_ZERO:  # too far: a step of Newton's may overshoot
            step *= 0.5
            tried, chances_then = chances_of(weights + step)
        weights += step
        gain, likelihood, chances = tried - likelihood, tried, chances_then
        if gain < 1e-5 * n:
            break
    return np.asarray(weights / deviation, np.float64)


def fit_model(
    kind: str, rows: Rows, is_answer: NDArray[np.bool_], sizes: NDArray[np.int64], seed: int, threads: int
) -> ListModel:
    """Fit a model of some kind ("logit" or "forest") on lists of candidates."""
    used = sizes[sizes > 0]
    columns = logit_columns(rows)
    chosen = np.zeros(len(used), np.bool_)
    chosen[np.linspace(0, len(used) - 1, min(len(used), MOST_LISTS)).astype(np.int64)] = True
    part = np.repeat(chosen, used)
    lessons = Lessons.of(columns[part], is_answer[part], used[chosen], SHARE_OF_OTHERS, seed)
    if not len(lessons.rows):
        return ListModel(np.zeros(columns.shape[1]), None, threads)
    weights = fit_logit(lessons)
    if kind == "logit":
        return ListModel(weights, None, threads)
    told = Lessons.of(_with_logits(rows, columns @ weights, used), is_answer, used, share_of_others(len(used)), seed)
    return ListModel(weights, fit_forest(told, seed, threads), threads)


def fit_forest(lessons: Lessons, seed: int, threads: int) -> ForestArrays:
    """Return the mean of two forests, one fitted to the choice of an answer, one to the order of pairs."""
    lightgbm = require_lightgbm()
    data = lightgbm.Dataset(lessons.rows, lessons.labels, params={"max_bin": FOREST["max_bin"], "verbosity": -1})
    useful = min(threads, 1 + len(lessons.rows) // ROWS_OF_A_THREAD)
    parameters = {**PARAMETERS, **FOREST, "seed": seed, "num_threads": useful}
    forests = [
        to_forest(lightgbm.train({**parameters, "objective": objective}, data, num_boost_round=ROUNDS))
        for objective in lessons.objectives()
    ]
    return join_forests(forests)


def model_arrays(model: ListModel | None) -> dict[str, NDArray[Any]]:
    """Return a model as arrays to keep."""
    if model is None:
        return {}
    forest = {} if model.forest is None else {f"forest_{k}": v for k, v in model.forest._asdict().items()}
    return {"logit": model.weights, **forest}


def model_of(arrays: dict[str, NDArray[Any]], threads: int) -> ListModel | None:
    """Return the model that `model_arrays` was made of."""
    if "logit" not in arrays:
        return None
    fields = [f"forest_{name}" for name in ForestArrays._fields]
    forest = ForestArrays(*(arrays[name] for name in fields)) if fields[0] in arrays else None
    return ListModel(np.asarray(arrays["logit"], np.float64), forest, threads)
