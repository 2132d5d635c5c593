"""With a path budget and a seed, two runs give the same rules, byte for byte, whatever the number of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learned import make_learner
from numpy.typing import NDArray

from anyburl import Dataset, RuleSet, learn
from anyburl.learning.run import RunDirectory
from kernels import random_graph, table_of
from strategies import SmallGraph

GRAPH = random_graph(5, 200, 12, 2500)
SPARSE = random_graph(6, 100, 5, 300)

MODES: dict[str, dict[str, Any]] = {
    "all heads": {},
    "sampled heads": {"heads": "sampled", "graph": SPARSE, "min_support": 1},
    "greedy": {"policy": "greedy", "reward": "support"},
    "saturation": {"policy": "saturation", "saturation": 0.5},
    "estimates": {"budget": 50},
    "cap": {"max_rules": 3000},
}

TRACED = ("number", "rules", "new_rules", "paths", "bodies", "saturation", "dropped")


def profile_counts(entry: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(entry[name] for name in ("profile", "cores", "paths", "new_bodies", "new_rules", "known_rules"))


def columns_of(rules: RuleSet) -> list[NDArray[Any]]:
    names = ("type", "head", "head_constant", "body_constant", "predictions", "support", "exact")
    return [rules.bodies[rules.body], *(getattr(rules, name) for name in names)]


def are_same(rules: RuleSet, others: RuleSet) -> bool:
    return all(map(np.array_equal, columns_of(rules), columns_of(others)))


def run_once(
    folder: Path, threads: int, seed: int = 3, graph: SmallGraph = GRAPH, **options: Any
) -> tuple[RuleSet, bytes, list[tuple[Any, ...]]]:
    """The rules, their file, and what the trace says apart from times."""
    dataset = Dataset.from_triples(table_of(graph), name="random")
    chosen = {"paths": 200_000, "min_support": 2, "max_cyclic": 3, "max_acyclic": 1, **options}
    rules = learn(dataset, out=folder, threads=threads, seed=seed, **chosen)
    lines = RunDirectory.open(folder).trace()
    trace = [tuple(line[name] for name in TRACED) + tuple(map(profile_counts, line["profiles"])) for line in lines]
    return rules, (folder / "rules.parquet").read_bytes(), trace


@pytest.mark.parametrize("mode", MODES)
def test_threads_do_not_change_the_rules_nor_a_second_run(tmp_path: Path, mode: str) -> None:
    runs = [run_once(tmp_path / f"{number}", threads, **MODES[mode]) for number, threads in enumerate((1, 3, 2))]
    rules, file, trace = runs[0]
    assert len(rules) > 1000
    assert len(trace) > 1
    for other, other_file, other_trace in runs[1:]:
        assert are_same(other, rules)
        assert other_file == file
        assert other_trace == trace


def test_another_seed_finds_other_rules_first(tmp_path: Path) -> None:
    options = {"heads": "sampled", "paths": 1, "graph": SPARSE, "min_support": 1}
    first, other = (run_once(tmp_path / f"{seed}", 1, seed=seed, **options)[0] for seed in (1, 2))
    assert not are_same(first, other)


def test_rules_of_a_path_run_are_in_an_order_that_depends_on_the_rules_alone() -> None:
    """Everything found, in different orders: by seed the same rules."""
    small = random_graph(1, 8, 3, 30)
    ordered = []
    for seed in (1, 2):
        learner = make_learner(small, seed=seed)
        list(learner.spans())
        assert learner.stopped_by == "complete"
        ordered.append(learner.rules())
    assert are_same(*ordered)
