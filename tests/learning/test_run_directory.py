"""The run folder: whole at every moment, also when the run was killed."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from learned import counted, learned
from runs_made import COMPLETE, SMALL, kill, texts

from anyburl import Dataset, LearnOptions, Reasoner, RuleSet, RunDirectory, RunError, learn
from anyburl.learning.learner import Learner, Span
from anyburl.learning.recorder import Recorder, resume, run_learner
from anyburl.learning.run import claim_run
from anyburl.reasoning.metrics import read_metrics

# What a run leaves behind.


def test_a_finished_run_holds_its_rules_and_no_parts(dataset: Dataset, rules: RuleSet, tmp_path: Path) -> None:
    found = learn(dataset, out=tmp_path / "run", **COMPLETE)
    run = RunDirectory.open(tmp_path / "run")
    assert texts(found) == texts(rules) == texts(run.load_rules())
    assert counted(run.load_rules().with_vocabulary(dataset.vocabulary)) == counted(rules)
    assert list(run.parts.iterdir()) == []
    assert {file.name for file in run.path.iterdir()} == {
        ".lock",
        "options.json",
        "vocabulary.parquet",
        "train.parquet",
        "trace.jsonl",
        "parts",
        "rules.parquet",
        "bodies.keys",
    }


def test_a_run_folder_with_the_name_of_its_built_in_data_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    learn("geo", out="geo", paths=10)
    with Reasoner.open("geo") as reasoner:
        assert reasoner.dataset.name == "geo"
    assert RunDirectory.open("geo").described()["data"]["source"] == "geo"


def test_options_say_what_was_asked_and_on_which_data(run: RunDirectory, dataset: Dataset) -> None:
    described = run.described()
    assert described["data"]["fingerprint"] == dataset.fingerprint
    assert described["data"]["name"] == "random"
    assert described["data"]["train"] == len(dataset.train)
    assert described["options"]["paths"] == 10**12
    assert {"anyburl", "python", "numba", "numpy", "cores"} <= set(described)
    assert run.options() == LearnOptions(**COMPLETE)


def test_options_with_lists_are_read_back(dataset: Dataset, tmp_path: Path) -> None:
    options = LearnOptions(seconds=5, relations=("r000001", "r000002"), snapshots=(1.0, 2.5))
    assert RunDirectory.create(tmp_path / "run", dataset, options).options() == options


def test_the_labels_behind_the_parts_are_kept(run: RunDirectory, dataset: Dataset) -> None:
    assert run.vocabulary().same_labels(dataset.vocabulary)


def test_a_new_run_has_no_rules(run: RunDirectory) -> None:
    assert len(run.load_rules()) == 0
    assert list(run.trace()) == []


def test_every_span_is_a_line_of_the_trace(dataset: Dataset, tmp_path: Path) -> None:
    spans: list[Span] = []
    learn(dataset, out=tmp_path / "run", on_span=spans.append, **COMPLETE)
    lines = list(RunDirectory.open(tmp_path / "run").trace())
    assert [line["number"] for line in lines] == list(range(1, len(spans) + 1))
    for line, span in zip(lines, spans, strict=True):
        assert (line["rules"], line["new_rules"], line["paths"]) == (span.n_rules, span.new_rules, span.n_paths)
        assert (line["bodies"], line["dropped"], line["snapshot"]) == (span.n_bodies, 0, None)
        assert line["reward"] == pytest.approx(span.reward)
        assert line["saturation"] == pytest.approx(span.saturation, abs=1e-6)
        assert [entry["profile"] for entry in line["profiles"]] == [str(entry.profile) for entry in span.profiles]
        for written, entry in zip(line["profiles"], span.profiles, strict=True):
            for name in ("cores", "attempts", "paths", "new_bodies", "new_rules", "known_rules", "reward", "value"):
                assert written[name] == getattr(entry, name)
            assert written["exhausted"] == entry.exhausted


# Parts.


def test_parts_are_read_in_the_order_in_which_they_were_written(run: RunDirectory, rules: RuleSet) -> None:
    for start in range(0, 120, 10):
        run.write_part([rules.slice(start, start + 4), rules.slice(start + 4, start + 10)])
    assert len(list(run.parts.glob("*.columns"))) == 12
    assert texts(run.load_rules()) == texts(rules.slice(0, 120))
    assert counted(run.load_rules()) == counted(rules.slice(0, 120))


def test_a_part_cut_short_by_a_kill_does_not_count(run: RunDirectory, rules: RuleSet) -> None:
    run.write_part([rules.slice(0, 10)])
    (run.parts / "000002.partial").write_bytes(b"PK half a file")
    assert texts(run.load_rules()) == texts(rules.slice(0, 10))
    run.write_part([rules.slice(10, 20)])
    assert texts(run.load_rules()) == texts(rules.slice(0, 20))


def test_finishing_puts_parts_into_one_file(run: RunDirectory, rules: RuleSet) -> None:
    run.write_part([rules.slice(0, 10)])
    run.finish(rules.slice(0, 10), {})
    assert list(run.parts.iterdir()) == []
    assert texts(run.load_rules()) == texts(rules.slice(0, 10))


def test_parts_that_came_after_the_file_add_to_it(run: RunDirectory, rules: RuleSet) -> None:
    """A run that was finished, resumed and killed; or killed between writing the file and removing the parts."""
    run.finish(rules.slice(0, 10), {})
    run.write_part([rules.slice(5, 15)])
    found = run.load_rules()
    assert sorted(texts(found)) == sorted(texts(rules.slice(0, 15)))
    assert counted(found.with_vocabulary(rules.vocabulary)) == counted(rules.slice(0, 15))


# Resuming.


def test_a_killed_run_goes_on_where_it_was(run: RunDirectory, dataset: Dataset, rules: RuleSet) -> None:
    spans = kill(run, dataset, n_spans=1)
    learner, recorder = resume(run, dataset)
    assert learner.options == run.options() == LearnOptions(**COMPLETE)
    assert (learner.n_paths, learner.n_bodies) == (spans[0].n_paths, spans[0].n_bodies)
    assert learner.store.n_rules == spans[0].n_rules
    run_learner(learner, recorder)
    assert learner.stopped_by == "complete"
    recorder.finish(learner)
    assert counted(run.load_rules().with_vocabulary(dataset.vocabulary)) == counted(rules)
    numbers = [line["number"] for line in run.trace()]
    assert numbers == list(range(1, len(numbers) + 1))
    elapsed = [line["elapsed"] for line in run.trace()]
    assert elapsed == sorted(elapsed)


def test_a_finished_run_goes_on_with_a_larger_budget(dataset: Dataset, rules: RuleSet, tmp_path: Path) -> None:
    options = {**SMALL, "paths": 1, "policy": "saturation"}
    first = learn(dataset, out=tmp_path / "run", **options)
    assert len(first) < len(rules)
    run = RunDirectory.open(tmp_path / "run")
    learner, recorder = resume(run, dataset, paths=10**12)
    assert run.options().paths == 10**12
    run_learner(learner, recorder)
    assert counted(recorder.finish(learner)) == counted(rules)


def test_sampled_heads_are_not_found_again_after_resuming(dataset: Dataset, tmp_path: Path) -> None:
    options = {**SMALL, "heads": "sampled", "max_grounded": 2}
    learn(dataset, out=tmp_path / "run", **options, paths=1000)
    run = RunDirectory.open(tmp_path / "run")
    learner, recorder = resume(run, dataset, paths=500_000)
    run_learner(learner, recorder)
    found = counted(recorder.finish(learner))
    whole = counted(learned(dataset.train, **options, paths=2_000_000, policy="random").rules())
    assert found.items() <= whole.items()


def test_a_run_killed_again_after_resuming_keeps_everything(run: RunDirectory, dataset: Dataset) -> None:
    spans = kill(run, dataset, n_spans=1)
    learner, recorder = resume(run, dataset)
    second = next(learner.spans())
    recorder.record(second)
    recorder.save_parts()
    assert len(run.load_rules()) == second.n_rules >= spans[0].n_rules
    counted(run.load_rules())


@pytest.mark.usefixtures("ticking_clock")
def test_seconds_are_the_budget_of_the_whole_run(dataset: Dataset, tmp_path: Path) -> None:
    learn(dataset, out=tmp_path / "run", **{**SMALL, "heads": "sampled"}, seconds=0.2, span=0.1)
    run = RunDirectory.open(tmp_path / "run")
    learner, recorder = resume(run, dataset)
    assert list(learner.spans()) == []
    assert learner.stopped_by == "seconds"
    recorder.close()
    longer, _ = resume(run, dataset, seconds=0.4)
    assert 1 <= len(list(longer.spans())) <= 3


def test_other_data_are_refused(run: RunDirectory) -> None:
    other = Dataset.from_triples([("a", "r", "b")], name="other")
    with pytest.raises(RunError, match="was learned from data other than other: they have no relation in common"):
        resume(run, other)


# What is refused.


def test_a_folder_that_holds_a_run_is_not_overwritten(run: RunDirectory, dataset: Dataset) -> None:
    with pytest.raises(
        RunError, match="already contains a run: choose another folder, or continue the run with --resume"
    ):
        RunDirectory.create(run.path, dataset, LearnOptions())
    with pytest.raises(RunError, match="already contains a run"):
        learn(dataset, out=run.path, paths=1)


def test_a_folder_without_options_is_no_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(RunError, match=r"is not a run folder: it has no options\.json"):
            RunDirectory.open(path)


def test_a_run_folder_cannot_be_made_in_a_file(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(RunError, match="cannot write the run folder"):
        RunDirectory.create(tmp_path / "file" / "run", dataset, LearnOptions())


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1, 2]", "3", "{}", '{"options": 3, "data": {}}', '{"options": {}, "data": {}}'],
    ids=["empty", "cut short", "list", "number", "no options", "options are a number", "options are missing"],
)
def test_broken_options_are_a_sentence(run: RunDirectory, dataset: Dataset, text: str) -> None:
    run.options_file.write_text(text)
    opened = RunDirectory.open(run.path)
    with pytest.raises(RunError, match=r"options\.json"):
        opened.options()
    with pytest.raises(RunError, match=r"options\.json"):
        resume(opened, dataset)


def test_options_of_another_version_are_a_sentence(run: RunDirectory) -> None:
    described = run.described()
    described["options"]["telepathy"] = True
    run.options_file.write_text(json.dumps(described))
    with pytest.raises(RunError, match="telepathy"):
        run.options()


# Recording.


def test_the_recorder_writes_parts_while_learning_goes_on(
    run: RunDirectory, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.learning.recorder.SECONDS_BETWEEN_PARTS", 0.0)
    learner = Learner(dataset.train, LearnOptions(**COMPLETE))
    recorder = Recorder(run)
    run_learner(learner, recorder)
    patience = time.monotonic() + 120
    while not list(run.parts.glob("*.columns")) and time.monotonic() < patience:
        time.sleep(0.01)
    assert list(run.parts.glob("*.columns"))
    recorder.save_parts()
    assert counted(run.load_rules()) == counted(learner.rules())
    assert recorder.seconds_writing > 0


def test_an_interrupt_saves_what_was_found(dataset: Dataset, tmp_path: Path) -> None:
    def interrupt(span: Span) -> None:
        raise KeyboardInterrupt

    found = learn(dataset, out=tmp_path / "run", on_span=interrupt, **COMPLETE)
    assert len(found) > 0
    assert texts(RunDirectory.open(tmp_path / "run").load_rules()) == texts(found)


def test_an_interrupt_is_why_a_run_ended(dataset: Dataset) -> None:
    def interrupt(span: Span) -> None:
        raise KeyboardInterrupt

    learner = Learner(dataset.train, LearnOptions(**COMPLETE))
    run_learner(learner, on_span=interrupt)
    assert learner.stopped_by == "interrupt"


# Damaged folders.


def test_a_damaged_run_is_not_resumed_before_someone_has_looked(run: RunDirectory, dataset: Dataset) -> None:
    kill(run, dataset)
    kept = len(run.load_rules())
    (run.parts / "000009.columns").write_bytes(b"junk")
    with pytest.raises(RunError, match=r"000009\.columns is damaged .*; to resume the run without them"):
        resume(run, dataset)
    (run.parts / "000009.columns").unlink()
    learner, recorder = resume(run, dataset)
    recorder.close()
    assert learner.store.n_rules == kept


def test_a_run_goes_on_from_the_last_whole_line_of_its_trace(run: RunDirectory, dataset: Dataset) -> None:
    spans = kill(run, dataset)
    with (run.path / "trace.jsonl").open("ab") as file:
        file.write(b'{"number": 99}\n[]\n\xff\n{"elapsed": "long", "number": 5, "paths": 1, "bodies": 1}\n{"num')
    learner, recorder = resume(run, dataset)
    recorder.close()
    assert learner.n_paths == spans[-1].n_paths
    assert [line["number"] for line in run.trace()] == [span.number for span in spans]


@pytest.mark.parametrize(
    ("name", "wrong"), [("seconds", "3"), ("snapshots", 5), ("relations", "speaks"), ("seed", None), ("heads", ["all"])]
)
def test_options_of_the_wrong_type_are_named(run: RunDirectory, name: str, wrong: object) -> None:
    described = run.described()
    described["options"] = {**described["options"], "paths": None, name: wrong}
    run.options_file.write_text(json.dumps(described))
    with pytest.raises(RunError, match=rf"options\.json does not describe a run: {name} must be"):
        run.options()


def test_a_run_of_an_older_version_lacks_options_and_opens(run: RunDirectory) -> None:
    described = run.described()
    for name in ("address", "max_rules", "span"):
        del described["options"][name]
    for name in ("reading", "prefixes"):
        del described["data"][name]
    run.options_file.write_text(json.dumps(described))
    assert run.options() == LearnOptions(**COMPLETE)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_in_the_folder_keeps_nobody_waiting(run: RunDirectory) -> None:
    def give_up(*given: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        for name in (
            "trace.jsonl",
            "vocabulary.parquet",
            "train.parquet",
            "parts/000001.columns",
            "metrics.jsonl",
            ".lock",
        ):
            (run.path / name).unlink(missing_ok=True)
            os.mkfifo(run.path / name)
        assert read_metrics(run.path) == []
        for use in (run.load_rules, run.vocabulary, lambda: list(run.trace()), lambda: claim_run(run.path)):
            with pytest.raises(RunError, match="regular file"):
                use()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
