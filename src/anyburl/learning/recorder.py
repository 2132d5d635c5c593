"""Record a run in the background while it is learning, so that a kill loses a few seconds at most."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from anyburl.learning.learner import Learner, Span
from anyburl.learning.run import RunDirectory
from anyburl.learning.update import Update
from anyburl.ruleset.ruleset import RuleSet

SECONDS_BETWEEN_PARTS = 4.0


class Recorder:
    """Appends each span to the trace immediately, and its rules to a part every few seconds."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.update: Update | None = None  # what the run's rules went through before learning went on
        self.seconds_writing = 0.0  # of one core
        self._waiting: list[RuleSet] = []
        self._last_part = time.monotonic()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="anyburl-recorder")
        self._writing: Future[None] | None = None

    def record(self, span: Span) -> None:
        """Record a span."""
        self.run.append_trace(span)
        self._waiting += span.found
        due = time.monotonic() - self._last_part >= SECONDS_BETWEEN_PARTS
        if due and self._waiting and (self._writing is None or self._writing.done()):
            self._start_part()

    def finish(self, learner: Learner) -> RuleSet:
        """Write what is left, then the rules and the snapshots; return the rules."""
        self.save_parts()
        rules, found = learner.rules(), learner.store.rules()
        taken = {name: found.slice(0, n_rules) for name, n_rules in learner.store.snapshots().items()}
        self.run.finish(rules, taken)
        return rules

    def save_parts(self) -> None:
        """Write everything found so far to parts, and wait until that is done."""
        self._wait()
        if self._waiting:
            self._start_part()
        self._wait()
        self._pool.shutdown()

    def _start_part(self) -> None:
        rules, self._waiting = self._waiting, []
        self._last_part = time.monotonic()
        self._writing = self._pool.submit(self._write, rules)

    def _write(self, rules: list[RuleSet]) -> None:
        started = time.thread_time()
        self.run.write_part(rules)
        self.seconds_writing += time.thread_time() - started

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()
