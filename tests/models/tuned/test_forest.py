"""The trees of a model, walked without LightGBM, give LightGBM's own scores."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
from numpy.typing import NDArray

from anyburl.models.tuned import model
from anyburl.models.tuned.kernel import MOST_LEAVES, ForestArrays
from anyburl.models.tuned.model import PARAMETERS, Lessons, TunedModel, fit, join_forests, to_forest
from anyburl.models.tuned.train import checked_forest
from kernels import examples

N_COLUMNS = 7


def evidence(seed: int, n_rows: int) -> NDArray[np.float32]:
    """Columns as evidence has them: many zeros, counts, logarithms, very small and very large numbers."""
    rng = np.random.default_rng(seed)
    rows = rng.gamma(0.5, 3.0, (n_rows, N_COLUMNS)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.3] = 0
    rows[:, 1] = rng.integers(0, 5, n_rows)
    rows[:, 2] = -np.log1p(rows[:, 2])
    rows[:, 3] *= np.float32(1e-30)
    rows[:, 4] *= np.float32(1e20)
    return rows


def trained(seed: int, **parameters: Any) -> tuple[Any, NDArray[np.float32]]:
    rows, rng = evidence(seed, 3000), np.random.default_rng(seed)
    labels = (rows[:, 0] + rows[:, 1] + rng.random(len(rows)) > 3).astype(np.int8)
    data = lightgbm.Dataset(rows, labels, group=np.full(100, 30))
    chosen = {
        **PARAMETERS,
        "objective": "lambdarank",
        "min_data_in_leaf": 20,
        "num_threads": 1,
        "seed": seed,
        **parameters,
    }
    return lightgbm.train(chosen, data, num_boost_round=30), rows


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(4))
def test_scores_are_exactly_those_of_lightgbm(seed: int) -> None:
    booster, rows = trained(seed)
    forest = to_forest(booster)
    thresholds = np.zeros((len(forest.thresholds), N_COLUMNS), np.float32)
    thresholds[np.arange(len(thresholds)), forest.columns] = forest.thresholds
    near = np.concatenate([np.nextafter(thresholds, np.float32(way)) for way in (-np.inf, np.inf)])
    asked = np.concatenate([rows, evidence(seed + 100, 500), thresholds, near])[:: examples(1, 20)]
    assert TunedModel(forest, threads=1).scores(asked).tolist() == booster.predict(asked).tolist()


@pytest.mark.kernel
def test_threads_and_parts_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    booster, rows = trained(1)
    asked = rows[:: examples(1, 20)]
    monkeypatch.setattr(model, "ROWS_AT_A_TIME", 7)
    for threads in (1, 3):
        assert TunedModel(to_forest(booster), threads).scores(asked).tolist() == booster.predict(asked).tolist()
    assert TunedModel(to_forest(booster), 2).scores(rows[:0]).tolist() == []


@pytest.mark.kernel
def test_a_tree_may_be_a_single_leaf() -> None:
    booster, rows = trained(1, min_data_in_leaf=10**6)
    forest = to_forest(booster)
    assert len(forest.columns) == 0
    assert TunedModel(forest, 1).scores(rows[:9]).tolist() == booster.predict(rows[:9]).tolist()


def test_fit_gives_the_forest_of_what_lightgbm_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, boosters = evidence(3, 3000), list[Any]()
    labels = rows[:, 0] > 2
    train = lightgbm.train

    def keep(*arguments: Any, **keywords: Any) -> Any:
        boosters.append(train(*arguments, **keywords))
        return boosters[-1]

    monkeypatch.setattr(lightgbm, "train", keep)
    (found,) = fit(Lessons.of(rows, labels, np.full(100, 30), 1.0, 2), seed=2, threads=2)
    expected = np.mean([booster.predict(rows) for booster in boosters], axis=0)
    assert found.scores(rows).tolist() == pytest.approx(expected.tolist())
    assert len(found.forest.roots) == sum(booster.num_trees() for booster in boosters) > 1


def test_parts_and_threads_do_not_change_a_model() -> None:
    """Forests grow side by side: each has its own gradients."""
    rows = evidence(4, 6000)
    lessons = Lessons.of(rows, rows[:, 0] + rows[:, 1] > 4, np.full(200, 30), 1.0, 2)
    parts = [lessons.positions % 90 >= 30, lessons.positions % 60 < 30]
    alone = [found.forest for found in fit(lessons, 3, 1, parts=parts)]
    (whole,) = fit(lessons, 3, 1)
    assert len({len(forest.columns) for forest in alone}) == 3
    for forests in (alone, [found.forest for found in fit(lessons, 3, 4, parts=parts)]):
        for one, another in zip([whole.forest, *alone[1:]], forests, strict=True):
            assert all(map(np.array_equal, one, another))


def test_part_of_the_lessons_has_no_list_without_an_answer_or_choice() -> None:
    rows = np.arange(9, dtype=np.float32)[:, None]
    is_answer = np.array([1, 0, 0, 1, 0, 1, 0, 0, 1], np.bool_)
    lessons = Lessons.of(rows, is_answer, np.array([3, 2, 4]), 1.0, 0)
    kept = np.array([0, 1, 1, 1, 0, 1, 1, 0, 1], np.bool_)  # no answer, no choice, two answers and another
    found = lessons.some(kept)
    assert found.rows[:, 0].tolist() == found.positions.tolist() == [5, 6, 8]
    assert (found.labels.tolist(), found.sizes.tolist(), found.weights.tolist()) == ([1, 0, 1], [3], [1, 1, 1])


def test_trees_that_compare_no_numbers_are_refused() -> None:
    class Categories:
        def model_to_string(self) -> str:
            tree = "split_feature=0\nthreshold=0\ndecision_type=1\nleft_child=-1\nright_child=-2\nleaf_value=1 2\n"
            return f"tree\nversion=v4\n\nTree=0\nnum_leaves=2\nnum_cat=1\n{tree}\nend of trees\n"

    with pytest.raises(ValueError, match="expected trees that compare numbers, got categories"):
        to_forest(Categories())


def test_a_forest_names_its_columns() -> None:
    """The file of a model holds one array for each: a name that changes makes old files unreadable."""
    assert ForestArrays._fields == ("roots", "columns", "thresholds", "children", "leaves")


def test_trees_with_more_leaves_than_bits_are_refused() -> None:
    """A chain of questions: each leads to a leaf on the left and to the next question on the right."""
    for n_leaves in (MOST_LEAVES, MOST_LEAVES + 1):
        nodes = np.arange(n_leaves - 1, dtype=np.int32)
        children = np.column_stack([-1 - nodes, nodes + 1]).astype(np.int32)
        children[-1, 1] = -n_leaves
        chain = ForestArrays(
            np.zeros(1, np.int32),
            np.zeros(n_leaves - 1, np.int32),
            nodes + 0.5,
            children.ravel(),
            np.arange(n_leaves) * 1.0,
        )
        if n_leaves > MOST_LEAVES:
            with pytest.raises(ValueError, match="more than 32 leaves"):
                checked_forest(chain)
        else:
            rows = np.arange(-1, n_leaves, dtype=np.float32)[:, None]
            expected = np.clip(rows[:, 0], 0, n_leaves - 1)
            assert TunedModel(checked_forest(chain), 1).scores(rows).tolist() == expected.tolist()


def test_joined_forests_give_the_mean_of_their_scores() -> None:
    boosters = [trained(seed) for seed in range(3)]
    rows = evidence(9, 300)
    alone = [TunedModel(to_forest(booster), threads=1).scores(rows) for booster, _ in boosters]
    joined = TunedModel(join_forests([to_forest(booster) for booster, _ in boosters]), threads=1).scores(rows)
    assert joined.tolist() == pytest.approx(np.mean(alone, axis=0).tolist())
