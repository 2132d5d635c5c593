"""What a run says of each profile at its end."""

from __future__ import annotations

import pytest

from anyburl import Learner, LearnOptions, load_dataset
from anyburl.learning.history import ProfileSpan, SpanRecord
from anyburl.learning.outlook import Outlook, outlook
from anyburl.paths.profile import PathProfile

SHORT, LONG = PathProfile(True, 2), PathProfile(True, 3)


def test_the_last_quarter_of_its_time_tells_what_a_profile_would_still_bring() -> None:
    history = [
        SpanRecord(1, 11.0, (ProfileSpan(SHORT, 2, paths=100, entered=100, new_rules=500),)),
        SpanRecord(2, 12.0, (ProfileSpan(SHORT, 1, paths=10, entered=9), ProfileSpan(LONG, 1, exhausted=True))),
        SpanRecord(3, 13.0, (ProfileSpan(SHORT, 1, paths=100, entered=20, new_rules=30),)),
    ]
    assert outlook(history, start=10.0) == [
        Outlook(SHORT, 4.0, 129, pytest.approx(0.8), 30.0),
        Outlook(LONG, 1.0, 0, 1.0, 0.0),
    ]


def test_a_profile_without_a_path_has_seen_nothing() -> None:
    assert outlook([SpanRecord(1, 1.0, (ProfileSpan(SHORT, 1),))]) == [Outlook(SHORT, 1.0, 0, 0.0, 0.0)]
    assert outlook([]) == []


def test_a_run_that_is_complete_has_seen_all() -> None:
    learner = Learner(load_dataset("geo").train, LearnOptions(paths=10**9, max_cyclic=2, threads=1))
    for _ in learner.spans():
        pass
    assert learner.stopped_by == "complete"
    found = learner.outlook()
    assert {entry.profile for entry in found} == set(learner.options.profiles)
    assert all(entry.seen == 1 and entry.rules_per_second == 0 for entry in found)
    assert sum(entry.bodies for entry in found) == learner.n_bodies
