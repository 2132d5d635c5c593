"""Files of triples: three labels a line, separated by tabs or by blanks.

Polars parses. Only a file that it stumbles over is read again by lines, to skip what may be skipped and
otherwise to say which line is wrong.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Literal, NoReturn

import polars as pl

from anyburl.errors import DataError
from anyburl.triples.frames import COLUMNS, TriplesLike, label_frame
from anyburl.triples.rdf import is_rdf, read_rdf
from anyburl.triples.table import TripleTable

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
ZLIB = (b"x\x01", b"x^", b"x\x9c", b"x\xda")
BYTE_ORDER_MARK = "\ufeff"
Compression = Literal["uncompressed", "gzip", "zstd"]


def read_triples(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Return the labels in a file, plain or compressed with gzip or zstd, line by line.

    The first line that is not blank says whether tabs or blanks separate the labels of the file. Nothing else
    is special: labels may hold quotes, commas or #. Blank lines are skipped. A name that ends as RDF does (.nt, .ttl,
    .nq, .trig, .rdf, also .gz) is read as RDF (extra `rdf`).
    """
    path = Path(path)
    start = _first_bytes(path)
    if is_rdf(path):
        return read_rdf(path)
    try:
        source = _source(path, start)
        frame = None if _ends_in_tab(path) else _parse_tabs(source)
        return _parse_lines(path, source) if frame is None else frame
    except (OSError, EOFError, zlib.error) as error:
        if start.startswith((GZIP, ZSTD)):
            raise DataError(f"{path}: the compressed file is damaged or cut short ({error})") from error
        raise DataError(f"{path}: the file cannot be read ({error})") from error


def write_triples(triples: TripleTable | TriplesLike, path: str | os.PathLike[str]) -> None:
    """Write labels separated by tabs, compressed if the path ends in .gz or .zst."""
    path = Path(path)
    frame = triples.to_polars() if isinstance(triples, TripleTable) else label_frame(triples)
    for name in COLUMNS:
        unwritable = frame[name].filter(frame[name].str.contains("[\t\n\r\0]|^\ufeff"))
        if len(unwritable):
            raise DataError(f"{path}: a label with a tab or a line break cannot be written: {unwritable[0]!r}")
    compressions: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
    unfinished = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        frame.write_csv(
            unfinished,
            separator="\t",
            include_header=False,
            quote_style="never",
            compression=compressions.get(path.suffix, "uncompressed"),
            check_extension=False,
        )
        os.replace(unfinished, path)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be written ({error.strerror or error})") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _first_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise DataError(f"{path}: expected a file of triples, got a folder")
    if not path.exists():
        raise DataError(f"{path}: there is no such file")
    if not path.is_file():
        raise DataError(f"{path}: expected a regular file of triples, got a device or a pipe")
    try:
        with path.open("rb") as stream:
            return stream.read(4)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror})") from error


def _ends_in_tab(path: Path) -> bool:
    """Polars overlooks an empty last field at the very end of a file (a compressed file's end is not looked at)."""
    with path.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(-min(2, stream.tell()), os.SEEK_END)
        return stream.read().rstrip(b"\r").endswith(b"\t")


def _source(path: Path, start: bytes) -> Path | bytes:
    """Return what Polars is to read: it would decompress a text that begins with x^, as zlib's files do."""
    return BYTE_ORDER_MARK.encode() + path.read_bytes() if start.startswith(ZLIB) else path


def _parse_tabs(source: Path | bytes) -> pl.DataFrame | None:
    """Return the triples if every line is three labels separated by tabs, else None."""
    try:
        frame = pl.read_csv(
            source,
            has_header=False,
            separator="\t",
            quote_char=None,
            schema=dict.fromkeys(COLUMNS, pl.String),
            glob=False,
        )
    except pl.exceptions.PolarsError:
        return None
    # Polars fills up short lines with nulls, and reads blank lines and empty labels as nulls.
    gaps = frame.null_count().sum_horizontal().item()
    return None if gaps or not frame.height or _has_nul(frame) else frame


def _has_nul(frame: pl.DataFrame) -> bool:
    """Tell whether this is a binary file, or text of 16-bit characters, by its first lines."""
    return bool(frame.head(1000).select(pl.any_horizontal(pl.all().str.contains("\0", literal=True))).to_series().any())


def _parse_lines(path: Path, source: Path | bytes) -> pl.DataFrame:
    lines = _numbered_lines(path, source).filter(pl.col("line").str.strip_chars(" \r") != "")
    if not lines.height:
        raise DataError(f"{path}: expected lines with a subject, a relation and an object, got an empty file")
    tabs = "\t" in lines["line"][0]
    text = pl.col("line") if tabs else pl.col("line").str.strip_chars(" ").str.replace_all(" +", " ")
    separator = "\t" if tabs else " "
    fields = lines.with_columns(
        text.str.count_matches(separator, literal=True).add(1).alias("n_fields"),
        text.str.split_exact(separator, 2).struct.rename_fields(COLUMNS).alias("fields"),
    ).unnest("fields")
    has_gap = pl.any_horizontal(pl.col(COLUMNS) == "")
    has_nul = pl.col("line").str.contains("\0", literal=True)
    wrong = fields.filter((pl.col("n_fields") != 3) | has_gap | has_nul)
    if wrong.height:
        _refuse_line(path, wrong.row(0, named=True), "tab" if tabs else "blank")
    return fields.select(COLUMNS)


def _refuse_line(path: Path, row: dict[str, str | int], separator: str) -> NoReturn:
    line = str(row["line"])
    if "\0" in line:
        got = "text with a NUL character"
    elif row["n_fields"] != 3:
        got = str(row["n_fields"])
    else:
        got = f"an empty {next(name for name in COLUMNS if row[name] == '')}"
    shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
    hint = " (separate them by tabs, not commas)" if row["n_fields"] == 1 and line.count(",") >= 2 else ""
    raise DataError(f"{path}:{row['number']}: expected 3 {separator}-separated fields{hint}, got {got}: {shown}")


def _numbered_lines(path: Path, source: Path | bytes) -> pl.DataFrame:
    try:
        lines = pl.read_lines(source, row_index_name="number", row_index_offset=1, glob=False)
    except pl.exceptions.PolarsError as error:
        number = _first_undecodable_line(path)
        raise DataError(f"{path}:{number}: expected text in UTF-8, got bytes that are not") from error
    first = pl.col("number") == 1
    return lines.with_columns(
        pl.when(first).then(pl.col("line").str.strip_prefix(BYTE_ORDER_MARK)).otherwise("line").alias("line")
    )


def _first_undecodable_line(path: Path) -> int:
    """Return the number of the first line that is not UTF-8."""
    start = _first_bytes(path)
    if start.startswith(ZSTD):
        # Only Polars can decompress it; what it cannot decode it replaces by U+FFFD. A line before that has
        # this character in earnest is named instead.
        lines = pl.read_csv(
            path,
            has_header=False,
            separator="\x1f",
            quote_char=None,
            schema={"line": pl.String},
            encoding="utf8-lossy",
            truncate_ragged_lines=True,
            glob=False,
        )["line"]
        return int(lines.str.contains("\ufffd", literal=True).fill_null(False).arg_max() or 0) + 1
    with gzip.open(path) if start.startswith(GZIP) else path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1
