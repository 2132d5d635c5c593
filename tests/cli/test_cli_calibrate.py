"""`anyburl calibrate`: what it prints, what it keeps, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def own_run(geo_run: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "run"
    shutil.copytree(geo_run, copy)
    return copy


def test_json_tells_promises_errors_and_relations(run_json: Any, own_run: Path) -> None:
    found = run_json("calibrate", own_run)
    assert found["expected_calibration_error"] < min(0.1, found["uncalibrated_error"])
    assert list(found["promises"]) == ["0.5", "0.8", "0.9", "0.95"]
    promise = {"facts", "promised", "checked", "expected", "came_back", "sampling_error"}
    assert set(found["promises"]["0.8"]) == promise
    assert set(found["by_relation"][0]) == {"relation", "hidden", "missing", "promises"}
    assert set(found["by_relation"][0]["promises"]["0.5"]) == promise
    assert set(found["calibrated_on"]) == {"split", "facts", "came_back"}
    assert found["calibrated_on"]["split"] == "valid"
    assert found["checked_on"]["split"] == "test"
    assert set(found["missing"]) == {"share", "because"}
    assert found["protocol"]["aggregation"] == "max"
    assert len(list((own_run / "calibration").iterdir())) == 1


def test_tables_show_promises_and_the_most_important_relations(run: Any, own_run: Path) -> None:
    shown = run("calibrate", own_run, "--top", 3, "--aggregation", "noisy-or-top:5").stdout
    assert "probability from" in shown
    assert "came back" in shown
    assert "checked on test" in shown
    assert "more relations" in shown
    assert "% of the true facts are missing (" in shown
    assert "): --missing sets it" in shown
    assert run("calibrate", own_run, "--quiet").stdout == ""


def test_what_is_missing_can_be_said(run: Any, run_json: Any, own_run: Path, tmp_path: Path) -> None:
    """The more is missing, the more is promised; kept, it is what `complete` goes by, unless told otherwise."""
    few, many = (run_json("calibrate", own_run, "--missing", share) for share in ("0.01", "0.3"))
    assert [one["missing"]["because"] for one in (few, many)] == ["given", "given"]
    assert [one["missing"]["share"] for one in (few, many)] == pytest.approx([0.01, 0.3])
    assert few["promises"]["0.5"]["facts"] < many["promises"]["0.5"]["facts"]
    some = run_json("calibrate", own_run, "--missing", "located_in=0.4,currency=0")
    told = {row["relation"]: row["missing"] for row in some["by_relation"]}
    assert (told["located_in"], told.get("currency", 0)) == (0.4, 0)
    numbers = []
    for more in ((), ("--missing", "0.05"), ("--missing", "0.3"), ("--missing", "located_in=0.3")):
        found = run_json("complete", own_run, "--out", tmp_path / "m.tsv", "--min-probability", 0.5, *more)
        numbers.append(found["facts"])
    assert numbers[1] <= numbers[2]
    assert len(set(numbers)) > 1
    for wrong in (("calibrate",), ("complete", "--out", tmp_path / "n.tsv")):
        refused = run(wrong[0], own_run, *wrong[1:], "--missing", "located=0.1", code=2).stderr
        assert "unknown relation 'located'" in refused
        assert len(refused.splitlines()) == 1
    assert "if 30.0% of the true facts are missing (given)" in run("calibrate", own_run, "--missing", 0.3).stdout


@pytest.mark.parametrize("command", ["calibrate", "complete"])
@pytest.mark.parametrize(
    ("missing", "message"),
    [
        *(
            (wrong, f"missing must be a share from 0 to 0.9, or one for each of some relations, got {told}")
            for wrong, told in (
                ("1", "1.0"),
                ("-0.5", "-0.5"),
                ("nan", "nan"),
                ("much", "'much'"),
                ("located_in=1", "{'located_in': 1.0}"),
                ("located_in=x", "'located_in=x'"),
                ("located_in=0.1,0.2", "'located_in=0.1,0.2'"),
                ("=0.1", "'=0.1'"),
                ("", "''"),
            )
        ),
    ],
)
def test_what_cannot_be_missing_gets_a_sentence(
    run: Any, geo_run: Path, tmp_path: Path, command: str, missing: str, message: str
) -> None:
    out = ["--out", tmp_path / "m.tsv"] if command == "complete" else []
    refused = run(command, geo_run, *out, f"--missing={missing}", code=2)
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_plot_is_written(run: Any, own_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed: pip install 'anyburl[plot]'")
    run("calibrate", own_run, "--plot", tmp_path / "picture.png", "--quiet")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    refused = run("calibrate", own_run, "--plot", tmp_path / "picture.txt", code=2)
    assert "expected a file that ends in one of .png, .svg, .pdf" in refused.stderr


def test_without_valid_and_test_facts_of_train_are_hidden(run: Any, run_json: Any, tmp_path: Path) -> None:
    train = "".join(f"p{i}\tlives\tc{i % 5}\np{i}\tspeaks\tl{i % 5 % 3}\n" for i in range(300))
    (tmp_path / "train.txt").write_text(train)
    run("learn", tmp_path / "train.txt", "--paths", 2000, "--out", tmp_path / "run", "--quiet")
    found = run_json("calibrate", tmp_path / "run")
    assert found["calibrated_on"]["split"] == "train"
    assert found["calibrated_on"]["facts"] == 60
    assert found["checked_on"]["split"] == "train, each half of it by the other"
    assert "checked on train, each half of it by the other" in run("calibrate", tmp_path / "run").stdout


def test_with_nothing_to_hide_it_says_so_in_one_sentence(run: Any, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tlikes\tb\nb\tlikes\ta\nc\tlikes\td\nd\tlikes\tc\n")
    run("learn", tmp_path / "train.txt", "--paths", 100, "--out", tmp_path / "run", "--quiet")
    refused = run("calibrate", tmp_path / "run", code=2)
    (error,) = (line for line in refused.stderr.splitlines() if line.startswith("error: "))
    assert "has too few facts to calibrate on: 0 of 0 hidden facts come back, expected at least 20" in error


def test_a_file_of_rules_cannot_keep_a_calibration(run: Any, own_run: Path) -> None:
    assert "not a run folder" in run("calibrate", own_run / "rules.parquet", code=2).stderr


@pytest.mark.parametrize("command", [["calibrate"], ["complete", "--out", "new.tsv"]])
def test_what_proposes_no_facts_is_refused_before_anything_is_tuned(
    run: Any, geo_run: Path, command: list[str]
) -> None:
    name, *options = command
    refused = run(name, geo_run, *options, "--aggregation", "hybrid", code=2)
    assert refused.stderr.startswith('error: aggregation="hybrid" ranks the answers to questions and proposes no facts')
