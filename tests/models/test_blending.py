"""A model's score and that of the best rule in one: what either tells is used, and what both tell is not used twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anyburl.models.blending import N_FOLDS, ScoredFacts, fit_blend, fit_score_line
from anyburl.models.calibration import (
    CERTAIN,
    LEAST,
    N_CONTEXTS,
    N_NARROW,
    WIDTH,
    Blend,
    Calibration,
    ProposalCounts,
    bins_of,
    calibration_key,
    choose_bins,
    fit_true,
    load_calibration,
    save_calibration,
)

Floats = NDArray[np.float64]

HALF = np.full(3, 0.5)  # of all proposals come back if all are true: as many are missing as were hidden


def drawn(rng: np.random.Generator, n: int, *, both: bool = True) -> tuple[ScoredFacts, Floats]:
    """Facts of three relations with the share of true ones among facts like each: the odds of a model, times those of
    the best rule (which says nothing unless `both`).
    """
    relations, contexts = rng.integers(3, size=n).astype(np.int32), rng.integers(N_CONTEXTS, size=n)
    by_model, by_rule = rng.normal(size=n), rng.normal(size=n)
    true = 1 / (1 + np.exp(-(2 * by_model + 2 * by_rule * both + relations - 1)))
    scores, rule_scores = (1 / (1 + np.exp(-values)) for values in (by_model, by_rule))
    is_back = rng.random(n) < true / 2
    subjects = rng.integers(n, size=n).astype(np.int32)
    return ScoredFacts(subjects, relations, contexts, scores, rule_scores, is_back), true


def loss(shares: Floats, is_back: NDArray[np.bool_]) -> float:
    return float(-np.log(np.where(is_back, shares / 2, 1 - shares / 2)).mean())


def single(facts: ScoredFacts, scores: Floats, others: ScoredFacts, other_scores: Floats) -> Floats:
    """The shares that one of the two scores tells of other facts."""
    counts = ProposalCounts.empty(3)
    counts.add(facts.relations, facts.contexts, scores, facts.is_back)
    starts = choose_bins(counts)
    return fit_true(counts, starts, HALF)[others.relations, others.contexts, bins_of(starts, other_scores)]


def test_two_scores_tell_more_than_either() -> None:
    rng = np.random.default_rng(0)
    (facts, _), (others, true) = drawn(rng, 40_000), drawn(rng, 20_000)
    blend, of_others = fit_blend(facts, np.ones(40_000, np.bool_), HALF)
    shares = blend.shares(others.relations, others.contexts, others.scores, others.rule_scores)
    by_model = single(facts, facts.scores, others, others.scores)
    by_rule = single(facts, facts.rule_scores, others, others.rule_scores)
    assert loss(shares, others.is_back) < min(loss(by_model, others.is_back), loss(by_rule, others.is_back)) - 0.03
    assert np.abs(shares - true).mean() < np.abs(by_model - true).mean() * 0.7
    for low, high in ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
        chosen = (of_others >= low) & (of_others < high)
        assert facts.is_back[chosen].mean() * 2 == pytest.approx(of_others[chosen].mean(), abs=0.05)


def test_a_score_that_says_nothing_is_hardly_used() -> None:
    rng = np.random.default_rng(1)
    (facts, _), (others, _) = drawn(rng, 20_000, both=False), drawn(rng, 20_000, both=False)
    blend, _ = fit_blend(facts, np.ones(20_000, np.bool_), HALF)
    shares = blend.shares(others.relations, others.contexts, others.scores, others.rule_scores)
    by_model = single(facts, facts.scores, others, others.scores)
    assert loss(shares, others.is_back) == pytest.approx(loss(by_model, others.is_back), abs=0.003)


def test_what_a_subject_shows_is_not_used_for_its_own_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether facts of the first fold come back changes what is said of all others, and nothing of these."""
    monkeypatch.setattr("anyburl.models.blending.fit_score_line", lambda *_: np.array([0.0, 0.5, 0.5]))
    monkeypatch.setattr(ScoredFacts, "lines", lambda *_: (np.zeros(3), np.ones(3)))
    facts, _ = drawn(np.random.default_rng(2), 2000)
    own = facts.subjects % N_FOLDS == 0
    other = replace(facts, is_back=facts.is_back ^ own)
    every = np.ones(2000, np.bool_)
    before, after = fit_blend(facts, every, HALF)[1], fit_blend(other, every, HALF)[1]
    assert np.array_equal(before[own], after[own])
    assert (before[~own] != after[~own]).mean() > 0.9


def test_weights_are_where_the_posterior_is_highest() -> None:
    """There, what comes back beyond expectation is what the priors around 0 and halves take back."""
    rng = np.random.default_rng(3)
    logits, most = rng.normal(size=(500, 2)), np.full(500, 1 / 3)
    is_back = rng.random(500) < 1 / (1 + np.exp(-(0.4 + logits @ [0.9, 0.3]))) / 3
    weights = fit_score_line(logits, is_back, most)
    true = 1 / (1 + np.exp(-(weights[0] + logits @ weights[1:])))
    surplus = (is_back - true / 3) * (1 - true) / (1 - true / 3)
    assert surplus.sum() == pytest.approx(weights[0], abs=1e-6)
    assert surplus @ logits == pytest.approx((weights[1:] - 0.5) / 0.25, abs=1e-6)
    falling = fit_score_line(logits, rng.random(500) < 1 / (1 + np.exp(3 * logits[:, 0])) / 3, most)
    assert falling[1] == 0.02
    assert fit_score_line(np.empty((0, 2)), np.empty(0, np.bool_), np.empty(0)).tolist() == [0.0, 0.5, 0.5]


