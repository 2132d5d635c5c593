"""Spans: what they tell, when they end, what a cap costs, which counts are exact."""

from __future__ import annotations

import threading

import pytest
from learned import ENOUGH, counted, learned, make_learner, run

from anyburl import DataError, PathProfile, TripleTable, UnknownLabelError, Vocabulary
from anyburl.learning.engine import CoreSpan
from anyburl.learning.learner import Span
from anyburl.learning.options import CORES_OF_PATH_RUNS, PATHS_PER_CORE, POLICIES
from anyburl.learning.policy import ProfileSpan
from anyburl.learning.store import RuleStore
from anyburl.learning.threads import warm_up_learning
from clock import TickingClock
from kernels import random_graph
from reference import search
from reference.measures import Measurer
from reference.scoring import Rule

GRAPH = random_graph(1, 8, 3, 30)
WIDE = random_graph(2, 400, 40, 6000)
"""So many bodies of length 3 that no run of the tests comes to their end."""


def test_a_run_with_nothing_left_to_find_is_complete() -> None:
    assert learned(GRAPH).stopped_by == "complete"


def test_a_run_ends_at_its_path_budget() -> None:
    learner = make_learner(WIDE, paths=150_000, max_cyclic=3)
    spans = run(learner)
    assert learner.stopped_by == "paths"
    assert spans[-2].n_paths < 150_000 <= spans[-1].n_paths == learner.n_paths


def test_a_run_ends_at_its_seconds(ticking_clock: TickingClock) -> None:
    learner = make_learner(GRAPH, seconds=0.3, span=0.1, heads="sampled", threads=2)
    started = ticking_clock.monotonic()
    spans = run(learner)
    assert learner.stopped_by == "seconds"
    assert 0.3 <= learner.elapsed == spans[-1].elapsed <= ticking_clock.monotonic() - started < 0.7
    assert len(spans) >= 2
    assert all(span.seconds >= 0.1 for span in spans[:-1])


def test_no_seconds_are_no_spans() -> None:
    learner = make_learner(GRAPH, seconds=0)
    assert run(learner) == []
    assert learner.stopped_by == "seconds"
    assert len(learner.rules()) == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("heads", ["all", "sampled"])
def test_a_path_budget_ends_a_run_that_finds_no_path(policy: str, heads: str) -> None:
    learner = make_learner((2, 1, [(0, 0, 1)]), paths=1000, policy=policy, heads=heads)
    run(learner)
    assert learner.stopped_by == ("complete" if heads == "all" else "paths")
    assert len(learner.rules()) == 0


def test_stop_ends_a_run_after_the_batches_under_way() -> None:
    learner = make_learner(WIDE, seconds=600, span=600, max_cyclic=3, threads=2)
    threading.Timer(0.3, learner.stop).start()
    spans = run(learner)
    assert learner.elapsed < 600
    assert learner.stopped_by == "interrupt"
    assert len(spans) == 1
    assert learner.rules().n_rules == spans[0].n_rules > 0


def test_a_run_that_was_stopped_before_it_began_does_nothing() -> None:
    learner = make_learner(GRAPH)
    learner.stop()
    assert run(learner) == []
    assert learner.stopped_by == "interrupt"


def test_a_loop_may_be_left_and_keeps_its_rules() -> None:
    learner = make_learner(WIDE, max_acyclic=1)
    for span in learner.spans():
        n_rules = span.n_rules
        break
    assert len(learner.rules()) == n_rules > 0


@pytest.fixture(scope="module")
def spans() -> list[Span]:
    return run(make_learner(GRAPH, max_cyclic=3, paths=200_000, policy="random"))


def test_spans_add_up(spans: list[Span]) -> None:
    n_rules = n_paths = n_bodies = 0
    elapsed = 0.0
    for number, span in enumerate(spans, 1):
        n_rules += span.new_rules
        n_paths += sum(entry.paths for entry in span.profiles)
        n_bodies += sum(entry.new_bodies for entry in span.profiles)
        elapsed += span.seconds
        assert (span.number, span.n_rules, span.n_paths, span.n_bodies) == (number, n_rules, n_paths, n_bodies)
        assert span.elapsed == pytest.approx(elapsed)
        assert span.new_rules == sum(entry.new_rules for entry in span.profiles) == sum(map(len, span.learned))
        assert span.n_dropped == 0


