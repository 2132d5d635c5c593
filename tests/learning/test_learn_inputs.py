"""`learn` takes whatever triples are held in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl.data import write_triples

TRIPLES = [
    (f"p{i}", relation, f"p{(i * step) % 8}") for i in range(8) for relation, step in (("knows", 3), ("likes", 5))
]
OPTIONS: dict[str, Any] = {"paths": 200, "max_cyclic": 2, "min_support": 1, "threads": 1}


def frame() -> pl.DataFrame:
    return pl.DataFrame(TRIPLES, schema=["subject", "relation", "object"], orient="row")


def in_a_file(folder: Path) -> Path:
    write_triples(TRIPLES, folder / "people.tsv")
    return folder / "people.tsv"


@pytest.fixture(scope="module")
def expected() -> anyburl.RuleSet:
    return anyburl.learn(anyburl.Dataset.from_triples(TRIPLES), **OPTIONS)


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: TRIPLES,
        lambda folder: np.array(TRIPLES),
        lambda folder: frame(),
        lambda folder: frame().to_pandas(),
        lambda folder: anyburl.TripleTable.from_frame(TRIPLES),
        in_a_file,
        lambda folder: str(in_a_file(folder)),
    ],
    ids=["list", "array", "polars", "pandas", "table", "path", "text"],
)
def test_learn_takes_what_load_dataset_takes(
    make: Callable[[Path], Any], expected: anyburl.RuleSet, tmp_path: Path
) -> None:
    rules = anyburl.learn(make(tmp_path), **OPTIONS)
    assert len(rules) > 10
    assert rules.to_polars().equals(expected.to_polars())


def test_learn_takes_the_name_of_a_data_set() -> None:
    assert len(anyburl.learn("geo", paths=1, max_cyclic=1, max_acyclic=0)) > 10


def test_learn_refuses_two_budgets_before_it_looks_at_the_data() -> None:
    with pytest.raises(anyburl.OptionError, match="paths must be left out when seconds is given, got 100"):
        anyburl.learn("no such data", seconds=5, paths=100)


def test_learn_refuses_no_triples() -> None:
    with pytest.raises(anyburl.DataError, match="expected at least one triple"):
        anyburl.learn([])
