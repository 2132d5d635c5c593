"""`anyburl report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import anyburl
from anyburl import DataError


def test_the_report_is_told_printed_and_written(run: Any, geo_run: Path, tmp_path: Path) -> None:
    page, text = tmp_path / "theory.html", tmp_path / "theory.md"
    shown = run("report", geo_run, "--html", page, "--markdown", text).stdout
    assert shown.startswith("geo: 11,169 facts about 2,780 things, in 25 relations.")
    assert "If A borders B, then B borders A. (always, 646 times)" in shown
    assert f"report written to {text}" in shown
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert "<svg" in page.read_text("utf-8")
    assert text.read_text("utf-8").startswith("# What geo knows")


def test_json_is_the_only_output_of_a_report(run_json: Any, geo_run: Path) -> None:
    told = run_json("report", geo_run, "--relations", "borders,located_in", "--laws", 1)
    assert [(one["relation"], len(one["laws"])) for one in told["relations"]] == [("borders", 1), ("located_in", 1)]
    assert told["relations"][0]["laws"][0]["rule"] == "borders(X,Y) <= borders(Y,X)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--relations", "bordrs"], "unknown relation 'bordrs'; did you mean 'borders'"),
        (["--html", "nowhere/theory.html"], "the folder nowhere does not exist"),
        (["--laws", "0"], "--laws must be at least 1, got 0"),
    ],
)
def test_a_wrong_argument_of_a_report_is_told(run: Any, geo_run: Path, arguments: list[str], message: str) -> None:
    assert message in run("report", geo_run, *arguments, code=2).stderr


def test_rules_without_data_or_no_rules_are_told(run: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("", "utf-8")
    assert "--data is missing" in run("report", rules, code=2).stderr
    assert "there are no rules to report on" in run("report", rules, "--data", "geo", code=2).stderr


def test_a_theory_is_written_by_suffix(geo_run: Path, tmp_path: Path) -> None:
    data = anyburl.load_dataset("geo")
    options = anyburl.ReportOptions(relations=("borders",))
    theory = anyburl.make_theory(anyburl.RuleSet.load(geo_run), data, options)
    anyburl.write_theory(theory, tmp_path / "theory.json")
    assert json.loads((tmp_path / "theory.json").read_text("utf-8"))["relations"][0]["relation"] == "borders"
    with pytest.raises(DataError, match=r"expected a file that ends in \.html, \.md, \.json"):
        anyburl.write_theory(theory, tmp_path / "theory.pdf")
