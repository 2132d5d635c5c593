"""`anyburl convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anyburl import RuleSet, RunDirectory

ODD = "a), b("


def test_text_and_parquet_there_and_back(run: Any, geo_run: Path, tmp_path: Path) -> None:
    run("convert", geo_run, tmp_path / "one.txt.zst")
    run("convert", tmp_path / "one.txt.zst", tmp_path / "two.parquet")
    run("convert", tmp_path / "two.parquet", tmp_path / "three.txt")
    run("convert", geo_run, tmp_path / "straight.txt")
    assert (tmp_path / "three.txt").read_bytes() == (tmp_path / "straight.txt").read_bytes()
    assert len(RuleSet.load(tmp_path / "two.parquet")) == len(RunDirectory.open(geo_run).load_rules())


def test_lines_that_are_no_rules_are_reported_with_their_number(run: Any, run_json: Any, tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("# comment\n5\t4\t0.8\th(X,Y) <= b(X,Y)\nwhat\n" + "x\ty\tz\th(X,Y) <= b(X,Y)\n" * 9)
    result = run("convert", path, tmp_path / "rules.parquet")
    assert result.stdout == f"1 rule written to {tmp_path / 'rules.parquet'}\n"
    remarks = result.stderr.splitlines()
    assert remarks[0] == f"{path}: 1 rule read; 10 lines are not rules and were left out"
    assert remarks[1] == f"{path}:3: expected 4 tab-separated fields, got 1"
    assert remarks[-1] == "and 5 more"
    told = run_json("convert", path, tmp_path / "rules.parquet", "--quiet")
    assert (told["rules"], told["comments"], len(told["rejected"])) == (1, 1, 10)
    assert told["rejected"][0]["line"] == 3


def test_labels_that_text_cannot_carry_are_refused_or_escaped(run: Any, tmp_path: Path) -> None:
    data, out = tmp_path / "data.tsv", tmp_path / "run"
    data.write_text("".join(f"{subject}\tr\t{ODD}\n" for subject in "abcd") + "a\ts\tb\nb\ts\tc\n")
    run("learn", data, "--paths", 1000, "--out", out, "--quiet")
    wrong = run("convert", out, tmp_path / "rules.txt", code=2)
    assert ODD in wrong.stderr
    assert wrong.stderr.count("\n") == 1
    run("convert", out, tmp_path / "rules.txt", "--escaped")
    run("convert", tmp_path / "rules.txt", tmp_path / "back.parquet", "--escaped")
    assert ODD in RuleSet.load(tmp_path / "back.parquet").vocabulary.entities


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("nowhere.txt", "out.txt", "no run folder or rule file"),
        ("rules.txt", "out.doc", "expected a rule file that ends in one of .parquet, .txt"),
        ("rules.txt", "no/out.txt", "does not exist"),
        ("empty.txt", "out.txt", "the file contains no rules"),
        ("triples.txt", "out.txt", "the file contains no rules; line 1: expected 4 tab-separated fields, got 3"),
    ],
)
def test_wrong_input_is_one_sentence(run: Any, tmp_path: Path, source: str, target: str, sentence: str) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "rules.txt").write_text("5\t4\t0.8\th(X,Y) <= b(X,Y)\n")
    (tmp_path / "triples.txt").write_text("a\tr\tb\n")
    wrong = run("convert", tmp_path / source, tmp_path / target, code=2)
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr
