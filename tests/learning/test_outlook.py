"""What a run says of each profile at its end."""

from __future__ import annotations

import pytest

from anyburl import Learner, LearnOptions, load_dataset
from anyburl.learning.policy import ProfileSpan, SpanRecord
from anyburl.learning.progress import Outlook, outlook
from anyburl.learning.source import Listed
from anyburl.rules.types import PathProfile

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


def test_of_a_list_of_bodies_the_share_that_was_listed_is_seen() -> None:
    shortest = PathProfile(False, 1)
    spans = [
        ProfileSpan(shortest, 1, paths=4000, entered=4000, listed=Listed(4000, 10_000)),
        ProfileSpan(shortest, 1, paths=4000, entered=4000, listed=Listed(7800, 10_000)),  # some are not harvested yet
    ]
    (found,) = outlook([SpanRecord(number, number, (span,)) for number, span in enumerate(spans, 1)])
    assert (found.bodies, found.seen) == (8000, pytest.approx(0.78))


def test_bodies_that_were_sampled_before_they_are_listed_are_seen_too() -> None:
    """In the span in which listing begins, most paths were sampled; they say nothing about the rest of the list."""
    spans = [
        ProfileSpan(SHORT, 1, paths=5000, entered=2500),
        ProfileSpan(SHORT, 1, paths=5000, entered=50, listed=Listed(0, 1000)),
    ]
    history = [SpanRecord(number, number, (span,)) for number, span in enumerate(spans, 1)]
    assert outlook(history)[0].seen == pytest.approx(0.99), "sampled so far"
    listing = ProfileSpan(SHORT, 1, paths=200, entered=150, listed=Listed(200, 1000))
    assert outlook([*history, SpanRecord(3, 3.0, (listing,))])[0].seen == pytest.approx(0.2 + 0.8 * 0.25)


@pytest.mark.usefixtures("ticking_clock")
@pytest.mark.parametrize("cyclic", [True, False])
def test_what_a_run_has_seen_of_a_list_is_what_it_has_harvested_of_it(cyclic: bool) -> None:
    table = load_dataset("geo").train
    options = {"max_cyclic": int(cyclic), "max_acyclic": int(not cyclic), "threads": 1, "span": 0.05}
    whole = Learner(table, LearnOptions(paths=10**9, **options))
    assert len(list(whole.spans())) > 0
    assert whole.stopped_by == "complete"
    learner = Learner(table, LearnOptions(seconds=10**6, **options))
    shares = []
    for _ in learner.spans():
        (entry,) = learner.outlook()
        shares.append((entry.seen, learner.n_bodies / whole.n_bodies))
    assert learner.stopped_by == "complete"
    assert len(shares) > 3
    assert [seen for seen, _ in shares] == sorted(seen for seen, _ in shares)
    assert shares[-1] == (1.0, 1.0)
    assert all(seen == pytest.approx(share, abs=0.15) for seen, share in shares)


def test_a_run_that_is_complete_has_seen_all() -> None:
    learner = Learner(load_dataset("geo").train, LearnOptions(paths=10**9, max_cyclic=2, threads=1))
    for _ in learner.spans():
        pass
    assert learner.stopped_by == "complete"
    found = learner.outlook()
    assert {entry.profile for entry in found} == set(learner.options.profiles)
    assert all(entry.seen == 1 and entry.rules_per_second == 0 for entry in found)
    assert sum(entry.bodies for entry in found) == learner.n_bodies
