"""What trees are fitted to: gradients as the reference defines them, and samples that stand for all of a list."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.models.tuned import model as lessons
from anyburl.models.tuned.kernel import LEAST_HESSIAN, fill_choice, fill_pairs
from anyburl.models.tuned.model import Lessons
from reference.gradients import choice_loss, pair_gradients

SCORES = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 3.0])
CANDIDATES = st.tuples(SCORES, st.booleans(), st.sampled_from([1.0, 5.0]))
LISTS = st.lists(st.lists(CANDIDATES, min_size=1, max_size=6), min_size=1, max_size=3)
STEP = 1e-5

List = list[tuple[float, bool, float]]


def columns(found: list[List]) -> tuple[list[list[float]], list[list[bool]], list[list[float]]]:
    """Return scores, labels and weights, list by list: answers count once."""
    scores = [[score for score, _, _ in own] for own in found]
    labels = [[label for _, label, _ in own] for own in found]
    weights = [[1.0 if label else weight for _, label, weight in own] for own in found]
    return scores, labels, weights


def arrays(found: list[List]) -> tuple[np.ndarray, ...]:
    scores, labels, weights = columns(found)
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in found])]).astype(np.int64)
    return np.concatenate(scores), np.concatenate(labels).astype(np.float32), np.concatenate(weights), offsets


@pytest.mark.kernel
@given(LISTS)
def test_gradients_of_a_choice_are_the_slope_of_its_loss(found: list[List]) -> None:
    scores, labels, weights, offsets = arrays(found)
    gradients, hessians = np.empty((2, len(scores)))
    fill_choice(scores, labels, weights, offsets, gradients, hessians)
    for i, (own, of_own, counts) in enumerate(zip(*columns(found), strict=True)):
        for place in range(len(own)):
            up, down = list(own), list(own)
            up[place], down[place] = own[place] + STEP, own[place] - STEP
            slope = (choice_loss(up, of_own, counts) - choice_loss(down, of_own, counts)) / (2 * STEP)
            assert gradients[offsets[i] + place] == pytest.approx(slope, abs=1e-6)
    assert (hessians >= LEAST_HESSIAN).all()


@pytest.mark.kernel
@given(LISTS, st.randoms(use_true_random=False))
def test_gradients_of_pairs_are_those_of_the_reference(found: list[List], random: Random) -> None:
    scores, labels, weights, offsets = arrays(found)
    gains, gradients, hessians = np.empty((3, len(scores)))
    shuffled = [random.sample(range(first, last), last - first) for first, last in pairwise(offsets.tolist())]
    order = np.concatenate(shuffled).astype(np.int64)
    fill_pairs(scores, labels, weights, offsets, order, gains, gradients, hessians)
    for i, own in enumerate(zip(*columns(found), strict=True)):
        expected = pair_gradients(*own)
        assert gradients[offsets[i] : offsets[i + 1]].tolist() == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
        assert hessians[offsets[i] : offsets[i + 1]].tolist() == pytest.approx(expected[1], rel=1e-9, abs=1e-12)


def test_a_sample_of_a_list_counts_as_much_as_all_of_it() -> None:
    assert lessons.share_of_others(lessons.MANY_LISTS) == 1
    share = lessons.share_of_others(lessons.MANY_LISTS + 1)
    n_lists, size = 200, 100
    rng = np.random.default_rng(1)
    is_answer = np.zeros(n_lists * size, np.bool_)
    is_answer[np.arange(n_lists) * size + rng.integers(0, size, n_lists)] = True
    is_answer[: 3 * size] = False  # three lists without an answer
    rows = rng.random((len(is_answer), 2)).astype(np.float32)
    found = Lessons.of(rows, is_answer, np.full(n_lists, size), share, seed=2)
    assert len(found.sizes) == n_lists - 3
    assert found.labels.sum() == n_lists - 3
    assert len(found.rows) < 0.4 * len(rows)
    assert found.sizes.min() >= lessons.ALL_OF
    assert found.sizes.sum() == len(found.rows) == len(found.weights)
    assert found.weights.sum() == pytest.approx((n_lists - 3) * size, rel=0.05)
