"""A run resumed on data that has changed is learned anew: what its folder holds before, during and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learned import counted, learned

from anyburl import Dataset, InvalidOptionError, LearnOptions, RunDirectory, RunError, diff, learn
from anyburl.data.names import Names
from anyburl.learning.recorder import Recorder, count_changes, resume, run_learner
from anyburl.rules.run_folder import read_run_names
from kernels import examples, random_graph, table_of

Labels = list[tuple[str, str, str]]
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


def learned_anew(run: RunDirectory, data: Dataset) -> Recorder:
    """The recorder of a run that has been replaced."""
    learner, recorder = resume(run, data)
    run_learner(learner, recorder)
    assert learner.stopped_by == "complete"
    recorder.finish(learner)
    return recorder


def test_the_rules_are_those_of_learning_anew(run: RunDirectory, changed: Dataset) -> None:
    learned_anew(run, changed)
    assert counted(run.load_rules().with_vocabulary(changed.vocabulary)) == counted(learned(changed.train).rules())


def test_what_has_changed_is_what_diff_says(run: RunDirectory, changed: Dataset) -> None:
    old = run.load_rules()
    update = learned_anew(run, changed).update
    assert update is not None
    difference = diff(old, run.load_rules())
    assert {name: getattr(update, name) for name in difference.counts()} == difference.counts()
    before, after = (rules.confidence() for rules in difference.changed())
    assert (update.rose, update.fell) == ((after > before).sum(), (after < before).sum())
    assert min(update.gone, update.new, update.rose, update.fell) > 0
    facts = set(BEFORE[2]), {*BEFORE[2][10:], *AFTER[2]}
    assert (update.triples_added, update.triples_removed) == (len(facts[1] - facts[0]), len(facts[0] - facts[1]))


@settings(max_examples=examples(50, 5), deadline=None)
@given(*[st.lists(st.tuples(*[st.sampled_from("abcdef")] * 3), min_size=1) for _ in range(2)])
def test_triples_are_compared_by_their_labels(before: Labels, after: Labels) -> None:
    """Entities and relations come and go, and ids with them."""
    tables = [Dataset.from_triples(triples).train for triples in (before, after)]
    assert count_changes(*tables) == (len(set(after) - set(before)), len(set(before) - set(after)))


def test_the_clock_starts_again(run: RunDirectory, changed: Dataset) -> None:
    learner, recorder = resume(run, changed, seconds=60)
    assert (learner.elapsed, learner.store.n_rules, learner.options.seconds) == (0, 0, 60)
    recorder.close()


def test_no_time_is_refused(run: RunDirectory, changed: Dataset) -> None:
    before = contents(run.path)
    with pytest.raises(InvalidOptionError, match=r"seconds must be above 0 when the data has changed, .* anew, got 0"):
        resume(run, changed, seconds=0)
    assert contents(run.path) == before
    resume(run, changed)[1].close()  # nobody holds the lock


def test_rules_that_were_lost_are_new(run: RunDirectory, changed: Dataset) -> None:
    run.rules_file.unlink()
    update = learned_anew(run, changed).update
    assert update is not None
    assert (update.new, update.unchanged) == (len(run.load_rules()), 0)


def test_a_damaged_run_is_not_replaced_before_someone_has_looked(run: RunDirectory, changed: Dataset) -> None:
    (run.parts / "000009.columns").write_bytes(b"nonsense")
    with pytest.raises(RunError, match=r"000009\.columns is damaged .*; to resume the run without them"):
        resume(run, changed)


def test_the_names_are_those_of_the_new_data(run: RunDirectory, changed: Dataset) -> None:
    label, other = changed.vocabulary.entities[:2]
    unchanged = dataset_of(*BEFORE[2])
    for data, names in ((changed, {label: "old"}), (unchanged, {other: "new"}), (changed, {})):
        learned_anew(run, replace(data, names=Names(names)))
        assert dict(read_run_names(run.path)) == names


def test_the_run_describes_the_new_data(run: RunDirectory, changed: Dataset) -> None:
    learned_anew(run, changed)
    described = run.described()["data"]
    assert (described["fingerprint"], described["train"]) == (changed.fingerprint, len(changed.train))
    assert run.vocabulary().same_labels(changed.vocabulary)
    assert run.load_train().triples.tolist() == changed.train.triples.tolist()
    notes = [line["notes"] for line in run.trace()]
    assert notes[0] == ["learned anew: the data had changed"]
    assert not any(notes[1:])
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
    (run.path / "rules-77.parquet").write_text("a snapshot of the old data")
    learned_anew(run, changed)
    assert not (run.path / "rules-77.parquet").exists()
    assert (run.path / "prepared" / "index").read_text() == "old"
    assert [(run.path / name).read_text() for name in mine] == ["mine"] * 3
    assert (run.path / "linked").readlink() == tmp_path / "elsewhere"
    assert (tmp_path / "elsewhere" / "file").read_text() == "theirs"


def test_a_run_can_be_updated_again_and_again(run: RunDirectory, changed: Dataset) -> None:
    for data in (changed, dataset_of(*BEFORE[2]), changed):
        learned_anew(run, data)
        found = run.load_rules().with_vocabulary(data.vocabulary)
        assert counted(found) == counted(learned(data.train).rules())


def test_other_splits_alone_change_no_rule(run: RunDirectory) -> None:
    labels = table_of(BEFORE).to_polars()
    data = Dataset.from_triples(labels, valid=labels.head(2), name="random")
    update = learned_anew(run, data).update
    assert update is not None
    assert (update.unchanged, update.changed, update.triples_added) == (len(run.load_rules()), 0, 0)
    assert run.described()["data"]["fingerprint"] == data.fingerprint


def test_options_that_are_given_replace_those_of_the_run(run: RunDirectory, changed: Dataset) -> None:
    learner, recorder = resume(run, changed, min_support=2)
    assert learner.options == LearnOptions(**{**OPTIONS, "min_support": 2}, snapshots=(1e-6,))
    run_learner(learner, recorder)
    recorder.finish(learner)
    assert run.options() == learner.options
    assert run.load_rules().support.min() == 2


def test_a_run_without_its_triples_is_not_updated(run: RunDirectory, changed: Dataset) -> None:
    (run.path / "train.parquet").unlink()
    with pytest.raises(RunError, match="was learned from other data, which it does not contain"):
        resume(run, changed)
