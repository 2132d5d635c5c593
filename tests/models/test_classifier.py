"""Telling true facts from false ones, learned from facts that were judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl import DataError, Dataset, OptionError, Reasoner
from anyburl.models.classifier import FEWEST, PRIOR, fact_features, fit_classifier, neighbour_features
from rules.samples import make_rules

Fact = tuple[str, str, str]

N_PEOPLE = 300
TOWNS = [f"town{number}" for number in range(10)]
RULES = [
    ("visits(X,Y) <= lives(X,Y)", (100, 60)),
    ("visits(X,Y) <= works(X,Y)", (100, 60)),
    ("visits(X,Y) <= knows(X,A), lives(A,Y)", (200, 40)),
]


def town_facts() -> tuple[list[Fact], list[Fact], list[Fact]]:
    """People visit where they live, never town0, and seldom where only somebody they know lives."""
    rng = np.random.default_rng(0)
    stated, true, false = list[Fact](), list[Fact](), list[Fact]()
    lives = rng.integers(len(TOWNS), size=N_PEOPLE)
    for number, own in enumerate(lives):
        person, other = f"p{number}", int(rng.integers(N_PEOPLE))
        stated += [(person, "lives", TOWNS[own]), (person, "knows", f"p{other}")]
        (true if own else false).append((person, "visits", TOWNS[own]))
        if lives[other] != own:
            false.append((person, "visits", TOWNS[lives[other]]))
    stated += [("p0", "works", town) for town in TOWNS] + true[:60]
    return stated, true[60:], false


@pytest.fixture(scope="module")
def reasoner() -> Reasoner:
    stated, _, _ = town_facts()
    return Reasoner(make_rules(RULES), Dataset.from_triples(stated, name="towns"), threads=1)


def test_what_was_judged_tells_true_from_false(reasoner: Reasoner) -> None:
    """No score can tell that nobody visits town0; judged facts can. Facts beyond the judged ones are told apart too."""
    _, true, false = town_facts()
    checked = reasoner.check(true[120:] + false[150:], known_true=true[:120], known_false=false[:150])
    is_true = np.arange(len(checked)) < len(true) - 120
    supported = (checked["verdict"] == "supported").to_numpy()
    assert (supported == is_true).mean() >= 0.9
    by_score = reasoner.check(true[120:] + false[150:])["score"].to_numpy()
    best = max(((by_score >= least) == is_true).mean() for least in by_score)
    assert (supported == is_true).mean() > best


def test_facts_that_were_judged_are_scored_by_forests_that_have_not_seen_them(reasoner: Reasoner) -> None:
    """With verdicts at random there is nothing to learn: about half of them are guessed."""
    _, true, false = town_facts()
    facts = reasoner.ids_of([fact for fact in true + false if fact[2] != TOWNS[0]])
    drawn = np.random.default_rng(1).permutation(len(facts))
    mixed = facts[drawn[: len(facts) // 2]], facts[drawn[len(facts) // 2 :]]
    classifier = fit_classifier(reasoner.ranker, *mixed)
    right = (classifier.probabilities(classifier.judged) >= 0.5) == classifier.is_true
    assert 0.38 <= right.mean() <= 0.62
    again = fit_classifier(reasoner.ranker, *mixed)
    assert np.array_equal(again.probabilities(facts), classifier.probabilities(facts))


def test_features_do_not_depend_on_the_other_facts(reasoner: Reasoner) -> None:
    _, true, false = town_facts()
    facts = reasoner.ids_of([*true[:20], *false[:20], ("p3", "visits", "p4")])
    together = fact_features(reasoner.ranker, facts)
    alone = np.concatenate([fact_features(reasoner.ranker, facts[row : row + 1]) for row in range(len(facts))])
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    assert np.isnan(together[-1]).any()
    assert not np.isnan(together[0]).any()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 2), st.booleans()), max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 2)), max_size=6),
)
def test_neighbours_are_the_judged_facts_with_the_same_relation_and_object(
    judged: list[tuple[int, int, int, bool]], facts: list[tuple[int, int, int]]
) -> None:
    def expected(fact: tuple[int, int, int], others: list[tuple[int, int, int, bool]]) -> tuple[float, float]:
        near = [true for _, r, o, true in others if (r, o) == fact[1:]]
        return (sum(near) - len(near) / 2) / (len(near) + PRIOR), float(np.log1p(len(near)))

    triples = np.array([one[:3] for one in judged], np.int32).reshape(-1, 3)
    is_true = np.array([one[3] for one in judged], np.bool_)
    found = neighbour_features(np.array(facts, np.int32).reshape(-1, 3), triples, is_true)
    np.testing.assert_allclose(found, np.array([expected(fact, judged) for fact in facts]).reshape(-1, 2))
    own = neighbour_features(triples, triples, is_true, each_without_itself=True)
    without = [expected(one[:3], judged[:row] + judged[row + 1 :]) for row, one in enumerate(judged)]
    np.testing.assert_allclose(own, np.array(without).reshape(-1, 2))


def test_what_is_too_little_to_learn_from_is_refused(reasoner: Reasoner, tmp_path: Path) -> None:
    stated, true, false = town_facts()
    message = rf"expected at least {FEWEST} facts that are known to be true and {FEWEST} .* got 3 and 0"
    with pytest.raises(DataError, match=message):
        reasoner.check(true, known_true=true[:3] + stated[:9], known_false=[("x", "y", "z")])
    with pytest.raises(DataError, match="got 0 and"):  # there is no valid split to take true ones from
        reasoner.check(true, known_false=false)
    with pytest.raises(OptionError, match="known_true needs known_false"):
        reasoner.check(true, known_true=true)
    with pytest.raises(DataError, match="got a frame without object"):
        reasoner.check(true, known_false=pl.DataFrame({"subject": ["a"], "relation": ["b"]}))
