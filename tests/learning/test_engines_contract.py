"""What every engine does: the same rules for a path budget and a seed, snapshots, an end at any time, no rule twice.

The Ray engine runs on two simulated nodes, which are taken away and come back.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learned import ENOUGH, counted
from numpy.typing import NDArray

from anyburl import (
    Dataset,
    Learner,
    LearnOptions,
    MissingExtraError,
    OptionError,
    Reasoner,
    RuleSet,
    RunDirectory,
    TripleTable,
    evaluate,
    learn,
    load_dataset,
)
from anyburl.learning.learner import Span
from anyburl.learning.ray import RayEngine
from anyburl.learning.recorder import Recorder, resume, run_learner
from anyburl.learning.source import Handout
from anyburl.models.tuned.observations import rule_groups
from anyburl.ranking.queries import make_queries
from anyburl.ranking.ray import RayBackend
from kept_workers import KeptRay
from kernels import random_graph, table_of

ENGINES = ("threads", "ray")
GEO = load_dataset("geo").train
SPARSE = table_of(random_graph(3, 100, 5, 500))
RANDOM = table_of(random_graph(5, 200, 12, 2500))
BROAD = table_of(random_graph(4, 5000, 20, 30_000))
"""So many bodies of length 1 that it takes several spans to list them."""
WIDE = table_of(random_graph(2, 400, 40, 6000))
"""So many bodies of length 3 and 4 that no run of the tests comes to their end."""


NODE = {"num_cpus": 1}


class Nodes:
    """Two simulated nodes with a core each; the second can be taken away and brought back."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        noticing_soon = {"health_check_period_ms": 500, "health_check_initial_delay_ms": 500}
        head = {"include_dashboard": False, "_system_config": noticing_soon, **NODE}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._second = self._cluster.add_node(**NODE)
        ray.init(address=self._cluster.address, log_to_driver=False)

    def take_away(self) -> None:
        """As if the second node lost power."""
        self._cluster.remove_node(self._second, allow_graceful=False)

    def bring_back(self, cores: int) -> None:
        """Start another second node, which may have more cores."""
        self._second = self._cluster.add_node(num_cpus=cores)

    def close(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    pytest.importorskip("ray", reason="the Ray engine needs the extra `ray`")
    nodes = Nodes()
    yield nodes
    nodes.close()


@pytest.fixture(scope="module")
def kept_ray(nodes: Nodes) -> KeptRay:
    import ray

    return KeptRay(ray)


@pytest.fixture
def kept_workers(kept_ray: KeptRay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers be kept for the next test: for tests that lose none."""
    monkeypatch.setattr("anyburl.base.cluster.import_ray", lambda: kept_ray)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "ray":
        request.getfixturevalue("kept_workers")
    return str(request.param)


def make(table: TripleTable, engine: str, known: RuleSet | None = None, **options: Any) -> Learner:
    return Learner(table, LearnOptions(engine=engine, threads=2, **options), known=known)


def run(learner: Learner, at_span: Callable[[Span], object] = lambda span: None) -> list[Span]:
    spans = []
    for span in learner.spans():
        spans.append(span)
        at_span(span)
    return spans


def columns_of(rules: RuleSet) -> list[list[Any]]:
    names = ("type", "head", "head_constant", "body_constant", "predictions", "support", "exact")
    return [rules.bodies[rules.body].tolist(), *(getattr(rules, name).tolist() for name in names)]


def figures_of(span: Span) -> list[Any]:
    names = ("profile", "cores", "attempts", "paths", "new_bodies", "new_rules", "known_rules", "exhausted")
    entries = [tuple(getattr(entry, name) for name in names) for entry in span.profiles]
    counts = (span.number, span.n_rules, span.n_paths, span.n_bodies, span.n_dropped)
    return [*counts, *(entry for entry in entries if any(entry[1:7]))]


def assert_same(first: Learner, second: Learner, at_span: Callable[[Span], object] = lambda span: None) -> list[Span]:
    """Run both; the rules and what the spans tell must be the same. Return the spans of the second."""
    expected, spans = run(first), run(second, at_span)
    assert [figures_of(span) for span in spans] == [figures_of(span) for span in expected]
    assert columns_of(second.rules()) == columns_of(first.rules())
    assert second.stopped_by == first.stopped_by
    counted(second.rules())  # no rule twice
    return spans


# With a path budget and a seed.

MODES: dict[str, tuple[TripleTable, dict[str, Any]]] = {
    "complete": (GEO, {"paths": ENOUGH, "max_cyclic": 2}),
    "complete, with longer unary rules": (SPARSE, {"paths": ENOUGH, "max_cyclic": 2, "max_acyclic": 2}),
    "estimates and a cap": (RANDOM, {"paths": 60_000, "budget": 50, "max_rules": 3000, "policy": "greedy"}),
    "sampled heads of some relations": (
        RANDOM,
        {"paths": 60_000, "heads": "sampled", "relations": ("r000001", "r000004"), "min_support": 1},
    ),
}


@pytest.mark.parametrize("mode", MODES)
def test_a_path_budget_and_a_seed_give_the_same_rules_on_both_engines(kept_workers: None, mode: str) -> None:
    table, options = MODES[mode]
    spans = assert_same(*(make(table, engine, seed=3, **options) for engine in ENGINES))
    assert len(spans) > 1
    assert spans[-1].n_rules > 100


def test_a_resumed_run_gives_the_same_rules_on_both_engines(kept_workers: None) -> None:
    begun = make(RANDOM, "threads", paths=30_000, seed=1)
    run(begun)
    resumed = [make(RANDOM, engine, begun.rules(), paths=90_000, seed=2) for engine in ENGINES]
    spans = assert_same(*resumed)
    assert 0 < len(begun.rules()) < spans[-1].n_rules


def test_a_path_run_stopped_on_one_engine_and_resumed_on_the_other_is_the_run_that_was_not_stopped(
    kept_workers: None, tmp_path: Path
) -> None:
    dataset = Dataset.from_triples(BROAD, name="broad")
    options = {"max_cyclic": 2, "seed": 1}
    whole, spans = make(BROAD, "threads", paths=400_000, **options), list[Span]()
    expected = run(whole)
    learn(dataset, out=tmp_path / "run", paths=1, threads=2, on_span=spans.append, **options)
    folder = RunDirectory.open(tmp_path / "run")
    for engine, paths in (("ray", expected[1].n_paths), ("threads", expected[2].n_paths), ("ray", 400_000)):
        learner, recorder = resume(folder, dataset, paths=paths, engine=engine)
        n_before = len(spans)
        run_learner(learner, recorder, spans.append)
        recorder.finish(learner)
        assert len(spans) > n_before
    assert [figures_of(span) for span in spans] == [figures_of(span) for span in expected]
    assert any(place.done for span in spans for place in span.listed.values())
    assert columns_of(learner.rules()) == columns_of(whole.rules())


def test_workers_lost_or_joining_at_any_time_do_not_change_the_rules_of_a_path_budget(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is lost with pieces in hand, one joins later, and one is lost between two spans."""
    import ray

    lossy = make(RANDOM, "ray", paths=150_000, seed=3)
    engine = lossy.engine
    assert isinstance(engine, RayEngine)
    for name, array in engine.graph._asdict().items():
        assert isinstance(array, int) or (not array.flags.owndata and not array.flags.writeable), name
    hand_out, handed = engine._hand_out, list[int]()

    def hand_out_and_lose(handout: Handout, number: int) -> NDArray[np.int64]:
        handed.append(number)
        if len(handed) == 6:
            ray.kill(engine._crew.workers[number])
        return hand_out(handout, number)

    def wait_for_another_then_lose_one(span: Span) -> None:
        while span.number == 2 and len(engine._crew.workers) < 2:
            time.sleep(0.1)
            engine._crew.refresh()
        if span.number == 3:
            assert len(set(handed)) == 3
            ray.kill(next(iter(engine._crew.workers.values())))

    monkeypatch.setattr(engine, "_hand_out", hand_out_and_lose)
    spans = assert_same(make(RANDOM, "threads", paths=150_000, seed=3), lossy, wait_for_another_then_lose_one)
    assert any("lost 1 Ray worker in span 1: its share of the span is done again" in note for note in spans[0].notes)
    assert any("lost 1 Ray worker in span 4" in note for note in spans[3].notes)
    assert len(spans) > 4


def test_pieces_of_the_bodies_go_to_all_workers_of_a_path_budget(kept_workers: None) -> None:
    learner = make(WIDE, "ray", paths=100_000, seed=3)
    engine = learner.engine
    assert isinstance(engine, RayEngine)

    has_had_one = np.zeros(2, np.bool_)

    def look(span: Span) -> None:
        owned = np.array([*engine._owned.values()])
        assert (owned.sum(axis=0) == 1).all()
        has_had_one[:] |= owned.any(axis=1)  # in one span, a worker may take all while another waits for a core

    assert run(learner, look)
    assert has_had_one.all()


# With seconds.


def test_a_run_ends_at_its_seconds_and_takes_snapshots(engine: str) -> None:
    for seconds in (1.5, 4.0, 10.0):  # busy workers may take longer than that for the first span
        moment = round(seconds / 2, 2)
        learner = make(WIDE, engine, seconds=seconds, span=0.5, snapshots=(moment,))
        spans = run(learner)
        if len(spans) >= 2 and learner.store.snapshots().get(f"{moment:g}"):
            break
    assert learner.stopped_by == "seconds"
    assert learner.threads == 2
    assert spans[-1].elapsed - spans[-1].seconds < seconds <= learner.elapsed
    assert len(spans) >= 2
    [name] = [span.snapshot for span in spans if span.snapshot]
    assert name == f"{moment:g}"
    assert 0 < learner.store.snapshots()[name] <= spans[-1].n_rules == len(counted(learner.rules()))
    assert learner.n_paths > 0
    assert sum(entry.cores for entry in spans[0].profiles) == 2


@pytest.mark.parametrize("budget", [{"seconds": 600, "span": 600}, {"paths": ENOUGH}], ids=["seconds", "paths"])
def test_stop_ends_a_run_soon_and_keeps_what_was_found(engine: str, budget: dict[str, Any]) -> None:
    for seconds in (0.5, 5.0, 20.0):  # busy workers may have found nothing after the first
        learner = make(WIDE, engine, **budget)
        threading.Timer(seconds, learner.stop).start()
        spans = run(learner)
        if spans[-1].n_rules:
            break
    assert learner.elapsed < 600
    assert learner.stopped_by == "interrupt"
    assert len(counted(learner.rules())) == spans[-1].n_rules > 0
    assert spans[-1].n_rules == sum(span.new_rules for span in spans)


def test_a_run_that_is_stopped_and_resumed_harvests_no_body_again(engine: str, tmp_path: Path) -> None:
    dataset = Dataset.from_triples(SPARSE, name="sparse")
    options = {"max_cyclic": 2, "max_acyclic": 2, "min_support": 3, "span": 0.05}
    whole = make(SPARSE, "threads", paths=ENOUGH, **options)
    run(whole)
    chosen = LearnOptions(engine=engine, threads=2, seconds=6000, **options)
    folder = RunDirectory.create(tmp_path / "run", dataset, chosen)
    learner, recorder = Learner(SPARSE, chosen), Recorder(folder)
    for stop_at in (2, 4, 1000):
        for span in learner.spans():
            recorder.record(span)
            if span.number >= stop_at:
                learner.stop()
        recorder.finish(learner)
        if stop_at < 1000:
            learner, recorder = resume(folder, dataset)
    assert learner.stopped_by == "complete"
    assert learner.n_bodies == whole.n_bodies
    assert counted(learner.rules()) == counted(whole.rules())


# Answering queries.


def test_queries_have_the_same_answers_on_both_engines_also_when_a_worker_is_lost(nodes: Nodes) -> None:
    import ray

    dataset = load_dataset("geo")
    rules = learn(dataset, paths=1, max_cyclic=2, seed=1)
    ranker = Reasoner(rules, dataset, threads=2, aggregation="noisy-or-top:3").ranker
    queries, _ = make_queries(dataset.test.triples, [dataset.train.triples], dataset.vocabulary.n_relations)
    groups = rule_groups(rules)
    expected = ranker.answer(queries, top_k=5, groups=groups)
    notes: list[str] = []
    answered: list[int] = []
    backend = RayBackend(ranker.ready, 2, None, notes.append)
    with_ray = replace(ranker, backend=backend)

    def lose_one(n_answered: int) -> None:
        if not answered:
            ray.kill(next(iter(backend._crew.workers.values())))
        answered.append(n_answered)

    found = with_ray.answer(queries, top_k=5, groups=groups, progress=lose_one)
    backend.close()
    for name, column in expected._asdict().items():
        assert np.array_equal(getattr(found, name), column), name
    assert sum(answered) == len(queries.entities) > 32
    assert notes == ["lost 1 Ray worker: its questions are asked again, 1 left"]


def test_metrics_are_the_same_on_both_engines(kept_workers: None) -> None:
    dataset = load_dataset("geo")
    rules = learn(dataset, paths=1, max_cyclic=1, seed=1)
    threads, with_ray = (evaluate(rules, dataset, split="valid", threads=2, engine=engine) for engine in ENGINES)
    assert with_ray.metrics == threads.metrics
    assert with_ray.by_relation == threads.by_relation


# After this, workers that were kept may be gone.


def test_a_node_that_dies_in_a_span_and_a_larger_one_that_joins_cost_nothing_that_was_reported(nodes: Nodes) -> None:
    learner = Learner(WIDE, LearnOptions(engine="ray", seconds=600, span=0.5, max_cyclic=4))  # a worker on every core
    notes: list[str] = []
    all_there: list[int] = []

    def watch(span: Span) -> None:
        if span.number == 2:
            threading.Timer(0.2, nodes.take_away).start()
        if span.notes and not notes:
            nodes.bring_back(cores=2)
        notes.extend(span.notes)
        all_there.extend([span.number] * any("3 in all" in note for note in span.notes))
        if all_there and span.number > all_there[0] + 2:
            learner.stop()

    spans = run(learner, watch)
    lost, *joined = notes
    assert lost.startswith("lost 1 Ray worker in span")
    assert lost.endswith("its share of the span is lost, 1 left")
    assert joined[-1] in ("1 Ray worker joined, 3 in all", "2 Ray workers joined, 3 in all")
    assert sum(entry.cores for entry in spans[-1].profiles) == 3
    assert all(span.new_rules > 0 for span in spans[-2:])
    assert len(counted(learner.rules())) == spans[-1].n_rules == sum(span.new_rules for span in spans)


# What is wrong is said.


def test_an_engine_that_there_is_not_is_refused() -> None:
    dataset = load_dataset("geo")
    with pytest.raises(OptionError, match="engine must be one of threads, ray, got 'steam'"):
        evaluate(RuleSet.empty(dataset.vocabulary), dataset, engine="steam")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"engine=\"ray\" needs an extra: pip install 'anyburl\[ray\]'"):
        make(GEO, "ray")
