"""`anyburl complete`."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl import Reasoner

SLOWLY = """
import time
from anyburl.reasoning.completion import complete, search
search.SUBJECTS_AT_A_TIME, complete.SECONDS_AT_A_TIME = 1, 0.0
find = search.Search.__call__
search.Search.__call__ = lambda *given: (time.sleep(0.05), find(*given))[1]
"""


def test_facts_are_those_of_the_python_interface(run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    told = run_json("complete", geo_run, "--out", out, "--min-score", 0.5, "--reasons")
    written = pl.read_parquet(out)
    assert written.equals(pl.concat(list(Reasoner.open(geo_run).complete(min_score=0.5, reasons=True))))
    assert told["facts"] == len(written) == sum(row["facts"] for row in told["by_relation"]) > 100
    assert told["out"] == str(out)
    assert told["seconds"] > 0


def test_the_summary_names_relations(run: Any, geo_run: Path, tmp_path: Path) -> None:
    shown = run("complete", geo_run, "--out", tmp_path / "m.tsv", "--min-score", 0.5, "--relations", "located_in")
    assert f"missing facts in {tmp_path / 'm.tsv'}" in shown.stdout
    assert "located_in" in shown.stdout
    assert run("complete", geo_run, "--out", tmp_path / "m.tsv", "--quiet").stdout == ""


def test_standard_output_holds_facts_only(run: Any, geo_run: Path) -> None:
    shown = run(
        "complete", geo_run, "--out", "-", "--top", 1, "--per", "relation", "--relations", "located_in,currency"
    )
    lines = [line.split("\t") for line in shown.stdout.splitlines()]
    assert lines[0][:4] == ["subject", "relation", "object", "score"]
    assert sorted(line[1] for line in lines[1:]) == ["currency", "located_in"]


def test_conflicts_are_left_out_or_told(run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    """With no property taken for granted, there are as many facts as with those that stated ones contradict."""
    found = {}
    for name, more in {
        "auto": (),
        "same": ("--functional", "auto"),
        "none": ("--functional", "none"),
        "told": ("--functional", "none", "--conflicts"),
        "every": ("--conflicts",),
    }.items():
        out = tmp_path / f"{name}.parquet"
        run_json("complete", geo_run, "--out", out, "--min-score", 0.3, *more)
        found[name] = pl.read_parquet(out)
    assert found["auto"].equals(found["same"])
    assert len(found["auto"]) < len(found["none"]) < len(found["every"])
    for name in ("told", "every"):
        told = found[name].filter(pl.col("conflict").is_not_null())
        assert len(told)
        assert set(told["conflict"].list.len()) == {3}
    assert found["told"].filter(pl.col("conflict").is_null()).drop("conflict").equals(found["none"])
    reasoner = Reasoner.open(geo_run)
    fact, against = told.select(pl.concat_list("subject", "relation", "object"), "conflict").row(0)
    assert reasoner.verdict(tuple(fact)).conflict == tuple(against)


def test_subjects_of_a_file(run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    (tmp_path / "subjects.txt").write_text("France\n\nDenmark\r\n", "utf-8")
    out = tmp_path / "m.jsonl"
    run_json("complete", geo_run, "--out", out, "--min-score", 0, "--subjects", tmp_path / "subjects.txt")
    assert set(pl.read_ndjson(out)["subject"]) == {"France", "Denmark"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "m.xml"], "expected a file name that ends in .parquet"),
        (["--out", "no/m.tsv"], "the folder no does not exist"),
        (["--out", "-", "--json"], "both write to standard output"),
        (["--out", "m.tsv", "--min-score", 2], "--min-score must be from 0 to 1, got 2.0"),
        (["--out", "m.tsv", "--min-probability", -0.1], "--min-probability must be from 0 to 1"),
        (["--out", "m.tsv", "--top", 0], "--top must be at least 1, got 0"),
        (["--out", "m.tsv", "--per", "planet"], "--per must be one of relation, subject, question, got 'planet'"),
        (["--out", "m.tsv", "--relations", "located-in"], "located_in"),
        (["--out", "m.tsv", "--relations", ","], "--relations takes labels such as a,b, got ','"),
        (["--out", "m.tsv", "--functional", "nothing"], "nothing"),
        (["--out", "m.tsv", "--functional", ","], "--functional takes labels such as a,b, got ','"),
        (["--out", "m.tsv", "--exempt", "nothing"], "nothing"),
        (["--out", "m.tsv", "--exempt", ","], "--exempt takes labels such as a,b, got ','"),
        (["--out", "m.tsv", "--types", "nothing"], "nothing"),
        (["--out", "m.tsv", "--subjects", "no.txt"], "no.txt: no such file"),
        (["--out", "m.tsv", "--address", "auto"], "--address needs --engine ray"),
        (["--out", "m.tsv", "--aggregation", "best"], "--aggregation must be one of max"),
        (
            ["--out", "m.tsv", "--min-probability", 0.5],
            "--min-probability needs calibrated scores: first run `anyburl cali",
        ),
        (["--out", "m.tsv", "--missing", 0.5], "--missing needs calibrated scores: first run `anyburl calibrate"),
        ([], "--out"),
    ],
)
def test_wrong_input_gets_a_sentence(
    run: Any, geo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("complete", geo_run, *arguments, code=2)
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_an_empty_result_says_what_would_change_it(run: Any, geo_run: Path, tmp_path: Path) -> None:
    """What is contradicted by stated facts does not come back with a lower score."""
    asked = ["complete", geo_run, "--out", tmp_path / "m.csv"]
    assert "lower --min-score" in run(*asked, "--min-score", 1).stdout
    told = run(*asked, "--min-score", 0.3, "--relations", "main_country").stdout
    assert "--min-score" not in told
    assert "contradicted by stated facts: see them with --conflicts" in " ".join(told.split())


def test_wrong_subjects_name_file_and_line(run: Any, geo_run: Path, tmp_path: Path) -> None:
    (tmp_path / "subjects.txt").write_text("France\nFrance II\n")
    refused = run("complete", geo_run, "--out", tmp_path / "m.tsv", "--subjects", tmp_path / "subjects.txt", code=2)
    assert f"{tmp_path / 'subjects.txt'}:2: " in refused.stderr
    (tmp_path / "subjects.txt").write_text("")
    refused = run("complete", geo_run, "--out", tmp_path / "m.tsv", "--subjects", tmp_path / "subjects.txt", code=2)
    assert "got an empty file" in refused.stderr


def test_ctrl_c_keeps_what_was_found(spawn: Any, geo_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.tsv"
    arguments = ["complete", geo_run, "--out", out, "--min-score", 0, "--quiet"]
    with spawn(*arguments, first=SLOWLY) as process:
        while len(list((tmp_path / "m.tsv.parts").glob("*.parquet"))) < 3:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "error: interrupted\n")
    assert len(out.read_text().splitlines()) > 3
    assert not (tmp_path / "m.tsv.parts").exists()


def test_a_killed_process_leaves_whole_parts(spawn: Any, geo_run: Path, tmp_path: Path) -> None:
    parts = tmp_path / "m.tsv.parts"
    with spawn("complete", geo_run, "--out", tmp_path / "m.tsv", "--min-score", 0, first=SLOWLY) as process:
        while len(list(parts.glob("*.parquet"))) < 3:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.kill()
        process.communicate(timeout=60)
    assert len(pl.read_parquet(parts / "*.parquet")) >= 3
    assert not (tmp_path / "m.tsv").exists()
