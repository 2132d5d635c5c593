"""Files of rankings."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anyburl import Dataset, Reasoner, RuleSet
from anyburl.base.errors import DataError
from anyburl.reasoning import evaluation as rankings

TRAIN = [
    *((f"p{i}", "lives", "holland") for i in range(4)),
    *((f"p{i}", "lives", "france") for i in range(4, 6)),
    ("holland", "lang", "dutch"),
    ("holland", "lang", "frisian"),
    ("france", "lang", "french"),
    ("p0", "speaks", "dutch"),
    ("p1", "speaks", "dutch"),
]
VALID = [("p3", "speaks", "dutch")]
TEST = [("p0", "speaks", "frisian"), ("p2", "speaks", "dutch"), ("p2", "speaks", "frisian"), ("p4", "speaks", "french")]
RULES = """10\t8\t0.8\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
10\t5\t0.5\tspeaks(X,dutch) <= lives(X,A)
10\t2\t0.2\tspeaks(X,french) <= lives(X,A)
"""


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_triples(TRAIN, VALID, TEST, name="speakers")


@pytest.fixture
def rules(tmp_path: Path) -> RuleSet:
    (tmp_path / "rules.txt").write_text(RULES)
    return RuleSet.load(tmp_path / "rules.txt")


def reasoner(rules: RuleSet, dataset: Dataset, **options: Any) -> Reasoner:
    return Reasoner(rules, dataset, smoothing=0, threads=1, **options)


def read_text(path: Path) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """Return candidates and scores by triple and direction."""
    found = {}
    lines = path.read_text("utf-8").splitlines()
    for triple, *answers in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        for name, line in zip(("Heads: ", "Tails: "), answers, strict=True):
            assert line.startswith(name)
            cells = line.removeprefix(name).split("\t")[:-1]
            found[triple, name.strip(": ")] = list(zip(cells[::2], map(float, cells[1::2]), strict=True))
    return found


def test_the_own_target_is_kept_and_other_known_answers_are_not(
    rules: RuleSet, dataset: Dataset, tmp_path: Path
) -> None:
    reasoner(rules, dataset).save_rankings(tmp_path / "ranks")
    found = read_text(tmp_path / "ranks")
    assert list(found)[::2] == [(" ".join(triple), "Heads") for triple in TEST]
    assert found["p0 speaks frisian", "Tails"] == [("frisian", 0.8), ("french", 0.2)]
    assert found["p2 speaks dutch", "Tails"] == [("dutch", 0.8), ("french", 0.2)]
    assert found["p2 speaks frisian", "Tails"] == [("frisian", 0.8), ("french", 0.2)]
    assert found["p4 speaks french", "Tails"] == [("french", 0.8), ("dutch", 0.5)]
    assert found["p2 speaks dutch", "Heads"] == [("p2", 0.8), ("p4", 0.5), ("p5", 0.5)]


def test_lists_have_top_k_candidates_whatever_is_taken_out(rules: RuleSet, dataset: Dataset, tmp_path: Path) -> None:
    reasoner(rules, dataset).save_rankings(tmp_path / "ranks", top_k=1)
    found = read_text(tmp_path / "ranks")
    assert found["p2 speaks frisian", "Tails"] == [("frisian", 0.8)]
    assert all(len(answers) == 1 for answers in found.values())


def test_parquet_and_packed_text_hold_the_same(rules: RuleSet, dataset: Dataset, tmp_path: Path) -> None:
    ready = reasoner(rules, dataset, aggregation="noisy-or")
    for name in ("ranks.txt", "ranks.txt.gz", "ranks.parquet"):
        ready.save_rankings(tmp_path / name)
    assert gzip.decompress((tmp_path / "ranks.txt.gz").read_bytes()) == (tmp_path / "ranks.txt").read_bytes()
    found = read_text(tmp_path / "ranks.txt")
    frame = pl.read_parquet(tmp_path / "ranks.parquet")
    assert frame.columns == ["subject", "relation", "object", "direction", "rank", "candidates", "scores"]
    for row in frame.iter_rows(named=True):
        name = "Tails" if row["direction"] == "object" else "Heads"
        of_text = found[f"{row['subject']} {row['relation']} {row['object']}", name]
        assert of_text == list(zip(row["candidates"], row["scores"], strict=True))


def test_ranks_are_those_of_the_evaluation(
    rules: RuleSet, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rankings, "TRIPLES_AT_A_TIME", 3)
    ready, done = reasoner(rules, dataset), list[int]()
    ready.save_rankings(tmp_path / "ranks.parquet", progress=done.append)
    frame = pl.read_parquet(tmp_path / "ranks.parquet")
    expected = ready.evaluate().ranks.realistic
    by_object, by_subject = (frame.filter(pl.col("direction") == name)["rank"] for name in ("object", "subject"))
    assert np.array_equal(np.concatenate([by_object, by_subject]), expected)
    assert done == [3, 1]


def test_a_query_without_candidates_has_an_empty_list(dataset: Dataset, tmp_path: Path) -> None:
    ready = reasoner(RuleSet.empty(dataset.vocabulary), dataset)
    ready.save_rankings(tmp_path / "ranks.txt")
    ready.save_rankings(tmp_path / "ranks.parquet")
    assert (tmp_path / "ranks.txt").read_text().splitlines()[:3] == ["p0 speaks frisian", "Heads: ", "Tails: "]
    assert pl.read_parquet(tmp_path / "ranks.parquet")["candidates"].to_list() == [[]] * 8


def test_what_cannot_be_written_is_refused(rules: RuleSet, dataset: Dataset, tmp_path: Path) -> None:
    empty = Dataset.from_triples(TRAIN, name="speakers")
    with pytest.raises(DataError, match="speakers has no triples in its test split"):
        reasoner(rules, empty).save_rankings(tmp_path / "ranks")
