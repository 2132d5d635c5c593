"""Finds DATA: the files, the index or the address behind a name or a path, and reads its labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NoReturn

import polars as pl

from anyburl.base.errors import AnyburlError, DataError, UnknownDataError, shown_argument
from anyburl.base.files import at_home
from anyburl.data.catalogue import (
    Progress,
    data_home,
    download,
    download_folder,
    find_entry,
    find_folder,
    is_index,
    quiet,
    similar_names,
)
from anyburl.data.clock import NO_TIME, Moments
from anyburl.data.files import SPLITS, TRIPLE_SUFFIXES, first_row, is_parquet, read_batches
from anyburl.data.formats.delimited import is_csv
from anyburl.data.formats.layouts import find_edges, is_ogb, read_ogb
from anyburl.data.options import Gathered, ReadOptions, has_usual_names, usual_times
from anyburl.data.remote.addresses import ENDPOINT, Address, find_address
from anyburl.data.remote.database import connected, read_database, read_whole_table
from anyburl.data.remote.endpoint import read_endpoint
from anyburl.data.remote.http import send
from anyburl.data.values import read_values, rows_of_table, take_named_values


def check_access(address: Address, timeout: float, *, writing: bool = False) -> None:
    """Raise an error if a server refuses access, `UnauthorizedError` if it asks for credentials; change nothing."""
    if address.kind == ENDPOINT:
        field, text = ("update", "INSERT DATA {}") if writing else ("query", "ASK {}")
        send(address, field, text, timeout=timeout, read=lambda answer: None)
    else:
        with connected(address, timeout=timeout):
            pass


FOLDER_HOLDS = (
    "a folder contains train and, optionally, valid and test, each .txt, .tsv or .csv, also .gz or .zst, "
    ".parquet, or RDF"
)
RUN = "options.json"  # marks the folder of a run, which also has a train.parquet
STEMS = ("attributes", "numeric")
"""How files of values in a folder of data begin: attributes.tsv, numeric.txt.gz; attributes_valid.tsv if held out."""

VALUE_SUFFIXES = (*(kind + packed for kind in (".txt", ".tsv", ".csv") for packed in ("", ".gz", ".zst")), ".parquet")


@dataclass(frozen=True)
class DataLocation:
    """Where a data set is: a file of each split (None for a split without triples; train may be a folder of OGB), the
    folder of an index, or the `address` of a database or endpoint, all of which is train; and files of `values`.
    """

    name: str
    source: str
    files: dict[str, Path | None]
    index: Path | None = None
    address: Address | None = None
    values: Mapping[str, Path] = field(default_factory=dict)

    def batches(self, split: str, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
        """Yield the labels of a split, a piece at a time; names, prefixes, values and counts go to `gathered`."""
        gathered.split = split
        yield from take_named_values(self._batches(split, options, gathered), options, gathered, self._origin(split))
        if split == "train":
            read_value_files(self.values, options, gathered)

    def _batches(self, split: str, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
        if self.address is not None and split == "train":
            if self.address.kind == ENDPOINT:
                return read_endpoint(self.address, options, gathered)
            return read_database(self.address, options)
        file = self.files.get(split)
        if file is None:
            return iter(())
        return read_ogb(file, gathered) if is_ogb(file) else read_batches(file, options, gathered)

    def _origin(self, split: str) -> str | Path:
        return self.source if self.address is not None else self.files.get(split) or self.source

    def check_split(self, options: ReadOptions) -> None:
        """Raise an error if `options` split data that has splits already."""
        if self.index is not None and options.names_attributes:
            raise DataError(f"{self.source} is an index, which has its values: pass attributes to `anyburl index`")
        if options.split is None and options.split_at is None:
            return
        flag = "--split" if options.split is not None else "--split-at"
        if self.index is not None:
            raise DataError(f"{self.source} is an index, which has its splits: pass {flag} to `anyburl index`")
        splits = [file.name for split in ("valid", "test") if (file := self.files.get(split))]
        if splits:
            raise DataError(f"{self.source} already has splits ({', '.join(splits)}): drop {flag}")


def reporting(progress: Callable[[int], None]) -> Callable[[Iterable[pl.DataFrame]], Iterator[pl.DataFrame]]:
    """Return a function that yields given batches, and calls `progress` with the number of rows of all so far."""
    n_rows = 0

    def reported(batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        nonlocal n_rows
        for batch in batches:
            n_rows += batch.height
            progress(n_rows)
            yield batch

    return reported


def fetch_dataset(data: str | os.PathLike[str], progress: Progress = quiet) -> None:
    """Download what `load_dataset` would download."""
    with located(data, progress):
        pass


@contextmanager
def located(data: str | os.PathLike[str], progress: Progress = quiet) -> Iterator[DataLocation]:
    """Find a data set as `load_dataset` does; its files exist as long as the context lasts."""
    built_in = _built_in()
    if isinstance(data, str) and data in built_in:
        with resources.as_file(built_in[data]) as folder:
            yield _in_folder(folder, data, data)
        return
    address = find_address(data)
    if address is not None:
        if address.file is not None and not address.file.is_file():
            raise DataError(f"{address.text}: no such file")
        yield DataLocation(address.name, address.text, {"train": address.file}, address=address)
        return
    path = at_home(data)
    home = data_home()
    if not path.exists() and home and (home / path).exists():
        path = home / path
    if not path.exists() and path.parent in (Path(), download_folder()):  # where a run had its data
        path = find_dataset(path.name, progress) or path
    if not path.exists():
        _refuse_missing(os.fspath(data))
    if path.is_dir():
        yield _in_folder(path, path.resolve().name, str(path))
    else:
        yield DataLocation(_stem(path), str(path), {"train": path, "valid": None, "test": None})


def recognise_times(source: str, reading: ReadOptions) -> bool:
    """Return whether the facts of a file or folder have times, by its first line or its columns, or by the options.

    A fourth field has to be a time, and a table has to name its columns as usual; a database, an endpoint and RDF have
    times only if the options name them.
    """
    if reading.time is not None or reading.columns is not None or reading.dump is not None:
        return reading.has_times
    try:
        with located(source) as files:
            file = files.files.get("train")
            if files.address is not None or files.index is not None or file is None or file.is_dir():
                return False
            names = first_row(file)
    except AnyburlError:
        return False  # the error is reported when the data is read
    if len(names) not in (4, 5):
        return False
    if usual_times(names):
        return has_usual_names([name for i, name in enumerate(names) if i not in usual_times(names)])
    is_text = not is_parquet(file) and not is_csv(file)
    return is_text and bool((Moments.of(pl.Series(names[3:4])).exactness != NO_TIME).all())


def lasting_source(source: str | None) -> str | None:
    """Return what a run folder records as the source of its data: paths are made absolute, built-in names stay."""
    if source and source not in _built_in() and os.path.exists(source):
        return os.path.abspath(source)
    return source


def find_dataset(name: str, progress: Progress = quiet) -> Path | None:
    """Return the folder of a data set by name, downloaded if necessary; None if nothing has that name."""
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


BUILT_IN_TRAIN = "train.txt.gz"


def _built_in() -> dict[str, Traversable]:
    folder = resources.files("anyburl") / "data"
    if not folder.is_dir():
        return {}
    return {entry.name: entry for entry in folder.iterdir() if (entry / BUILT_IN_TRAIN).is_file()}


def _in_folder(folder: Path, name: str, source: str) -> DataLocation:
    if (folder / RUN).is_file():
        raise DataError(f"{folder} is a run folder, which contains rules: pass the data they were learned from")
    names = sorted(entry.name for entry in folder.iterdir())
    files = {split: _split_file(folder, split, names) for split in SPLITS}
    if files["train"] is None and is_index(folder):
        return DataLocation(name, source, {}, folder)
    if files["train"] is None:
        files["train"] = folder if is_ogb(folder) else find_edges(folder)
    if files["train"] is None:
        listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "") if names else "an empty folder"
        raise DataError(f"{folder}: no train file, got {listed}; {FOLDER_HOLDS}")
    return DataLocation(name, source, files, values=find_value_files(folder))


def _split_file(folder: Path, split: str, names: Sequence[str]) -> Path | None:
    files = [split + suffix for suffix in TRIPLE_SUFFIXES if split + suffix in names]
    if len(files) > 1:
        raise DataError(f"{folder}: expected one {split} file, got {' and '.join(files)}; keep one of them")
    return folder / files[0] if files else None


def _stem(path: Path) -> str:
    name = path.name
    for suffix in sorted(TRIPLE_SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)] or name
    return name.removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2") or name


def _refuse_missing(data: str) -> NoReturn:
    home = data_home()
    also = f" (nor is it in ANYBURL_DATA, {home})" if home else ""
    similar = similar_names(data)
    known = f": `anyburl datasets` lists the names that are known; {FOLDER_HOLDS}"
    hint = f"; did you mean {' or '.join(similar)}?" if similar else known
    shown = shown_argument(data)
    raise UnknownDataError(f"no data set, folder or file {shown!r}{also}{hint}", similar)


def find_value_files(folder: Path) -> dict[str, Path]:
    """Return the files of values in a folder, by split: attributes.tsv, attributes_train.tsv, attributes_valid.tsv."""
    by_split = {}
    for split in SPLITS:
        stems = [f"{stem}_{split}" for stem in STEMS] + [*STEMS] * (split == "train")
        files = [path for stem in stems for suffix in VALUE_SUFFIXES if (path := folder / (stem + suffix)).is_file()]
        if len(files) > 1:
            names = " and ".join(file.name for file in files)
            raise DataError(f"{folder}: expected one file of values for {split}, got {names}; keep one of them")
        if files:
            by_split[split] = files[0]
    return by_split


def named_value_files(attribute_file: str | None) -> dict[str, Path]:
    """Return the files of values that the option of that name leads to, by split; none for a table of a database."""
    if attribute_file is None or find_address(attribute_file):
        return {}
    path = at_home(attribute_file)
    files = find_value_files(path) if path.is_dir() else {"train": path}
    if not files:
        raise DataError(f"{path}: expected a file of values such as {STEMS[0]}.tsv in this folder, got none")
    return files


def read_value_files(files: Mapping[str, Path], options: ReadOptions, gathered: Gathered) -> None:
    """Collect the texts in files of values: those beside the data, and what the options name."""
    named = named_value_files(options.attribute_file)
    gathered.values += [(split, read_values(file)) for split, file in (*files.items(), *named.items())]
    if options.attribute_file is not None and (address := find_address(options.attribute_file)):
        table = read_whole_table(address, options.timeout)
        gathered.values.append(("train", rows_of_table(table, address.text)))
