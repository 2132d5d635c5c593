"""Data sets: train, valid and test over one vocabulary."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NoReturn

import polars as pl

from anyburl.errors import DataError, OptionError
from anyburl.triples.files import read_triples
from anyburl.triples.frames import COLUMNS, TriplesLike, label_frame
from anyburl.triples.registry import SPLITS as SPLITS
from anyburl.triples.registry import SUFFIXES, data_home, find_entry, find_folder, names_like
from anyburl.triples.table import TripleTable, tables_of
from anyburl.triples.vocabulary import Vocabulary

FOLDER_HOLDS = "a folder holds train and, if there are any, valid and test, each .txt or .tsv, also .gz or .zst"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Three tables of triples over one shared vocabulary. Nothing is dropped across the splits."""

    name: str
    train: TripleTable
    valid: TripleTable
    test: TripleTable
    source: str | None = None

    def __post_init__(self) -> None:
        if not all(self.vocabulary.same_labels(table.vocabulary) for table in (self.valid, self.test)):
            raise DataError("expected one vocabulary for train, valid and test: use Dataset.from_triples")

    @classmethod
    def from_triples(
        cls,
        train: TripleTable | TriplesLike,
        valid: TripleTable | TriplesLike | None = None,
        test: TripleTable | TriplesLike | None = None,
        name: str = "triples",
    ) -> Dataset:
        """Make a data set from tables, Polars or pandas frames, arrays or lists of tuples."""
        frames = [_labels(split, triples) for split, triples in zip(SPLITS, (train, valid, test), strict=True)]
        return cls._from_frames(frames, name, None)

    @classmethod
    def _from_frames(cls, frames: list[pl.DataFrame], name: str, source: str | None) -> Dataset:
        train, valid, test = tables_of(frames)
        return cls(name, train, valid, test, source)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.train.vocabulary

    def split(self, name: str) -> TripleTable:
        """Return a split by its name."""
        if name not in SPLITS:
            raise OptionError(f"split must be train, valid or test, got {name!r}")
        table: TripleTable = getattr(self, name)
        return table

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the labels and triples: the same data in another order has the same fingerprint."""
        digest = hashlib.blake2b(digest_size=16)
        for labels in (self.vocabulary.entities, self.vocabulary.relations):
            digest.update("\0".join([str(len(labels)), *labels]).encode())
        for split in SPLITS:
            table = self.split(split)
            digest.update(f"\0{len(table)}\0".encode())
            digest.update(table.triples.astype("<i4", copy=False).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        counts = ", ".join(f"{split} {len(self.split(split))}" for split in SPLITS)
        words = self.vocabulary
        return f"Dataset({self.name!r}: {counts}; {words.n_entities} entities, {words.n_relations} relations)"


def load_dataset(data: str | os.PathLike[str]) -> Dataset:
    """Load a built-in data set by name, a folder, a single file (train only), or a data set that is known by name.

    A name, however it is written (FB15k-237, fb15k237), is looked up in the folder $ANYBURL_DATA, then among what was
    downloaded; what can be downloaded and was not yet, is.
    """
    built_in = _built_in()
    if isinstance(data, str) and data in built_in:
        with resources.as_file(built_in[data]) as folder:
            return _load_folder(folder, data, data)
    path = Path(data).expanduser()
    home = data_home()
    if not path.exists() and home and (home / path).exists():
        path = home / path
    if not path.exists() and len(path.parts) == 1:
        path = find_dataset(str(path)) or path
    if path.is_dir():
        return _load_folder(path, path.resolve().name, str(path))
    if not path.exists():
        _refuse_missing(os.fspath(data), sorted(built_in))
    frames = [read_triples(path), _no_triples(), _no_triples()]
    return Dataset._from_frames(frames, _stem(path), str(path))


def find_dataset(name: str) -> Path | None:
    """Return the folder of a data set that is known by name, downloaded if need be; None if nothing has that name."""
    entry = find_entry(name)
    if entry and entry.files:
        from anyburl.triples.download import download

        return find_folder(name, downloaded=False) or download(entry)
    folder = find_folder(name)
    if folder is None and entry:
        home = data_home()
        raise DataError(
            f"{entry.name} is not on this machine, and there is no address of it that was checked: put train, valid "
            f"and test into {home / entry.name if home else f'$ANYBURL_DATA/{entry.name}'} (from {entry.source})"
        )
    return folder


def _labels(split: str, triples: TripleTable | TriplesLike | None) -> pl.DataFrame:
    if triples is None:
        return _no_triples()
    try:
        return triples.to_polars() if isinstance(triples, TripleTable) else label_frame(triples)
    except DataError as error:
        raise DataError(f"{split}: {error}") from error


def _no_triples() -> pl.DataFrame:
    return pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))


def _built_in() -> dict[str, Traversable]:
    folder = resources.files("anyburl") / "data"
    if not folder.is_dir():
        return {}
    return {entry.name: entry for entry in folder.iterdir() if entry.is_dir() and entry.name[0] not in "._"}


def _load_folder(folder: Path, name: str, source: str) -> Dataset:
    files = {split: _split_file(folder, split) for split in SPLITS}
    if files["train"] is None:
        found = sorted(entry.name for entry in folder.iterdir())
        listed = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "") if found else "an empty folder"
        raise DataError(f"{folder}: there is no train file, got {listed}; {FOLDER_HOLDS}")
    frames = [_no_triples() if file is None else read_triples(file) for file in files.values()]
    return Dataset._from_frames(frames, name, source)


def _split_file(folder: Path, split: str) -> Path | None:
    found = [split + suffix for suffix in SUFFIXES if (folder / (split + suffix)).exists()]
    if len(found) > 1:
        raise DataError(f"{folder}: expected one {split} file, got {' and '.join(found)}; keep one of them")
    return folder / found[0] if found else None


def _stem(path: Path) -> str:
    name = path.name
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)] or name
    return name.removesuffix(".gz").removesuffix(".zst") or name


def _refuse_missing(data: str, built_in: list[str]) -> NoReturn:
    names = f"built-in data sets are {', '.join(built_in)}" if built_in else "there are no built-in data sets"
    home = os.environ.get("ANYBURL_DATA")
    also = f" (nor is it in ANYBURL_DATA, {home})" if home else ""
    like = names_like(data)
    hint = f"; did you mean {' or '.join(like)}?" if like else f": {names}; {FOLDER_HOLDS}"
    raise DataError(f"there is no data set, folder or file {data!r}{also}{hint}")
