"""The rules in a run folder, finished or not.

    options.json        options, versions, seed, the data and its fingerprint
    vocabulary.parquet  the labels behind the ids in parts/ and train.parquet
    train.parquet       the triples that the rules were counted on
    attributes.parquet  the values of attributes that conditions were counted on, if the data has any
    names.parquet       readable names, if the data has any: the columns label and name
    trace.jsonl         one line per time span
    metrics.jsonl       one line per evaluation of the rules or of a snapshot
    parts/              rules found since `rules.parquet` was written, and the keys of bodies without rules; a file of
                        each every few seconds
    rules-<s>.parquet   the rules after s seconds
    rules.parquet       the rules that the run keeps (`--keep`), written when it ends
    best.parquet        where these are many: the best of all, and of each relation, by any order; with their surprise
    best.json           the seal of the rules.parquet that these are from, how many rules it holds, how many are kept,
                        and which of the first by the default order say nearly the same
    bodies.keys         bodies that gave no rules, so that a resumed run does not harvest them again
    .lock               locked by the process that learns into the folder: it has one writer at a time

A killed run can still be opened: its rules are `rules.parquet`, if there is one, and the parts. Of a folder
that is damaged, what is whole is read.

A part holds rules as ids: the table of bodies and the required columns, one array after the other, in the order of
`COLUMNS`; then the optional columns that its rules have, each with its name. (The margins have none: the first version
with margins stored them so.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import AnyburlError, DataError, RuleError, RunError
from anyburl.base.files import open_to_read
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import is_sealed, read_seal, scan_parquet, seal
from anyburl.base.writing import make_inner_folder, replacing
from anyburl.data.attributes import FILE as ATTRIBUTES
from anyburl.data.formats.frames import COLUMNS as TRIPLE_COLUMNS
from anyburl.data.names import Names
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.columns import COLUMNS, REQUIRED, RuleColumns
from anyburl.rules.combine import concatenate, merge
from anyburl.rules.parquet import read_rules_parquet
from anyburl.rules.types import SMOOTHING

RULES = "rules.parquet"
OPTIONS = "options.json"
VOCABULARY = "vocabulary.parquet"
TRACE = "trace.jsonl"
TRAIN = "train.parquet"
NAMES = "names.parquet"
KEYS = "bodies.keys"
WRITTEN = (VOCABULARY, TRAIN, ATTRIBUTES, NAMES, RULES, TRACE, KEYS)
"""The files that a new run writes, besides its options."""
PARTS = "parts"
PART_SUFFIX = ".columns"
KEY_SUFFIX = ".keys"  # of files beside the parts: bodies that a resumed run need not harvest again
ARRAY = b"\x93"  # with which every array in a part begins

_NAMES = {"label": pl.String, "name": pl.String}
_VOCABULARY = {"kind": pl.String, "label": pl.String}
_TRAIN = dict.fromkeys(TRIPLE_COLUMNS, pl.Int32)
_DATA = {"name": str, "source": str | None, "fingerprint": str, "reading": dict, "prefixes": dict}
"""What options.json says of the data, if it does."""


def check_run_folder(folder: Path) -> None:
    """Refuse what is not a run folder."""
    if not (folder / OPTIONS).is_file():
        raise RunError(f"{folder} is not a run folder: it has no {OPTIONS}")


def described_run(folder: Path) -> dict[str, Any]:
    """Return the contents of options.json: the options of a run and its data."""
    check_run_folder(folder)
    path = folder / OPTIONS
    try:
        described = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read as JSON: {error}") from error
    parts = described if isinstance(described, dict) else {}
    if not all(isinstance(parts.get(name), dict) for name in ("data", "options")):
        raise RunError(f"{path} does not describe a run: it should hold data and options")
    for name, kind in _DATA.items():
        if name in parts["data"] and not isinstance(parts["data"][name], kind):
            raise RunError(f"{path} does not describe a run: the {name} of its data cannot be {parts['data'][name]!r}")
    if not all(isinstance(iri, str) for iri in parts["data"].get("prefixes", {}).values()):
        raise RunError(f"{path} does not describe a run: the prefixes of its data must stand for IRIs")
    return parts


TEMPORAL = "temporal"


def is_temporal_run(folder: Path) -> bool:
    """Return whether a folder is a run folder that says that it holds temporal rules."""
    try:
        return (folder / OPTIONS).is_file() and described_run(folder).get("sort") == TEMPORAL
    except RunError:
        return False


def snapshot_names(folder: Path) -> list[str]:
    """Return the snapshots in the folder by their seconds, the first one first."""
    names = map(snapshot_name, folder.glob("rules-*.parquet"))
    return sorted((name for name in names if name is not None), key=float)


def snapshot_name(file: Path) -> str | None:
    """Return the seconds in the name of a snapshot file; None for any other file."""
    name = file.name.removeprefix("rules-").removesuffix(".parquet")
    return name if file.name == f"rules-{name}.parquet" and _is_number(name) else None


def read_run(folder: Path, at: float | str | None = None) -> tuple[RuleColumns, list[str]]:
    """Return the rules of a run, or of its snapshot at `at` seconds, and what of it is damaged and left out."""
    check_run_folder(folder)
    if is_temporal_run(folder):
        raise RunError(f"{folder} holds temporal rules: open it with TemporalReasoner.open")
    if at is not None:
        return _read_snapshot(folder, at if isinstance(at, str) else f"{checking.real('at', at, 0):g}"), []
    files, has_file = part_files(folder), (folder / RULES).is_file()
    if not files and has_file:
        return read_rules_parquet(folder / RULES)[0], []
    try:
        vocabulary = read_vocabulary(folder)
    except RunError as error:
        if not has_file:
            raise
        return read_rules_parquet(folder / RULES)[0], [
            f"{error}: the rules found since {RULES} was written are left out"
        ]
    whole, damaged = _read_whole(folder, files, vocabulary, has_file=has_file)
    if damaged and part_files(folder) != files:  # the run has ended meanwhile
        return read_run(folder)
    if damaged and not whole:
        raise RunError(damaged[0])
    if not whole:
        return RuleColumns.empty(vocabulary), []
    return merge(whole) if has_file else concatenate(whole), [f"{fault}: its rules are left out" for fault in damaged]


def _read_whole(
    folder: Path, parts: list[Path], vocabulary: Vocabulary, *, has_file: bool
) -> tuple[list[RuleColumns], list[str]]:
    """Return the rules of the file, if there is one, and of the parts, and what of them is damaged."""
    whole: list[RuleColumns] = []
    damaged: list[str] = []
    for file in (*([folder / RULES] if has_file else []), *parts):
        try:
            whole.append(_read_file(file, vocabulary) if file.name == RULES else read_part(file, vocabulary))
        except (RuleError, RunError) as error:
            damaged.append(str(error))
    return whole, damaged


def _read_file(file: Path, vocabulary: Vocabulary) -> RuleColumns:
    rules, report = read_rules_parquet(file, vocabulary)
    if report.n_unknown:
        raise RunError(f"{file} has labels that {VOCABULARY} does not have")
    return rules


def is_finished(run: Path) -> bool:
    """Whether a folder holds a run that has ended, so that its rules do not change."""
    return (run / RULES).is_file() and not part_files(run)


def part_files(folder: Path, suffix: str = PART_SUFFIX) -> list[Path]:
    """Return the parts of a run, or the numbered files with another suffix beside them, in their order."""
    files = (folder / PARTS).glob(f"*{suffix}")
    return sorted((file for file in files if file.stem.isdecimal()), key=lambda file: int(file.stem))


def next_part(folder: Path, suffix: str = PART_SUFFIX) -> Path:
    """Return the path of the next numbered file; their folder is made."""
    make_inner_folder(folder / PARTS, RunError)
    number = max((int(file.stem) for file in part_files(folder, suffix)), default=0) + 1
    return folder / PARTS / f"{number:06d}{suffix}"


def remove_parts(folder: Path) -> None:
    """Remove the parts of a run, whose rules are in `rules.parquet`, and the keys beside them; no other files."""
    for file in (*part_files(folder), *part_files(folder, KEY_SUFFIX)):
        with suppress(OSError):
            file.unlink()


def write_part(folder: Path, rules: RuleColumns) -> None:
    """Append rules to the parts of a run, complete or not at all."""
    with replacing(next_part(folder), RunError) as unfinished, open(unfinished, "wb") as file:
        np.save(file, rules.bodies)
        for name, column in rules.columns.items():
            is_named = COLUMNS[name].optional and COLUMNS[name].named_in_parts
            np.save(file, column.view([(name, column.dtype)]) if is_named else column)
        file.flush()
        seal(unfinished)


def read_part(file: Path, vocabulary: Vocabulary) -> RuleColumns:
    """Return the rules of a part; what is not whole, or does not fit the vocabulary, is refused."""
    try:
        has_seal = is_sealed(file)  # else it is of an earlier version
        with open(file, "rb") as stored:
            columns = {name: np.lib.format.read_array(stored, allow_pickle=False) for name in ("bodies", *REQUIRED)}
            while stored.peek(1)[:1] == ARRAY:
                columns |= _optional_column(np.lib.format.read_array(stored, allow_pickle=False))
            if stored.read() and not has_seal:
                raise ValueError("it ends in the middle of its checksum")
        return RuleColumns(vocabulary=vocabulary, **columns)
    except Exception as error:  # NumPy has no one kind of error for a header that it cannot read
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{file} is damaged ({reason or type(error).__name__})") from error


def _optional_column(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return a column with its name; nothing for the column of a later version."""
    if array.dtype.names is None:
        (name,) = (name for name, column in COLUMNS.items() if column.optional and not column.named_in_parts)
        return {name: array}
    (name,) = array.dtype.names
    return {name: array[name]} if name in COLUMNS else {}


def read_trace(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of trace.jsonl that are JSON objects; one cut short by a kill is not."""
    with suppress(FileNotFoundError), _opened(folder / TRACE) as file:
        for line in file:
            with suppress(ValueError, RecursionError):
                parsed = json.loads(line)
                if isinstance(parsed, dict):
                    yield parsed


def _opened(path: Path) -> BinaryIO:
    """Open a file of the folder."""
    try:
        return open_to_read(path)
    except FileNotFoundError:
        raise
    except OSError as refusal:
        raise RunError(f"{path}: the file cannot be read ({refusal.strerror})") from refusal


def missing_rules(folder: Path) -> list[str]:
    """Return a remark on a run that holds no rules although its trace counts some."""
    n_rules = max((line["rules"] for line in read_trace(folder) if is_whole_span(line)), default=0)
    if not n_rules:
        return []
    return [f"it holds no rules, but found {n_rules:,}: they were not saved yet, or {RULES} was removed"]


def is_whole_span(line: dict[str, Any]) -> bool:
    """Return whether a line of the trace has what a run needs to go on."""
    numbers = (line.get(name) for name in ("number", "elapsed", "rules", "dropped", "paths", "bodies"))
    profiles = line.get("profiles")
    return (
        all(isinstance(number, int | float) and 0 <= number < 2**62 for number in numbers)
        and isinstance(profiles, list)
        and all(isinstance(entry, dict) and {"profile", "exhausted"} <= entry.keys() for entry in profiles)
    )


def write_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Keep the labels behind the ids of the parts."""
    labels = {"entity": vocabulary.entities, "relation": vocabulary.relations}
    frames = [column.to_frame("label").select(pl.lit(kind).alias("kind"), "label") for kind, column in labels.items()]
    with replacing(folder / VOCABULARY, RunError) as unfinished:
        pl.concat(frames).write_parquet(unfinished)
        seal(unfinished)


def read_vocabulary(folder: Path) -> Vocabulary:
    """Return the labels behind the ids of the parts."""
    frame = _read_frame(folder / VOCABULARY, _VOCABULARY)
    labels = {kind: frame.filter(pl.col("kind") == kind)["label"] for kind in ("entity", "relation")}
    try:
        return Vocabulary.from_sorted(labels["entity"].rename(""), labels["relation"].rename(""))
    except DataError as error:
        raise RunError(f"{folder / VOCABULARY} is damaged ({error})") from error


def write_run_names(folder: Path, names: Names) -> None:
    """Keep readable names; the prefixes of IRIs are in options.json."""
    with replacing(folder / NAMES, RunError) as unfinished:
        pl.DataFrame({"label": list(names), "name": list(names.values())}, schema=_NAMES).write_parquet(unfinished)
        seal(unfinished)


def read_run_names(folder: Path) -> Names:
    """Return what people call the labels of a run."""
    prefixes = described_run(folder)["data"].get("prefixes", {})
    stored = _read_frame(folder / NAMES, _NAMES) if (folder / NAMES).is_file() else pl.DataFrame(schema=_NAMES)
    return Names(dict(stored.drop_nulls().iter_rows()), prefixes)


def write_train(folder: Path, table: TripleTable) -> None:
    """Keep the triples that rules are counted on: their files may change, and a resumed run tells how."""
    with replacing(folder / TRAIN, RunError) as unfinished:
        pl.DataFrame(table.triples, schema=list(TRIPLE_COLUMNS)).write_parquet(unfinished)
        seal(unfinished)


def read_train(folder: Path) -> TripleTable | None:
    """Return the triples that the rules were counted on, or None for a run of an older version, which lacks them."""
    if not (folder / TRAIN).is_file():
        return None
    triples = np.ascontiguousarray(_read_frame(folder / TRAIN, _TRAIN).to_numpy())
    try:
        return TripleTable(read_vocabulary(folder), triples)
    except DataError as error:
        raise RunError(f"{folder / TRAIN} is damaged ({error})") from error


def snapshots_in_parts(folder: Path) -> dict[str, int]:
    """Return the snapshots of a killed run, which have no files yet: how many of its first rules each holds.

    Without parts, the run has ended, or was resumed and killed before it found more rules: all that there are may be a
    snapshot. Some of them are not, since rules may be sorted at the end.
    """
    taken = [line for line in read_trace(folder) if isinstance(line.get("snapshot"), str) and is_whole_span(line)]
    counts = {line["snapshot"]: int(line["rules"]) + int(line["dropped"]) for line in taken}
    there = snapshot_names(folder)
    missing = {name: n_rules for name, n_rules in counts.items() if _is_number(name) and name not in there}
    if missing and (folder / RULES).is_file() and not part_files(folder):
        n_all = _count_rows(folder / RULES)
        return {name: n_rules for name, n_rules in missing.items() if n_rules == n_all}
    return missing


def _count_rows(path: Path) -> int | None:
    try:
        return int(scan_parquet(path).select(pl.len()).collect().item())
    except UNREADABLE:
        return None


def _read_snapshot(folder: Path, at: str) -> RuleColumns:
    """A run that was killed has no snapshot files, but its trace tells how many rules there were."""
    snapshot = folder / f"rules-{at}.parquet"
    if snapshot.is_file():
        return read_rules_parquet(snapshot)[0]
    n_rules = snapshots_in_parts(folder).get(at)
    if n_rules is None:
        there = ", ".join(snapshot_names(folder)) or "none"
        raise RunError(f"{folder} has no snapshot at {at} seconds; it has {there}")
    rules, damaged = read_run(folder)
    if damaged or len(rules) < n_rules:
        reason = damaged[0] if damaged else f"{len(rules):,} of its {n_rules:,} rules were saved"
        raise RunError(f"{folder} has no snapshot at {at} seconds: {reason}")
    return rules.slice(0, n_rules)


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _read_frame(path: Path, schema: dict[str, Any]) -> pl.DataFrame:
    """Read a file of the folder; raise an error if it is missing, damaged or has other columns."""
    try:
        frame = scan_parquet(path).collect()
    except FileNotFoundError:
        raise RunError(f"{path} is missing") from None
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{path} is damaged ({reason or type(error).__name__})") from error
    if any(frame.schema.get(name) != kind for name, kind in schema.items()):
        raise RunError(f"{path} is damaged (expected the columns {', '.join(schema)})")
    return frame.select(schema.keys())


BEST, ABOUT = "best.parquet", "best.json"
ORDERS = ("confidence", "support", "value", "predictions", "worth")


@dataclass(frozen=True)
class BestRules:
    """The best rules, and how many there are in all: of the run, and of each relation."""

    rules: RuleColumns
    n_rules: int
    by_relation: dict[str, int]
    overall: int
    of_a_relation: int
    alike: tuple[int, ...]
    """For the first rules by the default order, the row of the first that says nearly the same."""

    @property
    def default_order(self) -> str:
        return "surprise" if self.rules.worth is None else "worth"

    def can_tell(self, order: str | None, n: int, smoothing: float, *, of_relation: bool) -> bool:
        """Return whether the first n rules by an order, of one relation or of all, are among those kept."""
        is_kept = order is None or order == "surprise" or (order in ORDERS and order != "worth")
        is_kept |= order == "worth" and self.rules.worth is not None
        is_smoothed = order != "confidence" or smoothing == SMOOTHING
        return is_kept and is_smoothed and n <= (self.of_a_relation if of_relation else self.overall)


def read_best(folder: Path) -> BestRules | None:
    """Return the best rules of a run folder; None if they are not kept, or are those of other rules."""
    with suppress(OSError, ValueError, KeyError, TypeError, AnyburlError):
        about = json.loads((folder / ABOUT).read_text("utf-8"))
        if part_files(folder) or about["rules"] != read_seal(folder / RULES).hex():
            return None
        return BestRules(
            rules=read_rules_parquet(folder / BEST)[0],
            n_rules=int(about["total"]),
            by_relation=dict(about["by_relation"]),
            overall=int(about["overall"]),
            of_a_relation=int(about["of_a_relation"]),
            alike=tuple(map(int, about["alike"])),
        )
    return None
