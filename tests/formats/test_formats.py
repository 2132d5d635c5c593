"""What earlier versions have written still opens. `scripts/keep_formats.py` adds a folder for each release."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from anyburl import Dataset, RuleSet, RunDirectory, load_dataset
from anyburl.base.errors import DataError
from anyburl.data.stored import FORMAT
from anyburl.learning.progress import read_progress
from anyburl.learning.recorder import resume, run_learner

VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy, so that tests may write to it."""
    return Path(shutil.copytree(request.param, tmp_path / "kept"))


@pytest.fixture
def expected(folder: Path) -> Any:
    return json.loads((folder / "expected.json").read_text("utf-8"))


@pytest.fixture
def data(folder: Path, expected: Any) -> Dataset:
    found = load_dataset(folder / "train.txt")
    assert found.fingerprint == expected["fingerprint"]
    return found


@pytest.mark.parametrize("name", ["finished", "killed", "rules.txt", "rules.parquet"])
def test_rules_are_read(folder: Path, expected: Any, name: str) -> None:
    rules = RuleSet.load(folder / name)
    assert sorted(rules.texts().to_list()) == expected["rules"]
    assert (rules.support <= rules.predictions).all()


@pytest.mark.parametrize("name", ["finished", "killed"])
def test_a_run_is_resumed(folder: Path, data: Dataset, expected: Any, name: str) -> None:
    run = RunDirectory.open(folder / name)
    assert run.load_train().to_polars().rows() == data.train.to_polars().rows()
    assert len(read_progress(run.path).spans) >= 1
    learner, recorder = resume(run, data)
    run_learner(learner, recorder)
    assert sorted(recorder.finish(learner).texts().to_list()) == expected["rules"]


def test_an_index_opens_or_is_to_be_built_again(folder: Path, expected: Any) -> None:
    card = json.loads((folder / "index" / "index.json").read_text("utf-8"))
    if card["format"] != FORMAT:
        with pytest.raises(DataError, match="build it again"):
            load_dataset(folder / "index")
        return
    data = load_dataset(folder / "index")
    assert (data.fingerprint, len(data.train)) == (expected["fingerprint"], expected["triples"])
