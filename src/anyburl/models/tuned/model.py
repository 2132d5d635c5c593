"""A small gradient-boosted ranker over the evidence of rules, trained with LightGBM, applied without it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import RunError
from anyburl.base.machine import map_in_threads
from anyburl.models.tuned.kernel import (
    MOST_LEAVES,
    TOGETHER,
    ComparisonArrays,
    ForestArrays,
    fill_choice,
    fill_pairs,
    score_rows,
)

MANY_LISTS = 6_000  # with fewer, every candidate is used
ALL_OF = 10  # candidates at the head of a list are used; of the others a share, which counts for all
SHARE_OF_OTHERS = 0.2  # of many lists

Objective = Callable[[NDArray[np.float64], Any], tuple[NDArray[np.float64], NDArray[np.float64]]]


def share_of_others(n_lists: int) -> float:
    """Return the share of candidates far down that is used: of many lists, a few are as good as all."""
    return SHARE_OF_OTHERS if n_lists > MANY_LISTS else 1.0


@dataclass(frozen=True)
class Lessons:
    """Training data: rows of candidates, list after list, answers or not; a row counts for `weights` candidates."""

    rows: NDArray[np.float32]
    labels: NDArray[np.float32]
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]
    positions: NDArray[np.int64]  # of the rows among those that they were taken from

    @classmethod
    def of(
        cls,
        rows: NDArray[np.float32],
        is_answer: NDArray[np.bool_],
        sizes: NDArray[np.int64],
        share: float,
        seed: int,
        *,
        first: int = ALL_OF,
    ) -> Lessons:
        """Leave out lists without an answer or with one candidate; of candidates after the `first`, draw a `share`."""
        questions = np.repeat(np.arange(len(sizes)), sizes)
        positions = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        useful = (np.bincount(questions, weights=is_answer, minlength=len(sizes)) > 0) & (sizes > 1)
        certain = (positions < first) | is_answer
        drawn = np.random.default_rng(seed).random(len(rows)) < share
        kept = useful[questions] & (certain | drawn)
        return cls(
            rows[kept],
            is_answer[kept].astype(np.float32),
            np.where(certain[kept], 1.0, 1 / share),
            np.bincount(questions[kept], minlength=len(sizes))[useful],
            np.flatnonzero(kept),
        )

    def some(self, kept: NDArray[np.bool_]) -> Lessons:
        """Return the lessons of some rows, without lists that then have no answer or one candidate."""
        lists = np.repeat(np.arange(len(self.sizes)), self.sizes)
        sizes = np.bincount(lists[kept], minlength=len(self.sizes))
        useful = (np.bincount(lists[kept], weights=self.labels[kept], minlength=len(sizes)) > 0) & (sizes > 1)
        positions = np.flatnonzero(kept & useful[lists])
        return Lessons(self.rows[positions], self.labels[positions], self.weights[positions], sizes[useful], positions)

    def objectives(self) -> list[Objective]:
        """Return the objectives of the two forests: the choice of an answer, and the order of pairs.

        Each has its own numbers, so that both forests may grow at once.
        """
        offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        of_choice, of_order, gains = *np.empty((2, 2, len(self.labels))), np.empty(len(self.labels))
        ordered = np.arange(len(self.labels))

        def choose(scores: NDArray[np.float64], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            fill_choice(scores, self.labels, self.weights, offsets, *of_choice)
            return of_choice[0], of_choice[1]

        def order(scores: NDArray[np.float64], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            fill_pairs(scores, self.labels, self.weights, offsets, ordered, gains, *of_order)
            return of_order[0], of_order[1]

        return [choose, order]


PARAMETERS: dict[str, Any] = {
    "num_leaves": 31,
    "min_data_in_leaf": 200,
    "lambda_l2": 3.0,
    "learning_rate": 0.1,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
ROUNDS = 150
SMALL: dict[str, Any] = {"num_leaves": 7, "min_data_in_leaf": 50}  # where there is little to learn from
FEW_ROUNDS = 60
CATEGORIES = 1  # the bit of LightGBM's `decision_type`
OPENMP = "where OpenMP is missing, install libgomp1 (Debian, Ubuntu), libgomp (Fedora) or, by Homebrew, libomp"
ROWS_OF_A_THREAD = 1_000_000  # with fewer, LightGBM's threads wait for each other longer than they work
ROWS_AT_A_TIME = 10_000


@dataclass(frozen=True)
class TunedModel:
    """Scores candidates by their rows of evidence; higher is better."""

    forest: ForestArrays
    threads: int

    @cached_property
    def n_columns(self) -> int:
        """The least number of columns of rows."""
        return int(self.forest.columns.max(initial=-1)) + 1

    @cached_property
    def _comparisons(self) -> ComparisonArrays:
        return to_comparisons(self.forest)

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return a score for each row."""
        if rows.shape[1] < self.n_columns:
            raise RunError(f"the tuned model was trained on {self.n_columns} columns, got {rows.shape[1]}: tune again")
        trees, scores, rows = self._comparisons, np.empty(len(rows)), np.ascontiguousarray(rows, np.float32)
        starts = range(0, len(rows), ROWS_AT_A_TIME)

        def score(start: int) -> None:
            values, possible = np.zeros(TOGETHER, np.float32), np.empty((len(trees.leaves), TOGETHER), np.uint32)
            score_rows(trees, rows, start, min(start + ROWS_AT_A_TIME, len(rows)), values, possible, scores)

        map_in_threads(score, starts, self.threads)
        return scores


