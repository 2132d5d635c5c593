"""Run a learner to its end, and continue a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from anyburl.base.errors import RunError
from anyburl.base.files import Lock
from anyburl.data.dataset import Dataset
from anyburl.learning.learner import Learner, Span
from anyburl.learning.options import LearnKeywords, LearnOptions
from anyburl.learning.recorder import Recorder, resume_changed
from anyburl.learning.run import RunDirectory, claim_run
from anyburl.learning.store import is_same_search


def run_learner(
    learner: Learner, recorder: Recorder | None = None, on_span: Callable[[Span], None] | None = None
) -> None:
    """Run all spans; on Ctrl-C finish the current batches and return."""
    spans = learner.spans()
    try:
        for span in spans:
            if recorder:
                recorder.record(span)
            if on_span:
                on_span(span)
    except KeyboardInterrupt:
        learner.stop()
        spans.close()
        learner.stopped_by = "interrupt"


def resume(run: RunDirectory, dataset: Dataset, **changes: Unpack[LearnKeywords]) -> tuple[Learner, Recorder]:
    """Return a learner that continues where `run` ended, with the run's options except for `changes`, and its recorder.

    `seconds` is the budget of the whole run, including the part already done. If the data has changed since, the
    learner begins anew, with all of that budget, and the folder stays as it was until the recorder has finished.
    Nobody else writes to the folder before the recorder has finished or is closed.
    """
    lock = claim_run(run.path)
    try:
        return _resume(run, dataset, run.options().changed(**changes), lock)
    except BaseException:
        lock.release()
        raise


def _resume(run: RunDirectory, dataset: Dataset, options: LearnOptions, lock: Lock) -> tuple[Learner, Recorder]:
    if run.described()["data"].get("fingerprint") != dataset.fingerprint:
        return resume_changed(run, dataset, options, lock)
    rules = run.load_whole_rules()
    known = rules.with_vocabulary(dataset.vocabulary)
    if len(known) < len(rules):
        raise RunError(
            f"{run.path} contains {len(rules) - len(known)} rules with labels that {dataset.name} does not have"
        )
    run.keep_snapshots(known)
    trace = list(run.trace())
    earlier = run.key_files(options).read(len(known), trace)
    learner = Learner(dataset.train, options, known=known, earlier=earlier)
    learner.continue_from(trace, same_search=is_same_search(run.options(), options))
    run.write_options(dataset, options)
    return learner, Recorder(run, lock, earlier)
