"""Parquet files with three columns of labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from anyburl.errors import DataError
from anyburl.polars_unstable import UNREADABLE, frame_batches
from anyburl.sealed import scan_parquet
from anyburl.triples.columns import choose_columns
from anyburl.triples.frames import label_frame
from anyburl.triples.read_options import ReadOptions

PARQUET = ".parquet"


def is_parquet(path: Path) -> bool:
    """Whether the name of a file says that it is Parquet."""
    return path.name.lower().endswith(PARQUET)


def read_parquet(path: Path, options: ReadOptions, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the labels in the chosen columns, about `rows` rows at a time."""
    n_read = 0
    try:
        table = scan_parquet(path)
        names = table.collect_schema().names()
        chosen = table.select(names[place] for place in choose_columns(names, options.columns, path))
        for batch in frame_batches(chosen, rows):
            if batch.height:
                yield _labels(batch, path, n_read)
                n_read += batch.height
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: expected a Parquet file ({reason})") from error
    if not n_read:
        raise DataError(f"{path}: expected rows with a subject, a relation and an object, got none")


def _labels(batch: pl.DataFrame, path: Path, first: int) -> pl.DataFrame:
    try:
        return label_frame(batch, batch.columns, first)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
