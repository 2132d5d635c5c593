"""Record a run in the background while it is learning, so that a kill loses a few seconds at most."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anyburl.errors import RunError
from anyburl.forks import check_not_forked
from anyburl.learning.claim import claim_run
from anyburl.learning.known import NO_KEYS, NOTHING, Earlier, Keys
from anyburl.learning.learner import Learner, Span
from anyburl.learning.run import RunDirectory
from anyburl.locks import Lock
from anyburl.ruleset.ruleset import RuleSet

SECONDS_BETWEEN_PARTS = 4.0


@dataclass(frozen=True)
class Update:
    """How the rules of a run changed when it was learned anew, in `seconds`, since its triples had changed. `rose` and
    `fell` count the changed rules whose confidence did.
    """

    gone: int
    new: int
    changed: int
    unchanged: int
    rose: int
    fell: int
    triples_added: int
    triples_removed: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return what `learn --json` prints under "update"."""
        return {**vars(self), "seconds": round(self.seconds, 3)}


class Recorder:
    """Appends each span to the trace immediately, and its rules to a part every few seconds, together with the keys of
    the bodies that gave none. `earlier` is where the run ended before.

    It is the folder's only writer, from the beginning (unless it is given the `lock`) until `finish` or `close`.
    """

    def __init__(self, run: RunDirectory, lock: Lock | None = None, earlier: Earlier = NOTHING) -> None:
        self._lock = claim_run(run.path) if lock is None else lock
        self.run, self._process = run, os.getpid()
        self.update: Update | None = None  # of a run that was learned anew, once it is saved
        self.seconds_writing = 0.0  # of one core
        options = run.options()
        self._files = run.key_files(options)
        self._is_capped = options.max_rules is not None
        self._keys = [earlier.keys]  # of all bodies of which no rule may be left
        self._waiting: list[RuleSet] = []
        self._waiting_keys: list[Keys] = []
        self._span, self._n_rules = earlier.span, 0  # the last one that waits or is written, and all rules up to it
        self._last_part = time.monotonic()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="anyburl-recorder")
        self._writing: Future[None] | None = None
        self._being_written: tuple[list[RuleSet], list[Keys]] = [], []

    def record(self, span: Span) -> None:
        """Record a span. A part that cannot be written is tried again, with what was found since.

        Where the trace tells of a snapshot, its rules are on the disk.
        """
        check_not_forked()
        self._waiting += span.found
        keys, counts = span.harvested
        self._waiting_keys.append(keys[counts == 0])
        self._keys.append(keys if self._is_capped else self._waiting_keys[-1])
        self._span, self._n_rules = span.number, span.n_rules + span.n_dropped
        if span.snapshot is not None:
            try:
                self.save_parts()
            except RunError:
                span = replace(span, snapshot=None)
        self.run.append_trace(span)
        due = time.monotonic() - self._last_part >= SECONDS_BETWEEN_PARTS
        if due and (self._writing is None or self._writing.done()):
            self._end_part()
            if self._is_waiting:
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
        if self._is_waiting:
            self._start_part().result()

    def _save_all(self, learner: Learner, rules: RuleSet) -> None:
        found = learner.store.rules()
        taken = {name: found.slice(0, n_rules) for name, n_rules in learner.store.snapshots().items()}
        keys = np.concatenate(self._keys)
        self.run.finish(
            rules,
            taken,
            lambda: self._files.write_all(keys, span=self._span, n_rules=len(rules), gave_rules=self._is_capped),
        )

    @property
    def _is_waiting(self) -> bool:
        return bool(self._waiting) or any(len(keys) for keys in self._waiting_keys)

    def _start_part(self) -> Future[None]:
        self._being_written = self._waiting, self._waiting_keys
        self._waiting, self._waiting_keys = [], []
        self._last_part = time.monotonic()
        self._writing = self._pool.submit(self._write, *self._being_written, self._span, self._n_rules)
        return self._writing

    def _end_part(self) -> None:
        """Wait for a part; if it could not be written, its rules wait for the next one."""
        if self._writing is not None and self._writing.exception() is not None:
            rules, keys = self._being_written
            self._waiting, self._waiting_keys = rules + self._waiting, keys + self._waiting_keys
        self._writing, self._being_written = None, ([], [])

    def _write(self, rules: list[RuleSet], keys: list[Keys], span: int, n_rules: int) -> None:
        """Write rules, then keys: these spare nothing but work, and must not be ahead of the rules."""
        started = time.thread_time()
        if rules:
            self.run.write_part(rules)
        with suppress(RunError):  # to write the rules again would double them
            self._files.write_part(np.concatenate([NO_KEYS, *keys]), span=span, n_rules=n_rules)
        self.seconds_writing += time.thread_time() - started
