"""From counts to probabilities: isotonic, monotone, shrunk, and what is missing taken into account."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError
from anyburl.models.calibration import (
    CERTAIN,
    N_CONTEXTS,
    N_NARROW,
    WIDTH,
    Calibration,
    ProposalCounts,
    below_most,
    by_narrow_bin,
    calibration_key,
    choose_bins,
    corrected,
    fit_correction,
    fit_groups,
    fit_lines,
    fit_true,
    fit_whole,
    isotonic,
    least_scores,
    load_calibration,
    most_back,
    narrow_bins,
    per_hidden,
    probability_table,
    save_calibration,
)
from reference import calibration as reference

Floats = NDArray[np.float64]

HALF = np.full(4, 0.5)  # of all proposals come back if all are true: as many are missing as were hidden

cells = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=12)


@given(cells)
def test_isotonic_regression_is_the_max_min_formula(pairs: list[tuple[int, int]]) -> None:
    part, whole = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    assert np.allclose(isotonic(part, whole), reference.isotonic(part.tolist(), whole.tolist()))


def test_empty_bins_take_the_share_of_a_neighbour() -> None:
    part, whole = np.array([0.0, 1.0, 0.0, 3.0]), np.array([0.0, 4.0, 0.0, 4.0])
    assert isotonic(part, whole).tolist() == [0.25, 0.25, 0.25, 0.75]


counts = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=5, max_size=5), min_size=n, max_size=n
    )
)


@given(counts)
@example([[(0, 0), (0, 0), (13, 0), (20, 19), (7, 4)]])
def test_maps_never_fall_and_stay_probabilities(pairs: list[list[tuple[int, int]]]) -> None:
    table = np.array(pairs, np.float64)
    proposed, back = table.sum(axis=2), table[:, :, 0]
    whole = fit_whole(proposed.sum(axis=0), back.sum(axis=0))
    base = np.broadcast_to(whole, back.shape)
    most = HALF[: len(back)]
    for fitted in (fit_groups(proposed, back, base, most), fit_lines(proposed, back, base, most), whole[None, :]):
        assert np.all((fitted >= 0) & (fitted <= 1))
        assert np.all(np.diff(fitted, axis=1) >= -1e-12)


def test_a_relation_with_few_facts_follows_the_whole_and_one_with_many_itself() -> None:
    shares = np.array([0.1, 0.2, 0.3])
    sizes = np.array([100_000.0, 1.0, 0.0, 1000.0])
    proposed = np.repeat(sizes[:, None], 3, axis=1)
    back = proposed * np.array([shares, shares, shares, 3 * shares]) / 2
    whole = fit_whole(proposed.sum(axis=0) / 2, back.sum(axis=0))
    fitted = fit_groups(proposed, back, np.broadcast_to(whole, back.shape), HALF)
    assert fitted[1] == pytest.approx(whole, rel=0.1)
    assert fitted[2] == pytest.approx(whole)
    assert fitted[3] == pytest.approx(3 * shares, rel=0.02)


def test_the_whole_adds_half_a_fact_on_either_side_of_each_block() -> None:
    """3 of 10 and 19 of 20; then one block of 22 of 30 where the shares would fall."""
    proposed, back = np.array([10.0, 20.0]), np.array([3.0, 19.0])
    assert fit_whole(proposed, back) == pytest.approx([3.5 / 11, 19.5 / 21])
    assert fit_whole(proposed[::-1], back[::-1]) == pytest.approx([22.5 / 31, 22.5 / 31])
    assert fit_whole(np.array([1e6]), np.array([1e6])).tolist() == [CERTAIN]


def test_lines_are_where_the_posterior_is_highest() -> None:
    """There, what comes back beyond expectation is what the priors around a = 0 and b = 1 take back, by deviations of
    1 and 1/2; what comes back is a half, a third or all of what is true.
    """
    base = np.tile([0.1, 0.3, 0.3, 0.6, 0.9], (3, 1))
    proposed = np.array([[40.0, 10.0, 20.0, 30.0, 20.0], [5.0, 0.0, 7.0, 2.0, 300.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    back = np.array([[2.0, 3.0, 1.0, 11.0, 19.0], [4.0, 0.0, 3.0, 2.0, 250.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    most = np.array([0.5, 1.0, 1 / 3])
    back *= most[:, None]
    found = fit_lines(proposed, back, base, most)
    x, logits = np.log(base[0] / (1 - base[0])), np.log(found / (1 - found))
    for n, k, line, true, highest in zip(proposed, back, logits, found, most, strict=True):
        slope = (line[4] - line[0]) / (x[4] - x[0])
        start = line[0] - slope * x[0]
        assert line == pytest.approx(start + slope * x)
        surplus = (k - n * true * highest) * (1 - true) / (1 - true * highest)
        assert surplus.sum() == pytest.approx(start, abs=1e-6)
        assert (surplus * x).sum() == pytest.approx((slope - 1) / 0.25, abs=1e-6)
    assert found[2] == pytest.approx(base[2])


def test_a_line_never_falls() -> None:
    """Where low scores are right and high ones wrong, a slope of 1/50 is left."""
    falling = fit_lines(np.array([[1000.0, 1000.0]]), np.array([[450.0, 50.0]]), np.array([[0.2, 0.8]]), HALF[:1])[0]
    low, high = np.log(falling / (1 - falling))
    assert high - low == pytest.approx(0.02 * 2 * np.log(4))


def test_a_line_adds_forty_facts_to_every_bin_with_proposals() -> None:
    base = np.tile([0.2, 0.5, 0.8], (2, 1))
    proposed, back = np.array([[200.0, 0.0, 400.0], [0.0, 0.0, 0.0]]), np.array([[2.0, 0.0, 39.0], [0.0, 0.0, 0.0]])
    lines = fit_lines(proposed, back, base, HALF[:2])
    fitted = fit_groups(proposed, back, base, HALF[:2])
    with_line = isotonic(back[0] + lines[0] * [20, 1e-9, 20], proposed[0] + [40, 2e-9, 40])
    assert fitted[0] / 2 == pytest.approx(with_line, rel=1e-3)
    assert fitted[0, 1] == pytest.approx(lines[0, 1])
    assert fitted[1] == pytest.approx(lines[1])
    assert fit_groups(proposed, back, base, HALF[:2], 1e9)[0] == pytest.approx(lines[0], rel=1e-3)


def test_a_share_near_the_highest_is_lowered_the_more_the_fewer_facts_tell() -> None:
    """The mean of a normal distribution that is cut off at the highest share."""
    drawn = np.random.default_rng(0).normal(size=100_000)
    for share, error in ((0.5, 0.05), (0.5, 0.005), (0.6, 0.04), (0.4, 0.05)):
        values = share + error * drawn
        expected = values[values < 0.5].mean()
        assert below_most(np.array([share]), np.array([error]), 0.5)[0] == pytest.approx(expected, abs=2e-3)
    assert below_most(np.array([0.1, 1.0]), np.array([0.01, 0.0]), 0.5) == pytest.approx([0.1, 0.5], abs=1e-4)
    base, many = np.full((1, 3), 0.5), np.full((1, 3), 1e9)
    assert fit_groups(many, many, base, HALF[:1]).max() == CERTAIN
    few = fit_groups(np.full((1, 3), 20.0), np.full((1, 3), 11.0), base, HALF[:1])
    more = fit_groups(np.full((1, 3), 2000.0), np.full((1, 3), 1100.0), base, HALF[:1])
    assert few.max() < more.max()


@given(st.lists(st.floats(0, 1), max_size=30))
def test_narrow_bins_rise_with_the_score_and_hold_all_of_them(scores: list[float]) -> None:
    places = narrow_bins(np.array([0.0, *sorted(scores), 1.0]))
    assert (places[0], places[-1]) == (0, N_NARROW - 1)
    assert np.all(np.diff(places) >= 0)


def test_a_score_at_which_a_narrow_bin_starts_belongs_to_it() -> None:
    numbers = np.arange(600)  # above, doubles are too far apart
    assert np.array_equal(narrow_bins(1 - np.exp(-WIDTH * numbers)), numbers)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from([0.05, 0.5, 0.51, 0.99, 1.0]), st.booleans()),
        max_size=40,
    )
)
def test_facts_are_counted_one_by_one(facts: list[tuple[int, int, float, bool]]) -> None:
    found = ProposalCounts.empty(3)
    for part in (facts[:7], facts[7:]):
        columns = [np.array([fact[i] for fact in part], kind) for i, kind in enumerate((int, int, float, bool))]
        found.add(*columns)
    proposed, back = np.zeros((3, N_CONTEXTS, N_NARROW)), np.zeros((3, N_CONTEXTS, N_NARROW))
    for relation, context, score, is_back in facts:
        (place,) = narrow_bins(np.array([score]))
        proposed[relation, context, place] += 1
        back[relation, context, place] += is_back
    assert np.array_equal(found.proposed, proposed)
    assert np.array_equal(found.back, back)
    assert np.array_equal((found + found).back, 2 * back)
    with pytest.raises(FrozenInstanceError):
        found.back = back  # type: ignore[misc]


def counted(rng: np.random.Generator, n: int) -> ProposalCounts:
    """Proposals of three relations, by context: they come back with the chance of `truth`."""
    found, relations, contexts = ProposalCounts.empty(3), rng.integers(3, size=n), rng.integers(2, size=n)
    scores = rng.random(n)
    found.add(relations, contexts, scores, rng.random(n) < truth(relations, contexts, scores))
    return found


def truth(relations: NDArray[Any], contexts: NDArray[Any], scores: Floats) -> Floats:
    """A score is the share of the first relation, its third power of the second; the third has none in context 1."""
    share = np.where(relations == 1, scores**3, scores)
    return np.asarray(0.9 * np.where((relations == 2) & (contexts == 1), 0.0, share), np.float64)


def calibrated(rng: np.random.Generator, n: int = 40_000, **parts: Any) -> Calibration:
    found = counted(rng, n)
    starts = choose_bins(found)
    sizes = {"hidden": 100.0, "stated": 900.0, "elsewhere": 0.0, "missing": 0.1, "floors": 0.0, "shift": 0.0}
    tables = {"starts": starts, "shares": fit_true(found, starts, np.ones(3))}
    return Calibration(**tables, **{name: np.full(3, value) for name, value in sizes.items()} | parts)


def test_bins_start_at_quantiles_and_hold_everything() -> None:
    found = counted(np.random.default_rng(0), 20_000)
    starts = choose_bins(found)
    assert starts[0] == 0
    assert np.all(np.diff(starts) > 0)
    assert 60 <= len(starts) <= 119
    proposed = np.add.reduceat(found.proposed, starts, axis=2).sum(axis=(0, 1))
    assert proposed.sum() == 20_000
    assert proposed.max() <= 2 * 20_000 / 60
    assert choose_bins(ProposalCounts.empty(2)).tolist() == [0]


def test_shares_come_back_that_facts_were_drawn_with() -> None:
    """Relations and contexts in which scores mean different things; other facts than those that were fitted."""
    rng = np.random.default_rng(1)
    found = counted(rng, 80_000)
    starts = choose_bins(found)
    shares = by_narrow_bin(fit_true(found, starts, np.ones(3)), starts)
    relations, contexts, scores = rng.integers(3, size=5000), rng.integers(2, size=5000), rng.random(5000)
    fitted = shares[relations, contexts, narrow_bins(scores)]
    assert np.abs(fitted - truth(relations, contexts, scores)).mean() < 0.02


shares_and_sizes = st.tuples(st.floats(0.001, 0.99), st.just(0.0) | st.floats(0.01, 20), st.floats(0, 5))


@example((0.5, 0.0, 1.0))  # nothing is left, and nothing is missing
@given(shares_and_sizes)
def test_the_probability_is_what_is_missing_among_what_is_left(drawn: tuple[float, float, float]) -> None:
    """Of n proposals, nq are hidden facts, mnq missing ones, and enq are stated elsewhere, which are not proposed."""
    share, m, e = drawn
    table = probability_table(np.full((1, N_CONTEXTS, 1), share), np.array([m]), np.array([e]))
    assert table[0, 0, 0] == table[0, 1, 0] == pytest.approx(reference.probability(share, m, e, CERTAIN))


@given(st.floats(0.01, 50), st.floats(0, 10))
def test_where_all_proposals_are_true_the_probability_is_one(missing: float, elsewhere: float) -> None:
    """For each hidden fact, so many are missing and so many stated elsewhere: nothing else is proposed."""
    share = most_back(np.array([missing]), np.array([elsewhere]))[0]
    table = probability_table(np.full((1, 2, 1), share), np.array([missing]), np.array([elsewhere]))
    assert table == pytest.approx(np.full((1, 2, 1), CERTAIN), rel=1e-3)


def test_with_one_missing_for_each_hidden_fact_it_is_the_odds() -> None:
    shares = np.array([0.0, 0.1, 0.25, 0.4, 0.5, 0.9])
    table = probability_table(np.tile(shares, (1, 2, 1)), np.ones(1), np.zeros(1))
    assert table[0, 0] == pytest.approx([0, 1 / 9, 1 / 3, 2 / 3, CERTAIN, CERTAIN])


def test_where_few_facts_are_hidden_the_share_is_that_of_all_relations() -> None:
    """100 stated facts for each hidden one in all; ten hidden facts of a relation weigh as much as that."""
    found = per_hidden(np.array([5000.0, 0.0, 500.0]), np.array([50.0, 0.0, 5.0]))
    assert found == pytest.approx([100.0, 100.0, 100.0])
    assert per_hidden(np.array([100.0, 300.0]), np.array([10.0, 0.0])) == pytest.approx([25.0, 70.0])
    assert per_hidden(np.zeros(2), np.zeros(2)).tolist() == [0.0, 0.0]


def test_what_is_missing_may_be_said_of_all_relations_or_of_some() -> None:
    """Twice the odds of being missing, twice the probability, where nothing is certain."""
    made = calibrated(np.random.default_rng(2))
    every, one = made.with_missing(0.02), made.with_missing({1: 0.02})
    assert every.missing.tolist() == [0.02] * 3
    assert one.missing.tolist() == [0.1, 0.02, 0.1]
    assert made.missing.tolist() == [0.1] * 3
    relations, contexts, scores = np.arange(3), np.zeros(3, np.int64), np.full(3, 0.3)
    before = made.probabilities(relations, contexts, scores)
    rarer = (0.02 / 0.98) / (0.1 / 0.9)
    assert every.probabilities(relations, contexts, scores) == pytest.approx(before * rarer)
    assert one.probabilities(relations, contexts, scores) == pytest.approx(before * [1, rarer, 1])
    assert made.with_missing(0.0).narrow_table().max() == 0


def test_a_share_of_all_that_is_told_is_spread_over_relations_as_the_hidden_facts_are() -> None:
    """2 % of 2,700 facts and of the missing ones: of each relation, equally many for each hidden fact."""
    hidden, stated = np.array([100.0, 40.0, 10.0]), np.array([900.0, 900.0, 900.0])
    told = calibrated(np.random.default_rng(2), hidden=hidden, stated=stated).with_missing(0.02)
    n_missing = stated * told.missing / (1 - told.missing)
    assert n_missing.sum() == pytest.approx(2700 * 0.02 / 0.98)
    assert n_missing[0] > 1.9 * n_missing[1] > 3.8 * n_missing[2]
    assert told.missing_per_hidden() == pytest.approx(np.full(3, n_missing.sum() / 150), rel=0.15)


@given(st.integers(0, 5), st.floats(0, 0.9), st.floats(0, 300))
def test_probabilities_never_fall_with_the_score(seed: int, missing: float, elsewhere: float) -> None:
    made = calibrated(np.random.default_rng(seed), 2000, elsewhere=np.full(3, elsewhere)).with_missing(missing)
    assert np.all(np.diff(made.narrow_table(), axis=2) >= 0)
    scores = np.sort(np.random.default_rng(seed).random(50))
    for relation in range(3):
        for context in range(N_CONTEXTS):
            rows = np.full(50, relation), np.full(50, context)
            assert np.all(np.diff(made.probabilities(*rows, scores)) >= 0)


@pytest.mark.parametrize("probability", [0.0, 0.05, 0.3, 0.5, 0.8, 0.95, 1.0])
def test_no_fact_that_is_likely_enough_is_cut_off(probability: float) -> None:
    made = calibrated(np.random.default_rng(3))
    least = made.least_scores(probability)
    starts = 1 - np.exp(-WIDTH * made.starts)
    scores = np.concatenate(
        [np.linspace(0, 1, 2001), starts, np.nextafter(starts, -1).clip(0), np.nextafter(starts, 2)]
    )
    for relation in range(3):
        likely = np.max(
            [made.probabilities(np.full(len(scores), relation), np.full(len(scores), c), scores) for c in (0, 1)],
            axis=0,
        )
        assert np.all(scores[likely >= probability] >= least[relation])
        if np.isfinite(least[relation]) and least[relation] > 0:
            assert likely[scores < least[relation] - 1e-6].max() < probability
            assert likely[scores >= least[relation] + 1e-6].min() >= probability
        else:
            assert least[relation] == 0 or likely.max() < probability
    assert np.array_equal(least, least_scores(made.narrow_table()[:, :, made.starts], made.starts, probability))


def test_a_probability_is_from_0_to_1() -> None:
    with pytest.raises(InvalidOptionError, match="from 0 to 1"):
        calibrated(np.random.default_rng(0), 100).least_scores(80)


def test_verdicts_shift_the_probabilities_of_their_relation() -> None:
    """So far that what is right beyond expectation is what the prior around no shift takes back."""
    made = calibrated(np.random.default_rng(0))
    relations, likely = np.repeat([0, 2], [8, 30]), np.repeat([0.5, 0.3], [8, 30])
    is_true = np.arange(38) % 8 > 0
    told = made.with_verdicts(relations, likely, is_true)
    assert told.shift[1] == 0
    for relation in (0, 2):
        own, shift = relations == relation, told.shift[relation]
        odds = likely[own] / (1 - likely[own]) * np.exp(shift)
        assert (is_true[own] - odds / (1 + odds)).sum() == pytest.approx(shift, abs=1e-6)
        assert shift > 0.5
    before, after = made.narrow_table(), told.narrow_table()
    assert np.allclose(after[1], before[1], rtol=1e-6)
    assert np.all(after[[0, 2]] > before[[0, 2]] - 1e-9)
    assert after.max() <= CERTAIN
    assert np.all(np.diff(after, axis=2) >= 0)
    nothing = np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
    assert np.array_equal(made.with_verdicts(*nothing).narrow_table(), before)


def test_shares_that_other_facts_do_not_confirm_are_corrected() -> None:
    """Half of what was expected is true, and a third of what is true comes back; lines that fall are not taken."""
    counts = ProposalCounts.empty(1)
    counts.proposed[0, 0, 100:700] = 50
    expected = np.full_like(counts.proposed, 1e-4)
    expected[0, 0, 100:700] = np.linspace(0.1, 0.9, 600)
    third = np.full(1, 1 / 3)
    counts.back[:] = counts.proposed * expected / 2 / 3
    a, b = fit_correction(counts, expected, third)
    moved = corrected(expected, (a, b))
    assert 0 < b <= 2
    assert (counts.proposed * moved / 3).sum() == pytest.approx(counts.back.sum(), rel=0.1)
    assert np.array_equal(moved[expected < 0.05], expected[expected < 0.05])
    assert np.all(np.diff(moved[0, 0, 100:700]) >= 0)
    assert corrected(expected, (0.0, 1.0)) == pytest.approx(expected)
    assert fit_correction(ProposalCounts.empty(1), expected, third) == (0.0, 1.0)


KEY = calibration_key("rules", "data", {})


def test_a_calibration_is_kept_as_it_is(tmp_path: Path) -> None:
    made = calibrated(np.random.default_rng(0), 1000)
    assert load_calibration(tmp_path, KEY, 3) == ""
    save_calibration(tmp_path, made, {"promises": {}}, KEY)
    kept = load_calibration(tmp_path, KEY, 3)
    assert isinstance(kept, Calibration)
    for name in (field.name for field in fields(Calibration)):
        assert np.array_equal(getattr(kept, name), getattr(made, name)), name
    assert load_calibration(tmp_path, calibration_key("other", "data", {}), 3) == "the rules have changed"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"shares": np.ones((3, 2, 1), np.float32)}, "unexpected types"),
        ({"starts": np.zeros(1, np.int32)}, "unexpected types"),
        ({"shares": np.ones((2, 2, 1))}, "unexpected sizes"),
        ({"hidden": np.ones(2)}, "unexpected sizes"),
        ({"hidden": np.ones((3, 1))}, "unexpected sizes"),
        ({"starts": np.ones(1, np.int64)}, "not in order"),
        ({"shares": np.full((3, 2, 1), np.nan)}, "no shares"),
        ({"missing": np.ones(3)}, "no shares"),
        ({"missing": np.full(3, -0.5)}, "no shares"),
        ({"shares": np.full((3, 2, 1), 1.5)}, "no shares"),
        ({"stated": np.full(3, -1.0)}, "no shares"),
        ({"elsewhere": np.full(3, np.inf)}, "no shares"),
        ({"floors": np.full(3, -1.0)}, "no shares"),
        ({"shift": np.full(3, np.nan)}, "no shares"),
    ],
)
def test_what_cannot_be_a_calibration_is_not_used(tmp_path: Path, parts: dict[str, Any], reason: str) -> None:
    whole = calibrated(np.random.default_rng(0), 100)
    whole = replace(whole, starts=np.zeros(1, np.int64), shares=np.full((3, 2, 1), 0.5))
    save_calibration(tmp_path, replace(whole, **parts), {}, KEY)
    assert reason in load_calibration(tmp_path, KEY, 3)  # type: ignore[operator]
