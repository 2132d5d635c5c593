"""Flags that say how DATA is read: tables with columns, and graphs without splits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anyburl.data import load_dataset, write_triples
from anyburl.data.options import ReadOptions

SPLIT = ("--split", "0.8,0.1,0.1", "--split-seed", "7")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return geo's train split as one CSV file."""
    path = tmp_path_factory.mktemp("tables") / "geo.csv"
    write_triples(load_dataset("geo").train, path)
    return path


@pytest.fixture
def whole_run(run: Any, table: Path, tmp_path: Path) -> Path:
    """Return a run on a graph without splits."""
    run("learn", table, "--paths", 5_000, "--out", tmp_path / "whole", "--quiet")
    return tmp_path / "whole"


def fingerprint(run: Path) -> Any:
    return json.loads((run / "options.json").read_text("utf-8"))["data"]["fingerprint"]


def test_a_run_remembers_how_its_data_was_split(run: Any, run_json: Any, table: Path, tmp_path: Path) -> None:
    learned = run("learn", table, *SPLIT, "--paths", 5_000, "--out", tmp_path / "run")
    assert "geo is split into train 7,147 (80.0%), valid 894 (10.0%), test 894 (10.0%)" in learned.stderr
    same = load_dataset(table, ReadOptions(split=(0.8, 0.1, 0.1), split_seed=7))
    assert fingerprint(tmp_path / "run") == same.fingerprint
    for _ in range(2):  # from the file, then prepared
        protocol = run_json("evaluate", tmp_path / "run")["protocol"]
        assert (protocol["fingerprint"], protocol["queries"]) == (same.fingerprint, 2 * len(same.test))
    subject, relation, object = same.test.to_polars().row(0)
    answers = run_json("predict", tmp_path / "run", subject, relation, "?", "--include-known", "--top", 5_000)
    known = {answer["entity"]: answer["known"] for answer in answers["answers"]}
    assert known.get(object, ["test"]) == ["test"]


def test_an_index_is_split_as_a_run_is(run: Any, run_json: Any, table: Path, tmp_path: Path) -> None:
    built = run_json("index", table, *SPLIT, "--out", tmp_path / "index")
    same = load_dataset(table, ReadOptions(split=(0.8, 0.1, 0.1), split_seed=7))
    assert (built["fingerprint"], built["train"], built["test"]) == (same.fingerprint, 7_147, 894)
    refused = run("learn", tmp_path / "index", *SPLIT, "--out", tmp_path / "run", code=2)
    assert "is an index, which has its splits: pass --split to `anyburl index`" in refused.stderr


def test_commands_that_need_a_split_say_so(run: Any, whole_run: Path) -> None:
    hint = "`anyburl learn DATA --split 0.8,0.1,0.1` divides a graph that has no splits"
    evaluated = run("evaluate", whole_run, "--quiet", code=2)
    assert evaluated.stderr == f"error: geo has no triples in its test split: {hint}\n"


def test_commands_that_need_no_split_work_without(run_json: Any, whole_run: Path, table: Path) -> None:
    assert run_json("complete", whole_run, "--out", table.parent / "facts.tsv", "--top", 3)
    assert run_json("calibrate", whole_run)
    assert run_json("doctor", table, "--no-rules")


def test_columns_are_chosen_on_the_command_line(run: Any, run_json: Any, tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("who,verb,what,since\ned,speaks,dutch,2001\nlisa,speaks,dutch,\n", "utf-8")
    refused = run("index", path, "--out", tmp_path / "index", code=2)
    assert refused.stderr.startswith(
        f"error: {path}:1: expected three columns, got the columns who, verb, what, since;"
    )
    assert run_json("index", path, "--columns", "who,verb,what", "--out", tmp_path / "index")["train"] == 2
    path.write_text("ed,speaks,dutch,2001\n", "utf-8")
    assert run_json("index", path, "--columns", "1,2,3", "--out", tmp_path / "numbered")["entities"] == 2


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--split", "0.8,0.1"), "--split must be three shares that sum to 1, such as 0.8,0.1,0.1, got (0.8, 0.1)"),
        (("--split", "most,some"), "--split must be three shares that sum to 1, such as 0.8,0.1,0.1, got 'most,some'"),
        (("--columns", "a,b"), "--columns must be the names of three columns, such as head,relation,tail, got"),
    ],
)
def test_wrong_flags_are_one_sentence(run: Any, table: Path, tmp_path: Path, flags: Any, sentence: str) -> None:
    assert run("learn", table, *flags, "--out", tmp_path / "run", code=2).stderr.startswith(f"error: {sentence}")


@pytest.mark.parametrize("name", ["graph of 2026.tsv", "did you mean.tsv"])
def test_a_file_with_a_typo_is_told_what_is_beside_it(run: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a\tr\tb\n")
    told = run("learn", tmp_path / f"{name}x", "--out", tmp_path / "run", code=2)
    assert told.stderr.endswith(f"did you mean {str(tmp_path / name)!r}?\n")


@pytest.mark.parametrize("name", ["g.tsv", "g.csv"])
def test_bad_lines_are_skipped_and_counted_on_demand(run: Any, run_json: Any, tmp_path: Path, name: str) -> None:
    path, between = tmp_path / name, "\t" if name == "g.tsv" else ","
    rows = [(f"p{n}", "lives", f"c{n % 5}") for n in range(40)] + [(f"c{n}", "in", "x") for n in range(5)]
    lines = [between.join(row) for row in rows]
    head = [] if name == "g.tsv" else ["subject,relation,object"]
    path.write_text("\n".join([*head, *lines[:2], between.join(("only", "two")), *lines[2:]]) + "\n", "utf-8")
    budget, line = ("--paths", 500, "--out", tmp_path / "run"), 3 + len(head)
    refused = run("learn", path, *budget, code=2)
    assert f"{name}:{line}: expected 3" in refused.stderr
    assert "--skip-bad" in refused.stderr
    learned = run("learn", path, *budget, "--skip-bad")
    assert f"(line {line}: expected 3" in learned.stderr
    assert "1 bad line" in learned.stderr
    assert run_json("index", path, "--skip-bad", "--out", tmp_path / "index")["train"] == len(rows)
