"""The model on top of rules: orders the best candidates of a question by their evidence.

A conditional logit has one weight for each column; a forest (LightGBM) gets the score of the logit as a column besides.
Both are fitted on questions after the facts that the rules were counted on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.machine import map_in_threads
from anyburl.models.tuned.kernel import ForestArrays
from anyburl.models.tuned.model import (
    MANY_LISTS,
    PARAMETERS,
    SHARE_OF_OTHERS,
    Lessons,
    TunedModel,
    join_forests,
    require_lightgbm,
    to_forest,
)
from anyburl.temporal.kernel_answer import N_COLUMNS, count_before, fill_columns, fill_logits, multiply_rows
from anyburl.temporal.kernel_bodies import HistoryArrays

N_DIMENSIONS = 32  # of the vectors of entities
N_PASSES = 4
STEPS = 20
PENALTY = 2e-4  # of squared weights of scaled columns, for each list
NEAR_ZERO = 1e-6
FOREST = {"num_leaves": 15, "max_bin": 63, "lambda_l2": 5.0}
ROUNDS = 100
ALL_OF, SHARE = 5, 0.1  # candidates of a list that a forest is fitted on: the first ones, and of all others a share
MOST_LISTS = 4_000  # that the few weights of a logit are fitted on

Rows = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class ListModel:
    """Scores candidates by their features: by a logit, and a forest on top of it if there is one."""

    weights: Doubles
    forest: ForestArrays | None
    threads: int

    def scores(self, rows: Rows, sizes: NDArray[np.int64]) -> Doubles:
        """Return a score for each row; rows are lists of candidates of `sizes`. The columns of the logit are set."""
        logits = score_logit(rows, sizes, self.weights, self.threads)
        if self.forest is None or not len(rows):
            return logits
        return TunedModel(self.forest, self.threads).scores(rows)


def score_logit(rows: Rows, sizes: NDArray[np.int64], weights: Doubles, threads: int) -> Doubles:
    """Return the score of the logit for each row, and write it into its columns of the rows."""
    offsets, logits = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.empty(len(rows))
    bounds = np.linspace(0, len(sizes), 8 * threads + 1).astype(int).tolist()
    map_in_threads(
        lambda part: fill_logits(rows, offsets, *part, weights, np.empty(N_COLUMNS, np.float32), logits),
        list(pairwise(bounds)),
        threads,
    )
    return logits


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
    kind: str,
    rows: Rows,
    is_answer: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    seed: int,
    threads: int,
    is_stopped: Callable[[], bool] = lambda: False,
) -> ListModel:
    """Fit a model of some kind ("logit" or "forest") on lists of candidates; a forest ends early if it `is_stopped`."""
    used = sizes[sizes > 0]
    chosen = np.zeros(len(used), np.bool_)
    chosen[np.linspace(0, len(used) - 1, min(len(used), MOST_LISTS)).astype(np.int64)] = True
    part = np.repeat(chosen, used)
    lessons = Lessons.of(rows[part], is_answer[part], used[chosen], SHARE_OF_OTHERS, seed)
    if not len(lessons.rows):
        return ListModel(np.zeros(N_COLUMNS), None, threads)
    columns = np.empty((len(lessons.rows), N_COLUMNS), np.float32)
    fill_columns(lessons.rows, columns)
    lessons = replace(lessons, rows=columns)
    weights = fit_logit(lessons)
    if kind == "logit" or is_stopped():
        return ListModel(weights, None, threads)
    score_logit(rows, used, weights, threads)
    training = Lessons.of(rows, is_answer, used, SHARE if len(used) > MANY_LISTS else 1.0, seed, first=ALL_OF)
    return ListModel(weights, fit_forest(training, seed, threads, is_stopped), threads)


def fit_forest(lessons: Lessons, seed: int, threads: int, is_stopped: Callable[[], bool]) -> ForestArrays:
    """Return the mean of two forests, one fitted to the choice of an answer, one to the order of pairs."""
    lightgbm = require_lightgbm()

    def end_early(training: Any) -> None:
        if is_stopped():
            raise lightgbm.callback.EarlyStopException(training.iteration, [])

    parameters = {**PARAMETERS, **FOREST, "seed": seed, "num_threads": 1}

    def fit(number: int) -> ForestArrays:
        """Fit one forest by one thread: two that share a forest wait for each other longer than they work."""
        data = lightgbm.Dataset(lessons.rows, lessons.labels, params={"max_bin": FOREST["max_bin"], "verbosity": -1})
        settings = {**parameters, "objective": lessons.objectives()[number]}
        return to_forest(lightgbm.train(settings, data, ROUNDS, callbacks=[end_early]))

    forests = map_in_threads(fit, range(len(lessons.objectives())), threads)
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


def entity_vectors(history: HistoryArrays, end: int) -> NDArray[np.float32]:
    """Return a vector of length 1 for each entity, from the facts before `end`; 0 for those without facts.

    The table of questions (x, h) and their answers, with logarithms of counts, scaled by the sums of rows and columns,
    is reduced to its strongest dimensions (subspace iteration from fixed numbers, so results are the same each time).
    """
    n, n_triples = history.n_entities, len(history.triple_relations)
    counts = np.zeros(n_triples, np.int64)
    count_before(history, end, counts)
    entities = np.repeat(np.arange(n), np.diff(history.triple_offsets))
    order = np.lexsort((history.triple_relations, entities))
    order = order[counts[order] > 0]
    if not len(order):
        return np.zeros((n, 0), np.float32)
    keys = entities[order] * history.n_relations + history.triple_relations[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    offsets = np.append(firsts, len(keys)).astype(np.int64)
    columns, values = history.triple_objects[order], np.log1p(counts[order])
    rows = np.repeat(np.arange(len(firsts)), np.diff(offsets))
    row_sums, column_sums = np.bincount(rows, values), np.bincount(columns, values, n)
    values = values / np.sqrt(row_sums[rows] * column_sums[columns])
    width = min(N_DIMENSIONS, n)
    basis = np.random.default_rng(0).standard_normal((n, width))
    strengths = np.ones(width)
    for _ in range(N_PASSES):
        basis, _ = np.linalg.qr(basis)
        product = np.zeros((n, width))
        multiply_rows(offsets, columns, values, basis, np.zeros(width), product)
        basis = product
    left, strengths, _ = np.linalg.svd(basis, full_matrices=False)
    vectors = left * np.sqrt(strengths)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(np.where(lengths > 1e-9, vectors / np.maximum(lengths, 1e-9), 0), np.float32)
