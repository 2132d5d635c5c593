"""`anyburl prepare` and `anyburl tune`: what they write, and what they refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def own_run(geo_run: Path, tmp_path: Path) -> Path:
    """A run of its own, not prepared."""
    copy = tmp_path / "run"
    shutil.copytree(geo_run, copy, ignore=shutil.ignore_patterns("prepared", "tuned"))
    return copy


def test_prepare_tells_what_it_wrote_and_the_second_time_that_nothing_was_to_do(run: Any, own_run: Path) -> None:
    first = json.loads(run("prepare", own_run, "--json").stdout)
    assert not first["was_ready"]
    assert first["rules"] > 0
    assert first["bytes"] == sum(file.stat().st_size for file in (own_run / "prepared").rglob("*") if file.is_file())
    second = json.loads(run("prepare", own_run, "--json").stdout)
    assert second["was_ready"]
    assert second["bytes"] == first["bytes"]
    assert "was already prepared" in run("prepare", own_run).stdout


def test_a_question_prepares_the_run_and_says_so_unless_it_is_told_not_to(run: Any, own_run: Path) -> None:
    query = ("France", "official_language", "?", "--top", "1", "--json")
    without = run("predict", own_run, *query, "--no-prepare")
    assert not (own_run / "prepared").exists()
    assert "preparing" not in without.stderr
    with_it = run("predict", own_run, *query)
    assert (own_run / "prepared" / "card.json").is_file()
    assert f"preparing {own_run}" in with_it.stderr
    again = run("predict", own_run, *query)
    assert "preparing" not in again.stderr
    assert without.stdout == with_it.stdout == again.stdout


def test_what_cannot_be_prepared_or_tuned_is_refused(run: Any, own_run: Path) -> None:
    assert "is not a run folder" in run("tune", own_run / "rules.parquet", code=2).stderr
    (own_run / "parts" / "000001.columns").write_bytes(b"")
    assert "still learning" in run("prepare", own_run, code=2).stderr
