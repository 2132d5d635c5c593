"""Record a run in the background while it is learning, so that a kill loses a few seconds at most."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from anyburl.errors import RunError
from anyburl.forks import check_not_forked
from anyburl.learning.claim import claim_run
from anyburl.learning.learner import Learner, Span
from anyburl.learning.run import RunDirectory
from anyburl.learning.update import Update
from anyburl.locks import Lock
from anyburl.ruleset.ruleset import RuleSet

SECONDS_BETWEEN_PARTS = 4.0


class Recorder:
    """Appends each span to the trace immediately, and its rules to a part every few seconds.

    It is the folder's only writer, from the beginning (unless it is given the `lock`) until `finish` or `close`.
    """

    def __init__(self, run: RunDirectory, lock: Lock | None = None) -> None:
        self._lock = claim_run(run.path) if lock is None else lock
        self.run, self._process = run, os.getpid()
        self.update: Update | None = None  # what the run's rules went through before learning went on
        self.seconds_writing = 0.0  # of one core
        self._waiting: list[RuleSet] = []
        self._last_part = time.monotonic()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="anyburl-recorder")
        self._writing: Future[None] | None = None
        self._being_written: list[RuleSet] = []

    def record(self, span: Span) -> None:
        """Record a span. A part that cannot be written is tried again, with what was found since.

        Where the trace tells of a snapshot, its rules are on the disk.
        """
        check_not_forked()
        self._waiting += span.found
        if span.snapshot is not None:
            try:
                self.save_parts()
            except RunError:
                span = replace(span, snapshot=None)
        self.run.append_trace(span)
        due = time.monotonic() - self._last_part >= SECONDS_BETWEEN_PARTS
        if due and (self._writing is None or self._writing.done()):
            self._end_part()
            if self._waiting:
                self._start_part()

    def finish(self, learner: Learner) -> RuleSet:
        """Write what is left, then the rules and the snapshots; return the rules."""
        self.save_parts()
        rules = learner.rules()
        self._save_all(learner, rules)
        self.release()
        return rules

    def close(self) -> None:
        """Write what is left to parts, and let go of the folder; after `finish` there is nothing left to do.

        In a forked process, everything is left to its parent.
        """
        if self._process != os.getpid():
            return
        try:
            self.save_parts()
        finally:
            self.release()

    def release(self) -> None:
        """Let others write to the folder."""
        self._pool.shutdown()
        self._lock.release()

    def save_parts(self) -> None:
        """Write everything found so far to parts, and wait until that is done."""
        check_not_forked()
        self._end_part()
        if self._waiting:
            self._start_part().result()

    def _save_all(self, learner: Learner, rules: RuleSet) -> None:
        found = learner.store.rules()
        taken = {name: found.slice(0, n_rules) for name, n_rules in learner.store.snapshots().items()}
        self.run.finish(rules, taken)

    def _start_part(self) -> Future[None]:
        self._being_written, self._waiting = self._waiting, []
        self._last_part = time.monotonic()
        self._writing = self._pool.submit(self._write, self._being_written)
        return self._writing

    def _end_part(self) -> None:
        """Wait for a part; if it could not be written, its rules wait for the next one."""
        if self._writing is not None and self._writing.exception() is not None:
            self._waiting = self._being_written + self._waiting
        self._writing, self._being_written = None, []

    def _write(self, rules: list[RuleSet]) -> None:
        started = time.thread_time()
        self.run.write_part(rules)
        self.seconds_writing += time.thread_time() - started
