"""`anyburl explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anyburl import RunDirectory, explain, load_dataset

AALBORG = ["Aalborg", "time_zone", "Europe/Copenhagen"]
RULE = "20\t16\t0.8\tspeaks(X,Y) <= lives(X,A), lang(A,Y)\n"


@pytest.fixture
def paper(tmp_path: Path) -> list[object]:
    """Return RULES --data DATA: one rule, and people of whom little is known."""
    (tmp_path / "data.txt").write_text("ed lives holland\nholland lang dutch\nlisa lives france\nlisa speaks french\n")
    (tmp_path / "rules.txt").write_text(RULE)
    return [tmp_path / "rules.txt", "--data", tmp_path / "data.txt"]


def test_json_is_the_explanation(run_json: Any, geo_run: Path) -> None:
    told = run_json("explain", geo_run, *AALBORG)
    found = explain(RunDirectory.open(geo_run).load_rules(), load_dataset("geo"), ("Aalborg", *AALBORG[1:]))  # type: ignore[arg-type]
    assert told == found.to_json()
    assert {"triple", "known", "rank", "score", "reasons"} <= told.keys()
    assert (told["triple"], told["known"], told["rank"]) == (AALBORG, ["test"], 1.0)
    assert len(told["reasons"]) == 5
    assert {"rule", "type", "confidence", "predictions", "support", "groundings"} <= told["reasons"][0].keys()


def test_the_tree_shows_rules_and_facts(run: Any, paper: list[object]) -> None:
    shown = run("explain", *paper, "ed", "speaks", "dutch").stdout
    assert shown.startswith("ed ─speaks→ dutch\nnew: in none of train, valid and test\n")
    assert "0.640  speaks(X,Y) <= lives(X,A), lang(A,Y)" in shown
    assert "ed ─lives→ holland, holland ─lang→ dutch" in shown


def test_fewer_rules_and_facts_on_request(run_json: Any, geo_run: Path) -> None:
    told = run_json("explain", geo_run, *AALBORG, "--top", 2, "--groundings", 1)
    assert [len(reason["groundings"]) for reason in told["reasons"]] == [1, 1]
    assert told["n_reasons"] > 2


def test_without_a_reason_the_nearest_rule_is_shown(run: Any, run_json: Any, paper: list[object]) -> None:
    shown = run("explain", *paper, "lisa", "speaks", "dutch").stdout
    assert "no rule predicts it" in shown
    assert "the strongest rule that lacks one fact only" in shown
    assert "missing  france ─lang→ dutch" in shown or "missing  lisa ─lives→ holland" in shown
    assert run_json("explain", *paper, "lisa", "speaks", "dutch")["reasons"] == []


def test_without_any_rule_it_says_so(run: Any, paper: list[object]) -> None:
    shown = run("explain", *paper, "ed", "lives", "france").stdout
    assert "no rule predicts it" in shown
    assert shown.endswith("no rule lacks only one fact, either\n")


def test_a_page_is_written(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    result = run("explain", geo_run, *AALBORG, "--html", tmp_path / "why.html")
    assert result.stdout.endswith(f"page written to {tmp_path / 'why.html'}\n")
    page = (tmp_path / "why.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    run_json("explain", geo_run, *AALBORG, "--html", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text("utf-8") == page


def test_names_are_shown(run: Any, paper: list[object], tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("ed\tEdward\nlives\tlives in\n")
    shown = run("explain", *paper, "ed", "speaks", "dutch", "--names", tmp_path / "names.tsv").stdout
    assert shown.startswith("Edward ─speaks→ dutch")
    assert "Edward ─lives in→ holland" in shown


def test_the_score_follows_the_options(run_json: Any, paper: list[object]) -> None:
    query = ["explain", *paper, "ed", "speaks", "dutch"]
    assert run_json(*query, "--smoothing", 0)["score"] == pytest.approx(0.8)
    assert run_json(*query, "--smoothing", 0, "--weights", "B=0.5")["score"] == pytest.approx(0.4)
    assert run_json(*query, "--aggregation", "noisy-or")["aggregation"] == "noisy-or"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ed", "speaks"], "Missing argument 'OBJECT'"),
        (["ed", "speaks", "dutch", "well"], "has none: a label with spaces needs quotes"),
        (["ed", "speaks", "?"], "explain takes a complete triple; use predict to ask for answers"),
        (["edd", "speaks", "dutch"], "unknown entity 'edd'; did you mean 'ed'"),
        (["ed", "speeks", "dutch"], "unknown relation 'speeks'; did you mean 'speaks'"),
        (["ed", "speaks", "duch"], "unknown entity 'duch'; did you mean 'dutch'"),
        (["ed", "speaks", "dutch", "--html", "{tmp}"], "is a folder: expected a file for the page"),
        (["ed", "speaks", "dutch", "--html", "{tmp}/no/page.html"], "does not exist"),
        (["ed", "speaks", "dutch", "--top", "0"], "Invalid value for '--top'"),
        (["ed", "speaks", "dutch", "--names", "{tmp}/rules.txt.gz"], "rules.txt.gz: no such file"),
    ],
)
def test_wrong_input_is_one_sentence(
    run: Any, paper: list[object], tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    filled = [word.replace("{tmp}", str(tmp_path)) for word in arguments]
    wrong = run("explain", *paper, *filled, code=2)
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr


def test_a_file_of_rules_needs_data(run: Any, paper: list[object]) -> None:
    assert "--data is missing" in run("explain", paper[0], "ed", "speaks", "dutch", code=2).stderr
