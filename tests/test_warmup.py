"""Kernels are compiled before they are needed, once, and whoever waits is told which."""

from __future__ import annotations

import subprocess
import sys

import numba
import pytest

from anyburl import LearnOptions, TripleTable
from anyburl.base.jit import compiling, kernel
from anyburl.graph.build import MANY_RELATIONS, build_graph, on_tiny_table, tiny_table
from anyburl.learning.threads import TinyRun, warm_up_learning
from kernels import INTERPRETED

WITHIN_A_RUN = """
import dataclasses
import sys
import anyburl
import numpy as np
from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.learning.threads import warm_up_learning
from numba.core.dispatcher import Dispatcher

def kernels():
    modules = [module for name, module in sys.modules.items() if name.startswith("anyburl.")]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    return {(kernel.__module__, kernel.__name__, signature) for kernel in found for signature in kernel.signatures}

triples = [(f"e{i}", f"r{i % 3}", f"e{i * 7 % 40}") for i in range(120)]
triples += [(f"e{i}", "is", "large") for i in range(60, 120)]
for i in range(119):
    triples += [(f"e{i}", "near", f"e{i + 1}"), (f"e{i + 1}", "near", f"e{i}"), (f"e{i + 1}", "exceeds", f"e{i}")]
data = anyburl.Dataset.from_triples(triples)
if has_values := sys.argv[1] == "values":
    ids = data.vocabulary.encode_entities([f"e{i}" for i in range(120)])
    size = Attribute.of("size", AttributeKind.NUMBER, ids, np.arange(120.0))
    data = dataclasses.replace(data, attributes=Attributes.of([size]))
options = anyburl.LearnOptions(paths=50_000, max_cyclic=2, max_acyclic=2, threads=1, min_confidence=0, precision=1)
warm_up_learning(options, data.vocabulary.n_relations, has_values=has_values)
before = kernels()
learner = anyburl.Learner(data.train, options)
assert kernels() == before
list(learner.spans())
kinds = [kind for kind, n in learner.rules().counts_by_type().items() if n and kind in ("Uv", "Bv")]
print(len(before), learner.n_bodies > 100, len(kinds) == 2 * has_values, *{name[:2] for name in kernels() - before})
"""


@pytest.mark.skipif(INTERPRETED, reason="kernels are not compiled")
@pytest.mark.parametrize("entities", ["plain", "values"])
def test_a_run_needs_no_kernel_that_its_warm_up_did_not(entities: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHIN_A_RUN, entities], capture_output=True, text=True, check=True)
    n_kernels, found_enough, found_conditions, *others = done.stdout.split()
    assert int(n_kernels) > 10
    assert (found_enough, found_conditions, others) == ("True", "True", [])


@kernel
def twice(value: int) -> int:
    return 2 * value


@pytest.mark.skipif(INTERPRETED, reason="kernels are not compiled")
def test_who_waits_is_told_the_stage_that_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    monkeypatch.setattr(twice.py_func, "__module__", "anyburl.bodies.kernel")  # type: ignore[attr-defined]
    compiling(lambda: numba.njit(twice.py_func)(1), stages.append)  # type: ignore[attr-defined]
    assert stages == ["bodies"]
    compiling(lambda: None, stages.append)
    assert stages == ["bodies"]


def test_the_work_of_a_stage_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[TripleTable] = []
    for n_relations in (1, 7, MANY_RELATIONS, 10 * MANY_RELATIONS):
        on_tiny_table(tables.append, n_relations)
    assert [table.vocabulary.n_relations for table in tables] == [1, MANY_RELATIONS]


def test_runs_that_need_the_same_kernels_share_their_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    works: list[object] = []
    monkeypatch.setattr("anyburl.learning.threads.on_tiny_table", lambda work, n_relations: works.append(work))
    for options in ({}, {"max_cyclic": 7, "seed": 3}, {"max_acyclic": 0}, {"heads": "sampled"}, {"max_cyclic": 1}):
        warm_up_learning(LearnOptions(**options), 1)  # type: ignore[arg-type]
    assert works == [
        TinyRun(True, True, "all", sweeps=True),
        TinyRun(True, True, "all", sweeps=True),
        TinyRun(True, False, "all", sweeps=True),
        TinyRun(True, True, "sampled", sweeps=False),
        TinyRun(True, True, "all", sweeps=False),
    ]


def test_tiny_graphs_are_typed_like_large_ones() -> None:
    few, many = build_graph(tiny_table(1)), build_graph(tiny_table(MANY_RELATIONS))
    assert (few.segment_relations.dtype, many.segment_relations.dtype) == ("int16", "int32")
    almost = build_graph(tiny_table(MANY_RELATIONS - 1))
    assert almost.segment_relations.dtype == "int16"
