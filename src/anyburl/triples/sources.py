"""Finds DATA: the files or the index behind a name or a path."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NoReturn

import polars as pl

from anyburl.errors import DataError, UnknownDataError
from anyburl.reading import at_home
from anyburl.triples.download import Progress, download, quiet
from anyburl.triples.entries import SPLITS, SUFFIXES
from anyburl.triples.files import read_batches
from anyburl.triples.gathered import Gathered
from anyburl.triples.kgx import find_edges
from anyburl.triples.ogb import is_ogb, read_ogb
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.registry import data_home, download_folder, find_entry, find_folder, is_index, names_like
from anyburl.triples.remote.addresses import Address, find_address, shown_argument
from anyburl.triples.remote.read import read_remote

FOLDER_HOLDS = (
    "a folder contains train and, optionally, valid and test, each .txt, .tsv or .csv, also .gz or .zst, or .parquet"
)
RUN = "options.json"  # what tells the folder of a run, which holds train.parquet


@dataclass(frozen=True)
class Source:
    """Where a data set is: a file of each split (None for a split without triples), or the folder of an index.

    The file of train may be a folder of OGB. Or an `address`: a database or an endpoint, all of which is train. Its
    file, if it is in one, is listed as well.
    """

    name: str
    source: str
    files: dict[str, Path | None]
    index: Path | None = None
    address: Address | None = None

    def batches(self, split: str, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
        """Yield the labels of a split, a piece at a time; what is found besides them goes to `gathered`."""
        if self.address is not None:
            return read_remote(self.address, options, gathered) if split == "train" else iter(())
        file = self.files.get(split)
        if file is None:
            return iter(())
        return read_ogb(file, gathered) if is_ogb(file) else read_batches(file, options, gathered)

    def check_split(self, options: ReadOptions) -> None:
        """Refuse to divide what is divided already."""
        if options.split is None:
            return
        if self.index is not None:
            raise DataError(f"{self.source} is an index, which has its splits: pass --split to `anyburl index`")
        found = [file.name for split in ("valid", "test") if (file := self.files.get(split))]
        if found:
            raise DataError(f"{self.source} already has splits ({', '.join(found)}): drop --split")


def fetch_dataset(data: str | os.PathLike[str], progress: Progress = quiet) -> None:
    """Download what `load_dataset` would download, so that nothing of it is left to do."""
    with located(data, progress):
        pass


@contextmanager
def located(data: str | os.PathLike[str], progress: Progress = quiet) -> Iterator[Source]:
    """Find a data set, as `load_dataset` does; its files are there as long as the context lasts."""
    built_in = _built_in()
    if isinstance(data, str) and data in built_in:
        with resources.as_file(built_in[data]) as folder:
            yield _in_folder(folder, data, data)
        return
    address = find_address(data)
    if address is not None:
        if address.file is not None and not address.file.is_file():
            raise DataError(f"{address.text}: no such file")
        yield Source(address.name, address.text, {"train": address.file}, address=address)
        return
    path = at_home(data)
    home = data_home()
    if not path.exists() and home and (home / path).exists():
        path = home / path
    if not path.exists() and path.parent in (Path(), download_folder()):  # a run remembers where its data was kept
        path = find_dataset(path.name, progress) or path
    if not path.exists():
        _refuse_missing(os.fspath(data))
    if path.is_dir():
        yield _in_folder(path, path.resolve().name, str(path))
    else:
        yield Source(_stem(path), str(path), {"train": path, "valid": None, "test": None})


def find_dataset(name: str, progress: Progress = quiet) -> Path | None:
    """Return the folder of a data set that is known by name, downloaded if need be; None if nothing has that name."""
    entry = find_entry(name)
    if entry and entry.files:
        return find_folder(name, downloaded=False) or download(entry, progress)
    folder = find_folder(name)
    if folder is None and entry:
        home = data_home()
        raise DataError(
            f"{entry.name} is not on this machine, and anyburl cannot download it: get it from {entry.source} and "
            f"put train, valid and test into {home / entry.name if home else f'$ANYBURL_DATA/{entry.name}'}"
        )
    return folder


def _built_in() -> dict[str, Traversable]:
    folder = resources.files("anyburl") / "data"
    if not folder.is_dir():
        return {}
    return {entry.name: entry for entry in folder.iterdir() if entry.is_dir() and entry.name[0] not in "._"}


def _in_folder(folder: Path, name: str, source: str) -> Source:
    if (folder / RUN).is_file():
        raise DataError(f"{folder} is a run folder, which contains rules: pass the data they were learned from")
    found = sorted(entry.name for entry in folder.iterdir())
    files = {split: _split_file(folder, split, found) for split in SPLITS}
    if files["train"] is None and is_index(folder):
        return Source(name, source, {}, folder)
    if files["train"] is None:
        files["train"] = folder if is_ogb(folder) else find_edges(folder)
    if files["train"] is None:
        listed = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "") if found else "an empty folder"
        raise DataError(f"{folder}: no train file, got {listed}; {FOLDER_HOLDS}")
    return Source(name, source, files)


def _split_file(folder: Path, split: str, names: Sequence[str]) -> Path | None:
    found = [split + suffix for suffix in SUFFIXES if split + suffix in names]
    if len(found) > 1:
        raise DataError(f"{folder}: expected one {split} file, got {' and '.join(found)}; keep one of them")
    return folder / found[0] if found else None


def _stem(path: Path) -> str:
    name = path.name
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)] or name
    return name.removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2") or name


def _refuse_missing(data: str) -> NoReturn:
    home = data_home()
    also = f" (nor is it in ANYBURL_DATA, {home})" if home else ""
    like = names_like(data)
    known = f": `anyburl datasets` lists the names that are known; {FOLDER_HOLDS}"
    hint = f"; did you mean {' or '.join(like)}?" if like else known
    shown = shown_argument(data)
    raise UnknownDataError(f"no data set, folder or file {shown!r}{also}{hint}", like)
