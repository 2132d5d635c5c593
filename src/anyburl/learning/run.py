"""The run folder of a learning run, consistent at every moment, with one writer at a time.

`anyburl.rules.run_folder` documents its contents and reads its rules.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib.metadata import version
from os import getpid
from pathlib import Path
from typing import Any

from anyburl import __version__
from anyburl.base.errors import AnyburlError, OptionError, RunError
from anyburl.base.files import Lock, at_home, open_to_read
from anyburl.base.writing import append_line, make_inner_folder, replace_text
from anyburl.data.dataset import Dataset, load_recorded
from anyburl.data.sources import lasting_source
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.learner import Span
from anyburl.learning.options import ALL, LearnOptions
from anyburl.learning.store import KeyFiles
from anyburl.rules import run_folder
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import remove_parts, write_part
from anyburl.rules.types import RuleType

LOCK = ".lock"
"""The file that the writer of a run folder has locked; it stays there, and means nothing by itself."""


def claim_run(folder: Path) -> Lock:
    """Become the writer of a run folder, until the lock is released or the process ends; refuse if there is one.

    On a file system without locks, other writers are not kept out.
    """
    path = folder / LOCK
    try:
        lock = Lock(path)
    except OSError as refusal:
        raise RunError(f"{path}: the file cannot be written ({refusal.strerror or refusal})") from refusal
    try:
        lock.take()
    except BlockingIOError:
        lock.release()
        raise RunError(
            f"{folder} is being written by {_writer(path)}: wait until it ends, or choose another folder"
        ) from None
    except OSError:
        return lock
    with suppress(OSError):
        lock.write(f"{getpid()}\n")
    return lock


def _writer(path: Path) -> str:
    with suppress(OSError, ValueError), open_to_read(path) as file:
        return f"process {int(file.read())}"
    return "another process"


@dataclass(frozen=True)
class RunDirectory:
    """One run folder."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", at_home(self.path))

    @classmethod
    def create(cls, path: str | os.PathLike[str], dataset: Dataset, options: LearnOptions) -> RunDirectory:
        """Create a run folder; refuse one that already contains a run."""
        run = cls(at_home(path))
        run._check_is_new()
        try:
            run.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot write the run folder {run.path}: {error.strerror}") from error
        make_inner_folder(run.parts, RunError)
        with claim_run(run.path):
            run._check_is_new()  # another process may have made a run here meanwhile
            run_folder.write_vocabulary(run.path, dataset.vocabulary)
            run_folder.write_train(run.path, dataset.train)
            dataset.attributes.save(run.path, dataset.vocabulary)
            run.write_options(dataset, options)
        return run

    def _check_is_new(self) -> None:
        if self.options_file.exists():
            raise RunError(
                f"{self.path} already contains a run: choose another folder, or continue the run with --resume"
            )
        others = [name for name in run_folder.WRITTEN if (self.path / name).exists()]
        if others and not (self.path / LOCK).exists():  # which one that was killed at its beginning would have left
            raise RunError(f"{self.path} contains {others[0]}, which a run would replace: choose another folder")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunDirectory:
        """Open a run folder, finished or not."""
        run = cls(at_home(path))
        run_folder.check_run_folder(run.path)
        return run

    @property
    def options_file(self) -> Path:
        """The file with the options of the run."""
        return self.path / run_folder.OPTIONS

    @property
    def parts(self) -> Path:
        """The folder for rules found while learning."""
        return self.path / run_folder.PARTS

    @property
    def rules_file(self) -> Path:
        """The file with all rules of a finished run."""
        return self.path / run_folder.RULES

    def write_options(self, dataset: Dataset, options: LearnOptions) -> None:
        """Write the options of the run, a description of its data, and the readable names of its labels."""
        vocabulary = dataset.vocabulary
        names = dataset.names.among(vocabulary.entities, vocabulary.relations)
        if len(names):
            run_folder.write_run_names(self.path, names)
        described = {
            "anyburl": __version__,
            "python": platform.python_version(),
            "numba": version("numba"),
            "numpy": version("numpy"),
            "cores": os.cpu_count(),
            "data": {
                "name": dataset.name,
                "source": lasting_source(dataset.source),
                "fingerprint": dataset.fingerprint,
                "train": len(dataset.train),
                "reading": dataset.reading.to_json(),
                "prefixes": names.prefixes,
            },
            "options": options.to_json(),
        }
        replace_text(self.options_file, json.dumps(described, indent=2) + "\n", RunError)

    def described(self) -> dict[str, Any]:
        """Return the contents of options.json."""
        return run_folder.described_run(self.path)

    def options(self) -> LearnOptions:
        """Return the options of the run; options that an older version lacked have their defaults."""
        stored = self.described()["options"]
        if not {"seconds", "paths", "seed"} <= stored.keys():
            raise RunError(f"{self.options_file} does not describe a run: its options are missing")
        if odd := sorted(stored.keys() - {field.name for field in fields(LearnOptions)}):
            raise RunError(
                f"{self.options_file} was written by another version of anyburl, with the unknown options "
                f"{', '.join(odd)}"
            )
        try:
            return LearnOptions(**{"keep": ALL, **stored})  # earlier versions kept all rules
        except OptionError as error:
            raise RunError(f"{self.options_file} does not describe a run: {error}") from error

    def append_trace(self, span: Span) -> None:
        """Append a span to trace.jsonl."""
        self.append_line(trace_line(span))

    def append_line(self, line: dict[str, Any]) -> None:
        """Append one line to trace.jsonl, after completing a line that a kill truncated."""
        path = self.path / run_folder.TRACE
        try:
            append_line(path, json.dumps(line).encode())
        except OSError as refusal:
            raise RunError(f"{path}: the file cannot be written ({refusal.strerror or refusal})") from refusal

    def trace(self) -> Iterator[dict[str, Any]]:
        """Yield the intact lines of trace.jsonl, without truncated or damaged ones."""
        return filter(run_folder.is_whole_span, run_folder.read_trace(self.path))

    def write_part(self, rules: Sequence[RuleSet]) -> None:
        """Append rules as a new part, completely or not at all."""
        write_part(self.path, RuleSet.concat(list(rules)))

    def key_files(self, options: LearnOptions) -> KeyFiles:
        """Return the files with the bodies that a resumed run with `options` need not harvest again."""
        return KeyFiles.of(self.path, self.described()["data"].get("fingerprint"), options)

    def finish(
        self, rules: RuleSet, snapshots: dict[str, RuleSet], write_keys: Callable[[], None] = lambda: None
    ) -> None:
        """Write the snapshots, all rules and, with `write_keys`, the keys of bodies; then remove the parts."""
        for name, taken in snapshots.items():
            snapshot = self.path / f"rules-{name}.parquet"
            if not snapshot.exists():
                taken.save(snapshot)
        rules.save(self.rules_file)
        write_keys()
        remove_parts(self.path)

    def keep_snapshots(self, rules: RuleSet) -> None:
        """Write the snapshots of a killed run; `rules` are all the rules it found, in order."""
        for name, n_rules in run_folder.snapshots_in_parts(self.path).items():
            if n_rules <= len(rules):
                rules.slice(0, n_rules).save(self.path / f"rules-{name}.parquet")

    def load_rules(self, at: float | str | None = None) -> RuleSet:
        """Return the rules of the run, or of its snapshot at `at` seconds: what `RuleSet.load(path, at=at)` does."""
        return RuleSet.load(self.path, at=at)

    def load_whole_rules(self) -> RuleSet:
        """Return the rules to continue with; refuse a damaged folder, since continuing would replace its files."""
        rules, damaged = run_folder.read_run(self.path)
        if damaged:
            raise RunError(f"{damaged[0]}; to resume the run without them, move that file away")
        return RuleSet.of(rules)

    def load_train(self) -> TripleTable:
        """Return the triples that the rules were counted on.

        Runs of an older version do not contain them, but record where they came from.
        """
        table = run_folder.read_train(self.path)
        if table is not None:
            return table
        data = self.described()["data"]
        with suppress(AnyburlError):
            dataset = load_recorded(data) if data.get("source") else None
            if dataset is not None and dataset.fingerprint == data.get("fingerprint"):
                return dataset.train
        raise RunError(
            f"{self.path} was learned from other data, which it does not contain because an older version wrote it: "
            "learn it again"
        )

    def vocabulary(self) -> Vocabulary:
        """Return the labels behind the ids of the parts."""
        return run_folder.read_vocabulary(self.path)


