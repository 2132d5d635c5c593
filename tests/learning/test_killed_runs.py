"""Killed runs and their snapshots: what was found is there, and the run continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from learned import counted
from runs_made import COMPLETE, SMALL, kill, texts

from anyburl import Dataset, LearnOptions, RuleSet, RunDirectory, RunError, learn
from anyburl.learning.learner import Learner, Span
from anyburl.learning.recorder import Recorder, resume, run_learner


def test_a_killed_run_holds_what_it_had_found(run: RunDirectory, dataset: Dataset) -> None:
    spans = kill(run, dataset)
    assert not run.rules_file.exists()
    learned = RunDirectory.open(run.path).load_rules()
    assert counted(learned) == counted(spans[-1].rules)
    assert len(learned) == spans[-1].n_rules


def test_a_trace_cut_short_by_a_kill_loses_its_last_line_only(run: RunDirectory, dataset: Dataset) -> None:
    spans = kill(run, dataset)
    with open(run.path / "trace.jsonl", "a", encoding="utf-8") as file:
        file.write('{"number": 3, "elap')
    assert [line["number"] for line in run.trace()] == [1, 2]
    run.append_trace(spans[0])
    assert [line["number"] for line in run.trace()] == [1, 2, 1]


def test_a_snapshot_of_a_killed_run_is_told_by_its_trace(run: RunDirectory, dataset: Dataset) -> None:
    spans = kill(run, dataset, n_spans=2, policy="saturation", snapshots=(1e-6,))
    assert spans[0].snapshot == "1e-06"
    assert texts(run.load_rules("1e-06")) == texts(RuleSet.concat(list(spans[0].learned)))
    with pytest.raises(RunError, match="has no snapshot at 7 seconds; it has none"):
        run.load_rules("7")


def test_a_snapshot_of_a_killed_run_is_not_cut_by_a_cap(run: RunDirectory, dataset: Dataset) -> None:
    """The parts hold all that was found; the trace counts what the cap kept and what it dropped."""
    spans = kill(run, dataset, n_spans=1, snapshots=(1e-6,), max_rules=5)
    assert spans[0].n_dropped > 0
    assert len(run.load_rules("1e-06")) == spans[0].n_rules + spans[0].n_dropped


def test_a_snapshot_in_the_trace_is_on_the_disk(run: RunDirectory, dataset: Dataset) -> None:
    """Parts are written every few seconds, but a snapshot's at once."""
    learner = Learner(dataset.train, LearnOptions(**COMPLETE, policy="saturation", snapshots=(1e-6,)))
    recorder = Recorder(run)
    span = next(learner.spans())
    recorder.record(span)
    assert span.snapshot == "1e-06"
    assert len(run.load_rules("1e-06")) == span.n_rules > 0
    recorder.close()


def test_a_snapshot_that_cannot_be_written_is_not_in_the_trace(
    run: RunDirectory, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: RunDirectory, rules: object) -> None:
        raise RunError("no space left")

    learner = Learner(dataset.train, LearnOptions(**COMPLETE, policy="saturation", snapshots=(1e-6,)))
    recorder, span = Recorder(run), next(learner.spans())
    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write_part", fail)
        recorder.record(span)
    assert [line["snapshot"] for line in run.trace()] == [None]
    recorder.close()
    assert len(run.load_rules()) == span.n_rules


def test_a_snapshot_of_a_killed_run_is_a_file_when_it_goes_on(run: RunDirectory, dataset: Dataset) -> None:
    spans = kill(run, dataset, n_spans=2, policy="saturation", snapshots=(1e-6,))
    taken = texts(run.load_rules("1e-06"))
    learner, recorder = resume(run, dataset)
    run_learner(learner, recorder)
    recorder.finish(learner)
    assert texts(run.load_rules("1e-06")) == taken
    assert len(taken) == spans[0].n_rules < len(run.load_rules())


def test_a_snapshot_of_a_run_killed_after_it_was_resumed_is_there(run: RunDirectory, dataset: Dataset) -> None:
    spans = kill(run, dataset, n_spans=1, policy="saturation")
    run.finish(run.load_rules(), {})
    learner, recorder = resume(run, dataset, snapshots=(1e6,))
    learner.elapsed = 1e6
    for span in learner.spans():
        recorder.record(span)
        if span.snapshot:
            break
    recorder.close()
    assert len(run.load_rules(1e6)) == span.n_rules > spans[0].n_rules


def test_a_snapshot_of_a_resumed_run_that_found_nothing_before_it_was_killed_is_there(
    run: RunDirectory, dataset: Dataset
) -> None:
    """There is no part, as in a run that has ended; some of the rules would be any of them."""
    spans = kill(run, dataset, n_spans=1, policy="saturation")
    run.finish(run.load_rules(), {})
    line = list(run.trace())[-1]
    run.append_line({**line, "snapshot": "7"})
    run.append_line({**line, "snapshot": "8", "rules": line["rules"] - 1})
    taken = texts(run.load_rules("7"))
    assert len(taken) == spans[0].n_rules
    with pytest.raises(RunError, match="has no snapshot at 8 seconds"):
        run.load_rules("8")
    learner, recorder = resume(run, dataset)
    run_learner(learner, recorder)
    recorder.finish(learner)
    assert texts(run.load_rules("7")) == taken
    assert len(run.load_rules()) > len(taken)


# Snapshots.


def test_snapshots_of_a_finished_run_are_files(dataset: Dataset, tmp_path: Path) -> None:
    spans: list[Span] = []
    moments = (1e-6, 0.3)
    options = {**SMALL, "heads": "sampled", "seconds": 0.5, "span": 0.1, "snapshots": moments}
    learn(dataset, out=tmp_path / "run", on_span=spans.append, **options)
    run = RunDirectory.open(tmp_path / "run")
    assert sorted(file.name for file in run.path.glob("rules-*")) == ["rules-0.3.parquet", "rules-1e-06.parquet"]
    for name in ("1e-06", "0.3"):
        taken = next(span for span in spans if span.snapshot == name)
        assert texts(run.load_rules(name)) == texts(run.load_rules().slice(0, taken.n_rules))
    with pytest.raises(RunError, match=r"has no snapshot at 5 seconds; it has 1e-06, 0\.3"):
        run.load_rules("5")


def test_a_snapshot_of_a_path_run_holds_the_rules_there_were(dataset: Dataset, tmp_path: Path) -> None:
    """The rules of a path run are sorted at its end: those of the first span are not the first of them."""
    spans: list[Span] = []
    learn(dataset, out=tmp_path / "run", on_span=spans.append, **COMPLETE, policy="saturation", snapshots=(1e-6,))
    first = RuleSet.concat(list(spans[0].learned))
    assert spans[0].snapshot == "1e-06"
    assert 0 < len(first) < spans[-1].n_rules
    assert sorted(texts(RunDirectory.open(tmp_path / "run").load_rules("1e-06"))) == sorted(texts(first))
