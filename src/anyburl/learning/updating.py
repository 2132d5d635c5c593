"""Resumes a run on changed data: updates its rules, continues learning, and only then replaces the run."""

from __future__ import annotations

import os
import shutil
import time
import weakref
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyburl.errors import RunError
from anyburl.learning.changes import GraphChange, change_between
from anyburl.learning.claim import LOCK
from anyburl.learning.known import NO_KEYS, THRESHOLDS, Earlier
from anyburl.learning.learner import Learner
from anyburl.learning.options import LearnOptions
from anyburl.learning.recorder import Recorder
from anyburl.learning.run import RunDirectory
from anyburl.learning.update import Update, update_rules
from anyburl.locks import Lock
from anyburl.paths.profile import PathProfile
from anyburl.ruleset.files import run_folder
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.writing import replace_folder, unfinished_folder

OWN_FILES = {
    LOCK,
    run_folder.OPTIONS,
    run_folder.VOCABULARY,
    run_folder.TRAIN,
    run_folder.TRACE,
    run_folder.RULES,
    run_folder.KEYS,
}


def resume_changed(run: RunDirectory, dataset: Dataset, options: LearnOptions, lock: Lock) -> tuple[Learner, Recorder]:
    """Return a learner that continues with the updated rules of `run`, and the recorder that replaces the run.

    The recorder has the `lock` of the run until it is done.
    """
    started = time.monotonic()
    change = change_between(run.load_train(), dataset.train)
    _check_relations(run, dataset, change)
    rules = run.load_whole_rules().with_vocabulary(change.vocabulary)
    updated, update, finished = update_rules(rules, change, options, exhausted_profiles(run, options, len(rules)))
    known = updated.with_vocabulary(dataset.vocabulary)
    earlier = Earlier(NO_KEYS, span=0, finished=finished)
    recorder = UpdateRecorder(run, dataset, options, replace(update, seconds=time.monotonic() - started), lock, earlier)
    recorder.run.append_line(update_line(recorder.update, len(known), finished))
    learner = Learner(dataset.train, options, known=known, earlier=earlier)
    return learner, recorder


def exhausted_profiles(run: RunDirectory, options: LearnOptions, n_rules: int) -> frozenset[PathProfile]:
    """Return the profiles of which the run has harvested every body, if `options` keep the rules that it kept, and its
    folder still holds them: there are `n_rules`.
    """
    before = run.options()
    if any(getattr(before, name) != getattr(options, name) for name in THRESHOLDS):
        return frozenset()
    trace = list(run.trace())
    if any(line["dropped"] for line in trace):
        return frozenset()
    if any("complete" in line for line in trace):
        finished = run.key_files(before).read(n_rules, trace).finished
        return frozenset(profile for profile in options.profiles if profile in finished)
    if any(line["rules"] > n_rules for line in trace):
        return frozenset()
    names = {entry["profile"] for line in trace for entry in line["profiles"] if entry["exhausted"]}
    return frozenset(profile for profile in options.profiles if str(profile) in names)


class UpdateRecorder(Recorder):
    """Records in a folder beside the run's, which takes its place at the end; if anything goes wrong, it vanishes."""

    def __init__(
        self,
        run: RunDirectory,
        dataset: Dataset,
        options: LearnOptions,
        update: Update,
        lock: Lock,
        earlier: Earlier,
    ) -> None:
        self._place, self._lock_of_place = run, lock
        place = run.path.resolve()
        stack = ExitStack()
        self._remove = weakref.finalize(self, stack.close)
        folder = stack.enter_context(unfinished_folder(place))
        super().__init__(RunDirectory.create(folder / place.name, dataset, options), earlier=earlier)
        self.update: Update = update

    def _save_all(self, learner: Learner, rules: RuleSet) -> None:
        """Write the rules, then replace the run by what was recorded; whatever else its folder holds is kept."""
        super()._save_all(learner, rules)
        place, unfinished = self._place.path.resolve(), self.run.path
        try:
            _keep_others(place, unfinished)
            shutil.copymode(place, unfinished)
            replace_folder(place, unfinished)
        except OSError as error:
            raise RunError(f"cannot replace the run folder {place}: {error.strerror}") from error
        self.run = self._place
        self._remove()

    def release(self) -> None:
        """Let others write to the folder."""
        super().release()
        self._lock_of_place.release()


def update_line(update: Update, n_rules: int, finished: frozenset[PathProfile]) -> dict[str, Any]:
    """Return an update as the trace records it: a span of no length before the first, in which profiles were
    finished.
    """
    nothing = {"cores": 0, "attempts": 0, "paths": 0, "new_bodies": 0, "new_rules": 0, "known_rules": 0}
    return {
        "number": 0,
        "elapsed": 0.0,
        "seconds": 0.0,
        "rules": n_rules,
        "new_rules": update.new,
        "dropped": 0,
        "paths": 0,
        "bodies": 0,
        "saturation": 0.0,
        "reward": 0.0,
        "snapshot": None,
        "notes": ["updated: the data had changed"],
        "complete": sorted(map(str, finished)),
        "profiles": [
            {"profile": str(profile), **nothing, "reward": 0.0, "value": 0.0, "exhausted": True}
            for profile in sorted(finished, key=str)
        ],
        "update": update.to_json(),
    }


def _check_relations(run: RunDirectory, dataset: Dataset, change: GraphChange) -> None:
    """Refuse data that has nothing to do with the run."""
    before, after = (set(table.triples[:, 1].tolist()) for table in (change.old, change.new))
    if not before & after:
        raise RunError(
            f"{run.path} was learned from data other than {dataset.name}: they have no relation in common, so there "
            "is nothing to resume"
        )


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
