"""A run resumed on data that has changed: what its folder holds before, during and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from learned import counted, learned

from anyburl import Dataset, LearnOptions, PathProfile, RunDirectory, RunError, learn
from anyburl.learning.learn import resume, run_learner
from kernels import random_graph, table_of

BEFORE, AFTER = random_graph(1, 12, 3, 90), random_graph(2, 12, 3, 20)
OPTIONS = {"max_cyclic": 2, "max_acyclic": 2, "min_support": 1, "min_confidence": 0.0, "threads": 1, "paths": 10**12}


def dataset_of(*triples: tuple[int, int, int]) -> Dataset:
    return Dataset.from_triples(table_of((12, 3, list(triples))), name="random")


@pytest.fixture
def changed() -> Dataset:
    """The data without some of its triples and with some others."""
    return dataset_of(*sorted({*BEFORE[2][10:], *AFTER[2]}))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that has found all rules on the data as it was."""
    learn(dataset_of(*BEFORE[2]), out=tmp_path / "run", **OPTIONS, snapshots=(1e-6,))
    return RunDirectory.open(tmp_path / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_rules_are_those_of_learning_anew(run: RunDirectory, changed: Dataset) -> None:
    learner, recorder = resume(run, changed)
    run_learner(learner, recorder)
    assert learner.stopped_by == "complete"
    recorder.finish(learner)
    assert counted(run.load_rules().with_vocabulary(changed.vocabulary)) == counted(learned(changed.train).rules())


def test_a_profile_that_was_complete_before_an_update_stays_so(run: RunDirectory, changed: Dataset) -> None:
    learner, recorder = resume(run, changed, seconds=0)
    run_learner(learner, recorder)
    recorder.finish(learner)
    for _ in range(2):
        learner, recorder = resume(run, changed, paths=10**12)
        run_learner(learner, recorder)
        assert learner.stopped_by == "complete"
        recorder.finish(learner)
    assert [line["number"] for line in run.trace()] == [0]


@pytest.mark.usefixtures("ticking_clock")
def test_a_core_does_not_help_with_a_profile_that_is_finished(run: RunDirectory, changed: Dataset) -> None:
    learner, recorder = resume(run, changed, seconds=10**6, max_cyclic=3)
    run_learner(learner, recorder)
    recorder.finish(learner)
    worked_on = {entry.profile for span in learner.history for entry in span.profiles if entry.new_bodies}
    assert worked_on == {PathProfile(True, 3)}


def test_rules_that_were_lost_are_found_by_an_update_and_what_follows(run: RunDirectory, changed: Dataset) -> None:
    """The trace of a killed run may tell of profiles that were completed after the last part was written."""
    run.rules_file.unlink()
    learner, recorder = resume(run, changed)
    run_learner(learner, recorder)
    recorder.finish(learner)
    assert counted(run.load_rules().with_vocabulary(changed.vocabulary)[0]) == counted(learned(changed.train).rules())


def test_the_run_describes_the_new_data(run: RunDirectory, changed: Dataset) -> None:
    learner, recorder = resume(run, changed, seconds=0)
    run_learner(learner, recorder)
    recorder.finish(learner)
    described = run.described()["data"]
    assert (described["fingerprint"], described["train"]) == (changed.fingerprint, len(changed.train))
    assert run.vocabulary().same_labels(changed.vocabulary)
    assert run.load_train().triples.tolist() == changed.train.triples.tolist()
    (line,) = run.trace()
    assert recorder.update is not None
    assert line["update"] == recorder.update.to_json()
    assert {entry["profile"] for entry in line["profiles"]} == {str(profile) for profile in run.options().profiles}
    assert not list(run.path.glob("rules-*")), "snapshots of the old data"
    assert [entry.name for entry in run.path.parent.iterdir()] == ["run"]


def test_the_run_stays_whole_until_the_update_is_done(run: RunDirectory, changed: Dataset) -> None:
    before = contents(run.path)
    learner, recorder = resume(run, changed)
    assert contents(run.path) == before
    run_learner(learner, recorder)
    assert contents(run.path) == before
    del learner, recorder
    assert [entry.name for entry in run.path.parent.iterdir()] == ["run"], "what was unfinished is removed"


def test_what_others_put_into_the_folder_is_kept(run: RunDirectory, changed: Dataset, tmp_path: Path) -> None:
    (run.path / "prepared").mkdir()
    (run.path / "prepared" / "index").write_text("old")
    mine = ["notes.txt", "rules-of-thumb.txt", "parts/notes.txt"]
    for name in mine:
        (run.path / name).write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("theirs")
    (run.path / "linked").symlink_to(tmp_path / "elsewhere")
    learner, recorder = resume(run, changed, seconds=0)
    recorder.finish(learner)
    assert (run.path / "prepared" / "index").read_text() == "old"
    assert [(run.path / name).read_text() for name in mine] == ["mine"] * 3
    assert (run.path / "linked").readlink() == tmp_path / "elsewhere"
    assert (tmp_path / "elsewhere" / "file").read_text() == "theirs"


def test_a_run_can_be_updated_again_and_again(run: RunDirectory, changed: Dataset) -> None:
    for data in (changed, dataset_of(*BEFORE[2]), changed):
        learner, recorder = resume(run, data, seconds=0)
        run_learner(learner, recorder)
        recorder.finish(learner)
        found = run.load_rules().with_vocabulary(data.vocabulary)
        assert counted(found) == counted(learned(data.train).rules())


def test_other_splits_alone_change_no_rule(run: RunDirectory) -> None:
    labels = table_of(BEFORE).to_polars()
    data = Dataset.from_triples(labels, valid=labels.head(2), name="random")
    learner, recorder = resume(run, data, seconds=0)
    assert recorder.update is not None
    assert (recorder.update.unchanged, recorder.update.changed) == (len(run.load_rules()), 0)
    recorder.finish(learner)
    assert run.described()["data"]["fingerprint"] == data.fingerprint


def test_a_profile_counts_as_finished_only_with_the_same_thresholds(run: RunDirectory, changed: Dataset) -> None:
    learner, _ = resume(run, changed, min_support=2)
    assert learner.options == LearnOptions(**{**OPTIONS, "min_support": 2}, snapshots=(1e-6,))
    run_learner(learner)
    assert len(learner.history) > 0


def test_a_run_without_its_triples_is_not_updated(run: RunDirectory, changed: Dataset) -> None:
    (run.path / "train.parquet").unlink()
    with pytest.raises(RunError, match="was learned from other data, which it does not contain"):
        resume(run, changed)
