"""Files of rules: Parquet, the native one, and the choice between it and AnyBURL's text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from polars.io.plugins import register_io_source

from anyburl.errors import RuleError
from anyburl.ruleset.combine import concatenate
from anyburl.ruleset.frame import SLICE_ROWS, FrameWriter
from anyburl.ruleset.framereader import FrameReader
from anyburl.ruleset.report import ReadReport
from anyburl.ruleset.unify import unify

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.vocabulary import Vocabulary

PathLike = str | os.PathLike[str]
TEXT_SUFFIXES = tuple(name + packed for name in (".txt", ".tsv") for packed in ("", ".gz", ".zst"))


def write_rules(rules: RuleSet, path: PathLike, *, escaped: bool = False) -> None:
    """Write Parquet or text by suffix."""
    from anyburl.ruleset.text import write_text

    name = os.fspath(path).lower()
    if name.endswith(".parquet"):
        write_parquet(rules, path)
    elif name.endswith(TEXT_SUFFIXES):
        write_text(rules, path, escaped=escaped)
    else:
        suffixes = ", ".join((".parquet", *TEXT_SUFFIXES))
        raise RuleError(f"{path}: a file of rules ends in one of {suffixes}")


def read_rules(
    path: PathLike, vocabulary: Vocabulary | None = None, *, escaped: bool = False
) -> tuple[RuleSet, ReadReport]:
    """Read Parquet or text, whichever it is, and say what was left out.

    The vocabulary is made of the labels in the file; with `vocabulary`, that one is used, and rules with
    other labels are dropped and counted.
    """
    from anyburl.ruleset.text import read_text

    if first_bytes(Path(path)) == b"PAR1" or os.fspath(path).lower().endswith(".parquet"):
        return read_parquet(path, vocabulary)
    return read_text(path, vocabulary, escaped=escaped)


def write_parquet(rules: RuleSet, path: PathLike) -> None:
    """Write rules slice by slice, each a row group; the file appears when it is complete."""
    writer = FrameWriter(rules)
    frames = stream(writer.schema, writer.slices)
    with replacing(Path(path)) as unfinished:
        frames.sink_parquet(unfinished, compression="zstd", compression_level=1, row_group_size=SLICE_ROWS)


def read_parquet(path: PathLike, vocabulary: Vocabulary | None = None) -> tuple[RuleSet, ReadReport]:
    """Read rules row group by row group."""
    from anyburl.ruleset.ruleset import RuleSet

    first_bytes(Path(path))
    try:
        reader = FrameReader(pl.scan_parquet(Path(path), glob=False), os.fspath(path))
        batches = reader.frames.collect_batches(chunk_size=SLICE_ROWS)
        parts = unify((reader.read(frame) for frame in batches if len(frame)), vocabulary)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RuleError(f"{path}: the file cannot be read as Parquet ({_first_line(error)})") from error
    if not parts.sets:
        return RuleSet.empty(vocabulary or reader.vocabulary), ReadReport(0)
    return concatenate(parts.sets), ReadReport(parts.n_rules, n_unknown=parts.n_unknown)


def stream(schema: pl.Schema, frames: Callable[[], Iterator[pl.DataFrame]]) -> pl.LazyFrame:
    """Return a lazy frame that asks for its parts one after the other."""

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        return frames()

    return register_io_source(source, schema=dict(schema))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place if all goes well and vanishes if not."""
    unfinished = path.with_name(f".{path.name}.part{os.getpid()}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        raise RuleError(f"{path}: the file cannot be written ({error.strerror or error})") from error
    finally:
        unfinished.unlink(missing_ok=True)


def first_bytes(path: Path) -> bytes:
    """Return how a file starts, or say why it cannot be read."""
    if path.is_dir():
        raise RuleError(f"{path}: expected a file of rules, got a folder")
    if not path.exists():
        raise RuleError(f"{path}: there is no such file")
    try:
        with path.open("rb") as stream:
            return stream.read(4)
    except OSError as error:
        raise RuleError(f"{path}: the file cannot be read ({error.strerror})") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
