"""The rules in a run folder, finished or not.

    options.json        options, versions, seed, the data and its fingerprint
    vocabulary.parquet  the labels behind the ids in parts/ and train.parquet
    train.parquet       the triples that the rules were counted on
    names.parquet       readable names, if the data has any: the columns label and name
    trace.jsonl         one line per time span
    metrics.jsonl       one line per evaluation of the rules or of a snapshot
    parts/              rules found since `rules.parquet` was written, one file every few seconds
    rules-<s>.parquet   the rules after s seconds
    rules.parquet       all rules, written when the run ends

A run that was killed opens all the same: its rules are `rules.parquet`, if there is one, and the parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anyburl.errors import RuleError, RunError
from anyburl.ruleset.columns import COLUMN_TYPES, RuleColumns
from anyburl.ruleset.combine import concatenate, merge
from anyburl.ruleset.files.parquet import read_parquet
from anyburl.triples.frames import COLUMNS
from anyburl.triples.names import Names
from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary
from anyburl.writing import replacing

RULES = "rules.parquet"
PARTS = "parts"
OPTIONS = "options.json"
VOCABULARY = "vocabulary.parquet"
TRACE = "trace.jsonl"
TRAIN = "train.parquet"
NAMES = "names.parquet"

_STORED = ("bodies", *COLUMN_TYPES)
"""What a part holds, one array after the other; then the margins, if some are known."""

_NAMES = {"label": pl.String, "name": pl.String}


def check_run_folder(folder: Path) -> None:
    """Refuse what is not a run folder."""
    if not (folder / OPTIONS).is_file():
        raise RunError(f"{folder} is not a run folder: it has no {OPTIONS}")


def described_run(folder: Path) -> dict[str, Any]:
    """Return what a run was asked to do, and on what: the contents of options.json."""
    check_run_folder(folder)
    path = folder / OPTIONS
    try:
        described = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read as JSON: {error}") from error
    parts = described if isinstance(described, dict) else {}
    if not all(isinstance(parts.get(name), dict) for name in ("data", "options")):
        raise RunError(f"{path} does not describe a run: it should hold data and options")
    return parts


def read_run(folder: Path, at: float | str | None = None) -> RuleColumns:
    """Return the rules of a run, or of its snapshot at `at` seconds."""
    check_run_folder(folder)
    if at is not None:
        return _read_snapshot(folder, at if isinstance(at, str) else f"{at:g}")
    files = sorted((folder / PARTS).glob("*.columns"))
    if not files and (folder / RULES).is_file():
        return read_parquet(folder / RULES)[0]
    vocabulary = read_vocabulary(folder)
    parts = [_read_part(file, vocabulary) for file in files]
    if (folder / RULES).is_file():
        return merge([read_parquet(folder / RULES, vocabulary)[0], *parts])
    return concatenate(parts) if parts else RuleColumns.empty(vocabulary)


def read_trace(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of trace.jsonl; a last line cut short by a kill is left out."""
    with suppress(FileNotFoundError), open(folder / TRACE, "rb") as file:
        for line in file:
            with suppress(ValueError, TypeError):
                yield dict(json.loads(line))


def write_part(folder: Path, rules: RuleColumns) -> None:
    """Append rules to the parts of a run, complete or not at all."""
    numbers = [int(part.stem) for part in (folder / PARTS).glob("*.columns")]
    target = folder / PARTS / f"{max(numbers, default=0) + 1:06d}.columns"
    with replacing(target, RunError) as unfinished, open(unfinished, "wb") as file:
        for name in (*_STORED, *(["margin"] if rules.margin is not None else [])):
            np.save(file, getattr(rules, name))


def write_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Keep the labels behind the ids of the parts."""
    labels = {"entity": vocabulary.entities, "relation": vocabulary.relations}
    frames = [found.to_frame("label").select(pl.lit(kind).alias("kind"), "label") for kind, found in labels.items()]
    with replacing(folder / VOCABULARY, RunError) as unfinished:
        pl.concat(frames).write_parquet(unfinished)


def read_vocabulary(folder: Path) -> Vocabulary:
    """Return the labels behind the ids of the parts."""
    frame = pl.read_parquet(folder / VOCABULARY)
    labels = {kind: frame.filter(pl.col("kind") == kind)["label"] for kind in ("entity", "relation")}
    return Vocabulary(labels["entity"].rename(""), labels["relation"].rename(""))


def write_names(folder: Path, names: Names) -> None:
    """Keep readable names; the prefixes of IRIs are in options.json."""
    with replacing(folder / NAMES, RunError) as unfinished:
        pl.DataFrame({"label": list(names), "name": list(names.values())}, schema=_NAMES).write_parquet(unfinished)


def read_names(folder: Path) -> Names:
    """Return what people call the labels of a run."""
    prefixes = described_run(folder)["data"].get("prefixes", {})
    stored = pl.read_parquet(folder / NAMES) if (folder / NAMES).is_file() else pl.DataFrame(schema=_NAMES)
    return Names(dict(stored.iter_rows()), prefixes)


def write_train(folder: Path, table: TripleTable) -> None:
    """Keep the triples that rules are counted on: their files may change, and an update needs to know how."""
    with replacing(folder / TRAIN, RunError) as unfinished:
        pl.DataFrame(table.triples, schema=list(COLUMNS)).write_parquet(unfinished)


def read_train(folder: Path) -> TripleTable | None:
    """Return the triples that the rules were counted on, or None for a run of an older version, which lacks them."""
    if not (folder / TRAIN).is_file():
        return None
    triples = np.ascontiguousarray(pl.read_parquet(folder / TRAIN).to_numpy(), dtype=np.int32)
    return TripleTable(read_vocabulary(folder), triples)


def _read_snapshot(folder: Path, at: str) -> RuleColumns:
    """A run that was killed has no snapshot files, but its trace tells how many rules there were."""
    snapshot = folder / f"rules-{at}.parquet"
    if snapshot.is_file():
        return read_parquet(snapshot)[0]
    for line in read_trace(folder):
        if line.get("snapshot") == at and not (folder / RULES).is_file():
            return read_run(folder).slice(0, int(line["rules"]) + int(line["dropped"]))
    there = sorted(file.stem.removeprefix("rules-") for file in folder.glob("rules-*.parquet"))
    raise RunError(f"{folder} has no snapshot at {at} seconds; it has {', '.join(there) or 'none'}")


def _read_part(file: Path, vocabulary: Vocabulary) -> RuleColumns:
    try:
        with open(file, "rb") as stored:
            columns = {name: np.load(stored) for name in _STORED}
            margin = np.load(stored) if stored.peek(1) else None
        return RuleColumns(vocabulary=vocabulary, **columns, margin=margin)
    except (OSError, EOFError, ValueError, RuleError) as error:
        raise RunError(f"{file} cannot be read: {error}") from error