def require_lightgbm() -> Any:
    """Return LightGBM; the error says that it may not find OpenMP.

    Its threads wait without spinning, which takes many times as long where others use the cores too.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"tuning needs LightGBM, which cannot be loaded ({reason}): {OPENMP}") from error
    return lightgbm


def fit(
    lessons: Lessons, seed: int, threads: int, *, parts: Sequence[NDArray[np.bool_]] = (), small: bool = False
) -> list[TunedModel]:
    """Train a model on all lessons, and one on those of each part of the rows.

    A model is the mean of two forests: one is fitted to the choice of an answer from its list, one to the order of
    pairs. They err in different ways, so that both together are better than either. A `small` model has fewer and
    smaller trees.

    Values are put into bins once. Then as many forests grow at a time as there are threads, the largest first, each by
    one thread if its rows are few: more would wait for each other longer than they work.
    """
    lightgbm = require_lightgbm()
    parameters = {**PARAMETERS, **(SMALL if small else {}), "seed": seed}
    rounds = FEW_ROUNDS if small else ROUNDS
    binned = lightgbm.Dataset(lessons.rows, lessons.labels, params={**parameters, "num_threads": threads}).construct()
    own = [lessons, *map(lessons.some, parts)]
    data = [binned, *(binned.subset(some.positions).construct() for some in own[1:])]
    objectives = [some.objectives() for some in own]
    tasks = [(number, objective) for number, both in enumerate(objectives) for objective in both]

    def grow(task: tuple[int, Objective]) -> ForestArrays:
        number, objective = task
        useful_threads = min(max(1, threads // len(tasks)), 1 + len(own[number].rows) // ROWS_OF_A_THREAD)
        settings = {**parameters, "num_threads": useful_threads, "objective": objective}
        return to_forest(lightgbm.train(settings, data[number], num_boost_round=rounds))

    forests = iter(map_in_threads(grow, tasks, threads))
    return [TunedModel(join_forests([next(forests) for _ in both]), threads) for both in objectives]


def join_forests(forests: Sequence[ForestArrays], *, mean: bool = True) -> ForestArrays:
    """Return one forest whose scores are the mean of those of all, or their sum."""
    nodes, leaves = 0, 0
    parts: list[ForestArrays] = []
    for forest in forests:
        roots, children = (
            np.where(links >= 0, links + nodes, links - leaves).astype(np.int32)
            for links in (forest.roots, forest.children)
        )
        values = forest.leaves / len(forests) if mean else forest.leaves
        parts.append(forest._replace(roots=roots, children=children, leaves=values))
        nodes, leaves = nodes + len(forest.columns), leaves + len(forest.leaves)
    return ForestArrays(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def to_forest(booster: Any) -> ForestArrays:
    """Return the trees of a LightGBM model over rows without missing values and categories.

    They are read from its text, a fifth of the time of its JSON.
    """
    forests: list[ForestArrays] = []
    for text in booster.model_to_string().split("\nTree=")[1:]:
        lines = (line.partition("=") for line in text.splitlines())
        fields = {name: values.split() for name, equals, values in lines if equals}
        if any(int(kind) & CATEGORIES for kind in fields.get("decision_type", ())):
            raise ValueError("expected trees that compare numbers, got categories")
        children = np.array([fields.get("left_child", ()), fields.get("right_child", ())], np.int32)
        columns = np.array(fields.get("split_feature", ()), np.int32)
        forests.append(
            ForestArrays(
                np.array([0 if len(columns) else -1], np.int32),
                columns,
                np.array(fields.get("threshold", ()), np.float64),
                children.T.ravel(),
                np.array(fields["leaf_value"], np.float64),
            )
        )
    return join_forests(forests, mean=False)


def to_comparisons(forest: ForestArrays) -> ComparisonArrays:
    """Return trees with at most MOST_LEAVES leaves as lists of comparisons."""
    comparisons: list[tuple[int, float, int, int]] = []
    leaves = np.zeros((len(forest.roots), MOST_LEAVES))

    def add(tree: int, link: int, n_before: int) -> int:
        """Add what is below a link, after some leaves; return how many leaves there are then."""
        if link < 0:
            leaves[tree, n_before] = forest.leaves[-1 - link]
            return n_before + 1
        left, right = forest.children[2 * link : 2 * link + 2].tolist()
        n_left = add(tree, left, n_before)
        ruled_out = (1 << n_left) - (1 << n_before)
        comparisons.append((int(forest.columns[link]), float(forest.thresholds[link]), tree, ~ruled_out & 0xFFFFFFFF))
        return add(tree, right, n_left)

    for tree, root in enumerate(forest.roots.tolist()):
        add(tree, root, 0)
    comparisons.sort()
    columns, exact, trees, kept = (
        np.array([comparison[i] for comparison in comparisons], dtype)
        for i, dtype in enumerate((np.int64, np.float64, np.int32, np.uint32))
    )
    with np.errstate(over="ignore"):
        thresholds = exact.astype(np.float32)
    too_high = thresholds > exact  # a number of 32 bits is above a threshold if it is above the next lower one
    thresholds[too_high] = np.nextafter(thresholds[too_high], np.float32(-np.inf))
    n_columns = int(columns.max(initial=-1)) + 1
    return ComparisonArrays(
        np.searchsorted(columns, np.arange(n_columns + 1)).astype(np.int64),
        thresholds,
        trees,
        kept,
        leaves,
    )
