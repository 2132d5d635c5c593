"""Reads and writes files of triples. A format is a module in `data/formats` and a line in `FORMATS`."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from anyburl.base.errors import DataError
from anyburl.base.files import first_bytes
from anyburl.base.polars_unstable import UNREADABLE, frame_batches
from anyburl.base.sealed import scan_parquet, seal
from anyburl.base.writing import replacing
from anyburl.data.formats.delimited import (
    BLOCK,
    CSV_SUFFIXES,
    GZIP,
    ZSTD,
    LineParser,
    first_fields,
    is_csv,
    read_blocks,
    read_delimited,
    text_columns,
)
from anyburl.data.formats.dumps import read_dump, read_reified
from anyburl.data.formats.frames import COLUMNS, TriplesLike, label_frame
from anyburl.data.formats.layouts import is_kgx, read_kgx
from anyburl.data.formats.rdf import RDF_SUFFIXES, is_rdf, rdf_lines, read_rdf
from anyburl.data.options import LITERALS, Gathered, ReadOptions, SkippedLines, choose_columns
from anyburl.data.table import TripleTable

PARQUET = ".parquet"
TEXT_SUFFIXES = tuple(kind + packed for kind in (".txt", ".tsv") for packed in ("", ".gz", ".zst"))
SPLITS = ("train", "valid", "test")


def is_parquet(path: Path) -> bool:
    """Whether the name of a file says that it is Parquet."""
    return path.name.lower().endswith(PARQUET)


def read_parquet(
    path: Path, start: bytes, size: int, options: ReadOptions, gathered: Gathered
) -> Iterator[pl.DataFrame]:
    """Yield the labels in the chosen columns."""
    n_read = 0
    try:
        table = scan_parquet(path)
        names = table.collect_schema().names()
        positions = choose_columns(names, options.columns, path, options.time)
        chosen = table.select(names[i] for i in positions)
        for batch in frame_batches(chosen, _rows(size)):
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
        return label_frame(batch, batch.columns[:3], first, batch.columns[3:] or None)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def read_triples(path: str | os.PathLike[str], options: ReadOptions | None = None) -> pl.DataFrame:
    """Return the labels in a file, plain or compressed with gzip or zstd, line by line.

    The first line that is not blank says whether tabs or blanks separate the labels of the file. Nothing else
    is special: labels may hold quotes, commas or #. Blank lines are skipped. A .csv file has a header and may quote its
    labels, a .parquet file has columns; `options.columns` says which to read, also of a file with tabs, whose first
    line then is a header. Edges of KGX come with the categories of the nodes beside them. A name that ends as RDF does
    (.nt, .ttl, .nq, .trig, .rdf, .owl, .jsonld, .n3, also .gz, .zst and .bz2) is read as RDF (extra `rdf`), as the
    options say; `options.dump` names a dump that is published as N-Triples.
    """
    return pl.concat(list(read_batches(path, options)))


def read_batches(
    path: str | os.PathLike[str],
    options: ReadOptions | None = None,
    gathered: Gathered | None = None,
    size: int = BLOCK,
) -> Iterator[pl.DataFrame]:
    """Yield what `read_triples` returns in pieces of about `size` bytes of text; names and counts go to `gathered`."""
    path = Path(path)
    start = first_bytes(path, "triples", DataError)
    options, gathered = options or ReadOptions(), gathered or Gathered()
    if options.has_times and options.dump is not None:
        raise DataError(f"{path}: a dump is read without times: drop --time")
    if options.dump is not None:
        yield from read_dump(path, start, size, options, gathered)
        return
    format = _format_of(path)
    if options.literals not in LITERALS[:2] and not format.has_literals:
        raise DataError(
            f"{path}: --literals {options.literals} is for RDF, which says what is a literal; this is a table"
        )
    yield from format.read(path, start, size, options, gathered)


def first_row(path: Path) -> list[str]:
    """Return the names of the columns of Parquet, or the fields of the first line of text; nothing for RDF."""
    if _format_of(path).has_literals:
        return []
    if is_parquet(path):
        return scan_parquet(path).collect_schema().names()
    return first_fields(path, first_bytes(path, "facts", DataError))


def _format_of(path: Path) -> Format:
    return next((format for format in FORMATS if path.name.lower().endswith(format.suffixes)), FORMATS[0])


@dataclass(frozen=True)
class Format:
    """A format of files: the ends of their names, in lower case, and what reads them.

    `read` gets the path of a file, its first bytes, about how many bytes of text a frame should hold, the options, and
    where to put names and counts; it yields frames of subject, relation and object, and of times if the options ask
    for them. `has_literals` says whether the format tells literals from entities.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path, bytes, int, ReadOptions, Gathered], Iterator[pl.DataFrame]]
    has_literals: bool = False


