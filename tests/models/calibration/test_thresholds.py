"""Which score promises which precision, and how many facts that leaves."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from observed import draw, observations

from anyburl import Dataset
from anyburl.models.calibration.observations import LEAST_SCORE, HeldOut, count_facts, fit_closed_world, least_counted
from anyburl.models.calibration.report import (
    FEWEST_ANSWERS,
    PROMISES,
    Threshold,
    find_threshold,
    fit_and_check,
    fit_calibration,
)
from anyburl.models.tuned.observations import Observations


class Facts(NamedTuple):
    triples: NDArray[np.int32]
    scores: NDArray[np.float64]


@pytest.fixture
def data() -> Dataset:
    """Forty entities, all joined by the one relation: to be taken as facts with any score."""
    triples = [(f"e{i:02}", "knows", f"e{j:02}") for i in range(40) for j in range(40)]
    return Dataset.from_triples(triples[:400], triples[400:800], triples[800:1000])


def test_thresholds_hold_on_answers_that_were_not_seen() -> None:
    fitted, checked = (draw(np.random.default_rng(seed), 40_000) for seed in (1, 2))
    found = fit_and_check(HeldOut("valid", fitted, 1000), HeldOut("test", checked, 1000), 2).thresholds
    assert list(found) == [str(promised) for promised in PROMISES]
    scores = [found[str(promised)].score for promised in PROMISES]
    assert None not in scores
    assert scores == sorted(score for score in scores if score is not None)
    for promised in PROMISES:
        threshold = found[str(promised)]
        assert threshold.precision == pytest.approx(promised, abs=0.03)
        assert threshold.sampling_error is not None
        assert threshold.sampling_error < 0.02
        assert threshold.answers == (checked.scores >= threshold.score).sum()


def test_what_too_few_answers_promise_is_no_promise() -> None:
    n = FEWEST_ANSWERS - 1
    few = observations(np.repeat([0.1, 0.9], [1000, n]), np.repeat([False, True], [1000, n]))
    assert fit_and_check(HeldOut("valid", few, n), None, 1).thresholds["0.9"].score is None
    many = observations(np.repeat([0.1, 0.9], [1000, 4 * n]), np.repeat([False, True], [1000, 4 * n]))
    found = fit_and_check(HeldOut("valid", many, 4 * n), None, 1)
    assert found.thresholds["0.9"].score == 0.9
    assert found.checked_on is found.fitted_on


def test_thresholds_are_values_that_nothing_changes() -> None:
    assert {Threshold(0.5, facts=3), Threshold(0.5, facts=3)} == {Threshold(0.5, facts=3)}
    assert Threshold(None).answers == 0
    with pytest.raises(FrozenInstanceError):
        Threshold(0.5).score = 0.4  # type: ignore[misc]


def threshold_of(n: int, promised: float, n_checked: int = 0) -> Threshold:
    """Answers of one score, a share of exactly `promised` expected among them; half of those checked are stated."""
    fitted = observations(np.full(n, 0.7), np.zeros(n, np.bool_))
    checked = observations(np.full(n_checked, 0.7), np.arange(n_checked) % 2 == 0)
    return find_threshold(fitted, np.full(n, promised), 0.0, promised, checked)


def test_a_promise_needs_a_hundred_answers_and_an_error_of_at_most_a_twentieth() -> None:
    """The variance of a share of n answers, two to a triple: 2 * 0.5 * 0.5 / 200 is 0.05 squared."""
    assert threshold_of(100, 0.96875).score == 0.7
    assert threshold_of(99, 0.96875) == Threshold(None)
    assert threshold_of(200, 0.5).score == 0.7
    assert threshold_of(199, 0.5) == Threshold(None)


def test_the_error_of_a_promise_is_that_of_both_splits() -> None:
    """2 * 0.5 * 0.5 / 400 + 2 * 0.5 * 0.5 / 100."""
    assert threshold_of(400, 0.5, 100) == Threshold(0.7, None, 0.5, 100, pytest.approx(0.00625**0.5))
    assert threshold_of(400, 0.5) == Threshold(0.7, None, None, 0, None)
    assert threshold_of(400, 0.5).to_json() == {
        "score": 0.7,
        "facts": None,
        "precision": None,
        "answers": 0,
        "sampling_error": None,
        "closed_world": None,
    }


@pytest.mark.parametrize("hidden", [0.0, 0.25, 1.0])
def test_thresholds_are_those_of_the_definition(hidden: float) -> None:
    """The lowest of all scores above which enough is expected; what another split states counts in part, and adds to
    the variance as counts do.
    """
    rng = np.random.default_rng(3)
    for promised in np.linspace(0.3, 0.95, 14).tolist():
        scores = rng.integers(0, 40, 2000) / 40
        probabilities = np.clip(scores * rng.uniform(0.9, 1.1), 0, 1)
        fitted = observations(scores, rng.random(2000) < scores, has_others=rng.random(2000) < 0.3)
        checked = draw(rng, 500)
        found = find_threshold(fitted, probabilities, hidden, promised, checked)
        assert (found.score, found.sampling_error) == defined(fitted, probabilities, hidden, promised, checked)


def defined(
    fitted: Observations, probabilities: NDArray[np.float64], hidden: float, promised: float, checked: Observations
) -> tuple[Any, Any]:
    """Return the score of a threshold and its error, as docs and docstrings define them."""
    for score in np.unique(fitted.scores):
        above = fitted.scores >= score
        weights = 1 - hidden * fitted.has_others[above]
        n, n_checked = weights.sum(), (checked.scores >= score).sum()
        if n < 100 or (weights * probabilities[above]).sum() < promised * n:
            continue
        n_hidden = hidden * fitted.has_others[above].sum()
        variance = 2 * (promised * (1 - promised) / n + (promised / n) ** 2 * n_hidden * (1 + hidden))
        if variance > 0.05**2:
            return None, None
        return score, pytest.approx((variance + 2 * promised * (1 - promised) / n_checked) ** 0.5)
    return None, None


def test_facts_are_counted_by_split_and_score(data: Dataset) -> None:
    calibration = fit_calibration(draw(np.random.default_rng(1), 20_000), 1 + 1)
    least = least_counted(calibration, 0.6)
    assert np.all((least >= LEAST_SCORE) & (least <= 0.6))
    everything = Dataset.from_triples(
        [(f"e{i:02}", "knows", f"e{j:02}") for i in range(40) for j in range(40)]
    ).train.triples
    outside = everything[400:]
    scores = np.random.default_rng(0).uniform(least[0], 1, len(outside)).round(12)
    parts = [Facts(outside[start : start + 100], scores[start : start + 100]) for start in range(0, len(outside), 100)]
    counts = count_facts(parts, data, calibration, [0.6, 0.9], least)
    assert counts.all.sum() == len(outside)
    assert counts.valid.sum() == 400
    for score in (0.6, 0.9):
        assert counts.above(score, 0) == (scores[600:] >= score).sum()
    assert counts.above(float(least[0]) / 2) is None


def test_the_closed_world_is_the_share_that_valid_states(data: Dataset) -> None:
    calibration = fit_calibration(draw(np.random.default_rng(1), 20_000), 2)
    least = np.array([0.5, np.inf])
    outside = np.concatenate([data.valid.triples, data.test.triples])
    scores = np.random.default_rng(0).uniform(0.5, 1, len(outside))
    counts = count_facts([Facts(outside, scores)], data, calibration, [], least)
    closed = fit_closed_world(counts, calibration)
    assert np.isnan(closed[1]).all()
    starts = np.concatenate([[0.0], calibration.edges])
    assert np.array_equal(np.isnan(closed[0]), starts < 0.5)
    assert closed[0][starts >= 0.5] == pytest.approx(400 / 600, abs=0.1)
