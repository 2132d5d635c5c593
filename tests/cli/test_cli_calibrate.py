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


def test_json_tells_errors_thresholds_and_relations(run_json: Any, own_run: Path) -> None:
    found = run_json("calibrate", own_run)
    assert found["expected_calibration_error"] < 0.03 < found["uncalibrated_error"]
    assert list(found["thresholds"]) == ["0.5", "0.8", "0.9", "0.95"]
    assert {"score", "facts", "precision", "sampling_error"} <= set(found["thresholds"]["0.8"])
    assert {"relation", "answers", "stated", "thresholds"} <= set(found["by_relation"][0])
    assert found["calibrated_on"]["split"] == "valid"
    assert found["checked_on"]["split"] == "test"
    assert found["protocol"]["aggregation"] == "max"
    assert len(list((own_run / "calibration").iterdir())) == 1


def test_tables_show_scores_and_the_most_important_relations(run: Any, own_run: Path) -> None:
    shown = run("calibrate", own_run, "--top", 3, "--aggregation", "noisy-or-top:5").stdout
    assert "lowest score" in shown
    assert "measured on test" in shown
    assert "more relations" in shown
    assert "expected calibration error" in shown
    assert run("calibrate", own_run, "--quiet").stdout == ""


def test_the_plot_is_written(run: Any, own_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed: pip install 'anyburl[plot]'")
    run("calibrate", own_run, "--plot", tmp_path / "picture.png", "--quiet")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    refused = run("calibrate", own_run, "--plot", tmp_path / "picture.txt", code=2)
    assert "expected a file that ends in one of .png, .svg, .pdf" in refused.stderr


def test_without_valid_and_test_facts_are_held_out_of_train(run: Any, run_json: Any, tmp_path: Path) -> None:
    train = "".join(f"p{i}\tlives\tc{i % 5}\np{i}\tspeaks\tl{i % 5 % 3}\n" for i in range(300))
    (tmp_path / "train.txt").write_text(train)
    run("learn", tmp_path / "train.txt", "--paths", 2000, "--out", tmp_path / "run", "--quiet")
    found = run_json("calibrate", tmp_path / "run")
    assert found["calibrated_on"]["split"] == "train"
    assert found["calibrated_on"]["facts"] == 60
    assert found["checked_on"]["cross_fitted"]
    assert "each half with a map fitted to the other" in run("calibrate", tmp_path / "run").stdout


def test_with_nothing_to_hold_out_it_says_so_in_one_sentence(run: Any, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tlikes\tb\nb\tlikes\ta\nc\tlikes\td\nd\tlikes\tc\n")
    run("learn", tmp_path / "train.txt", "--paths", 100, "--out", tmp_path / "run", "--quiet")
    refused = run("calibrate", tmp_path / "run", code=2)
    assert "has too few facts to calibrate on" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_file_of_rules_cannot_keep_a_calibration(run: Any, own_run: Path) -> None:
    assert "not a run folder" in run("calibrate", own_run / "rules.parquet", code=2).stderr