PICKLED = (".pt", ".pth", ".pkl", ".pickle")


def read_text_triples(
    path: Path, start: bytes, size: int, options: ReadOptions, gathered: Gathered
) -> Iterator[pl.DataFrame]:
    """Yield the labels of lines, of a table with a header, or of the edges of KGX, as the file's beginning says."""
    if path.suffix.lower() in PICKLED:
        raise DataError(
            f"{path}: reading a pickled file can run arbitrary code: convert the triples to .csv or .parquet"
        )
    try:
        columns = text_columns(path, start, options.time)
        if is_csv(path) or options.columns is not None or columns is None:
            yield from read_delimited(path, start, options, size, gathered)
        elif is_kgx(path, start):
            yield from read_kgx(path, start, gathered, size)
        else:
            skipped = SkippedLines(path, options.skip_bad)
            for frame in _read_lines(path, start, size, columns, skipped):
                yield frame if options.has_times else frame.select(COLUMNS)
            skipped.report(gathered)
    except (OSError, EOFError, zlib.error) as error:
        if start.startswith((GZIP, ZSTD)):
            raise DataError(f"{path}: the compressed file is damaged or truncated ({error})") from error
        raise DataError(f"{path}: the file cannot be read ({error})") from error


def _read_lines(
    path: Path, start: bytes, size: int, columns: tuple[str, ...], skipped: SkippedLines
) -> Iterator[pl.DataFrame]:
    parser = LineParser(path, columns, skipped)
    for block in read_blocks(path, start, size):
        frame = parser.parse(block)
        if frame.height:
            yield frame
    if parser.separator is None:
        raise DataError(f"{path}: expected lines with a subject, a relation and an object, got an empty file")


def _read_rdf(path: Path, start: bytes, size: int, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    return (read_reified if options.has_times else read_rdf)(path, _rows(size), options, gathered)


def _rows(size: int) -> int:
    """Return how many rows of a table are about as much as so many bytes of text."""
    return max(1, size // 64)


FORMATS = (
    Format((*TEXT_SUFFIXES, *CSV_SUFFIXES), read_text_triples),
    Format((PARQUET,), read_parquet),
    Format(RDF_SUFFIXES, _read_rdf, has_literals=True),
)
"""The formats of files; one whose name ends in none of their suffixes is read as the first."""
TRIPLE_SUFFIXES = tuple(suffix for format in FORMATS for suffix in format.suffixes)

Compression = Literal["uncompressed", "gzip", "zstd"]


def write_triples(triples: TripleTable | TriplesLike, path: str | os.PathLike[str]) -> None:
    """Write labels by the suffix: .parquet; .csv with a header and quotes; RDF (.nt, .ttl, .nq, .trig); else tabs.

    Text may have .gz or .zst. In RDF, labels that are no terms become IRIs, which reading turns back into labels.
    """
    path = Path(path)
    frame = triples.to_polars() if isinstance(triples, TripleTable) else label_frame(triples)
    if is_parquet(path):
        with replacing(path) as unfinished:
            frame.write_parquet(unfinished)
            seal(unfinished)
        return
    quoted = is_csv(path)
    if quoted:
        _check_writable(frame, path, "\0", "a NUL character")
    elif is_rdf(path):
        frame = rdf_lines(frame, path).to_frame()
    else:
        _check_writable(frame, path, "[\t\n\r\0]|^\ufeff", "a tab or a line break")
    compressions: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
    with replacing(path) as unfinished:
        frame.write_csv(
            unfinished,
            separator="," if quoted else "\t",
            include_header=quoted,
            quote_style="necessary" if quoted else "never",
            compression=compressions.get(path.suffix, "uncompressed"),
            check_extension=False,
        )


def _check_writable(frame: pl.DataFrame, path: Path, pattern: str, what: str) -> None:
    for name in COLUMNS:
        unwritable = frame[name].filter(frame[name].str.contains(pattern))
        if len(unwritable):
            raise DataError(f"{path}: a label with {what} cannot be written: {unwritable[0]!r}")
