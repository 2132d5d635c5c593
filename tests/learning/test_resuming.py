"""A resumed run goes on where it stopped: it harvests no body again, and with a path budget nothing differs at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from learned import counted, learned
from runs_made import kill

from anyburl import Dataset, LearnOptions, RunDirectory, learn
from anyburl.learning.learner import Learner
from anyburl.learning.recorder import resume, run_learner
from kernels import random_graph, table_of

GRAPH = random_graph(5, 200, 12, 2500)
SPARSE = random_graph(6, 100, 5, 300)
BROAD = random_graph(4, 5000, 20, 30_000)
SMALL = random_graph(1, 8, 3, 30)
DATA = {name: Dataset.from_triples(table_of(graph), name=name) for name, graph in (("small", SMALL), ("large", GRAPH))}

FIGURES = ("number", "rules", "new_rules", "dropped", "paths", "bodies", "saturation", "reward", "listed", "complete")
FEW_RULES = {"min_support": 3, "min_confidence": 0.0, "max_cyclic": 2, "max_acyclic": 2, "threads": 1}
"""Most bodies of the small graph give no rule."""


def go_on(run: RunDirectory, dataset: Dataset, **changes: Any) -> Learner:
    """Resume a run, and finish it."""
    learner, recorder = resume(run, dataset, **changes)
    run_learner(learner, recorder)
    recorder.finish(learner)
    return learner


def figures(run: RunDirectory) -> list[tuple[Any, ...]]:
    """What the trace says apart from times."""
    return [(*(line[name] for name in FIGURES), line["profiles"]) for line in run.trace()]


def n_harvested(run: RunDirectory) -> int:
    return sum(entry["new_bodies"] for line in run.trace() for entry in line["profiles"])


# With a path budget.

MODES: dict[str, dict[str, Any]] = {
    "listed and sampled": {"graph": BROAD, "max_cyclic": 2},
    "sampled": {},
    "sampled heads": {"heads": "sampled", "graph": SPARSE, "min_support": 1},
    "greedy": {"policy": "greedy", "reward": "support"},
    "saturation": {"policy": "saturation", "saturation": 0.5},
    "estimates": {"budget": 50},
}


@pytest.mark.parametrize("mode", MODES)
def test_a_path_run_that_is_stopped_and_resumed_is_the_run_that_was_not_stopped(tmp_path: Path, mode: str) -> None:
    graph = MODES[mode].get("graph", GRAPH)
    options = {name: value for name, value in MODES[mode].items() if name != "graph"}
    dataset = Dataset.from_triples(table_of(graph), name="random")
    learn(dataset, out=tmp_path / "whole", paths=500_000, seed=3, threads=1, **options)
    learn(dataset, out=tmp_path / "stopped", paths=1, seed=3, threads=1, **options)
    whole, stopped = (RunDirectory.open(tmp_path / name) for name in ("whole", "stopped"))
    for paths in (100_000, 250_000, 500_000):
        go_on(stopped, dataset, paths=paths)
    assert len(list(whole.trace())) > 4
    if graph is BROAD:
        assert any(line["listed"] for line in stopped.trace()), "a list was begun when it stopped"
    assert figures(stopped) == figures(whole)
    assert stopped.rules_file.read_bytes() == whole.rules_file.read_bytes()


# With seconds.


def resumed_often(out: Path, seconds: Sequence[float], **options: Any) -> RunDirectory:
    """A run on the small graph that is stopped after each of these seconds, and then goes on until it is complete."""
    learn(DATA["small"], out=out, seconds=seconds[0], span=0.05, snapshots=(), **options)
    run = RunDirectory.open(out)
    for moment in seconds[1:]:
        go_on(run, DATA["small"], seconds=moment)
    assert n_harvested(run) < n_harvested_at_once(**options), "stopped too late to show anything"
    assert go_on(run, DATA["small"], seconds=1e6).stopped_by == "complete"
    return run


def n_harvested_at_once(**options: Any) -> int:
    learner = learned(DATA["small"].train, **options)
    assert learner.stopped_by == "complete"
    return learner.n_bodies


@pytest.mark.usefixtures("ticking_clock")
@pytest.mark.parametrize("options", [{}, {"max_rules": 20}, {"relations": ("r000001",)}], ids=["", "cap", "relation"])
def test_no_body_is_harvested_again(tmp_path: Path, options: dict[str, Any]) -> None:
    options = {**FEW_RULES, **options}
    run = resumed_often(tmp_path / "run", (0.05, 0.1, 0.15, 0.2, 0.3), **options)
    assert n_harvested(run) == n_harvested_at_once(**options)
    assert counted(run.load_rules().with_vocabulary(DATA["small"].vocabulary)) == counted(
        learned(DATA["small"].train, **options).rules()
    )


@pytest.mark.usefixtures("ticking_clock")
def test_a_complete_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    run = resumed_often(tmp_path / "run", (0.05,), **FEW_RULES)
    n_spans = len(list(run.trace()))
    learner, recorder = resume(run, DATA["small"], seconds=2e6)
    recorder.close()
    assert list(learner.spans()) == []
    assert learner.stopped_by == "complete"
    assert len(list(run.trace())) == n_spans


@pytest.mark.usefixtures("ticking_clock")
def test_the_outlook_of_a_resumed_run_is_of_all_of_it(tmp_path: Path) -> None:
    learn(DATA["large"], out=tmp_path / "run", seconds=0.5, span=0.1, max_cyclic=3, threads=1)
    run = RunDirectory.open(tmp_path / "run")
    learner, recorder = resume(run, DATA["large"], seconds=1.0)
    before = {entry.profile: entry for entry in learner.outlook()}
    assert sum(entry.core_seconds for entry in before.values()) == pytest.approx(learner.elapsed)
    run_learner(learner, recorder)
    recorder.finish(learner)
    after = {entry.profile: entry for entry in learner.outlook()}
    assert sum(entry.core_seconds for entry in after.values()) == pytest.approx(learner.elapsed)
    assert sum(entry.bodies for entry in after.values()) >= learner.n_bodies > 0
    assert all(after[profile].bodies >= entry.bodies for profile, entry in before.items())


# What is not there, or no longer holds, is harvested again.


@pytest.fixture
def killed(tmp_path: Path) -> RunDirectory:
    """A run on the small graph, killed after some spans."""
    options = {**FEW_RULES, "paths": 10**12}
    run = RunDirectory.create(tmp_path / "run", DATA["small"], LearnOptions(**options))
    kill(run, DATA["small"], n_spans=1, **options)
    assert sorted(file.suffix for file in run.parts.iterdir()) == [".columns", ".keys"]
    return run


def all_rules() -> dict[Any, Any]:
    return counted(learned(DATA["small"].train, **FEW_RULES).rules())


def test_a_killed_run_knows_the_bodies_without_rules(killed: RunDirectory) -> None:
    assert counted(go_on(killed, DATA["small"]).rules()) == all_rules()
    assert n_harvested(killed) == n_harvested_at_once(**FEW_RULES)


@pytest.mark.parametrize("name", ["000001.columns", "000001.keys"])
def test_what_is_lost_of_a_killed_run_is_found_again(killed: RunDirectory, name: str) -> None:
    (killed.parts / name).unlink()
    assert counted(go_on(killed, DATA["small"]).rules()) == all_rules()


def test_rules_that_are_removed_are_found_again(tmp_path: Path) -> None:
    learn(DATA["small"], out=tmp_path / "run", **FEW_RULES, paths=10**12)
    run = RunDirectory.open(tmp_path / "run")
    run.rules_file.unlink()
    assert counted(go_on(run, DATA["small"]).rules()) == all_rules()


def test_a_damaged_file_of_keys_costs_nothing_but_time(killed: RunDirectory) -> None:
    (killed.parts / "000001.keys").write_bytes(b"junk")
    assert counted(go_on(killed, DATA["small"]).rules()) == all_rules()


def test_other_thresholds_give_bodies_without_rules_another_chance(tmp_path: Path) -> None:
    learn(DATA["small"], out=tmp_path / "run", **{**FEW_RULES, "min_support": 10**6}, paths=10**12)
    run = RunDirectory.open(tmp_path / "run")
    assert len(run.load_rules()) == 0
    assert counted(go_on(run, DATA["small"], min_support=3).rules()) == all_rules()


def test_another_seed_begins_lists_anew_and_harvests_nothing_again(killed: RunDirectory) -> None:
    assert counted(go_on(killed, DATA["small"], seed=7).rules()) == all_rules()
    assert n_harvested(killed) == n_harvested_at_once(**FEW_RULES)
