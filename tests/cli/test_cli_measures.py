"""`anyburl rules` and `anyburl rescore` with measures that take the data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl import RuleSet

TRIPLES = """ed lives holland
jan lives holland
lisa lives holland
ed speaks dutch
jan speaks english
holland lang dutch
"""
RULES = """3\t1\t0.333\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
3\t1\t0.333\tspeaks(X,dutch) <= lives(X,holland)
2\t1\t0.5\tlives(X,holland) <= speaks(X,dutch)
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "data.txt").write_text(TRIPLES)
    (tmp_path / "rules.txt").write_text(RULES)
    return tmp_path


def test_measures_are_shown_when_they_are_asked_for(run: Any, run_json: Any, files: Path) -> None:
    """Lisa's languages are unknown; each of the two facts of speaks is a half."""
    asked = ("rules", files / "rules.txt", "--data", files / "data.txt", "--measures", "--relation", "speaks")
    told = run_json(*asked)["rules"]
    assert [(rule["pca_confidence"], rule["head_coverage"]) for rule in told] == [(0.5, 0.5)] * 2
    assert [rule["lift"] for rule in told] == pytest.approx([1 / 3 / (1 / 6), 1 / 3 / (2 / 36)])
    heading = run(*asked).stdout.splitlines()[1]
    columns = ["type", "confidence", "support", "predictions", "PCA conf.", "head cov.", "lift", "rule"]
    assert re.split(r"\s{2,}", heading.strip()) == columns
    assert "pca_confidence" not in run_json("rules", files / "rules.txt")["rules"][0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--min-pca-confidence", "0.6"], ["lives(X,holland) <= speaks(X,dutch)"]),
        (["--min-head-coverage", "0.4", "--type", "B"], ["speaks(X,Y) <= lives(X,A), lang(A,Y)"]),
        (["--min-lift", "5"], ["speaks(X,Y) <= lives(X,A), lang(A,Y)"]),
        (["--sort", "lift", "--top", "1"], ["speaks(X,Y) <= lives(X,A), lang(A,Y)"]),
        (["--sort", "pca-confidence", "--top", "1"], ["lives(X,holland) <= speaks(X,dutch)"]),
        (["--sort", "head-coverage", "--length", "1", "--top", "1"], ["speaks(X,dutch) <= lives(X,holland)"]),
        (["--min-lift", "99"], []),
    ],
)
def test_rules_are_chosen_and_sorted_by_measures(
    run_json: Any, files: Path, options: list[str], expected: list[str]
) -> None:
    told = run_json("rules", files / "rules.txt", "--data", files / "data.txt", *options)["rules"]
    assert [rule["rule"] for rule in told] == expected
    assert all({"pca_confidence", "head_coverage", "lift"} <= {*rule} for rule in told)


def test_a_run_knows_its_data(run_json: Any, geo_run: Path) -> None:
    told = run_json("rules", geo_run, "--sort", "pca-confidence", "--min-head-coverage", 0.01, "--top", 50)
    assert told["matching"] < told["total"]
    values = [rule["pca_confidence"] for rule in told["rules"]]
    assert values == sorted(values, reverse=True)
    assert all(rule["confidence"] <= rule["pca_confidence"] <= 1 for rule in told["rules"])
    assert all(rule["head_coverage"] >= 0.01 for rule in told["rules"])


def test_rescored_rules_keep_their_measures_in_parquet(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    """Such a file needs no data: the same rules come first as from the run."""
    measured = tmp_path / "measured.parquet"
    run("rescore", geo_run, "--measures", "--out", measured, "--quiet")
    assert pl.read_parquet_schema(measured)["lift"] == pl.Float64
    of_run = run_json("rules", geo_run, "--sort", "lift", "--min-pca-confidence", 0.5)
    assert run_json("rules", measured, "--sort", "lift", "--min-pca-confidence", 0.5) == of_run
    assert RuleSet.load(measured).measures == ("pca_confidence", "head_coverage", "lift")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["rules", "--measures"], "--data is missing: only a run folder remembers its data"),
        (["rules", "--sort", "lift"], "--data is missing: only a run folder remembers its data"),
        (["rules", "--min-head-coverage", "2"], "Invalid value for '--min-head-coverage'"),
        (
            ["rescore", "--measures", "--out", "new.txt", "--data", "geo"],
            "--out must be a .parquet file with --measures",
        ),
    ],
)
def test_wrong_input_is_one_sentence(run: Any, files: Path, arguments: list[str], sentence: str) -> None:
    wrong = run(arguments[0], files / "rules.txt", *arguments[1:], code=2)
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr
