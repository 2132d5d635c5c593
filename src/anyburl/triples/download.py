"""Downloads of data sets: what is missing is fetched, checked and kept with the columns subject, relation, object.

`checked.json` beside the files says which checksums they had, so that they are not read again to find out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from anyburl.errors import DataError
from anyburl.locks import alone
from anyburl.triples.checksums import wrong_checksum
from anyburl.triples.entries import SUFFIXES, DatasetEntry, RemoteFile
from anyburl.triples.fetching import fetch
from anyburl.triples.files import read_triples, write_triples
from anyburl.triples.frames import COLUMNS
from anyburl.triples.registry import download_folder
from anyburl.writing import put_in_place, replace_text

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
