"""Run a learner to its end, record it in the background so that a kill loses a few seconds at most, and resume it.

A run that is resumed on changed data is learned anew in a folder beside it, which then replaces the run.
"""

from __future__ import annotations

import os
import shutil
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError, RunError
from anyburl.base.files import Lock
from anyburl.base.machine import check_not_forked
from anyburl.base.writing import replace_folder, unfinished_folder
from anyburl.data.dataset import Dataset
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.learner import Learner, Span
from anyburl.learning.options import LearnKeywords, LearnOptions
from anyburl.learning.run import LOCK, RunDirectory, claim_run
from anyburl.learning.store import NO_KEYS, NOTHING, Earlier, Keys, is_same_search
from anyburl.rules import run_folder
from anyburl.rules.combine import join_vocabularies
from anyburl.rules.difference import RuleDifference
from anyburl.rules.ruleset import RuleSet

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


@dataclass(frozen=True)
class Reduced:
    """The rules that a run keeps, their rows among those found, ascending, and in words which they are."""

    rules: RuleSet
    rows: NDArray[np.int64]
    which: str
    save_extras: Callable[[Path], None] = lambda folder: None
    """Writes what else is to be kept into the run folder."""


KeepRules = Callable[[RuleSet], Reduced | None]
"""Chooses the rules to keep; None for all."""


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
        self.reduced: Reduced | None = None  # what was kept, if not all
        self._keys = [earlier.keys]  # of all bodies
        self._empty_keys = [earlier.keys]  # of those without rules
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
        self._waiting += span.learned
        keys, counts = span.harvested
        self._waiting_keys.append(keys[counts == 0])
        self._keys.append(keys)
        self._empty_keys.append(self._waiting_keys[-1])
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

    def finish(self, learner: Learner, keep: KeepRules | None = None) -> RuleSet:
        """Write what is left, then the rules that `keep` chooses, or all, and the snapshots; return the rules."""
        self.save_parts()
        self.reduced = keep(learner.rules()) if keep else None
        rules = learner.rules() if self.reduced is None else self.reduced.rules
        self._save_all(learner, rules)
        self.release()
        return rules

    def close(self) -> None:
        """Write what is left to parts, and release the folder; after `finish` there is nothing left to do.

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
        all_rules, reduced = learner.store.rules(), self.reduced
        taken = {name: all_rules.slice(0, n_rules) for name, n_rules in learner.store.snapshots().items()}
        if reduced is not None:  # snapshots have those of the kept rules that were found by then
            kept = np.zeros(len(all_rules), np.bool_)
            kept[reduced.rows] = True
            taken = {name: some.take(kept[: len(some)]) for name, some in taken.items()}
            reduced.save_extras(self.run.path)
        gave_rules = self._is_capped or reduced is not None  # which were dropped
        keys = np.concatenate(self._keys if gave_rules else self._empty_keys)
        self.run.finish(
            rules,
            taken,
            lambda: self._files.write_all(keys, span=self._span, n_rules=len(rules), gave_rules=gave_rules),
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


OWN_FILES = {LOCK, run_folder.OPTIONS, *run_folder.WRITTEN}
NOTE = "learned anew: the data had changed"


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
    """Return a learner that continues `run` with its options, except for `changes`, and its recorder.

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
        return _resume_changed(run, dataset, options, lock)
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


def _resume_changed(run: RunDirectory, dataset: Dataset, options: LearnOptions, lock: Lock) -> tuple[Learner, Recorder]:
    """Return a learner that begins anew on the changed data of `run`, and the recorder that replaces the run.

    The recorder has the `lock` of the run until it is done.
    """
    check_budget(options)
    learned_from = run.load_train()
    _check_relations(run, learned_from, dataset)
    rules = run.load_whole_rules()
    changes = count_changes(learned_from, dataset.train)
    learner = Learner(dataset.train, options)
    return learner, UpdateRecorder(run, dataset, options, rules, changes, lock)


def check_budget(options: LearnOptions) -> None:
    """Refuse to learn a run anew without any time."""
    if options.seconds == 0:
        requirement = "above 0 when the data has changed, since the rules are then learned anew"
        raise InvalidOptionError("seconds", requirement, options.seconds)


