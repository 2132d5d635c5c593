"""The run folder: what a learning run leaves behind, in a consistent state at every moment.

    options.json        options, versions, seed, the data and its fingerprint
    vocabulary.parquet  the labels behind the ids in parts/
    trace.jsonl         one line per time span
    parts/              rules found since `rules.parquet` was written, appended every few seconds
    rules-<s>.parquet   the rules after s seconds
    rules.parquet       all rules, written when the run ends

A run that was killed can still be opened: its rules are `rules.parquet`, if there is one, and the parts.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anyburl import __version__
from anyburl.errors import RunError
from anyburl.learning.learner import Span
from anyburl.learning.options import LearnOptions
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.triples.vocabulary import Vocabulary

_COLUMNS = (
    "bodies",
    "type",
    "head",
    "body",
    "head_constant",
    "body_constant",
    "predictions",
    "support",
    "exact",
)


@dataclass(frozen=True)
class RunDirectory:
    """One run folder."""

    path: Path

    @classmethod
    def create(cls, path: str | os.PathLike[str], dataset: Dataset, options: LearnOptions) -> RunDirectory:
        """Make a new run folder; refuse one that already holds a run."""
        run = cls(Path(path))
        if run.options_file.exists():
            raise RunError(f"{run.path} already holds a run: give another folder, or continue it with --resume")
        try:
            run.parts.mkdir(parents=True, exist_ok=True)
            _write_vocabulary(run.path / "vocabulary.parquet", dataset.vocabulary)
            run.write_options(dataset, options)
        except OSError as error:
            raise RunError(f"cannot write the run folder {run.path}: {error.strerror}") from error
        return run

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunDirectory:
        """Open a run folder, finished or not."""
        run = cls(Path(path))
        if not run.options_file.is_file():
            raise RunError(f"{run.path} is not a run folder: it has no options.json")
        return run

    @property
    def options_file(self) -> Path:
        """What the run was asked to do."""
        return self.path / "options.json"

    @property
    def parts(self) -> Path:
        """Where rules go while the run is learning."""
        return self.path / "parts"

    @property
    def rules_file(self) -> Path:
        """All rules of a run that ended."""
        return self.path / "rules.parquet"

    def write_options(self, dataset: Dataset, options: LearnOptions) -> None:
        """Write what the run was asked to do, and on what."""
        source = dataset.source
        described = {
            "anyburl": __version__,
            "python": platform.python_version(),
            "numba": version("numba"),
            "numpy": version("numpy"),
            "cores": os.cpu_count(),
            "data": {
                "name": dataset.name,
                "source": os.path.abspath(source) if source and os.path.exists(source) else source,
                "fingerprint": dataset.fingerprint,
                "train": len(dataset.train),
            },
            "options": options.to_json(),
        }
        _replace_text(self.options_file, json.dumps(described, indent=2) + "\n")

    def described(self) -> dict[str, Any]:
        """Return the contents of options.json."""
        try:
            described = json.loads(self.options_file.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{self.options_file} cannot be read as JSON: {error}") from error
        parts = described if isinstance(described, dict) else {}
        if not all(isinstance(parts.get(name), dict) for name in ("data", "options")):
            raise RunError(f"{self.options_file} does not describe a run: it should hold data and options")
        return parts

    def options(self) -> LearnOptions:
        """Return the options of the run."""
        stored = dict(self.described()["options"])
        names = {field.name for field in fields(LearnOptions)}
        stored.setdefault("address", None)  # missing in runs of older versions
        if stored.keys() != names:
            odd = ", ".join(sorted(stored.keys() ^ names))
            raise RunError(
                f"{self.options_file} was written by another version of anyburl: the options differ in {odd}"
            )
        for name in ("snapshots", "relations"):
            stored[name] = None if stored[name] is None else tuple(stored[name])
        return LearnOptions(**stored)

    def append_trace(self, span: Span) -> None:
        """Append one line to trace.jsonl; a line cut short by a kill is ended first."""
        with open(self.path / "trace.jsonl", "a+b") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            cut_short = file.read(1) not in (b"", b"\n")
            file.write((b"\n" if cut_short else b"") + json.dumps(trace_line(span)).encode() + b"\n")

    def trace(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of trace.jsonl; a last line cut short by a kill is left out."""
        with suppress(FileNotFoundError), open(self.path / "trace.jsonl", encoding="utf-8") as file:
            for line in file:
                with suppress(ValueError):
                    yield dict(json.loads(line))

    def write_part(self, rules: Sequence[RuleSet]) -> None:
        """Append rules as a new part, complete or not at all."""
        whole = RuleSet.concat(list(rules))
        numbers = [int(part.stem) for part in self.parts.glob("*.columns")]
        target = self.parts / f"{max(numbers, default=0) + 1:06d}.columns"
        partial = target.with_suffix(".partial")
        with open(partial, "wb") as file:
            for name in _COLUMNS:
                np.save(file, getattr(whole, name))
        os.replace(partial, target)

    def finish(self, rules: RuleSet, snapshots: dict[str, RuleSet]) -> None:
        """Write the snapshots and all rules, then remove the parts."""
        for name, taken in snapshots.items():
            snapshot = self.path / f"rules-{name}.parquet"
            if not snapshot.exists():
                taken.save(snapshot)
        rules.save(self.rules_file)
        shutil.rmtree(self.parts, ignore_errors=True)
        self.parts.mkdir(exist_ok=True)

    def load_rules(self, at: str | None = None) -> RuleSet:
        """Return the rules of the run, or of its snapshot at `at` seconds."""
        if at is not None:
            snapshot = self.path / f"rules-{at}.parquet"
            if snapshot.is_file():
                return RuleSet.load(snapshot)
            return self._killed_at(at)
        parts = self._parts()
        if self.rules_file.is_file():
            finished = RuleSet.load(self.rules_file)
            return finished.merge(*parts) if parts else finished
        if parts:
            return RuleSet.concat(parts)
        return RuleSet.empty(self.vocabulary())

    def vocabulary(self) -> Vocabulary:
        """Return the labels behind the ids of the parts."""
        frame = pl.read_parquet(self.path / "vocabulary.parquet")
        labels = {kind: frame.filter(pl.col("kind") == kind)["label"] for kind in ("entity", "relation")}
        return Vocabulary(labels["entity"].rename(""), labels["relation"].rename(""))

    def _parts(self) -> list[RuleSet]:
        files = sorted(self.parts.glob("*.columns"))
        if not files:
            return []
        vocabulary = self.vocabulary()
        return [RuleSet(vocabulary=vocabulary, **_read_part(file)) for file in files]

    def _killed_at(self, at: str) -> RuleSet:
        """A run that was killed has no snapshot files, but its trace says how many rules there were."""
        for line in self.trace():
            if line.get("snapshot") == at and not self.rules_file.is_file():
                return self.load_rules().slice(0, int(line["rules"]) + int(line["dropped"]))
        there = sorted(file.stem.removeprefix("rules-") for file in self.path.glob("rules-*.parquet"))
        raise RunError(f"{self.path} has no snapshot at {at} seconds; it has {', '.join(there) or 'none'}")


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
        "profiles": [
            {
                "profile": str(entry.profile),
                "cores": entry.cores,
                "attempts": entry.attempts,
                "paths": entry.paths,
                "new_bodies": entry.new_bodies,
                "new_rules": entry.new_rules,
                "known_rules": entry.known_rules,
                "reward": entry.reward,
                "value": entry.value,
                "exhausted": entry.exhausted,
            }
            for entry in span.profiles
        ],
    }


def _read_part(file: Path) -> dict[str, Any]:
    with open(file, "rb") as stored:
        return {name: np.load(stored) for name in _COLUMNS}


def _write_vocabulary(path: Path, vocabulary: Vocabulary) -> None:
    labels = {"entity": vocabulary.entities, "relation": vocabulary.relations}
    frames = [found.to_frame("label").select(pl.lit(kind).alias("kind"), "label") for kind, found in labels.items()]
    pl.concat(frames).write_parquet(path)


def _replace_text(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(text, "utf-8")
    os.replace(partial, path)
