"""A run folder has one writer: a second one is refused, and a crash leaves no lock behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import anyburl
from anyburl import Dataset, LearnOptions, RuleSet, RunDirectory
from anyburl.base.errors import RunError
from anyburl.learning.recorder import Recorder, resume, run_learner
from anyburl.learning.run import LOCK, claim_run
from rules.samples import make_rules

TRIPLES = [("ed", "lives", "nl"), ("lisa", "lives", "nl"), ("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch")]
OPTIONS: dict[str, Any] = {"paths": 200, "min_support": 1, "threads": 1, "seed": 1}

HOLD = """
import sys, time
from pathlib import Path
from anyburl.learning.run import claim_run
lock = claim_run(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(100)
"""


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_triples(TRIPLES, name="speakers")


@pytest.fixture
def run(dataset: Dataset, tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", dataset, LearnOptions(**OPTIONS))


def test_a_folder_has_one_writer_at_a_time(run: RunDirectory, dataset: Dataset) -> None:
    first = Recorder(run)
    for second in (lambda: Recorder(run), lambda: resume(run, dataset)):
        with pytest.raises(RunError, match=r"run is being written by process \d+: wait until it ends"):
            second()
    first.close()
    Recorder(run).close()


def test_two_that_resume_lose_no_rule(run: RunDirectory, dataset: Dataset) -> None:
    learner, recorder = resume(run, dataset)
    with pytest.raises(RunError, match="is being written"):
        resume(run, dataset)
    run_learner(learner, recorder)
    assert len(recorder.finish(learner)) == len(run.load_rules())
    again, second = resume(run, dataset)
    second.close()
    assert again.store.n_rules == len(run.load_rules())


def test_rules_can_be_read_while_another_writes(run: RunDirectory) -> None:
    recorder = Recorder(run)
    assert len(RuleSet.load(run.path)) == 0
    recorder.close()


def test_a_run_on_changed_data_is_locked_until_it_is_replaced(run: RunDirectory, dataset: Dataset) -> None:
    learner, recorder = resume(run, dataset)
    run_learner(learner, recorder)
    recorder.finish(learner)
    changed = Dataset.from_triples([*TRIPLES, ("jo", "lives", "nl")], name="more speakers")
    learner, recorder = resume(run, changed)
    with pytest.raises(RunError, match="is being written"):
        claim_run(run.path)
    run_learner(learner, recorder)
    recorder.finish(learner)
    claim_run(run.path).release()


def test_what_fails_lets_go_of_the_folder(run: RunDirectory, dataset: Dataset, tmp_path: Path) -> None:
    other = Dataset.from_triples([("a", "r", "b")])
    with pytest.raises(RunError, match="data other than"):
        resume(run, other)
    claim_run(run.path).release()

    def fail(span: anyburl.Span) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        anyburl.learn(dataset, out=tmp_path / "failed", on_span=fail, **OPTIONS)
    claim_run(tmp_path / "failed").release()
    assert len(RuleSet.load(tmp_path / "failed"))


def test_a_kill_leaves_no_lock_behind(run: RunDirectory) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(run.path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == b"held"
    with pytest.raises(RunError, match=f"is being written by process {holder.pid}"):
        claim_run(run.path)
    holder.kill()
    holder.communicate()
    claim_run(run.path).release()
    assert (run.path / LOCK).is_file()


def test_two_that_begin_at_once_do_not_mix(tmp_path: Path, dataset: Dataset) -> None:
    (tmp_path / "run").mkdir()
    lock = claim_run(tmp_path / "run")
    with pytest.raises(RunError, match="is being written"):
        RunDirectory.create(tmp_path / "run", dataset, LearnOptions(**OPTIONS))
    lock.release()
    RunDirectory.create(tmp_path / "run", dataset, LearnOptions(**OPTIONS))


def test_a_part_that_cannot_be_written_is_tried_again(
    run: RunDirectory, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk may have room again; what was found meanwhile is not lost."""
    monkeypatch.setattr("anyburl.learning.recorder.SECONDS_BETWEEN_PARTS", 0.0)
    written: list[int] = []

    def write_part(self: RunDirectory, rules: list[RuleSet]) -> None:
        written.append(sum(map(len, rules)))
        if len(written) == 1:
            raise RunError("no space left")

    monkeypatch.setattr(RunDirectory, "write_part", write_part)
    recorder = Recorder(run)
    rules = make_rules([("speaks(X,Y) <= lives(X,Y)", (3, 2))])
    recorder._waiting = [rules]
    recorder._start_part()
    while len(written) < 1:
        time.sleep(0.01)
    recorder.save_parts()
    assert written == [1, 1]
    recorder.close()
    assert written == [1, 1]
