"""From counts to probabilities: isotonic, monotone, shrunk, and without what another split states."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from observed import draw, observations

from anyburl.base.errors import InvalidOptionError
from anyburl.models.calibration.fit import (
    CERTAIN,
    BinCounts,
    bins_of,
    count_answers,
    fit_lines,
    fit_overall,
    fit_relations,
    fit_whole,
    isotonic,
    make_edges,
)
from anyburl.models.calibration.report import (
    cross_fit,
    expected_calibration_error,
    fit_calibration,
    precision_above,
    reliability,
    reliability_by_width,
)
from reference import calibration as reference

cells = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=12)


@given(cells)
def test_isotonic_regression_is_the_max_min_formula(pairs: list[tuple[int, int]]) -> None:
    stated, answers = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    assert np.allclose(isotonic(stated, answers), reference.isotonic(stated.tolist(), answers.tolist()))


def test_empty_bins_take_the_share_of_a_neighbour() -> None:
    stated, answers = np.array([0.0, 1.0, 0.0, 3.0]), np.array([0.0, 4.0, 0.0, 4.0])
    assert isotonic(stated, answers).tolist() == [0.25, 0.25, 0.25, 0.75]


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60), st.integers(1, 15))
def test_the_calibration_error_is_that_of_the_reference(rows: list[tuple[float, bool]], n_bins: int) -> None:
    probabilities, is_stated = [p for p, _ in rows], [s for _, s in rows]
    found = expected_calibration_error(reliability(np.array(probabilities), np.array(is_stated), n_bins))
    expected = reference.expected_calibration_error(probabilities, is_stated, n_bins)
    assert found == pytest.approx(expected, abs=1e-12)


def test_bins_of_equal_width_hold_all_answers() -> None:
    found = reliability_by_width(np.array([0.0, 0.05, 0.95, 1.0]), np.array([False, False, True, True]))
    assert [(place.probability, place.share_stated, place.answers) for place in found] == [
        (0.025, 0.0, 2),
        (0.975, 1.0, 2),
    ]


def test_without_answers_there_is_no_error() -> None:
    assert expected_calibration_error([]) is None
    assert precision_above(np.array([0.2]), np.array([True]), 0.5) == (None, 0)


counts = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=5, max_size=5), min_size=n, max_size=n
    )
)


@given(counts)
@example([[(0, 0), (0, 0), (13, 0), (20, 19), (7, 4)]])
def test_maps_never_fall_and_stay_probabilities(pairs: list[list[tuple[int, int]]]) -> None:
    table = np.array(pairs, np.float64)
    found = BinCounts(answers=table[:, :, 0] + table[:, :, 1], stated=table[:, :, 0])
    whole = fit_whole(found)
    for fitted in (fit_relations(found, whole), fit_lines(found, whole), whole[None, :]):
        assert np.all((fitted >= 0) & (fitted <= 1))
        assert np.all(np.diff(fitted, axis=1) >= -1e-12)


def test_a_relation_with_few_answers_follows_the_whole_and_one_with_many_itself() -> None:
    shares = np.array([0.1, 0.2, 0.3])
    sizes = np.array([100_000.0, 1.0, 0.0, 1000.0])
    answers = np.repeat(sizes[:, None], 3, axis=1)
    own = np.array([shares, shares, shares, 3 * shares])
    found = BinCounts(answers, answers * own)
    whole = fit_whole(found)
    fitted = fit_relations(found, whole)
    assert fitted[1] == pytest.approx(whole, rel=0.1)
    assert fitted[2] == pytest.approx(whole)
    assert fitted[3] == pytest.approx(3 * shares, rel=0.02)


def test_an_edge_belongs_to_the_bin_above() -> None:
    edges = make_edges(np.array([0.1, 0.1, 0.5, 0.9]), np.array([False, False, False, True]))
    assert edges.tolist() == [0.1, 0.5, 0.9]
    assert bins_of(edges, np.array([0.0, 0.1, 0.3, 0.5, 1.0])).tolist() == [0, 1, 1, 2, 3]


def test_edges_are_quantiles_of_all_scores_and_of_those_of_stated_answers() -> None:
    scores = np.arange(100) / 100
    assert make_edges(scores, scores >= 0.9, 2).tolist() == [0.49, 0.94, 0.99]
    assert make_edges(scores, scores < 0, 4).tolist() == [0.24, 0.49, 0.74, 0.99]
    assert len(make_edges(np.arange(3000.0), np.zeros(3000, np.bool_))) == 30
    assert make_edges(np.empty(0), np.empty(0, np.bool_)).tolist() == []


def test_answers_are_counted_by_relation_and_bin() -> None:
    """A stated answer with others to its question counts less: another split may state so many of them."""
    found = observations(
        np.array([0.1, 0.5, 0.6, 0.6, 0.9]),
        np.array([False, True, True, False, True]),
        relations=np.array([0, 1, 1, 1, 2]),
        has_others=np.array([False, False, True, False, True]),
    )
    counts = count_answers(found, np.array([0.5]), 4, 0.25)
    assert counts.answers.tolist() == [[1, 0], [0, 2.75], [0, 0.75], [0, 0]]
    assert counts.stated.tolist() == [[0, 0], [0, 2], [0, 1], [0, 0]]
    assert count_answers(found, np.array([0.5]), 4).answers.sum() == 5


def test_counts_cannot_be_replaced() -> None:
    counts = BinCounts(np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(FrozenInstanceError):
        counts.stated = np.zeros((1, 1))  # type: ignore[misc]


def test_the_whole_adds_half_an_answer_on_either_side_of_each_block() -> None:
    """3 of 10 and 19 of 20, all relations together; then one block of 22 of 30 where the shares would fall."""
    found = BinCounts(answers=np.array([[4.0, 20.0], [6.0, 0.0]]), stated=np.array([[1.0, 19.0], [2.0, 0.0]]))
    assert fit_whole(found) == pytest.approx([3.5 / 11, 19.5 / 21])
    falling = BinCounts(found.answers[:, ::-1], found.stated[:, ::-1])
    assert fit_whole(falling) == pytest.approx([22.5 / 31, 22.5 / 31])


def test_no_probability_of_the_whole_is_certain_or_without_answers() -> None:
    """Of 10 that are stated, 1/20 is left where more is taken out than there is: 10.5 / 1.5 is cut off."""
    many = BinCounts(answers=np.array([[1e6]]), stated=np.array([[1e6]]))
    assert fit_whole(many).tolist() == [0.999]
    few = BinCounts(answers=np.array([[-3.0, 8.0]]), stated=np.array([[2.0, 8.0]]))
    assert fit_whole(few) == pytest.approx([0.999, 0.999])
    left = BinCounts(answers=np.array([[-3.0, 8.0]]), stated=np.array([[2.0, 0.0]]))
    assert fit_whole(left) == pytest.approx([2.5 / 9.1, 2.5 / 9.1])


def test_lines_are_where_the_posterior_is_highest() -> None:
    """There, what is stated beyond expectation is what the priors around a = 0 and b = 1 take back, by deviations of 1
    and 1/2.
    """
    whole = np.array([0.1, 0.3, 0.3, 0.6, 0.9])
    answers = np.array([[40.0, 10.0, 20.0, 30.0, 20.0], [5.0, 0.0, 7.0, 2.0, 300.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    stated = np.array([[2.0, 3.0, 1.0, 11.0, 19.0], [4.0, 0.0, 3.0, 2.0, 250.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    found = fit_lines(BinCounts(answers, stated), whole)
    x, logits = np.log(whole / (1 - whole)), np.log(found / (1 - found))
    for n, k, line, share in zip(answers, stated, logits, found, strict=True):
        slope = (line[4] - line[0]) / (x[4] - x[0])
        start = line[0] - slope * x[0]
        assert line == pytest.approx(start + slope * x)
        assert (k - n * share).sum() == pytest.approx(start, abs=1e-6)
        assert ((k - n * share) * x).sum() == pytest.approx((slope - 1) / 0.25, abs=1e-6)
    assert found[2] == pytest.approx(whole)


def test_a_line_never_falls_and_takes_no_fewer_answers_than_are_stated() -> None:
    """Where low scores are right and high ones wrong, a slope of 1/50 is left."""
    whole = np.array([0.2, 0.8])
    falling = fit_lines(BinCounts(np.array([[1000.0, 1000.0]]), np.array([[900.0, 100.0]])), whole)[0]
    low, high = np.log(falling / (1 - falling))
    assert high - low == pytest.approx(0.02 * 2 * np.log(4))
    short = BinCounts(np.array([[-1.0, 30.0]]), np.array([[5.0, 20.0]]))
    assert fit_lines(short, whole) == pytest.approx(fit_lines(BinCounts(np.array([[5.0, 30.0]]), short.stated), whole))


def test_a_line_adds_five_answers_to_every_bin_of_its_relation() -> None:
    whole = np.array([0.2, 0.5, 0.8])
    found = BinCounts(np.array([[20.0, -2.0, 40.0], [0.0, 0.0, 0.0]]), np.array([[2.0, 1.0, 39.0], [0.0, 0.0, 0.0]]))
    lines = fit_lines(found, whole)
    stated, answers = found.stated + 5 * lines, np.array([25.0, 5.0, 45.0])
    fitted = fit_relations(found, whole)
    assert fitted[0] == pytest.approx(isotonic(stated[0], answers))
    assert fitted[1] == pytest.approx(lines[1])
    assert fit_relations(found, whole, 1e9)[0] == pytest.approx(lines[0], rel=1e-6)
    certain = BinCounts(np.full((1, 3), 1e7), np.full((1, 3), 1e7))
    assert fit_relations(certain, whole).max() == 0.999


def test_the_overall_probability_of_answers_knows_no_relation() -> None:
    """3 of 4 at the one score, none of 4 at the other."""
    found = observations(
        np.repeat([0.2, 0.7], 4), np.array([False] * 5 + [True] * 3), relations=np.arange(8) % 3, has_others=None
    )
    assert fit_overall(found, 0.0) == pytest.approx(np.repeat([0.5 / 5, 3.5 / 5], 4))
    others = observations(found.scores, found.is_stated, has_others=found.is_stated)
    assert fit_overall(others, 0.5)[4:] == pytest.approx([3.5 / 3.5 * 0.999] * 4)


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_what_another_split_states_is_taken_out_without_looking_at_it(ratio: float) -> None:
    """Questions with many answers, each drawn into this split or the other one: the share of stated answers is that
    which would be found if the answers of the other split were known."""
    rng, n_questions, n_answers, n_wrong = np.random.default_rng(0), 4000, 4, 2
    is_own = rng.random((n_questions, n_answers)) < 1 / (1 + ratio)
    asked = is_own.any(axis=1)
    stated = np.hstack([is_own, np.zeros((n_questions, n_wrong), bool)])[asked]
    others = stated & (is_own.sum(axis=1) > 1)[asked][:, None]
    found = observations(np.full(stated.size, 0.5), stated.ravel(), has_others=others.ravel())
    n_stated = stated.sum()
    expected = n_stated / (n_stated + n_wrong * asked.sum())
    for hidden, tolerance in ((ratio, 0.01), (0.0, None)):
        counts = count_answers(found, np.array([0.5]), 1, hidden)
        share = counts.stated.sum() / counts.answers.sum()
        assert share == pytest.approx(expected, abs=tolerance) if tolerance else share < expected - 0.1


def test_probabilities_come_back_that_answers_were_drawn_with() -> None:
    """Two relations whose scores mean different things; the test answers were not seen."""
    fitted, checked = (draw(np.random.default_rng(seed), 40_000) for seed in (1, 2))
    calibration = fit_calibration(fitted, 2)
    probabilities = calibration.probabilities(checked.relations, checked.scores)
    truth = np.where(checked.relations == 0, checked.scores, checked.scores**3)
    assert np.abs(probabilities - truth).mean() < 0.02
    error = expected_calibration_error(reliability(probabilities, checked.is_stated))
    before = expected_calibration_error(reliability(checked.scores, checked.is_stated))
    assert error is not None
    assert before is not None
    assert error < 0.01 < 0.1 < before


def test_cross_fitting_gives_no_answer_its_own_label() -> None:
    """Labels without rhyme or reason: fitted to themselves, they would be told by their scores."""
    rng = np.random.default_rng(0)
    found = observations(rng.random(400), rng.random(400) < 0.5, folds=np.arange(400) % 10)
    probabilities = cross_fit(found, 1)
    assert np.corrcoef(probabilities, found.is_stated)[0, 1] < 0.15


def test_least_scores_are_where_the_probability_is_reached() -> None:
    calibration = fit_calibration(draw(np.random.default_rng(1), 20_000), 3)
    for probability in (0.0, 0.3, 0.8, 0.95):
        least = calibration.least_scores(probability)
        for relation, score in enumerate(least):
            if np.isinf(score):
                assert calibration.probability[relation].max() < probability
                continue
            at, below = np.array([score]), np.array([np.nextafter(score, -1)])
            relations = np.array([relation])
            assert calibration.probabilities(relations, at)[0] >= probability
            assert score == 0 or calibration.probabilities(relations, below)[0] < probability
    assert np.isinf(calibration.least_scores(1.0)).all()
    assert calibration.probability.max() <= CERTAIN
    with pytest.raises(InvalidOptionError, match="from 0 to 1"):
        calibration.least_scores(80)
