"""What waits for a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl import Reasoner
from anyburl.base.errors import InvalidOptionError, UnknownLabelError
from anyburl.data import Dataset
from anyburl.models.calibration import N_CONTEXTS, Calibration
from anyburl.reasoning.completion.facts import FactColumns
from anyburl.tools.review import ReviewLog, ReviewQueue, possible_errors, review_order
from anyburl.tools.review import review_queue as timed_queue
from rules.samples import make_rules

FACTS = [(f"p{i}", "lives", "nl") for i in range(5)] + [("p0", "speaks", "dutch"), ("p1", "knows", "p0")]
RULES = [("speaks(X,dutch) <= lives(X,nl)", (10, 9)), ("knows(X,p1) <= lives(X,nl)", (10, 6))]


def review_queue(reasoner: Reasoner, log: ReviewLog, **options: Any) -> ReviewQueue:
    """With time enough to compile kernels."""
    return timed_queue(reasoner, log, **{"seconds": 600.0, **options})


@pytest.fixture
def reasoner() -> Reasoner:
    return Reasoner(make_rules(RULES), Dataset.from_triples(FACTS), threads=1)


@pytest.fixture
def log(tmp_path: Path) -> ReviewLog:
    return ReviewLog.of_run(tmp_path)


def test_the_best_facts_that_nobody_judged_come_first(reasoner: Reasoner, log: ReviewLog) -> None:
    queue = review_queue(reasoner, log, top=5)
    assert [fact.triple for fact in queue] == [(f"p{i}", "speaks", "dutch") for i in range(1, 5)] + [
        ("p0", "knows", "p1")
    ]
    assert queue.is_complete
    best = queue.facts[0]
    assert (best.score, best.probability, best.n_rules) == (pytest.approx(0.6), None, 1)
    assert best.rule == "speaks(X,dutch) <= lives(X,nl)"


def test_judged_facts_leave_the_queue_and_withdrawn_ones_come_back(reasoner: Reasoner, log: ReviewLog) -> None:
    log.record(("p1", "speaks", "dutch"), "accepted")
    log.record(("p2", "speaks", "dutch"), "rejected")
    log.record(("x", "of other", "data"), "rejected")
    queue = review_queue(reasoner, log, relation="speaks")
    assert [fact.triple[0] for fact in queue] == ["p3", "p4"]
    log.record(("p2", "speaks", "dutch"), "withdrawn")
    assert [fact.triple[0] for fact in review_queue(reasoner, log, relation="speaks")] == ["p2", "p3", "p4"]


def test_a_search_without_time_says_that_it_is_not_complete(reasoner: Reasoner, log: ReviewLog) -> None:
    queue = review_queue(reasoner, log, seconds=-1)
    assert not queue.is_complete
    assert len(queue) == 0


def test_scores_below_the_least_are_left_out(reasoner: Reasoner, log: ReviewLog) -> None:
    assert len(review_queue(reasoner, log, min_score=0.5)) == 4
    assert len(review_queue(reasoner, log, min_score=0.95)) == 0


def test_what_cannot_be_asked_is_refused(reasoner: Reasoner, log: ReviewLog) -> None:
    with pytest.raises(InvalidOptionError, match="top must be at least 1"):
        review_queue(reasoner, log, top=0)
    with pytest.raises(UnknownLabelError):
        review_queue(reasoner, log, relation="speak")


def test_likely_facts_come_before_those_with_high_scores(reasoner: Reasoner, log: ReviewLog) -> None:
    """The scores of speaks are higher, but hardly any of its facts came back; a queue that is complete has the best."""
    speaks = reasoner.vocabulary.relation_id("speaks")
    shares = np.full((reasoner.vocabulary.n_relations, N_CONTEXTS, 1), 0.45)
    shares[speaks] = 0.05
    sizes = (np.full(len(shares), value) for value in (10.0, 90.0, 0.0, 0.1, 0.0, 0.0))
    reasoner.calibration = Calibration(np.zeros(1, np.int64), shares, *sizes)
    queue = review_queue(reasoner, log, top=3)
    assert queue.is_complete
    assert [fact.triple[1] for fact in queue] == ["knows"] * 3
    assert [fact.probability for fact in queue] == pytest.approx([0.45 / 0.55] * 3)
    every = review_queue(reasoner, log, top=50)
    assert [fact.triple for fact in every][:3] == [fact.triple for fact in queue]
    assert sorted(fact.triple[1] for fact in every) == ["knows"] * 4 + ["speaks"] * 4
    assert len(review_queue(reasoner, log, min_score=0.5)) == 4


def test_what_a_stated_fact_contradicts_is_not_asked_about(log: ReviewLog) -> None:
    more = [(f"q{i}", "speaks", "french") for i in range(20)] + [("q0", "lives", "nl"), ("q1", "lives", "nl")]
    reasoner = Reasoner(make_rules(RULES), Dataset.from_triples(FACTS + more), threads=1)
    assert [fact.triple[0] for fact in review_queue(reasoner, log, relation="speaks")] == ["p1", "p2", "p3", "p4"]


def test_strong_rules_against_a_stated_fact_are_a_possible_error(log: ReviewLog) -> None:
    more = [(f"q{i}", "speaks", "french") for i in range(20)] + [("q0", "lives", "nl"), ("q1", "lives", "nl")]
    strong = make_rules([("speaks(X,dutch) <= lives(X,nl)", (1000, 950))])
    reasoner = Reasoner(strong, Dataset.from_triples(FACTS + more), threads=1)
    errors = possible_errors(reasoner, log, seconds=600)
    assert [(one.predicted.triple, one.stated) for one in errors] == [
        ((name, "speaks", "dutch"), (name, "speaks", "french")) for name in ("q0", "q1")
    ]
    assert errors[0].predicted.rule == "speaks(X,dutch) <= lives(X,nl)"
    log.record(("q0", "speaks", "dutch"), "rejected")
    log.record(("q1", "speaks", "french"), "accepted")
    assert possible_errors(reasoner, log, seconds=600) == ()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 2),
            st.integers(0, 3),
            st.sampled_from([0.1, 0.5, 0.52, 0.9, 0.93, 1.0]),
            st.integers(1, 2),
        ),
        max_size=20,
        unique_by=lambda fact: fact[:3],
    )
)
def test_relations_take_turns_among_facts_that_are_about_equally_likely(facts: list[Any]) -> None:
    triples = np.array([fact[:3] for fact in facts], np.int32).reshape(-1, 3)
    likely, n_rules = np.array([fact[3] for fact in facts]), np.array([fact[4] for fact in facts], np.int32)
    columns = FactColumns(triples, np.ones(len(facts)), np.zeros(len(facts), np.int32), n_rules)
    turns, places = {}, dict[tuple[int, int], int]()
    for s, r, o, sure, _ in sorted(facts, key=lambda fact: (-fact[3], -fact[4], fact[0], fact[2])):
        group = int(sure * 20), r
        turns[s, r, o] = places.get(group, 0)
        places[group] = turns[s, r, o] + 1
    expected = sorted(facts, key=lambda f: (-int(f[3] * 20), turns[f[:3]], -f[3], -f[4], f[0], f[1], f[2]))
    assert [facts[row] for row in review_order(columns, likely)] == expected