def test_every_core_of_a_span_is_accounted_for(spans: list[Span]) -> None:
    for span in spans:
        assert sum(entry.cores for entry in span.profiles) == CORES_OF_PATH_RUNS
        for entry in span.profiles:
            assert entry.paths <= entry.attempts
            if entry.profile.rule_length > 1 and entry.paths < entry.attempts:  # sampled, not listed
                assert entry.attempts == entry.cores * PATHS_PER_CORE


def test_saturation_reward_and_best_profile_come_from_the_profiles(spans: list[Span]) -> None:
    for span in spans:
        known = sum(entry.known_rules for entry in span.profiles)
        met = range(known + span.new_rules)
        assert span.saturation == search.saturation({*met}, {*met[:known]})
        assert span.reward == pytest.approx(sum(entry.reward for entry in span.profiles))
        best = max(entry.value for entry in span.profiles)
        assert best in [entry.value for entry in span.profiles if entry.profile == span.best_profile]
        assert span.paths_per_second == pytest.approx(sum(entry.paths for entry in span.profiles) / span.seconds)


def test_the_reward_of_a_profile_is_that_of_its_new_rules() -> None:
    """Rule by rule with the reference's sums, for each reward and each profile of the first span."""
    functions = {
        "support": search.support,
        "support-confidence": search.support_confidence,
        "length-discounted": search.length_discounted,
        "support-pca": search.support_confidence,
    }
    reference = Measurer(GRAPH[2], *GRAPH[:2])
    for reward, function in functions.items():
        for span in make_learner(GRAPH, reward=reward, paths=1).spans():
            for entry in span.profiles:
                found = [
                    (
                        support,
                        reference.measures(rule).pca_confidence if "pca" in reward else support / predictions,
                        len(rule.body),
                    )
                    for rules in span.learned
                    for rule, (predictions, support) in counted(rules).items()
                    if len(rule.body) == entry.profile.rule_length and is_of(rule, entry.profile)
                ]
                assert len(found) == entry.new_rules
                assert entry.reward == pytest.approx(function(found))


def is_of(rule: Rule, profile: PathProfile) -> bool:
    """Whether paths of this profile give this rule."""
    from_cycle = rule.type == "B" or (rule.type == "Uc" and rule.head_constant == rule.body_constant)
    return from_cycle == profile.cyclic


def test_a_span_that_finds_known_rules_only_is_saturated() -> None:
    learner = make_learner(GRAPH, max_acyclic=0, max_cyclic=3, heads="sampled", paths=10**6)
    spans = run(learner)
    assert spans[0].saturation == 0.0
    assert spans[-1].saturation == 1.0
    assert spans[-1].new_rules == 0


@pytest.mark.usefixtures("ticking_clock")
def test_snapshots_are_named_by_their_seconds() -> None:
    learner = make_learner(GRAPH, seconds=0.9, span=10, snapshots=(0.5, 0.1, 30.0), heads="sampled")
    taken = {span.snapshot: span.n_rules for span in learner.spans()}
    assert list(taken) == ["0.1", "0.5", None]
    assert learner.store.snapshots() == {"0.1": taken["0.1"], "0.5": taken["0.5"]}
    assert taken["0.1"] <= taken["0.5"] <= taken[None]


# A cap.


def test_a_cap_keeps_the_most_valuable_rules_and_counts_the_others() -> None:
    everything = learned(GRAPH).rules()
    capped = learned(GRAPH, max_rules=40)
    kept = counted(capped.rules())
    assert len(kept) == 40
    assert kept.items() <= counted(everything).items()
    values = sorted((s * s / p for p, s in counted(everything).values()), reverse=True)
    assert sorted((s * s / p for p, s in kept.values()), reverse=True) == pytest.approx(values[:40])
    assert capped.store.n_dropped == len(everything) - 40


