"""Data sets by name: their descriptions and locations.

Entries come from `datasets.toml` and `addresses.toml` of this package and, on top, from the file `datasets.toml` in the
folder that $ANYBURL_DATA names.

Checksums of downloaded files: git's blob id and SHA-256.

Downloads of data sets: what is missing is fetched, checked and kept with the columns subject, relation, object.

`checked.json` beside the files says which checksums they had, so that they are not read again to find out.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from anyburl.base.errors import DataError
from anyburl.base.locks import alone
from anyburl.base.reading import at_home
from anyburl.base.writing import put_in_place, replace_text
from anyburl.data.entries import SUFFIXES, DatasetEntry, RemoteFile, read_entry
from anyburl.data.files import read_triples, write_triples
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.remote.fetching import fetch

FILE, ADDRESSES = "datasets.toml", "addresses.toml"
INDEX = "index.json"  # what tells the folder of an index


def plain_name(name: str) -> str:
    """Return a name without what people write differently: upper case, dashes, blanks."""
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
        return _on_top(_shipped(), _read(home / FILE), str(home / FILE))
    return dict(_shipped())


@cache
def _shipped() -> dict[str, DatasetEntry]:
    """Return the data sets that this package knows."""
    found: dict[str, DatasetEntry] = {}
    for file in (FILE, ADDRESSES):
        text = (resources.files("anyburl") / "data" / file).read_text("utf-8")
        found = _on_top(found, tomllib.loads(text), file)
    return found


def _on_top(entries: dict[str, DatasetEntry], tables: dict[str, Any], where: str) -> dict[str, DatasetEntry]:
    """Return the entries with the tables of a file added to them."""
    found, names = dict(entries), {plain_name(name): name for name in entries}
    for name, fields in tables.items():
        known = names.get(plain_name(name), name)
        found[known] = read_entry(known, fields, where, found.get(known))
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
    """Return whether a folder holds a data set."""
    return is_index(folder) or any((folder / f"train{suffix}").exists() for suffix in SUFFIXES)


def is_index(folder: Path) -> bool:
    """Return whether a folder holds what `anyburl index` wrote."""
    return (folder / INDEX).is_file()


def names_like(name: str) -> list[str]:
    """Return up to three names of data sets that resemble one that is unknown."""
    by_plain = {plain_name(known): known for known in registry()}
    near = difflib.get_close_matches(plain_name(name), by_plain, n=3, cutoff=0.6)
    return [by_plain[found] for found in near]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        repr(found)  # errors show what was given, and a number with thousands of digits cannot be shown
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid TOML: {error}") from error
    for name, fields in found.items():
        if not isinstance(fields, dict):
            raise DataError(f"{path}: expected a table [{name}], got {fields!r}")
    return found


BLOCK = 1 << 20


def wrong_checksum(path: Path, file: RemoteFile) -> str | None:
    """Return in words how a file differs from what it should be; None if it does not."""
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
"""Called with the name of a file, how many bytes of it are there, and how many it has if that is known."""


def quiet(file: str, n_bytes: int, total: int | None) -> None:
    """Show nothing."""


def download(entry: DatasetEntry, progress: Progress = quiet) -> Path:
    """Download the files of a data set that are not there, or have other checksums; return its folder."""
    folder = download_folder() / entry.name
    if is_downloaded(entry):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / LOCK):
            for split, file in entry.files.items():
                if not _is_there(folder, split, file):
                    _get(entry.name, folder, split, file, progress)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(
            f"cannot write {error.filename or folder} ({reason}): set ANYBURL_CACHE to another folder"
        ) from error
    return folder


def is_downloaded(entry: DatasetEntry) -> bool:
    """Return whether all files of a data set are there."""
    folder = download_folder() / entry.name
    return all(_is_there(folder, split, file) for split, file in entry.files.items())


def _is_there(folder: Path, split: str, file: RemoteFile) -> bool:
    path = folder / (split + file.suffix)
    return path.is_file() and _read_checked(folder).get(path.name) == _stamp(file, path)


def _get(name: str, folder: Path, split: str, file: RemoteFile, progress: Progress) -> None:
    """Download one file, and put it in the place of what was there of this split."""
    path = folder / (split + file.suffix)
    partial = folder / f"{path.name}.part"
    _fetch_checked(file, partial, lambda n, total: progress(f"{name}/{path.name}", n, total or file.bytes))
    if file.columns == COLUMNS:
        put_in_place(partial, path)
    else:
        write_triples(read_triples(partial).rename(dict(zip(COLUMNS, file.columns, strict=True))), path)
        partial.unlink()
    for suffix in SUFFIXES:
        if suffix != file.suffix:
            (folder / (split + suffix)).unlink(missing_ok=True)
    checked = {**_read_checked(folder), path.name: _stamp(file, path)}
    replace_text(folder / CHECKED, json.dumps(checked, indent=2) + "\n")


def _fetch_checked(file: RemoteFile, partial: Path, received: Callable[[int, int | None], None]) -> None:
    """Download a file and check it; if an earlier attempt left something else behind, from its beginning."""
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
    """Return what `checked.json` says about a file that was checked and is unchanged since."""
    return {"blob": file.blob, "sha256": file.sha256, "columns": [*file.columns], "bytes": path.stat().st_size}


def _read_checked(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads((folder / CHECKED).read_text("utf-8"))
        if isinstance(found, dict):
            return found
    return {}
