"""What a question needs, kept with the rules in a run folder: flat arrays, written once, memory-mapped by every
command.

    prepared/card.json   what it was made of, and the size, time, sample and checksum of every file
    prepared/data/       the data, as `anyburl index` writes them; left out where the data are an index already
    prepared/rules/      the columns of the rules
    prepared/index/      the rule index: the rules of one head relation stand side by side
    prepared/groups.npy  the group of each rule, for tuning

What is stale or damaged is noticed and never used. Times, sizes and samples of files are compared; only where they
differ, as in a folder that was copied, whole contents are. The samples tell files of other rules or other data that
happen to have the same size and time.

Rules can be prepared for another graph than their own: those that carry over, and their tuned model.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.errors import DataError, RunError
from anyburl.base.machine import available_cores, map_in_threads
from anyburl.base.sealed import open_array, open_record, read_seal, save_record
from anyburl.base.writing import replace_text, replacing_folder
from anyburl.data.dataset import Dataset, load_index, load_recorded
from anyburl.data.options import ReadOptions
from anyburl.data.sources import located, named_value_files
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.kernel import GraphArrays
from anyburl.graph.stored import graph_of, store_dataset
from anyburl.models.tuned.observations import rule_groups
from anyburl.ranking.arrays import RuleIndex
from anyburl.ranking.queries import blocks_connected
from anyburl.rules.columns import COLUMNS, REQUIRED, Holds
from anyburl.rules.combine import known_rules
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import RULES, described_run, is_finished

FORMAT = 2
PREPARED = "prepared"
CARD = "card.json"
STORED = ("bodies", *REQUIRED)
STORED_IF_THERE = tuple(name for name, column in COLUMNS.items() if column.optional and column.is_written)
PIECE = 1 << 24  # bytes read at a time
N_SAMPLED, SAMPLE = 16, 1 << 12  # places in a file, and the bytes that are read at each

Stamp = tuple[int, int, int]
"""Size and time of a file, and a checksum of a sample of its contents."""


class NotPreparedError(Exception):
    """There is nothing prepared that can be used; the message says why."""


@dataclass(frozen=True)
class Prepared:
    """Rules and data made ready: all arrays are mapped."""

    dataset: Dataset
    graph: GraphArrays
    rules: RuleSet
    index: RuleIndex
    groups: NDArray[np.uint8]
    blocks_auto: bool  # whether connected pairs are blocked if that is left to the data
    rules_digest: str
    n_left_out: int  # rules with labels that are not in the data


def prepared_bytes(dataset: Dataset, graph: GraphArrays, rules: RuleSet, index: RuleIndex) -> int:
    """Return about how many bytes `write_prepared` writes."""
    scores = _bytes_of((index.scores, index.best_below))  # depend on the aggregation, so they are not kept
    columns = _bytes_of(tuple(getattr(rules, name) for name in STORED))
    data = 0 if dataset.train.folder is not None else _bytes_of((graph, dataset.train.triples))
    return _bytes_of(index) - scores + columns + data


def _bytes_of(record: Any) -> int:
    if isinstance(record, tuple):
        return sum(map(_bytes_of, record))
    return record.nbytes if isinstance(record, np.ndarray) else 0


def write_prepared(
    run: Path, dataset: Dataset, graph: GraphArrays, rules: RuleSet, index: RuleIndex, n_left_out: int = 0
) -> None:
    """Write what was made ready; it appears when it is complete. `n_left_out` rules have unknown labels."""
    _check_replaceable(run / PREPARED)
    with replacing_folder(run / PREPARED, RunError) as folder:
        if dataset.train.folder is None:
            store_dataset(dataset, graph, folder / "data")
        save_record(index._replace(scores=np.empty(0, np.int64), best_below=np.empty(0, np.int64)), folder / "index")
        (folder / "rules").mkdir()
        for name in (*STORED, *STORED_IF_THERE):
            if getattr(rules, name) is not None:
                np.save(folder / "rules" / f"{name}.npy", getattr(rules, name))
        np.save(folder / "groups.npy", rule_groups(rules))
        card = {
            "format": FORMAT,
            "anyburl": __version__,
            "layout": layout(RuleIndex),
            "rules": {
                "stamp": stamp(run / RULES),
                "digest": digest(run / RULES),
                "n": len(rules),
                "left_out": n_left_out,
            },
            "data": {
                "source": dataset.source,
                "reading": dataset.reading.to_json(),
                "fingerprint": dataset.fingerprint,
                "files": source_stamps(dataset.source, dataset.reading.attribute_file),
                "index": None if dataset.train.folder is None else str(dataset.train.folder),
                "blocks": blocks_connected("auto", dataset),
            },
            "files": _described_files(folder),
        }
        replace_text(folder / CARD, json.dumps(card, indent=1))


def _check_replaceable(folder: Path) -> None:
    """Refuse a folder that holds something else; of a link, only the link itself will be replaced."""
    if folder.is_dir() and not folder.is_symlink() and not (folder / CARD).is_file() and any(folder.iterdir()):
        raise RunError(f"{folder} has no {CARD}, so it may hold something else: move it away")


def open_prepared(run: Path) -> Prepared:
    """Map what was prepared; `NotPreparedError` if there is nothing, or if it is stale or damaged."""
    folder = run / PREPARED
    if not (folder / CARD).is_file():
        raise NotPreparedError("it is not prepared yet")
    try:
        card = json.loads((folder / CARD).read_text("utf-8"))
        if card["format"] != FORMAT or card["layout"] != layout(RuleIndex):
            raise NotPreparedError(f"it was prepared by anyburl {card['anyburl']} in another format")
        refreshed = [_check_files(folder, card), _check_rules(run, card), _check_data(card)]
        dataset = _open_data(folder, card)
        opened = Prepared(
            dataset=dataset,
            graph=graph_of(dataset.train),
            rules=RuleSet.checked_before(
                dataset.vocabulary,
                {
                    name: open_array(file)
                    for name in (*STORED, *STORED_IF_THERE)
                    if (file := folder / "rules" / f"{name}.npy").exists() or name in STORED
                },
            ),
            index=open_record(RuleIndex, folder / "index"),
            groups=open_array(folder / "groups.npy"),
            blocks_auto=bool(card["data"]["blocks"]),
            rules_digest=card["rules"]["digest"],
            n_left_out=int(card["rules"]["left_out"]),
        )
    except NotPreparedError:
        raise
    except Exception as error:  # JSON and arrays that are damaged have no one kind of error
        fault = "cannot be read" if isinstance(error, OSError) else "are damaged"
        raise NotPreparedError(f"the prepared files {fault} ({' '.join(str(error).split())[:200]})") from error
    if any(refreshed) and os.access(folder, os.W_OK) and not folder.is_symlink():
        replace_text(folder / CARD, json.dumps(card, indent=1))
    return opened


def _check_files(folder: Path, card: dict[str, Any]) -> bool:
    """Refuse files that are not as they were written; return whether only their times have changed."""
    changed = []
    for name, (size, time, sample, checksum) in card["files"].items():
        current = stamp(folder / name)
        if current[0] != size:
            raise ValueError(f"{name} has {current[0]} bytes instead of {size}")
        if current[1:] != (time, sample):
            changed.append((name, checksum))
    for name, checksum in changed:
        if crc(folder / name) != checksum:
            raise ValueError(f"{name} has changed")
        card["files"][name] = [*stamp(folder / name), checksum]
    return bool(changed)


def _check_rules(run: Path, card: dict[str, Any]) -> bool:
    if not is_finished(run):
        raise NotPreparedError("the run was continued since")
    if stamp(run / RULES) == tuple(card["rules"]["stamp"]):
        return False
    if digest(run / RULES) != card["rules"]["digest"]:
        raise NotPreparedError("the rules have changed since")
    card["rules"]["stamp"] = stamp(run / RULES)
    return True


def _check_data(card: dict[str, Any]) -> bool:
    """Refuse what was made of other data; data that are no longer there cannot have changed."""
    data = card["data"]
    try:
        stamps = source_stamps(data["source"], data.get("reading", {}).get("attribute_file"))
    except DataError:
        return False
    if stamps == {name: tuple(given) for name, given in data["files"].items()}:
        return False
    if load_recorded(data).fingerprint != data["fingerprint"]:
        raise NotPreparedError("the data has changed since")
    data["files"] = stamps
    return True


def _open_data(folder: Path, card: dict[str, Any]) -> Dataset:
    """Open the data; they are where they came from, not in this folder."""
    data = card["data"]
    stored = load_index(Path(data["index"] or folder / "data"), data["source"])
    reading = ReadOptions.from_json(data.get("reading", {}))
    return replace(stored, stored_fingerprint=data["fingerprint"], reading=reading)


def source_stamps(source: str | None, attribute_file: str | None = None) -> dict[str, Stamp]:
    """Return the stamps of the files that data and their values come from; none if they come from nowhere."""
    if source is None:
        return {}
    with located(source) as data:
        if data.index:
            return {"index.json": stamp(data.index / "index.json")}
        files = {file.name: file for file in (*data.files.values(), *data.values.values()) if file}
        files |= {f"values/{file.name}": file for file in named_value_files(attribute_file).values()}
        if missing := [file for file in files.values() if not file.exists()]:
            raise DataError(f"{missing[0]}: no such file")
        return {name: stamp(file) for name, file in files.items()}


def stamp(path: Path) -> Stamp:
    """Return the size and time of a file, and a checksum of a sample of its contents; a folder has none."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, 0 if path.is_dir() else _sampled(path, status.st_size)


