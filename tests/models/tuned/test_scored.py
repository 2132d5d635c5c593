"""Scores of any other model, from a file: read as they are written, and known to hybrid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl import DataError, Dataset
from anyburl.models.tuned.listing import UNSCORED, ScoredAnswers

FACTS = [("France", "capital", "Paris"), ("Spain", "capital", "Madrid"), ("Paris", "lies_in", "France")]
ROWS = [
    ("France", "capital", "object", "Paris", 2.5),
    ("France", "capital", "object", "Madrid", -1.0),
    ("Paris", "capital", "subject", "France", 0.5),
]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return anyburl.load_dataset(FACTS)


def table(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["entity", "relation", "asked", "candidate", "score"], orient="row")


def ids(data: Dataset, *labels: str) -> np.ndarray:
    return data.vocabulary.encode_entities(list(labels))


def test_scores_are_those_of_the_table(data: Dataset) -> None:
    found = ScoredAnswers.of(table(ROWS), data)
    capital, n_relations = data.vocabulary.relation_id("capital"), data.vocabulary.n_relations
    relations = np.array([capital, capital + n_relations, capital], np.int32)
    scores = found.scores(ids(data, "France", "Paris", "Spain"), relations)
    paris, madrid, france, spain = ids(data, "Paris", "Madrid", "France", "Spain")
    assert scores[0, [paris, madrid, spain]].tolist() == [2.5, -1.0, -1.0 - UNSCORED]
    assert scores[1, [france, spain]].tolist() == [0.5, 0.5 - UNSCORED]
    assert scores[2].tolist() == [0.0] * data.vocabulary.n_entities  # nothing is said of Spain


def test_the_order_of_rows_does_not_matter_and_other_scores_are_another_table(data: Dataset) -> None:
    told = ScoredAnswers.of(table(ROWS), data).digest
    assert ScoredAnswers.of(table([ROWS[2], *ROWS[:2]]), data).digest == told
    assert ScoredAnswers.of(table([*ROWS[:2], (*ROWS[2][:4], 0.75)]), data).digest != told


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("Italy", "capital", "object", "Paris", 1.0), "row 4: the data has no entity 'Italy'"),
        (("France", "flag", "object", "Paris", 1.0), "row 4: the data has no relation 'flag'"),
        (("France", "capital", "tail", "Paris", 1.0), "row 4: expected object or subject as asked, got 'tail'"),
        (("France", "capital", "object", "Paris", float("nan")), "expected finite numbers in the column 'score'"),
        ((None, "capital", "object", "Paris", 1.0), "row 4: the data has no entity None"),
    ],
)
def test_tables_that_do_not_fit_are_refused(data: Dataset, row: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ScoredAnswers.of(table([*ROWS, row]), data)


def test_columns_of_other_types_are_refused(data: Dataset) -> None:
    with pytest.raises(DataError, match="expected labels in the column 'candidate', got Duration"):
        ScoredAnswers.of(table(ROWS).with_columns(candidate=pl.duration(days=1)), data)
    with pytest.raises(DataError, match="expected finite numbers in the column 'score', got Float64"):
        ScoredAnswers.of(table(ROWS).with_columns(score=pl.lit(1e300)), data)  # too large for what is kept


def test_scores_may_be_decimal_numbers(data: Dataset) -> None:
    decimal = table(ROWS).with_columns(pl.col("score").cast(pl.Decimal(10, 2)))
    assert ScoredAnswers.of(decimal, data).digest == ScoredAnswers.of(table(ROWS), data).digest


def test_files_that_are_no_such_table_are_refused(data: Dataset, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("entity relation")
    table(ROWS).drop("asked").write_parquet(tmp_path / "fewer")
    for name in ("text", "fewer", "missing"):
        with pytest.raises(DataError, match="expected a Parquet file with the columns entity, relation, asked"):
            ScoredAnswers.read(tmp_path / name, data)
    table(ROWS).write_parquet(tmp_path / "scores")
    assert len(ScoredAnswers.read(tmp_path / "scores", data).values) == 3
