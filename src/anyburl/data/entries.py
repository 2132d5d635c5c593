"""Entries of `datasets.toml`: what is known about a data set, where its files are, and their checksums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from anyburl.base.errors import DataError
from anyburl.data.files import PARQUET
from anyburl.data.formats.delimited import CSV_SUFFIXES
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.formats.rdf import RDF_SUFFIXES

SPLITS = ("train", "valid", "test")
TEXT_SUFFIXES = tuple(kind + packed for kind in (".txt", ".tsv") for packed in ("", ".gz", ".zst"))
SUFFIXES = (*TEXT_SUFFIXES, *CSV_SUFFIXES, PARQUET, *RDF_SUFFIXES)
KINDS = {**dict.fromkeys(("about", "licence", "citation", "source"), str), "entities": int, "relations": int}
DIGITS = {"blob": 40, "sha256": 64}  # how many hexadecimal digits a checksum has


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """Where a split can be downloaded and the checksums it must have: git's blob id, SHA-256, or both.

    `columns` says what the columns of the file hold; files are kept with subject, relation, object.
    """

    url: str
    blob: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    lines: int | None = None
    columns: tuple[str, ...] = COLUMNS

    @property
    def suffix(self) -> str:
        """How the name of the file ends: .txt, .tsv.gz and the like."""
        return next(suffix for suffix in SUFFIXES if self.url.lower().endswith(suffix))


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """What is known about a data set; None where nothing is known for certain. Without `files`, it is local only."""

    name: str
    about: str = ""
    triples: tuple[int | None, ...] | None = None
    entities: int | None = None
    relations: int | None = None
    licence: str | None = None
    citation: str | None = None
    source: str | None = None
    files: Mapping[str, RemoteFile] = field(default_factory=dict)


def read_entry(name: str, fields: Mapping[str, Any], where: str, before: DatasetEntry | None = None) -> DatasetEntry:
    """Check a table of a file and put it on top of what was known before."""
    if re.search(r"[/\\]|^\.", name):
        raise DataError(f"{where}: the name of a data set must be a valid folder name, got {name!r}")
    unknown = fields.keys() - DatasetEntry.__dataclass_fields__.keys()
    if unknown:
        raise DataError(f"{where}: [{name}] has unknown fields: {', '.join(sorted(unknown))}")
    for field_name, kind in KINDS.items():
        if field_name in fields and type(fields[field_name]) is not kind:
            wanted = "text" if kind is str else "a number"
            raise DataError(f"{where}: [{name}] {field_name} must be {wanted}, got {fields[field_name]!r}")
    stated = {**fields, "name": name}
    if "triples" in fields:
        stated["triples"] = _counts(name, fields["triples"], where)
    if "files" in fields:
        stated["files"] = _files(name, fields["files"], where)
        if "triples" not in fields and (before is None or before.triples is None):
            stated["triples"] = _lines(stated["files"])
    return replace(before, **stated) if before else DatasetEntry(**stated)


def _counts(name: str, given: Any, where: str) -> tuple[int, ...]:
    if not isinstance(given, list) or len(given) != len(SPLITS) or not all(type(n) is int for n in given):
        raise DataError(f"{where}: [{name}] triples must be the counts of train, valid and test, got {given!r}")
    return tuple(given)


def _lines(files: Mapping[str, RemoteFile]) -> tuple[int | None, ...] | None:
    counts = tuple(files[split].lines if split in files else 0 for split in SPLITS)
    return counts if any(counts) else None


def _files(name: str, given: Any, where: str) -> dict[str, RemoteFile]:
    if not isinstance(given, dict):
        raise DataError(f"{where}: expected a table [{name}.files], got {given!r}")
    if odd := [split for split in given if split not in SPLITS]:
        raise DataError(f"{where}: [{name}.files] takes train, valid and test, got {odd[0]}")
    if "train" not in given:
        raise DataError(f"{where}: [{name}.files] must have train")
    return {split: _remote(file, f"{where}: [{name}.files] {split}") for split, file in given.items()}


def _remote(file: Any, where: str) -> RemoteFile:
    if not isinstance(file, dict) or "url" not in file or not DIGITS.keys() & file.keys():
        raise DataError(f"{where} must have url and a checksum, blob or sha256, got {file!r}")
    unknown = file.keys() - RemoteFile.__dataclass_fields__.keys()
    if unknown:
        raise DataError(f"{where} has unknown fields: {', '.join(sorted(unknown))}")
    for checksum, n_digits in DIGITS.items():
        if checksum in file and not re.fullmatch(f"[0-9a-f]{{{n_digits}}}", str(file[checksum])):
            raise DataError(f"{where}: {checksum} must be {n_digits} hexadecimal digits, got {file[checksum]!r}")
    for count in ("bytes", "lines"):
        if count in file and (type(file[count]) is not int or file[count] < 0):
            raise DataError(f"{where}: {count} must be a number, got {file[count]!r}")
    _check_url(str(file["url"]), where)
    return RemoteFile(**{**file, "columns": _columns(file.get("columns", COLUMNS), where)})


def _check_url(url: str, where: str) -> None:
    if not re.fullmatch("https?://[!-~]+", url):
        raise DataError(f"{where}: url must start with https:// or http:// and contain no spaces, got {url!r}")
    if not url.lower().endswith(SUFFIXES):
        raise DataError(f"{where}: url must end in one of {', '.join(SUFFIXES)}, got {url!r}")


def _columns(given: Any, where: str) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or sorted(map(str, given)) != sorted(COLUMNS):
        raise DataError(f"{where}: columns must be subject, relation and object in some order, got {given!r}")
    return tuple(given)