def _sampled(path: Path, size: int) -> int:
    """Return the checksum of the seal of a file and of some pages of it, the first and the last among them."""
    checksum, last = zlib.crc32(read_seal(path)), max(size - SAMPLE, 0)
    with path.open("rb", buffering=0) as file:
        for position in sorted({last * part // (N_SAMPLED - 1) for part in range(N_SAMPLED)}):
            file.seek(position)
            checksum = zlib.crc32(file.read(SAMPLE), checksum)
    return checksum


def digest(path: Path) -> str:
    """Return a digest of a file's contents."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def crc(path: Path) -> int:
    """Return a checksum of a file's contents: fast, against accidents."""
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            checksum = zlib.crc32(piece, checksum)
    return checksum


def layout(kind: Any) -> str:
    """Name the fields of a record, and those of the records in it."""
    hints = get_type_hints(kind)
    parts = (f"{name}({layout(hint)})" if _is_record(hint) else name for name, hint in hints.items())
    return ",".join(parts)


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple)


def _described_files(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    checksums = map_in_threads(crc, files, available_cores())
    named = zip(files, checksums, strict=True)
    return {file.relative_to(folder).as_posix(): (*stamp(file), checksum) for file, checksum in named}


MOST = 0.5  # of the rules with constants must carry over: with fewer, a model that counts on them would be misled


@dataclass(frozen=True)
class Carried:
    """Rules with the ids of another graph, and why the others are left out."""

    rules: RuleSet
    rows: NDArray[np.int64]  # of the rules that were given
    n_unknown_relations: int
    n_unknown_entities: int

    @classmethod
    def to(cls, vocabulary: Vocabulary, rules: RuleSet) -> Carried:
        """Match rules with a vocabulary by their labels."""
        matched = rules.with_vocabulary(vocabulary)
        n_left_out = len(rules) - len(matched)
        if not n_left_out:
            return cls(matched, np.arange(len(rules)), 0, 0)
        has_relations = known_rules(rules, vocabulary, Holds.DIRECTED_RELATION, Holds.BODY)
        is_known = has_relations & known_rules(rules, vocabulary, Holds.CONSTANT)
        n_unknown_relations = int((~has_relations).sum())
        return cls(matched, np.flatnonzero(is_known), n_unknown_relations, n_left_out - n_unknown_relations)

    def note(self, dataset: Dataset) -> str:
        """Report which rules were left out, and why; "" if none was."""
        unknown = ((self.n_unknown_entities, "entities"), (self.n_unknown_relations, "relations"))
        reasons = [f"{n:,} with {kind} that it does not have" for n, kind in unknown if n]
        if not reasons:
            return ""
        n_left_out = self.n_unknown_entities + self.n_unknown_relations
        given = len(self.rules) + n_left_out
        return f"{len(self.rules):,} of {given:,} rules carry over to {dataset.name}; left out: {', '.join(reasons)}"


def with_constants(rules: RuleSet) -> NDArray[np.bool_]:
    """Return which rules mention an entity."""
    n_entities = rules.vocabulary.n_entities
    constants = [column for name, column in rules.columns.items() if COLUMNS[name].holds is Holds.CONSTANT]
    return reduce(np.logical_or, ((column >= 0) & (column < n_entities) for column in constants))


def portable_rows(rules: RuleSet, vocabulary: Vocabulary) -> NDArray[np.int64] | None:
    """Return the rules for training a model for another graph: those without constants; None for all of them if that
    graph has most of the constants.
    """
    has_constants = with_constants(rules)
    n_known = int((known_rules(rules, vocabulary, Holds.CONSTANT) & has_constants).sum())
    return np.flatnonzero(~has_constants) if n_known < MOST * has_constants.sum() else None


def may_be_own_data(run: Path, dataset: Dataset) -> bool:
    """Whether the rules of a run folder were learned on this data, as far as the folder tells."""
    return described_run(run)["data"].get("fingerprint") in (None, dataset.fingerprint)


def remembers_its_data(run: Path) -> bool:
    """Whether a run ended, and its folder says where the data is that its rules were learned on."""
    return (run / RULES).is_file() and described_run(run)["data"].get("source") is not None
