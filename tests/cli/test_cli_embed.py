"""`anyburl embed`: what it prints, what it keeps, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from anyburl.models.embedding import FILE

TINY = ("--rank", 4, "--epochs", 2, "--batch-size", 256, "--device", "cpu", "--threads", 1)


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'anyburl[embed]'")


def test_an_embedding_is_kept_in_a_run_which_knows_its_data(run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(geo_run, folder)
    found = run_json("embed", "--out", folder, *TINY)
    assert found["run"] == str(folder)
    assert (found["epochs"], found["device"]) == (2, "cpu")
    assert 0 < found["valid_mrr"] < 1
    assert (folder / FILE).is_file()


def test_data_may_be_given_and_the_result_is_one_line(run: Any, tmp_path: Path) -> None:
    shown = run("embed", "geo", "--out", tmp_path / "run", *TINY).stdout
    assert shown.startswith("trained 2 epochs on cpu in ")
    assert "; MRR on valid 0." in shown
    assert run("embed", "geo", "--out", tmp_path / "other", *TINY, "--quiet").stdout == ""


def test_a_folder_that_is_no_run_needs_data(run: Any, tmp_path: Path) -> None:
    refused = run("embed", "--out", tmp_path, *TINY, code=2)
    assert "give DATA" in refused.stderr
    assert str(tmp_path.name) in refused.stderr.replace("\n", "")


def test_there_must_be_training_to_resume(run: Any, tmp_path: Path) -> None:
    refused = run("embed", "geo", "--out", tmp_path, *TINY, "--resume", code=2)
    assert "no unfinished embedding" in refused.stderr


def test_wrong_options_are_refused_by_their_names(run: Any, tmp_path: Path) -> None:
    assert "--rank must be" in run("embed", "geo", "--out", tmp_path, "--rank", 0, code=2).stderr
    assert "--device must be" in run("embed", "geo", "--out", tmp_path, "--device", "tpu", code=2).stderr