def test_a_cap_above_all_rules_costs_nothing() -> None:
    everything = learned(GRAPH).rules()
    capped = learned(GRAPH, max_rules=len(everything))
    assert counted(capped.rules()) == counted(everything)
    assert capped.store.n_dropped == 0


def test_a_span_tells_what_a_cap_has_cost_so_far() -> None:
    for span in make_learner(GRAPH, max_rules=40).spans():
        assert span.n_rules <= 44
        assert span.n_rules == len(span.rules)
    assert span.n_rules + span.n_dropped > 44


@pytest.mark.parametrize("threads", [1, 2])
def test_a_cap_takes_effect_during_a_span_that_finds_many_rules(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    whole = learned(GRAPH, max_rules=40)
    assert max(entry.new_rules for span in whole.history for entry in span.profiles) > 160
    monkeypatch.setattr("anyburl.learning.threads.CUT_FROM", 100)
    held = 0

    def held_rules(found: CoreSpan) -> int:
        nonlocal held
        held = max(held, n_held(found))
        return n_held(found)

    n_held = CoreSpan.n_held.fget
    monkeypatch.setattr(CoreSpan, "n_held", property(held_rules))
    cut = learned(GRAPH, max_rules=40, threads=threads)
    assert counted(cut.rules()) == counted(whole.rules())
    assert [span.profiles for span in cut.history] == [span.profiles for span in whole.history]
    assert held > 160
    assert cut.store.n_dropped > 0


def test_a_snapshot_keeps_its_rules_that_a_cap_leaves() -> None:
    rules = learned(GRAPH).rules()
    store = RuleStore(rules.vocabulary, 30)
    store.add([rules.slice(0, 25)])
    store.mark_snapshot("5")
    store.add([rules.slice(25, 100)])
    store.cut_to_cap()
    assert (store.n_rules, store.n_dropped) == (30, 70)
    early = counted(rules.slice(0, 25))
    assert [rule in early for rule in counted(store.rules())].index(False) == store.snapshots()["5"]


# Exact or estimated.


def test_counts_beyond_the_budget_are_marked_as_estimates() -> None:
    """A budget of one edge: there is no body that it is enough for."""
    exact, estimated = (learned(random_graph(3, 30, 2, 500), budget=budget) for budget in (ENOUGH, 1))
    assert exact.rules().exact.all()
    rules = estimated.rules()
    assert not rules.exact.all()
    right = counted(exact.rules())
    marked = rules.take(rules.exact)
    assert counted(marked).items() <= right.items()
    assert set(counted(rules)) <= set(right)


# What cannot be learned.


def test_there_must_be_a_triple_to_learn_from() -> None:
    empty = TripleTable.from_labels([], [], [], Vocabulary.from_labels(["a"], ["r"]))
    with pytest.raises(DataError, match="no triples to learn from"):
        make_learner(empty)


def test_a_relation_to_learn_must_be_known_and_have_a_triple() -> None:
    table = TripleTable.from_labels(["a"], ["speaks"], ["b"], Vocabulary.from_labels(["a", "b"], ["speaks", "lives"]))
    with pytest.raises(DataError, match="relation 'lives' has no triples to learn from"):
        make_learner(table, relations=("lives",))
    with pytest.raises(UnknownLabelError, match="speakes"):
        make_learner(table, relations=("speakes",))


def test_warming_up_asks_nothing_of_the_options() -> None:
    options = make_learner(GRAPH, seconds=100, relations=("r000001",), max_rules=1, policy="saturation").options
    warm_up_learning(options, 1)


def test_bodies_that_wait_to_be_harvested_are_no_reason_to_stop_sampling() -> None:
    """A span may be over before the first body is harvested."""
    learner = make_learner(GRAPH)
    profile = PathProfile(True, 2)
    source = learner.engine._sources[profile]
    learner.engine.after_span([ProfileSpan(profile, 1, attempts=100_000, paths=900, new_bodies=0, entered=300)])
    assert source._sweep is None
    learner.engine.after_span([ProfileSpan(profile, 1, attempts=100_000, paths=900, new_bodies=0, entered=0)])
    assert source._sweep is not None
    learner.engine.close()