def calibrated(rng: np.random.Generator, n: int = 5000) -> Calibration:
    facts, _ = drawn(rng, n)
    blend, _ = fit_blend(facts, np.ones(n, np.bool_), HALF)
    middles = 1 - np.exp(-WIDTH * (np.arange(N_NARROW) + 0.5))
    shares = np.tile(middles / 2, (3, N_CONTEXTS, 1))
    sizes = [np.full(3, value) for value in (100.0, 900.0, 0.0, 0.1, 0.0, 0.0)]
    return Calibration(np.arange(N_NARROW), shares, *sizes, blend)


@given(st.integers(0, 3), st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_probabilities_fall_with_neither_score(seed: int, scores: list[float]) -> None:
    made, values = calibrated(np.random.default_rng(seed), 500), np.sort(scores)
    other = np.full(len(values), 0.4)
    for relation in range(3):
        for context in range(N_CONTEXTS):
            rows = np.full(len(values), relation), np.full(len(values), context)
            assert np.all(np.diff(made.probabilities(*rows, values, other)) >= 0)
            assert np.all(np.diff(made.probabilities(*rows, other, values)) >= 0)


@pytest.mark.parametrize("probability", [0.0, 0.05, 0.3, 0.5, 0.8, 0.95, 1.0])
def test_no_fact_that_is_likely_enough_is_cut_off(probability: float) -> None:
    """The least score of the model is that of a fact with the best of all rules; no lower one would do."""
    made, rng = calibrated(np.random.default_rng(4)), np.random.default_rng(5)
    least = made.least_scores(probability)
    scores = np.concatenate([rng.random(3000), 1 - np.exp(-WIDTH * made.blend.starts)])  # type: ignore[union-attr]
    n = len(scores)
    for relation in range(3):
        best = np.zeros(n)
        for context in range(N_CONTEXTS):
            rows = np.full(n, relation), np.full(n, context)
            best = np.maximum(best, made.probabilities(*rows, scores, np.ones(n)))
            likely = made.probabilities(*rows, scores, rng.random(n))
            assert np.all(scores[likely >= probability] >= least[relation])
        if np.isfinite(least[relation]):
            assert np.all(best[scores >= least[relation] + 1e-6] >= probability)


KEY = calibration_key("rules", "data", {})


def test_a_blend_is_kept_and_read_again(tmp_path: Path) -> None:
    made = calibrated(np.random.default_rng(6), 500)
    save_calibration(tmp_path, made, {}, KEY)
    kept = load_calibration(tmp_path, KEY, 3)
    assert isinstance(kept, Calibration)
    rng = np.random.default_rng(7)
    rows = rng.integers(3, size=50), rng.integers(2, size=50), rng.random(50), rng.random(50)
    assert np.array_equal(kept.probabilities(*rows), made.probabilities(*rows))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"starts": np.zeros(1, np.int32)}, "unexpected types"),
        ({"terms": np.zeros((2, 2, 1))}, "unexpected types or sizes"),
        ({"rule_terms": np.zeros((3, 2, 2))}, "unexpected types or sizes"),
        ({"rule_terms": np.zeros((3, 2, 1), np.float32)}, "unexpected types or sizes"),
        ({"rule_starts": np.ones(1, np.int64)}, "not in order"),
        ({"terms": np.full((3, 2, 1), np.nan)}, "not in order"),
    ],
)
def test_what_cannot_be_a_blend_is_not_used(tmp_path: Path, parts: dict[str, Any], reason: str) -> None:
    one, none = np.zeros(1, np.int64), np.zeros((3, 2, 1))
    made = calibrated(np.random.default_rng(0), 100)
    save_calibration(tmp_path, replace(made, blend=replace(Blend(one, none, one, none), **parts)), {}, KEY)
    assert reason in load_calibration(tmp_path, KEY, 3)  # type: ignore[operator]


def test_shares_stay_between_what_is_certain() -> None:
    one = np.zeros(1, np.int64)
    blend = Blend(one, np.full((1, 2, 1), 50.0), one, np.full((1, 2, 1), 50.0))
    rows = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1), np.ones(1)
    assert blend.shares(*rows).tolist() == [CERTAIN]
    assert replace(blend, terms=-2 * blend.terms).shares(*rows) == pytest.approx(LEAST)


def test_a_relation_with_many_facts_has_a_line_of_its_own() -> None:
    """Where half of what both scores say is true of one relation, that is found; of one with few facts, a little."""
    rng = np.random.default_rng(8)
    facts, true = drawn(rng, 40_000)
    few = (facts.relations == 2) & (rng.random(40_000) < 0.998)
    drop = (facts.relations == 0) | (facts.relations == 2)
    is_back = rng.random(40_000) < np.where(drop, true / 2, true) / 2
    kept = ~few
    part = replace(facts, **{n: getattr(facts, n)[kept] for n in ("subjects", "relations", "contexts")})
    part = replace(part, scores=facts.scores[kept], rule_scores=facts.rule_scores[kept], is_back=is_back[kept])
    shares = np.where(true > 0.99, 0.99, true)[kept]
    a, b = part.lines(np.ones(int(kept.sum()), np.bool_), shares, HALF)
    assert a[0] < -0.5
    assert abs(a[1]) < 0.1
    assert a[0] < a[2] < 0.05
    assert b == pytest.approx(np.ones(3), abs=0.5)
