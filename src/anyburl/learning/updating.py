"""Resumes a run on changed data: learns its rules anew, beside it, and only then replaces the run."""

from __future__ import annotations

import os
import shutil
import weakref
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from anyburl.errors import InvalidOptionError, RunError
from anyburl.learning.claim import LOCK
from anyburl.learning.learner import Learner, Span
from anyburl.learning.options import LearnOptions
from anyburl.learning.recorder import Recorder, Update
from anyburl.learning.run import RunDirectory
from anyburl.locks import Lock
from anyburl.ruleset.combine import join_vocabularies
from anyburl.ruleset.difference import RuleDifference
from anyburl.ruleset.files import run_folder
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.triples.frames import COLUMNS
from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary
from anyburl.writing import replace_folder, unfinished_folder

OWN_FILES = {LOCK, run_folder.OPTIONS, *run_folder.WRITTEN}
NOTE = "learned anew: the data had changed"


def resume_changed(run: RunDirectory, dataset: Dataset, options: LearnOptions, lock: Lock) -> tuple[Learner, Recorder]:
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
        self._place, self._lock_of_place = run, lock
        self._before, self._changes = before, changes
        self._has_noted = False
        place = run.path.resolve()
        stack = ExitStack()
        self._remove = weakref.finalize(self, stack.close)
        folder = stack.enter_context(unfinished_folder(place))
        super().__init__(RunDirectory.create(folder / place.name, dataset, options))

    def record(self, span: Span) -> None:
        """Record a span; the first one notes in the trace that the data had changed."""
        super().record(span if self._has_noted else replace(span, notes=(NOTE, *span.notes)))
        self._has_noted = True

    def _save_all(self, learner: Learner, rules: RuleSet) -> None:
        """Write the rules, then replace the run by what was recorded; whatever else its folder holds is kept."""
        super()._save_all(learner, rules)
        update = self._compared_with(rules, learner.elapsed)
        place, unfinished = self._place.path.resolve(), self.run.path
        try:
            _keep_others(place, unfinished)
            shutil.copymode(place, unfinished)
            replace_folder(place, unfinished)
        except OSError as error:
            raise RunError(f"cannot replace the run folder {place}: {error.strerror}") from error
        self.run, self.update = self._place, update
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
        self._lock_of_place.release()


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


def _keep_others(place: Path, unfinished: Path) -> None:
    """Link what others have put into the run folder; snapshots and parts of the old data are left out.

    A link stays a link: what it leads to is not taken into the folder.
    """
    parts = {file.name for file in run_folder.part_files(place)}
    for entry in place.iterdir():
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