def count_changes(before: TripleTable, after: TripleTable) -> tuple[int, int]:
    """Return how many triples were added and how many removed, compared by their labels."""
    vocabulary = join_vocabularies([after.vocabulary, before.vocabulary])
    old, new = (_encoded(table, vocabulary) for table in (before, after))
    return new.join(old, on=list(COLUMNS), how="anti").height, old.join(new, on=list(COLUMNS), how="anti").height


def _encoded(table: TripleTable, vocabulary: Vocabulary) -> pl.DataFrame:
    """Return the triples with the ids of a vocabulary that has all their labels."""
    columns = list(table.triples.T)
    if not table.vocabulary.same_labels(vocabulary):
        entities = vocabulary.encode_entities(table.vocabulary.entities)
        relations = vocabulary.encode_relations(table.vocabulary.relations)
        columns = [ids[column] for ids, column in zip((entities, relations, entities), columns, strict=True)]
    return pl.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


class UpdateRecorder(Recorder):
    """Records in a folder beside the run's, which takes its place at the end; if anything goes wrong, it vanishes.

    `before` are the rules of the run, and `changes` how many of its triples were added and removed since.
    """

    def __init__(
        self,
        run: RunDirectory,
        dataset: Dataset,
        options: LearnOptions,
        before: RuleSet,
        changes: tuple[int, int],
        lock: Lock,
    ) -> None:
        self._original, self._original_lock = run, lock
        self._before, self._changes = before, changes
        self._has_noted = False
        original = run.path.resolve()
        stack = ExitStack()
        self._remove = weakref.finalize(self, stack.close)
        folder = stack.enter_context(unfinished_folder(original))
        super().__init__(RunDirectory.create(folder / original.name, dataset, options))

    def record(self, span: Span) -> None:
        """Record a span; the first one notes in the trace that the data had changed."""
        super().record(span if self._has_noted else replace(span, notes=(NOTE, *span.notes)))
        self._has_noted = True

    def _save_all(self, learner: Learner, rules: RuleSet) -> None:
        """Write the rules, then replace the run by what was recorded; all other files of its folder are kept."""
        super()._save_all(learner, rules)
        update = self._compared_with(rules, learner.elapsed)
        original, unfinished = self._original.path.resolve(), self.run.path
        try:
            _keep_others(original, unfinished)
            shutil.copymode(original, unfinished)
            replace_folder(original, unfinished)
        except OSError as error:
            raise RunError(f"cannot replace the run folder {original}: {error.strerror}") from error
        self.run, self.update = self._original, update
        self._remove()

    def _compared_with(self, rules: RuleSet, seconds: float) -> Update:
        """Return how the rules of the run differ from those that replace them."""
        difference = RuleDifference(self._before, rules)
        rose, fell = difference.count_moved()
        added, removed = self._changes
        return Update(
            **difference.counts(), rose=rose, fell=fell, triples_added=added, triples_removed=removed, seconds=seconds
        )

    def release(self) -> None:
        """Let others write to the folder."""
        super().release()
        self._original_lock.release()


def _check_relations(run: RunDirectory, learned_from: TripleTable, dataset: Dataset) -> None:
    """Refuse data that has nothing to do with the run."""
    before, after = (_relations_of(table) for table in (learned_from, dataset.train))
    if not before & after:
        raise RunError(
            f"{run.path} was learned from data other than {dataset.name}: they have no relation in common, so there "
            "is nothing to resume"
        )


def _relations_of(table: TripleTable) -> set[str]:
    """Return the labels of the relations that have triples."""
    return set(table.vocabulary.relations.gather(np.unique(table.triples[:, 1])))


def _keep_others(original: Path, unfinished: Path) -> None:
    """Link what others have put into the run folder; snapshots and parts of the old data are left out.

    A link stays a link: what it leads to is not taken into the folder.
    """
    parts = {file.name for file in run_folder.part_files(original)}
    for entry in original.iterdir():
        target = unfinished / entry.name
        if entry.name in OWN_FILES or run_folder.snapshot_name(entry) is not None:
            continue
        if entry.is_dir() and not entry.is_symlink():
            left_out = parts if entry.name == run_folder.PARTS else ()
            shutil.copytree(
                entry,
                target,
                symlinks=True,
                ignore=lambda _, names, out=left_out: out,
                copy_function=_link,
                dirs_exist_ok=True,
            )
        else:
            _link(str(entry), str(target))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # not every file system has links
        shutil.copy2(source, target, follow_symlinks=False)
