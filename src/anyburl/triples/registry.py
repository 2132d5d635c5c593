"""Data sets by name: their descriptions and locations.

Entries come from `datasets.toml` and `addresses.toml` of this package and, on top, from the file `datasets.toml` in the
folder that $ANYBURL_DATA names.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from anyburl.errors import DataError
from anyburl.reading import at_home
from anyburl.triples.entries import SUFFIXES, DatasetEntry, read_entry

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
