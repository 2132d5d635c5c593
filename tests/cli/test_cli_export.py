"""`anyburl export`."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from anyburl import RuleSet, load_dataset, rescore

FOREIGN = """10\t9\t0.9\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
2\t2\t1.0\tspeaks(X,dutch) <= lives(X,holland)
40\t10\t0.25\tknows(X,_:b) <= lives(X,A)
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(FOREIGN)
    return path


def test_rules_are_written_by_suffix_best_first(run: Any, foreign: Path, tmp_path: Path) -> None:
    told = run("export", foreign, tmp_path / "rules.sql")
    assert told.stdout == f"3 rules written to {tmp_path / 'rules.sql'}\n"
    text = (tmp_path / "rules.sql").read_text()
    assert [line.split("[")[1] for line in text.splitlines() if line.startswith("--")] == [
        "confidence 0.9, 9 of ~10]",
        "confidence 1, 2 of ~2]",
        "confidence 0.25, 10 of ~40]",
    ]


def test_rules_are_chosen_by_the_filters_of_rules(run_json: Any, foreign: Path, tmp_path: Path) -> None:
    out = tmp_path / "rules.rq"
    told = run_json("export", foreign, out, "--relation", "speaks", "--min-support", 3)
    assert told == {"total": 3, "matching": 1, "rules": 1, "left_out": {}, "to": "sparql", "out": str(out)}
    assert run_json("export", foreign, out, "--top", 2)["rules"] == 2


def test_rules_that_are_left_out_are_told(run: Any, run_json: Any, foreign: Path, tmp_path: Path) -> None:
    reason = "names a blank node, which no query can"
    assert run_json("export", foreign, tmp_path / "rules.ru")["left_out"] == {reason: 1}
    assert f"1 rule left out: {reason}" in run("export", foreign, tmp_path / "rules.ru").stderr


def test_rules_go_to_standard_output(run: Any, foreign: Path) -> None:
    told = run("export", foreign, "-", "--to", "prolog", "--type", "Uc", "--no-object-identity")
    assert told.stdout.endswith("predicted(X, 'speaks', 'dutch') :-\n  triple(X, 'lives', 'holland').\n")


def test_a_run_that_was_learned_without_object_identity_is_exported_so(run: Any, tmp_path: Path) -> None:
    run("learn", "geo", "--paths", 300, "--out", tmp_path / "run", "--no-object-identity", "--quiet")
    one = ("export", tmp_path / "run", "-", "--to", "datalog", "--type", "Ud", "--top", 1)
    assert run(*one).stdout.count("!=") == 0
    assert run(*one, "--object-identity").stdout.count("!=") == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-"], "--to must be one of sparql, sql, cypher, datalog, prolog, shacl for a file that does not end in"),
        (["rules.pl", "--insert"], "--insert must be left out unless --to is sparql or sql or cypher, got True"),
        (["rules.sql", "--columns", "s,p"], "--columns must be three names"),
        (["nowhere/rules.sql"], "does not exist"),
        (["-", "--json", "--to", "sql"], "--json and - both write to standard output"),
        (["rules.sql", "--sort", "age"], "--sort must be one of"),
    ],
)
def test_wrong_input_is_one_sentence(run: Any, foreign: Path, arguments: list[str], sentence: str) -> None:
    wrong = run("export", foreign, *arguments, code=2)
    assert wrong.stderr.startswith("error: ")
    assert sentence in wrong.stderr
    assert wrong.stderr.count("\n") == 1


def test_sql_makes_as_many_predictions_as_rules_have_on_geo(run: Any, geo_run: Path, tmp_path: Path) -> None:
    """Rules of every type and length, on data that is no toy; the counts are those of the engine."""
    train = load_dataset("geo").train
    everything = RuleSet.load(geo_run, train.vocabulary)
    lengths = {"B": (1, 2, 3), "Uc": (1,), "Ud": (1,)}
    kinds = [everything.filter(type=name, length=n).top(15) for name, found in lengths.items() for n in found]
    chosen = rescore(RuleSet.concat(kinds), train, budget=None)
    assert len(chosen) == 75
    chosen.save(tmp_path / "chosen.parquet")
    run("export", tmp_path / "chosen.parquet", tmp_path / "chosen.sql", "--quiet")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE triples (subject text, relation text, object text)")
        connection.executemany("INSERT INTO triples VALUES (?, ?, ?)", train.to_polars().rows())
        connection.execute("CREATE INDEX by_subject ON triples (relation, subject)")
        connection.execute("CREATE INDEX by_object ON triples (relation, object)")
        queries = (tmp_path / "chosen.sql").read_text("utf-8").split(";\n\n")
        counts = Counter(len(connection.execute(query).fetchall()) for query in queries)
    assert counts == Counter(chosen.predictions.tolist())
