"""Data sets by name: what there is to know about them, and where they are.

Entries come from `datasets.toml` of this package and, on top, from the file of the same name in the folder that
$ANYBURL_DATA names.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from anyburl.errors import DataError
from anyburl.triples.rdf import RDF_SUFFIXES

SPLITS = ("train", "valid", "test")
SUFFIXES = (*(kind + packed for kind in (".txt", ".tsv") for packed in ("", ".gz", ".zst")), *RDF_SUFFIXES)
FILE = "datasets.toml"
INDEX = "index.json"  # what tells the folder of an index


@dataclass(frozen=True)
class RemoteFile:
    """Where a split can be downloaded, and the checksum it must have."""

    url: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """What is known about a data set; None where nothing is known for certain. Without `files`, it is local only."""

    name: str
    about: str = ""
    triples: tuple[int, ...] | None = None
    entities: int | None = None
    relations: int | None = None
    licence: str | None = None
    citation: str | None = None
    source: str | None = None
    files: Mapping[str, RemoteFile] = field(default_factory=dict)


def plain_name(name: str) -> str:
    """Return a name without what people write differently: upper case, dashes, blanks."""
    return re.sub(r"[\W_]", "", name.lower())


def data_home() -> Path | None:
    """Return the folder that $ANYBURL_DATA names."""
    home = os.environ.get("ANYBURL_DATA")
    return Path(home).expanduser() if home else None


def download_folder() -> Path:
    """Return where downloaded data sets are kept."""
    return Path(os.environ.get("ANYBURL_CACHE") or user_cache_path("anyburl")) / "datasets"


def registry() -> dict[str, DatasetEntry]:
    """Return all data sets that have a name, by that name."""
    ours = resources.files("anyburl") / "data" / FILE
    found = {name: _entry(name, fields, FILE) for name, fields in tomllib.loads(ours.read_text("utf-8")).items()}
    home = data_home()
    if home and (home / FILE).is_file():
        for name, fields in _read(home / FILE).items():
            known = next((one for one in found if plain_name(one) == plain_name(name)), name)
            found[known] = _entry(known, fields, str(home / FILE), found.get(known))
    return found


def find_entry(name: str) -> DatasetEntry | None:
    """Return what is known about a data set, however its name is written."""
    return next((entry for known, entry in registry().items() if plain_name(known) == plain_name(name)), None)


def find_folder(name: str, *, downloaded: bool = True) -> Path | None:
    """Return the folder of that name, however it is written: in $ANYBURL_DATA, or else among what was downloaded."""
    for parent in (data_home(), download_folder() if downloaded else None):
        if parent is None or not parent.is_dir():
            continue
        for folder in sorted(parent.iterdir()):
            if plain_name(folder.name) == plain_name(name) and has_train(folder):
                return folder
    return None


def has_train(folder: Path) -> bool:
    """Tell whether a folder holds a data set."""
    return is_index(folder) or any((folder / f"train{suffix}").exists() for suffix in SUFFIXES)


def is_index(folder: Path) -> bool:
    """Tell whether a folder holds what `anyburl index` wrote."""
    return (folder / INDEX).is_file()


def names_like(name: str) -> list[str]:
    """Return up to three names of data sets that resemble one that is unknown."""
    by_plain = {plain_name(known): known for known in registry()}
    near = difflib.get_close_matches(plain_name(name), by_plain, n=3, cutoff=0.6)
    return [by_plain[found] for found in near]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as TOML: {error}") from error
    for name, fields in found.items():
        if not isinstance(fields, dict):
            raise DataError(f"{path}: expected a table [{name}], got {fields!r}")
    return found


def _entry(name: str, fields: dict[str, Any], where: str, before: DatasetEntry | None = None) -> DatasetEntry:
    """Check a table of the file and put it on top of what was known before."""
    odd = fields.keys() - DatasetEntry.__dataclass_fields__.keys()
    if odd:
        raise DataError(f"{where}: [{name}] has {', '.join(sorted(odd))}, which says nothing about a data set")
    stated = {**fields, "name": name}
    if "triples" in fields:
        stated["triples"] = _counts(name, fields["triples"], where)
    if "files" in fields:
        if not isinstance(fields["files"], dict):
            raise DataError(f"{where}: expected a table [{name}.files], got {fields['files']!r}")
        stated["files"] = {split: _remote(name, split, file, where) for split, file in fields["files"].items()}
    return replace(before, **stated) if before else DatasetEntry(**stated)


def _counts(name: str, given: Any, where: str) -> tuple[int, ...]:
    if not isinstance(given, list) or len(given) != len(SPLITS) or not all(type(n) is int for n in given):
        raise DataError(f"{where}: [{name}] triples must count those of train, valid and test, got {given!r}")
    return tuple(given)


def _remote(name: str, split: str, file: Any, where: str) -> RemoteFile:
    if split not in SPLITS:
        raise DataError(f"{where}: [{name}.files] takes train, valid and test, got {split}")
    if not isinstance(file, dict) or file.keys() != {"url", "sha256"}:
        raise DataError(f"{where}: [{name}.files] {split} must give url and sha256, got {file!r}")
    if not re.fullmatch("[0-9a-f]{64}", str(file["sha256"])):
        raise DataError(f"{where}: [{name}.files] {split}: sha256 has 64 hexadecimal digits, got {file['sha256']!r}")
    if not str(file["url"]).lower().endswith(SUFFIXES):
        raise DataError(f"{where}: [{name}.files] {split}: a url ends in .txt or .tsv, also .gz or .zst: {file['url']}")
    return RemoteFile(str(file["url"]), str(file["sha256"]))
