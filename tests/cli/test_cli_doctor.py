"""`anyburl doctor`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set whose test facts can be read off train."""
    data = tmp_path / "mine"
    data.mkdir()
    facts = [f"a{i}\tchild\tb{i}" for i in range(10)] + [f"b{i}\tparent\ta{i}" for i in range(9)]
    (data / "train.txt").write_text("\n".join(facts) + "\n", "utf-8")
    (data / "test.txt").write_text("b9\tparent\ta9\nnew\tparent\ta1\n", "utf-8")
    return data


def test_the_report_is_printed(run: Any, folder: Path) -> None:
    shown = run("doctor", folder, "--no-rules").stdout
    assert shown.startswith("mine: 19 train, 0 valid, 2 test, 21 entities, 2 relations\n")
    assert "1 of 2 test facts (50.0 %) can be read off train" in shown
    assert "1 test fact has an entity that train lacks" in shown


def test_json_is_the_only_output(run_json: Any, folder: Path) -> None:
    told = run_json("doctor", folder, "--no-rules", "--fail-on", "reflexive")
    assert told["data"] == "mine"
    assert told["rules"] is None
    assert told["failed"] == []
    assert [finding["check"] for finding in told["findings"]][:3] == ["leakage", "unseen", "inverse"]


def test_what_a_pipeline_must_not_have_gives_code_3(run: Any, run_json: Any, folder: Path) -> None:
    failed = run("doctor", folder, "--no-rules", "--fail-on", "leakage, unseen,reflexive", code=3)
    assert failed.stdout.endswith("failed: leakage, unseen\n")
    assert run_json("doctor", folder, "--no-rules", "--fail-on", "leakage", code=3)["failed"] == ["leakage"]
    run("doctor", folder, "--no-rules", "--fail-on", "reflexive,symmetric")


def test_facts_are_judged_by_the_rules_of_a_run(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    told = run_json("doctor", "geo", "--rules", geo_run, "--html", page, "--top", 3)
    assert told["rules"] > 0
    assert max(len(finding["examples"]) for finding in told["findings"] if finding["check"] != "degrees") <= 3
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert f"page written to {page}" in run("doctor", "geo", "--no-rules", "--html", page).stdout


def test_rules_are_learned_for_a_moment(run_json: Any, folder: Path) -> None:
    assert run_json("doctor", folder, "--seconds", 0.2, "--threads", 1, "--seed", 1)["rules"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-on", "leaks"], "--fail-on must be some of leakage, unseen"),
        (["--fail-on", ""], "--fail-on must be some of"),
        (["--top", 0], "--top must be at least 1, got 0"),
        (["--seconds", -1], "--seconds must be at least 0, got -1.0"),
        (["--types", "typ"], "unknown relation 'typ'"),
        (["--rules", "no-such-run"], "no run folder or rule file at 'no-such-run'"),
        (["--rules", "x", "--no-rules"], "contradict each other"),
        (["--html", "no/such/folder.html"], "does not exist"),
    ],
)
def test_wrong_input_is_one_sentence(run: Any, folder: Path, arguments: list[str], message: str) -> None:
    wrong = run("doctor", folder, *arguments, code=2)
    assert message in wrong.stderr
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert wrong.stdout == ""


BEGUN = """
from anyburl.tools.doctor import examine
learn = examine.learn_briefly
def learn_and_say(*given):
    examine.learn_briefly = learn  # said once, though rules may be learned again before the signal comes
    print("begun", flush=True)
    return learn(*given)
examine.learn_briefly = learn_and_say
"""


def test_ctrl_c_while_rules_are_learned_ends_it(spawn: Any, geo_run: Path) -> None:
    process = spawn("doctor", "geo", "--seconds", 60, first=BEGUN)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert out == ""
    assert errors.endswith("error: interrupted\n")
