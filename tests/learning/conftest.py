"""Fixtures that the tests of run folders share."""

from __future__ import annotations

from pathlib import Path

import pytest
from learned import learned
from runs_made import COMPLETE

from anyburl import Dataset, LearnOptions, RuleSet, RunDirectory
from kernels import random_graph, table_of

GRAPH = random_graph(1, 8, 3, 30)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Dataset.from_triples(table_of(GRAPH), name="random")


@pytest.fixture(scope="module")
def rules(dataset: Dataset) -> RuleSet:
    """All rules there are."""
    return learned(dataset.train).rules()


@pytest.fixture
def run(dataset: Dataset, tmp_path: Path) -> RunDirectory:
    """A run folder just made."""
    return RunDirectory.create(tmp_path / "run", dataset, LearnOptions(**COMPLETE))
