"""The report as a whole: what it says, how it is shown, what fails."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import anyburl
from anyburl import DataError, Dataset, DoctorOptions, InvalidOptionError, OptionError, Report, UnknownLabelError
from anyburl.tools.options import CHECKS

TRAIN = [(f"a{i}", "child", f"b {i}") for i in range(10)] + [(f"b {i}", "parent", f"a{i}") for i in range(9)]


@pytest.fixture(scope="module")
def report() -> Report:
    dataset = Dataset.from_triples(TRAIN, None, [("b 9", "parent", "a9"), ("<b>", "parent", "a1")], name="<tiny>")
    return anyburl.examine(dataset, seconds=0)


def test_findings_stand_in_the_order_of_the_checks(report: Report) -> None:
    places = [list(CHECKS).index(finding.check) for finding in report.findings]
    assert places == sorted(places)
    assert {"leakage", "unseen", "inverse", "degrees", "labels"} <= {finding.check for finding in report.findings}


def test_only_problems_and_warnings_fail(report: Report) -> None:
    assert report.failed(["leakage", "unseen", "degrees", "reflexive"]) == ("leakage", "unseen")
    assert report.failed(["labels"]) == ("labels",)
    with pytest.raises(InvalidOptionError, match=r"fail_on must be some of leakage, .*, got 'leaks'"):
        report.failed(["leaks"])


def test_json_is_plain(report: Report) -> None:
    told = json.loads(json.dumps(report.to_json()))
    assert (told["data"], told["train"], told["test"], told["relations"]) == ("<tiny>", 19, 2, 2)
    leakage = next(finding for finding in told["findings"] if finding["check"] == "leakage")
    assert leakage["count"] == 1
    assert leakage["examples"][0]["in train"] == "a9 child b 9"


def test_the_page_holds_everything_and_nothing_from_elsewhere(report: Report, tmp_path: Path) -> None:
    report.write_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "&lt;tiny&gt;" in page
    assert "<b>9" not in page
    assert all(finding.check in page for finding in report.findings)
    assert not any(word in page for word in ("<script", "http://", "https://", "url("))
    with pytest.raises(DataError, match="the file cannot be written"):
        report.write_html(tmp_path)


def test_terminals_and_notebooks_show_the_same_findings(report: Report) -> None:
    console = Console(width=200, record=True, file=StringIO())
    console.print(report)
    shown = console.export_text()
    html = report._repr_html_()
    for finding in report.findings:
        assert finding.sentence in shown
        assert finding.check in html
    assert "nothing found by:" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": -1}, "seconds must be at least 0, got -1"),
        ({"top": 0}, "top must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        DoctorOptions(**options)


def test_options_are_one_object_or_keywords() -> None:
    with pytest.raises(OptionError, match="either options or keywords"):
        anyburl.examine(TRAIN, options=DoctorOptions(), top=3)
    assert len(anyburl.examine(TRAIN, seconds=0, top=1).findings[0].examples) == 1


def test_a_relation_of_types_must_be_there() -> None:
    with pytest.raises(UnknownLabelError, match="unknown relation 'type'"):
        anyburl.examine(TRAIN, seconds=0, types="type")


def test_data_without_train_is_refused() -> None:
    with pytest.raises(DataError, match="has no train facts"):
        anyburl.examine(Dataset.from_triples([], None, TRAIN), seconds=0)


def test_a_file_without_valid_and_test_is_examined() -> None:
    report = anyburl.examine([("a", "r", "b")], seconds=0)
    assert np.isfinite(report.suspicion).all()
    assert {finding.check for finding in report.findings} == {"degrees"}


def test_rules_are_learned_where_none_are_given() -> None:
    report = anyburl.examine(TRAIN, seconds=0.2, threads=1)
    assert report.n_rules is not None
    assert report.n_rules > 0
