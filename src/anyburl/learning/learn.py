"""`learn`: the whole loop as one call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from anyburl.errors import RunError
from anyburl.learning.learner import Learner, Span
from anyburl.learning.options import LearnOptions
from anyburl.learning.recorder import Recorder
from anyburl.learning.run import RunDirectory
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset


def learn(
    dataset: Dataset,
    *,
    out: str | os.PathLike[str] | None = None,
    on_span: Callable[[Span], None] | None = None,
    **options: Any,
) -> RuleSet:
    """Learn rules from the train split of `dataset`; `options` are those of `LearnOptions`.

    With `out`, the run is written down in that folder while it goes on. `on_span` is called at the end of each time
    span.
    """
    chosen = LearnOptions(**options)
    recorder = Recorder(RunDirectory.create(out, dataset, chosen)) if out is not None else None
    learner = Learner(dataset.train, chosen)
    run_learner(learner, recorder, on_span)
    return recorder.finish(learner) if recorder else learner.rules()


def run_learner(
    learner: Learner, recorder: Recorder | None = None, on_span: Callable[[Span], None] | None = None
) -> None:
    """Run all spans; on Ctrl-C end the batches under way and return."""
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


def resume(run: RunDirectory, dataset: Dataset, **changes: Any) -> tuple[Learner, Recorder]:
    """Return a learner that goes on where `run` ended, with the run's options but for `changes`, and its recorder.

    `seconds` is the budget of the whole run, the part done already included.
    """
    options = LearnOptions(**{**run.options().to_json(), **changes})
    if run.described()["data"].get("fingerprint") != dataset.fingerprint:
        raise RunError(f"{run.path} was learned on other data than {dataset.name}: its fingerprint differs")
    known, dropped = run.load_rules().with_vocabulary(dataset.vocabulary)
    if dropped:
        raise RunError(f"{run.path} holds {dropped} rules with labels that {dataset.name} does not have")
    learner = Learner(dataset.train, options, known=known)
    learner.continue_from(list(run.trace()))
    run.write_options(dataset, options)
    return learner, Recorder(run)
