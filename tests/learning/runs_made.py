"""Runs as tests leave them: small, complete or killed."""

from __future__ import annotations

from anyburl import Dataset, LearnOptions, RuleSet, RunDirectory
from anyburl.learning.learner import Learner, Span
from anyburl.learning.recorder import Recorder

SMALL = {"max_cyclic": 2, "max_acyclic": 2, "min_support": 1, "min_confidence": 0.0, "threads": 1}
COMPLETE = {**SMALL, "paths": 10**12}


def texts(rules: RuleSet) -> list[str]:
    return rules.texts().to_list()


def kill(run: RunDirectory, dataset: Dataset, n_spans: int = 2, **options: object) -> list[Span]:
    """Leave a run as a kill does: the trace and the parts of some spans, and nothing finished."""
    learner = Learner(dataset.train, LearnOptions(**{**COMPLETE, **options}))
    recorder = Recorder(run)
    spans = []
    for span in learner.spans():
        recorder.record(span)
        spans.append(span)
        if len(spans) == n_spans:
            break
    recorder.save_parts()
    return spans
