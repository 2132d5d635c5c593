"""What waits for a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anyburl import Reasoner
from anyburl.base.errors import InvalidOptionError, UnknownLabelError
from anyburl.data import Dataset
from anyburl.tools.review import ReviewLog, ReviewQueue
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
