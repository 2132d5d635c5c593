"""How a run goes, read from its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anyburl import LearnOptions, RunDirectory, learn, load_dataset
from anyburl.base.errors import RunError
from anyburl.learning.progress import read_progress
from anyburl.rules.ruleset import RuleSet


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "geo"
    learn(load_dataset("geo"), paths=3000, seed=1, threads=1, out=path)
    return path


@pytest.fixture
def unfinished(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", load_dataset("geo"), LearnOptions(seconds=20))


def test_a_finished_run_tells_how_it_went(run: Path) -> None:
    progress = read_progress(run)
    rules = RuleSet.load(run)
    assert progress.is_finished
    assert progress.planned_seconds is None
    assert progress.spans["rules"][-1] == len(rules)
    assert progress.spans["elapsed"].is_sorted()
    assert set(progress.profiles["profile"]) >= {"cyclic 1", "acyclic 1"}
    assert progress.profiles["new_rules"].sum() == len(rules)
    assert progress.profiles.group_by("profile").last()["rules"].sum() == len(rules)
    last = progress.types.group_by("type", "length").last()
    assert {f"{kind} {length}": n for kind, length, n in last.select("type", "length", "rules").rows()} == (
        rules.counts_by_length()
    )


def test_a_run_that_has_just_begun_is_empty(unfinished: RunDirectory) -> None:
    progress = read_progress(unfinished.path)
    assert (len(progress.spans), len(progress.profiles), progress.snapshots) == (0, 0, ())
    assert (progress.planned_seconds, progress.is_finished) == (20.0, False)


def test_lines_cut_short_and_missing_keys_do_no_harm(unfinished: RunDirectory) -> None:
    whole = {
        "number": 1,
        "elapsed": 10.1,
        "seconds": 1.0,
        "rules": 5,
        "snapshot": "10",
        "notes": ["a worker was lost"],
        "profiles": [{"profile": "cyclic 1", "cores": 1, "new_rules": 5, "reward": 2, "new_by_type": {"B": 5}}],
    }
    bare = {"number": 2, "elapsed": 11.0, "profiles": [{"profile": "cyclic 1"}, 7], "saturation": "high"}
    lines = [whole, bare, {"update": {}}, {"number": 3, "elapsed": None}, [1], 4]
    text = "".join(json.dumps(line) + "\n" for line in lines) + json.dumps(whole)[:30]
    (unfinished.path / "trace.jsonl").write_bytes(text.encode() + b"\xff")
    progress = read_progress(unfinished.path)
    assert progress.spans["rules"].to_list() == [5, None]
    assert progress.spans["saturation"].to_list() == [None, None]
    assert progress.profiles.select("profile", "cores", "rules").rows() == [("cyclic 1", 1, 5), ("cyclic 1", None, 5)]
    assert progress.types.rows() == [(10.1, "B", 1, 5, 5)]
    assert [(s.name, s.seconds, s.rules) for s in progress.snapshots] == [("10", 10.1, 5)]
    assert progress.notes == ((10.1, "a worker was lost"),)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run folder"):
        read_progress(tmp_path)