def trace_line(span: Span) -> dict[str, Any]:
    """Return a span as trace.jsonl records it."""
    return {
        "number": span.number,
        "elapsed": round(span.elapsed, 4),
        "seconds": round(span.seconds, 4),
        "rules": span.n_rules,
        "new_rules": span.new_rules,
        "dropped": span.n_dropped,
        "paths": span.n_paths,
        "bodies": span.n_bodies,
        "saturation": round(span.saturation, 6),
        "reward": span.reward,
        "snapshot": span.snapshot,
        "notes": list(span.notes),
        "listed": {str(profile): {"done": done, "of": n_bodies} for profile, (done, n_bodies) in span.listed.items()},
        "complete": sorted(map(str, span.complete)),
        "profiles": [
            {
                "profile": str(entry.profile),
                "cores": entry.cores,
                "attempts": entry.attempts,
                "paths": entry.paths,
                "new_bodies": entry.new_bodies,
                "entered": entry.entered,
                "new_rules": entry.new_rules,
                "new_by_type": {str(kind): n for kind, n in zip(RuleType, entry.new_by_type, strict=False) if n},
                "known_rules": entry.known_rules,
                "reward": entry.reward,
                "value": entry.value,
                "exhausted": entry.exhausted,
            }
            for entry in span.profiles
        ],
    }
