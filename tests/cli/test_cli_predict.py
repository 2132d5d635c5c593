"""`anyburl predict`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl import RunDirectory, load_dataset, predict

FRENCH = ["France", "official_language", "?"]


def entities(told: Any) -> list[str]:
    return [answer["entity"] for answer in told["answers"]]


def test_answers_are_those_of_the_python_interface(run_json: Any, geo_run: Path) -> None:
    told = run_json("predict", geo_run, *FRENCH, "--top", 5)
    expected = predict(RunDirectory.open(geo_run).load_rules(), load_dataset("geo"), "France", FRENCH[1], None, top=5)
    assert told["query"] == ["France", "official_language", None]
    assert entities(told) == [answer.entity for answer in expected]
    assert [answer["score"] for answer in told["answers"]] == pytest.approx([answer.score for answer in expected])
    assert [answer["rule"] for answer in told["answers"]] == [str(answer.reasons[0].rule) for answer in expected]
    assert told["answers"][0]["triple"] == ["France", "official_language", entities(told)[0]]
    assert told["candidates"] > 5


def test_subjects_are_asked_for_by_a_question_mark_in_front(run_json: Any, geo_run: Path) -> None:
    told = run_json("predict", geo_run, "?", "located_in", "Denmark", "--aggregation", "noisy-or")
    assert told["query"] == [None, "located_in", "Denmark"]
    assert told["aggregation"] == "noisy-or"
    assert all(answer["triple"][1:] == ["located_in", "Denmark"] for answer in told["answers"])


def test_answers_can_be_ordered_by_a_tuned_model(run: Any, run_json: Any, geo_run: Path) -> None:
    told = run_json("predict", geo_run, *FRENCH, "--aggregation", "tuned", "--seed", 3, "--explain")
    scores = [answer["score"] for answer in told["answers"]]
    assert told["aggregation"] == "tuned"
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 1
    shown = run("explain", geo_run, "France", "official_language", entities(told)[0], "--aggregation", "tuned")
    assert "by tuned of" in shown.stdout
    assert "without it the score would be" in shown.stdout


def test_scores_of_another_model_are_known_to_hybrid(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    data, file = load_dataset("geo"), tmp_path / "scores.parquet"
    facts = pl.concat([data.valid.to_polars(), data.test.to_polars()])
    asked = {"object": ("subject", "object"), "subject": ("object", "subject")}
    parts = [
        facts.select(entity=entity, relation="relation", asked=pl.lit(which), candidate=candidate, score=pl.lit(5.0))
        for which, (entity, candidate) in asked.items()
    ]
    pl.concat(parts).write_parquet(file)
    options = ["--with-scores", file, "--aggregation", "hybrid", "--no-prepare"]
    told = run_json("predict", geo_run, "Aalborg", "time_zone", "?", *options)
    assert (told["aggregation"], entities(told)[0]) == ("hybrid", "Europe/Copenhagen")
    wrong = run("predict", geo_run, *FRENCH, "--with-scores", file, code=2)
    assert wrong.stderr == "error: --with-scores needs --aggregation hybrid, got max\n"
    wrong = run("predict", geo_run, *FRENCH, "--aggregation", "hybrid", "--with-scores", tmp_path / "none", code=2)
    assert "expected a Parquet file with the columns entity, relation, asked, candidate, score" in wrong.stderr


def test_known_answers_are_kept_on_request_only(run: Any, run_json: Any, geo_run: Path) -> None:
    assert "French" not in entities(run_json("predict", geo_run, *FRENCH))
    told = run_json("predict", geo_run, *FRENCH, "--include-known")
    assert {answer["entity"]: answer["known"] for answer in told["answers"]}["French"] == ["train"]
    assert "1 known answer is left out (see --include-known)" in run("predict", geo_run, *FRENCH).stdout
    assert "left out" not in run("predict", geo_run, *FRENCH, "--include-known").stdout


def test_answers_of_the_test_split_are_marked(run_json: Any, geo_run: Path) -> None:
    told = run_json("predict", geo_run, "Aalborg", "time_zone", "?")
    assert (entities(told)[0], told["answers"][0]["known"]) == ("Europe/Copenhagen", ["test"])


def test_the_table_has_a_line_for_each_answer(run: Any, geo_run: Path) -> None:
    lines = run("predict", geo_run, *FRENCH, "--top", 3).stdout.splitlines()
    assert lines[0] == "(France, official_language, ?)"
    assert [line.split()[0] for line in lines[4:7]] == ["1", "2", "3"]
    assert all("official_language(X," in line for line in lines[4:7])
    assert lines[-1].startswith("3 of ")


def test_reasons_are_shown_on_request(run: Any, run_json: Any, geo_run: Path) -> None:
    shown = run("predict", geo_run, *FRENCH, "--top", 2, "--explain").stdout
    assert shown.count("new: in none of train, valid and test") == 2
    assert "France ─" in shown
    told = run_json("predict", geo_run, *FRENCH, "--top", 2, "--explain")
    assert all(1 <= len(answer["reasons"]) <= 3 for answer in told["answers"])
    assert told["answers"][0]["reasons"][0]["groundings"]


def test_names_are_shown_where_people_read(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("France\tla France\nEnglish\tthe English language\n")
    shown = run("predict", geo_run, *FRENCH, "--names", tmp_path / "names.tsv").stdout
    assert "(la France, official_language, ?)" in shown
    assert "official_language(X,the English language)" in shown
    told = run_json("predict", geo_run, *FRENCH, "--names", tmp_path / "names.tsv")
    assert ("English", "the English language") in {(answer["entity"], answer["name"]) for answer in told["answers"]}


def test_no_answer_is_no_error(run: Any, run_json: Any, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("10\t8\t0.8\tborders(X,Y) <= borders(Y,X)\n")
    query = ["predict", tmp_path / "rules.txt", *FRENCH, "--data", "geo"]
    assert run(*query).stdout.startswith("no rule answers (France, official_language, ?)\n")
    assert run_json(*query)["answers"] == []


def test_blocking_is_said(run: Any, geo_run: Path) -> None:
    shown = run("predict", geo_run, *FRENCH, "--block-connected", "on").stdout
    assert "entities connected with France are left out (see --block-connected)" in shown


def test_known_answers_are_kept_where_connected_entities_are_blocked(run_json: Any, geo_run: Path) -> None:
    told = run_json("predict", geo_run, *FRENCH, "--block-connected", "on", "--include-known", "--top", 100)
    assert {answer["entity"] for answer in told["answers"] if "train" in answer["known"]} == {"French"}


def test_a_file_of_queries_gives_lines(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.tsv"
    queries.write_text("France\tofficial_language\t?\n\n?\tlocated_in\tDenmark\r\nAalborg\ttime_zone\t?\n")
    lines = run("predict", geo_run, "--queries", queries, "--top", 2).stdout.splitlines()
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"), strict=True)) for line in lines[1:]]
    assert [row["rank"] for row in rows] == ["1", "2"] * 3
    assert [row["query"] for row in rows] == ["1", "1", "2", "2", "3", "3"]
    assert [row["subject"] for row in rows[:2] + rows[4:]] == ["France", "France", "Aalborg", "Aalborg"]
    assert [row["object"] for row in rows[2:4]] == ["Denmark", "Denmark"]
    assert rows[4]["object"] == "Europe/Copenhagen"
    assert rows[4]["known"] == "test"
    one = run_json("predict", geo_run, "?", "located_in", "Denmark", "--top", 2)
    assert [row["subject"] for row in rows[2:4]] == entities(one)
    assert [row["rule"] for row in rows[2:4]] == [answer["rule"] for answer in one["answers"]]
    assert [int(row["rules"]) for row in rows[2:4]] == [answer["rules"] for answer in one["answers"]]
    assert [float(row["score"]) for row in rows[2:4]] == [answer["score"] for answer in one["answers"]]
    objects = run("predict", geo_run, "--queries", queries, "--top", 2, "--json").stdout.splitlines()
    assert json.loads(objects[1]) == one


def test_answers_of_a_file_do_not_depend_on_the_threads(run: Any, geo_run: Path, tmp_path: Path) -> None:
    triples = load_dataset("geo").test.to_polars()
    lines = [f"{subject}\t{relation}\t?\n" for subject, relation, _ in triples.head(1100).iter_rows()]
    (tmp_path / "queries.tsv").write_text("".join(lines))
    query = ["predict", geo_run, "--queries", tmp_path / "queries.tsv", "--top", 1, "--names", tmp_path / "names.tsv"]
    (tmp_path / "names.tsv").write_text("Asia\tAsia (continent)\n")
    alone = run(*query, "--threads", 1).stdout
    assert run(*query, "--threads", 3).stdout == alone
    assert alone.startswith("subject\trelation\tobject\trank\tscore\tknown\trule\trules\tquery\tname\n")
    assert "\tAsia (continent)\n" in alone
    assert len(alone.splitlines()) > 1000


@pytest.mark.parametrize("name", ["answers.csv", "answers.parquet", "answers.tsv"])
def test_answers_are_written_to_a_file(run: Any, geo_run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "queries.tsv").write_text("France\tofficial_language\t?\n?\tlocated_in\tDenmark\n")
    asked = ["predict", geo_run, "--queries", tmp_path / "queries.tsv", "--top", 3]
    assert run(*asked, "--out", tmp_path / name).stdout == ""
    expected = pl.read_csv(run(*asked).stdout.encode(), separator="\t", quote_char=None)
    path = tmp_path / name
    read = (
        pl.read_parquet(path)
        if name.endswith("parquet")
        else pl.read_csv(path, separator="\t" * ("tsv" in name) or ",")
    )
    assert read.cast(expected.schema).fill_null("").equals(expected.fill_null(""))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["France", "official_language", "French"], "a query must ask for either its subject or its object"),
        (["?", "official_language", "?"], "a query must ask for either its subject or its object"),
        (["France", "?", "?"], "a query cannot ask for its relation"),
        (["France", "official_language"], "a query is SUBJECT RELATION ? or ? RELATION OBJECT, got France official"),
        ([], "a query is SUBJECT RELATION ? or ? RELATION OBJECT, got none"),
        (
            ["Frence", "official_language", "?"],
            "unknown entity 'Frence'; did you mean 'Florence' or 'French' or 'France'?",
        ),
        (["France", "oficial_language", "?"], "unknown relation 'oficial_language'; did you mean 'official_language'"),
        (["France", "official_language", "?", "--top", "0"], "Invalid value for '--top'"),
        (
            ["France", "official_language", "?", "--names", "{tmp}/no"],
            ": no such file",
        ),
        (["France", "official_language", "?", "--weights", "1"], "--weights takes factors"),
        (["France", "official_language", "?", "--queries", "{tmp}/q.tsv"], "pass either one query or a file"),
        (["--queries", "{tmp}/no.tsv"], "no.tsv: no such file"),
        (["--queries", "{tmp}/q.tsv", "--out", "{tmp}/a.nt"], "expected a file name that ends in .parquet, .tsv, .csv"),
        (["France", "capital", "?", "--out", "{tmp}/a.csv"], "--out takes the answers to --queries"),
        (["--queries", "{tmp}"], "expected a file of queries, got a folder"),
        (
            ["--queries", "{tmp}/q.tsv"],
            "q.tsv:2: unknown entity 'Frence'; did you mean 'Florence' or 'French' or 'France'?",
        ),
        (
            ["--queries", "{tmp}/short.tsv"],
            "short.tsv:1: expected subject, relation and object, one of them a ?, got 'France ?'",
        ),
        (["--queries", "{tmp}/whole.tsv"], "whole.tsv:1: a query must ask for either its subject or its object"),
        (["--queries", "{tmp}/bytes.tsv"], "bytes.tsv: expected UTF-8 text"),
        (["--queries", "{tmp}/q.tsv", "--explain"], "--explain with --queries needs --json"),
    ],
)
def test_wrong_input_is_one_sentence(
    run: Any, geo_run: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "q.tsv").write_text("France\tofficial_language\t?\nFrence\tofficial_language\t?\n")
    (tmp_path / "short.tsv").write_text("France ?\n")
    (tmp_path / "whole.tsv").write_text("France\tofficial_language\tFrench\n")
    (tmp_path / "bytes.tsv").write_bytes(b"\xff\xfe\x00")
    wrong = run("predict", geo_run, *(word.replace("{tmp}", str(tmp_path)) for word in arguments), code=2)
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr
