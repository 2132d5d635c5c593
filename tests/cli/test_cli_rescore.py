"""`anyburl rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TRIPLES = """ed lives holland
jan lives holland
lisa lives holland
ed speaks dutch
jan speaks dutch
holland lang dutch
"""
RULES = """0\t0\t0.0\tspeaks(X,dutch) <= lives(X,A)
7\t7\t1.0\tspeaks(X,klingon) <= lives(X,holland)
0\t0\t0.0\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
5\t5\t1.0\tspeaks(X,Y) <= dreams_in(X,Y)
0\t0\t0.0\tspeaks(X,dutch) <= lives(X,holland)
"""
RESCORED = """3\t2\t0.6666666666666666\tspeaks(X,dutch) <= lives(X,A)
3\t0\t0.0\tspeaks(X,klingon) <= lives(X,holland)
3\t2\t0.6666666666666666\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
0\t0\t0.0\tspeaks(X,Y) <= dreams_in(X,Y)
3\t2\t0.6666666666666666\tspeaks(X,dutch) <= lives(X,holland)
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "data.txt").write_text(TRIPLES)
    (tmp_path / "rules.txt").write_text(RULES)
    return tmp_path


def test_rules_keep_their_order_and_unknown_labels_predict_nothing_right(run: Any, files: Path) -> None:
    result = run("rescore", files / "rules.txt", "--data", files / "data.txt", "--out", files / "new.txt", "--exact")
    assert (files / "new.txt").read_text() == RESCORED
    assert "2 rules use labels that are not in the data: kept, with a support of 0" in result.stderr
    assert "5 rules rescored" in result.stdout
    assert "all counts exact" in result.stdout


def test_json_tells_how_many_and_how_fast(run_json: Any, files: Path) -> None:
    told = run_json("rescore", files / "rules.txt", "--data", files / "data.txt", "--out", files / "new.parquet")
    assert list(told)[:2] == ["rules", "exact"]
    assert (told["rules"], told["exact"]) == (5, True)
    assert told["rules_per_second"] > 0
    assert told["seconds"] > 0


def test_object_identity_can_be_left_out(run: Any, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("a r b\nb r a\na h a\n")
    (tmp_path / "rules.txt").write_text("0\t0\t0.0\th(X,Y) <= r(X,A), r(A,Y)\n")
    files = ["rescore", tmp_path / "rules.txt", "--data", tmp_path / "data.txt", "--out", tmp_path / "new.txt"]
    run(*files)
    assert (tmp_path / "new.txt").read_text().split("\t")[:2] == ["0", "0"]
    run(*files, "--no-object-identity")
    assert (tmp_path / "new.txt").read_text().split("\t")[0] == "2"


def test_a_run_knows_its_data_and_counts_come_out_as_learned(run: Any, geo_run: Path, tmp_path: Path) -> None:
    run("rescore", geo_run, "--exact", "--out", tmp_path / "again.txt")
    run("convert", geo_run, tmp_path / "learned.txt")
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "learned.txt").read_bytes()


def test_with_a_small_budget_counts_are_estimates(run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    told = run_json("rescore", geo_run, "--budget", 10, "--out", tmp_path / "new.parquet")
    assert told["exact"] is False
    assert told["estimated"] > 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--out", "{tmp}/new.txt"], "--data is missing: only a run folder remembers its data"),
        (
            ["--out", "{tmp}/new.doc", "--data", "geo"],
            "new.doc: expected a rule file that ends in one of .parquet, .txt",
        ),
        (["--out", "{tmp}", "--data", "geo"], "is a folder: expected a file for the rules"),
        (["--out", "{tmp}/no/new.txt", "--data", "geo"], "does not exist"),
        (["--out", "{tmp}/new.txt", "--data", "nowhere"], "no data set, folder or file 'nowhere'"),
        (["--out", "{tmp}/new.txt", "--data", "geo", "--budget", "0"], "Invalid value for '--budget'"),
    ],
)
def test_wrong_input_is_one_sentence(run: Any, files: Path, options: list[str], sentence: str) -> None:
    filled = [option.replace("{tmp}", str(files)) for option in options]
    wrong = run("rescore", files / "rules.txt", *filled, code=2)
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr
