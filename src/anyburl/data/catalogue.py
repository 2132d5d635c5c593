"""Data sets by name: their entries in `datasets.toml` (ours, and the one in $ANYBURL_DATA on top), and their downloads.

A download is verified by git's blob id or SHA-256, and kept with the columns subject, relation, object. `checked.json`
beside the files records the checksums, so that they are not computed again. Not pooch, which neither resumes downloads
nor knows blob ids.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from anyburl.base.errors import DataError
from anyburl.base.files import alone, at_home
from anyburl.base.writing import put_in_place, replace_text
from anyburl.data.files import SPLITS, TRIPLE_SUFFIXES, read_triples, write_triples
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.remote.http import fetch

FIELD_TYPES = {**dict.fromkeys(("about", "licence", "citation", "source"), str), "entities": int, "relations": int}
DIGITS = {"blob": 40, "sha256": 64}  # how many hexadecimal digits a checksum has


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """The address of a split and the checksums it must have: git's blob id, SHA-256, or both.

    `columns` names the columns of the file; it is kept with subject, relation, object.
    """

    url: str
    blob: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    lines: int | None = None
    columns: tuple[str, ...] = COLUMNS

    @property
    def suffix(self) -> str:
        """The suffix of the file: .txt, .tsv.gz and so on."""
        return next(suffix for suffix in TRIPLE_SUFFIXES if self.url.lower().endswith(suffix))


@dataclass(frozen=True, kw_only=True)
class DatasetEntry:
    """A data set with a name; unknown figures are None. Without `files`, it cannot be downloaded."""

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
    """Check a table of a file and merge it into the entry `before`."""
    if re.search(r"[/\\]|^\.", name):
        raise DataError(f"{where}: the name of a data set must be a valid folder name, got {name!r}")
    unknown = fields.keys() - DatasetEntry.__dataclass_fields__.keys()
    if unknown:
        raise DataError(f"{where}: [{name}] has unknown fields: {', '.join(sorted(unknown))}")
    for field_name, kind in FIELD_TYPES.items():
        if field_name in fields and type(fields[field_name]) is not kind:
            expected = "text" if kind is str else "a number"
            raise DataError(f"{where}: [{name}] {field_name} must be {expected}, got {fields[field_name]!r}")
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
    if not url.lower().endswith(TRIPLE_SUFFIXES):
        raise DataError(f"{where}: url must end in one of {', '.join(TRIPLE_SUFFIXES)}, got {url!r}")


def _columns(given: Any, where: str) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or sorted(map(str, given)) != sorted(COLUMNS):
        raise DataError(f"{where}: columns must be subject, relation and object in some order, got {given!r}")
    return tuple(given)


FILE, ADDRESSES = "datasets.toml", "addresses.toml"
INDEX = "index.json"  # marks the folder of an index


def plain_name(name: str) -> str:
    """Return a name in lower case, without dashes and blanks."""
    return re.sub(r"[\W_]", "", name.lower())


def data_home() -> Path | None:
    """Return the folder that $ANYBURL_DATA names."""
    home = os.environ.get("ANYBURL_DATA")
    return at_home(home) if home else None


def download_folder() -> Path:
    """Return where downloaded data sets are kept."""
    return Path(os.environ.get("ANYBURL_CACHE") or user_cache_path("anyburl")) / "datasets"


def registry() -> dict[str, DatasetEntry]:
    """Return all data sets that have a name, by that name."""
    home = data_home()
    if home and (home / FILE).is_file():
        return _merged(_shipped(), _read(home / FILE), str(home / FILE))
    return dict(_shipped())


@cache
def _shipped() -> dict[str, DatasetEntry]:
    """Return the data sets that this package knows."""
    entries: dict[str, DatasetEntry] = {}
    for file in (FILE, ADDRESSES):
        text = (resources.files("anyburl") / "data" / file).read_text("utf-8")
        entries = _merged(entries, tomllib.loads(text), file)
    return entries


def _merged(entries: dict[str, DatasetEntry], tables: dict[str, Any], where: str) -> dict[str, DatasetEntry]:
    """Return the entries with the tables of a file merged into them."""
    merged, names = dict(entries), {plain_name(name): name for name in entries}
    for name, fields in tables.items():
        known = names.get(plain_name(name), name)
        merged[known] = read_entry(known, fields, where, merged.get(known))
    return merged


def find_entry(name: str) -> DatasetEntry | None:
    """Return the entry of a data set, however its name is written."""
    return next((entry for known, entry in registry().items() if plain_name(known) == plain_name(name)), None)


def find_folder(name: str, *, downloaded: bool = True) -> Path | None:
    """Return the folder of that name, however it is written: in $ANYBURL_DATA, or else among downloads."""
    for parent in (data_home(), download_folder() if downloaded else None):
        if parent is None or not parent.is_dir():
            continue
        for folder in sorted(parent.iterdir()):
            if plain_name(folder.name) == plain_name(name) and has_train(folder):
                return folder
    return None


def has_train(folder: Path) -> bool:
    """Return whether a folder holds a data set."""
    return is_index(folder) or any((folder / f"train{suffix}").exists() for suffix in TRIPLE_SUFFIXES)


def is_index(folder: Path) -> bool:
    """Return whether a folder holds what `anyburl index` wrote."""
    return (folder / INDEX).is_file()


def similar_names(name: str) -> list[str]:
    """Return up to three similar names of data sets."""
    by_plain = {plain_name(known): known for known in registry()}
    near = difflib.get_close_matches(plain_name(name), by_plain, n=3, cutoff=0.6)
    return [by_plain[name] for name in near]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
        repr(tables)  # errors quote values, and a number with thousands of digits has no repr
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid TOML: {error}") from error
    for name, fields in tables.items():
        if not isinstance(fields, dict):
            raise DataError(f"{path}: expected a table [{name}], got {fields!r}")
    return tables


BLOCK = 1 << 20


def wrong_checksum(path: Path, file: RemoteFile) -> str | None:
    """Return which checksum of a file is wrong, in words; None if none is."""
    blob = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    sha256 = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            blob.update(block)
            sha256.update(block)
    if file.blob and file.blob != blob.hexdigest():
        return f"expected the git blob {file.blob}, got {blob.hexdigest()}"
    if file.sha256 and file.sha256 != sha256.hexdigest():
        return f"expected the SHA-256 {file.sha256}, got {sha256.hexdigest()}"
    return None


CHECKED, LOCK = "checked.json", ".lock"

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, its bytes received so far, and its size if known."""


def quiet(file: str, n_bytes: int, total: int | None) -> None:
    """Show nothing."""


def download(entry: DatasetEntry, progress: Progress = quiet) -> Path:
    """Download the files of a data set that are missing or have other checksums; return its folder."""
    folder = download_folder() / entry.name
    if is_downloaded(entry):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / LOCK):
            for split, file in entry.files.items():
                if not _is_complete(folder, split, file):
                    _get(entry.name, folder, split, file, progress)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(
            f"cannot write {error.filename or folder} ({reason}): set ANYBURL_CACHE to another folder"
        ) from error
    return folder


def is_downloaded(entry: DatasetEntry) -> bool:
    """Return whether all files of a data set have been downloaded."""
    folder = download_folder() / entry.name
    return all(_is_complete(folder, split, file) for split, file in entry.files.items())


def _is_complete(folder: Path, split: str, file: RemoteFile) -> bool:
    path = folder / (split + file.suffix)
    return path.is_file() and _read_checked(folder).get(path.name) == _stamp(file, path)


def _get(name: str, folder: Path, split: str, file: RemoteFile, progress: Progress) -> None:
    """Download one file, and remove other files of this split."""
    path = folder / (split + file.suffix)
    partial = folder / f"{path.name}.part"
    _fetch_checked(file, partial, lambda n, total: progress(f"{name}/{path.name}", n, total or file.bytes))
    if file.columns == COLUMNS:
        put_in_place(partial, path)
    else:
        write_triples(read_triples(partial).rename(dict(zip(COLUMNS, file.columns, strict=True))), path)
        partial.unlink()
    for suffix in TRIPLE_SUFFIXES:
        if suffix != file.suffix:
            (folder / (split + suffix)).unlink(missing_ok=True)
    checked = {**_read_checked(folder), path.name: _stamp(file, path)}
    replace_text(folder / CHECKED, json.dumps(checked, indent=2) + "\n")


def _fetch_checked(file: RemoteFile, partial: Path, received: Callable[[int, int | None], None]) -> None:
    """Download a file and verify it; if a resumed download has the wrong checksum, start over."""
    has_resumed = partial.exists()
    fetch(file.url, partial, received)
    wrong = wrong_checksum(partial, file)
    if wrong and has_resumed:
        partial.unlink()
        fetch(file.url, partial, received)
        wrong = wrong_checksum(partial, file)
    if wrong:
        partial.unlink()
        raise DataError(f"{file.url} has the wrong checksum: {wrong}; the download was discarded")


def _stamp(file: RemoteFile, path: Path) -> dict[str, Any]:
    """Return the record in `checked.json` of a file that was verified and is unchanged since."""
    return {"blob": file.blob, "sha256": file.sha256, "columns": [*file.columns], "bytes": path.stat().st_size}


def _read_checked(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        records = json.loads((folder / CHECKED).read_text("utf-8"))
        if isinstance(records, dict):
            return records
    return {}
