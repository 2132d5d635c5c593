"""`anyburl diff`, and `anyburl learn --resume` on data that has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl import load_dataset


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a part of geo."""
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder, load_dataset("geo").train.to_polars()[60:])
    return folder


def write(folder: Path, triples: pl.DataFrame) -> None:
    triples.write_csv(folder / "train.txt", separator="\t", include_header=False)


@pytest.fixture
def learned(run: Any, data: Path, tmp_path: Path) -> Path:
    """A run that has found all rules."""
    run("learn", data, "--out", tmp_path / "run", "--max-cyclic", 2, "--seconds", 60, "--quiet")
    return tmp_path / "run"


def test_resume_on_changed_data_learns_the_rules_anew(run: Any, run_json: Any, data: Path, learned: Path) -> None:
    write(data, load_dataset("geo").train.to_polars()[:-40])
    result = run_json("learn", "--out", learned, "--resume")
    update = result["update"]
    assert (update["triples_added"], update["triples_removed"]) == (60, 40)
    assert update["new"] + update["changed"] + update["unchanged"] == result["rules"]
    assert result["stopped_by"] == "complete"
    run("learn", data, "--out", learned.parent / "anew", "--max-cyclic", 2, "--seconds", 60, "--quiet")
    compared = run_json("diff", learned, learned.parent / "anew")
    assert (compared["gone"], compared["new"], compared["changed"]) == (0, 0, 0)
    assert compared["unchanged"] == result["rules"]
    again = run_json("learn", "--out", learned, "--resume")
    assert "update" not in again


def test_an_update_is_reported_in_words(run: Any, data: Path, learned: Path) -> None:
    write(data, load_dataset("geo").train.to_polars())
    done = run("learn", data, "--out", learned, "--resume", "--seconds", 60)
    assert f"the data of {learned} has changed: learning its rules anew" in " ".join(done.stderr.split())
    assert "60 triples added, 0 removed; learned anew in" in done.stdout
    assert "changed (confidence up" in done.stdout


def test_no_time_to_learn_anew_is_refused(run: Any, data: Path, learned: Path) -> None:
    write(data, load_dataset("geo").train.to_polars())
    wrong = " ".join(run("learn", "--out", learned, "--resume", "--seconds", 0, code=2).stderr.split())
    assert "--seconds must be above 0 when the data has changed, since the rules are then learned anew, got 0" in wrong
    assert "Traceback" not in wrong


def test_data_without_a_common_relation_is_refused(run: Any, learned: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("a r b\nb r c\n")
    wrong = run("learn", tmp_path / "other.txt", "--out", learned, "--resume", code=2)
    assert "they have no relation in common" in wrong.stderr


def test_diff_shows_what_is_gone_new_and_changed(run: Any, geo_run: Path, learned: Path, tmp_path: Path) -> None:
    out = tmp_path / "differences.tsv"
    said = run("diff", learned, geo_run, "--top", 3, "--out", out).stdout
    assert "new rules, the most valuable" in said
    assert "rules whose confidence changed most" in said
    assert " → " in said
    rows = pl.read_csv(out, separator="\t")
    assert set(rows["change"]) == {"gone", "new", "changed"}


def test_diff_of_a_run_with_itself_finds_nothing(run: Any, run_json: Any, geo_run: Path) -> None:
    counts = run_json("diff", geo_run, geo_run / "rules.parquet")
    assert (counts["gone"], counts["new"], counts["changed"]) == (0, 0, 0)
    assert counts["top"] == {"gone": [], "new": [], "changed": []}
    assert run("diff", geo_run, geo_run, "--quiet").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing", "missing"], "no run folder or rule file at 'missing'"),
        (["missing", "missing", "--out", "x.xlsx"], "--out must end in .parquet or .tsv, got x.xlsx"),
        (["missing", "missing", "--out", "nowhere/x.tsv"], "the folder nowhere does not exist"),
    ],
)
def test_wrong_input_is_a_sentence(run: Any, arguments: list[str], sentence: str) -> None:
    assert sentence in run("diff", *arguments, code=2).stderr
