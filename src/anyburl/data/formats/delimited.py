"""Triples in text: lines with tabs or spaces, CSV as RFC 4180 quotes it, and chosen columns; read in blocks.

Polars parses whole blocks. Only a block that it fails at is parsed again by lines, to skip blank ones or to say which
line is wrong.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from anyburl.base.errors import DataError
from anyburl.base.polars_unstable import line_batches, numbered_lines
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.options import (
    IGNORED,
    PARTS,
    RECOGNISED,
    TIMED,
    Gathered,
    ReadOptions,
    SkippedLines,
    by_number,
    choose_columns,
    has_usual_names,
)

BLOCK = 1 << 25  # bytes of text that are parsed at a time
MOST_REST = 1 << 24  # bytes of a line beyond the end of a block
GZIP, ZSTD, BZIP2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"
END = PARTS.index("end")  # a fact without an end goes on
BYTE_ORDER_MARK = "\ufeff"
MARK = BYTE_ORDER_MARK.encode()


def read_blocks(path: Path, start: bytes, size: int, *, whole_lines: bool = True) -> Iterator[bytes]:
    """Yield the decompressed text of a file in blocks of about `size` bytes, with `whole_lines` of whole lines.

    `start` are the first bytes, by which compression is recognised.
    """
    if start.startswith(ZSTD):
        yield from _read_zstd(path, size)
        return
    open_file = gzip.open if start.startswith(GZIP) else bz2.open if start.startswith(BZIP2) else open
    with open_file(path, "rb") as stream:
        while block := stream.read(size):
            yield block + _rest_of_line(path, stream) if whole_lines else block


def _rest_of_line(path: Path, stream: gzip.GzipFile | bz2.BZ2File | BinaryIO) -> bytes:
    """Return the rest of a line; raise an error for one that is far longer than any label."""
    rest = stream.readline(MOST_REST)
    if len(rest) == MOST_REST and not rest.endswith(b"\n"):
        raise DataError(f"{path}: expected lines of at most {MOST_REST:,} bytes, got a longer one: is it text?")
    return rest


def _read_zstd(path: Path, size: int) -> Iterator[bytes]:
    """Yield lines that Polars decompresses: Python before 3.14 cannot."""
    try:
        for batch in line_batches(path, max(1, size // 32)):
            yield (batch.select(pl.col("line").str.join("\n")).item() + "\n").encode()
    except pl.exceptions.PolarsError as error:
        number = _first_replaced_line(path)
        raise DataError(f"{path}:{number}: expected UTF-8 text, got other bytes") from error


def text_columns(path: Path, start: bytes, time: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return what the fields of a file of text without a header are, None if its first line names its columns.

    These are subject, relation and object and, if times are to be read or left out, one or two fields more.
    """
    if time is None:
        return COLUMNS
    if time[0] not in (RECOGNISED, IGNORED) and not by_number(time):
        return None
    fields = first_fields(path, start)
    if has_usual_names(fields) and len(fields) > len(COLUMNS):
        return None
    if time == (IGNORED,):
        return PARTS[: max(len(COLUMNS), min(len(fields), len(PARTS)))]
    numbers = ("4", "5")[: len(time)] if by_number(time) else ("4", "5")[: max(1, min(len(fields), 5) - 3)]
    if by_number(time) and time != numbers:
        return None
    return (*COLUMNS, *PARTS[3 : 3 + len(numbers)])


def first_fields(path: Path, start: bytes, number: int = 0) -> list[str]:
    """Return the fields of the first line of a file that is not blank, or of one after it; nothing past the end."""
    for block in read_blocks(path, start, 1 << 12):
        for line in block.removeprefix(MARK).decode(errors="replace").splitlines():
            if line.strip() and number == 0:
                return next(csv.reader([line])) if is_csv(path) else line.split("\t" if "\t" in line else None)
            number -= bool(line.strip())
    return []


class LineParser:
    """Turns blocks of lines into frames of labels; the first line that is not blank determines the separator."""

    def __init__(self, path: Path, columns: tuple[str, ...] = COLUMNS, skipped: SkippedLines | None = None) -> None:
        self._path, self._columns = path, columns
        self.skipped = skipped or SkippedLines(path, are_skipped=False)
        self._n_lines = 0
        self.separator: str | None = None

    def parse(self, block: bytes) -> pl.DataFrame:
        """Return the labels in the next block of the file."""
        # Polars drops the mark and, seeing it, does not mistake text for compressed data.
        marked = block if not self._n_lines and block.startswith(MARK) else MARK + block
        frame = None if self.separator == " " else _parse_tabs(marked, self._columns)
        if frame is None:
            frame = self._parse_lines(marked)
        else:
            self.separator = "\t"
        self._n_lines += block.count(b"\n")
        return frame

    def _parse_lines(self, block: bytes) -> pl.DataFrame:
        lines = self._numbered_lines(block).filter(pl.col("line").str.strip_chars(" \r") != "")
        if lines.height and self.separator is None:
            self.separator = "\t" if "\t" in lines["line"][0] else " "
        tabs = self.separator == "\t"
        text = pl.col("line") if tabs else pl.col("line").str.strip_chars(" ").str.replace_all(" +", " ")
        separator = "\t" if tabs else " "
        fields = lines.with_columns(
            text.str.count_matches(separator, literal=True).add(1).alias("n_fields"),
            text.str.split_exact(separator, len(self._columns) - 1).struct.rename_fields(self._columns).alias("fields"),
        ).unnest("fields")
        has_gap = pl.any_horizontal(pl.col(self._columns[:END]) == "")
        has_nul = pl.col("line").str.contains("\0", literal=True)
        is_wrong = (pl.col("n_fields") != len(self._columns)) | has_gap | has_nul
        for row in fields.filter(is_wrong).iter_rows(named=True):
            self.skipped.add(row["number"], _what_is_wrong(row, "tab" if tabs else "blank", self._columns))
        return fields.filter(~is_wrong).select(self._columns)

    def _numbered_lines(self, block: bytes) -> pl.DataFrame:
        try:
            lines = numbered_lines(block, self._n_lines + 1)
        except pl.exceptions.PolarsError as error:
            number = self._n_lines + first_undecodable_line(block)
            raise DataError(f"{self._path}:{number}: expected UTF-8 text, got other bytes") from error
        first = pl.col("number") == self._n_lines + 1
        return lines.with_columns(
            pl.when(first).then(pl.col("line").str.strip_prefix(BYTE_ORDER_MARK)).otherwise("line").alias("line")
        )


def _parse_tabs(block: bytes, columns: tuple[str, ...]) -> pl.DataFrame | None:
    """Return the triples if every line is three labels, or as many `columns`, separated by tabs, else None."""
    # Polars ignores an empty last field at the very end, and a carriage return that ends a label. A NUL means a binary
    # file, or text of 16-bit characters.
    if block[-2:].rstrip(b"\r").endswith(b"\t") or b"\r\t" in block or b"\0" in block:
        return None
    try:
        frame = pl.read_csv(
            block, has_header=False, separator="\t", quote_char=None, schema=dict.fromkeys(columns, pl.String)
        )
    except pl.exceptions.PolarsError:
        return None
    # Polars fills up short lines with nulls, and reads blank lines and empty labels as nulls.
    gaps = frame.null_count().sum_horizontal().item()
    return None if gaps or not frame.height else frame


def _what_is_wrong(row: dict[str, Any], separator: str, columns: tuple[str, ...]) -> str:
    """Describe what was expected of a line, and what it holds instead."""
    line = str(row["line"])
    if "\0" in line:
        got = "text with a NUL character"
    elif row["n_fields"] != len(columns):
        got = str(row["n_fields"])
    else:
        got = f"an empty {next(name for name in columns if row[name] == '')}"
    shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
    hint = " (separate them by tabs, not commas)" if row["n_fields"] == 1 and line.count(",") >= 2 else ""
    if columns == COLUMNS and row["n_fields"] in (4, 5) and row["number"] == 1:
        hint = f" ({TIMED})"
    if line.startswith("<http://rdf.freebase.com/"):
        hint = " (--dump freebase reads the dump of Freebase)"
    return f"expected {len(columns)} {separator}-separated fields{hint}, got {got}: {shown}"


def first_undecodable_line(block: bytes) -> int:
    """Return the number of the first line that is not UTF-8."""
    for number, line in enumerate(block.split(b"\n"), 1):
        try:
            line.decode()
        except UnicodeDecodeError:
            return number
    return 1


def _first_replaced_line(path: Path) -> int:
    """Return the first line with U+FFFD, by which Polars replaces bytes that are not UTF-8."""
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


CSV_SUFFIXES = (".csv", ".csv.gz", ".csv.zst")
QUOTE, NEWLINE = b'"', b"\n"
LONGEST = 1 << 26  # bytes of a record; a longer one has an unclosed quote
NOTHING = "expected lines with a subject, a relation and an object, got none"


def is_csv(path: Path) -> bool:
    """Whether the name of a file says that it is CSV."""
    return path.name.lower().endswith(CSV_SUFFIXES)


def read_delimited(
    path: Path, start: bytes, options: ReadOptions, size: int, gathered: Gathered
) -> Iterator[pl.DataFrame]:
    """Yield the labels in the chosen columns of a file, in pieces of about `size` bytes of text.

    The first line names the columns, unless they are chosen by number. A CSV file is quoted, others are not.
    """
    quoted = is_csv(path)
    blocks = read_blocks(path, start, size)
    parser = None
    for block in _whole_records(blocks) if quoted else blocks:
        if parser is None:
            parser, block = _after_header(path, block.removeprefix(MARK), options, quoted=quoted)
        frame = parser.parse(block)
        if frame.height:
            yield frame
    if parser is None or not parser.n_read:
        raise DataError(f"{path}: {NOTHING}")
    parser.skipped.report(gathered)


def _whole_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut blocks again where records end, since a line break between quotes is part of a label."""
    rest = b""
    for block in blocks:
        text = rest + block
        end = _last_end(text) or (len(text) if len(text) > LONGEST else 0)
        if end:
            yield text[:end]
        rest = text[end:]
    if rest:
        yield rest


def _last_end(text: bytes) -> int:
    """Return the end of the last whole record: a line break after an even number of quotes."""
    if text.count(QUOTE) % 2 == 0:
        return len(text)
    letters = np.frombuffer(text, np.uint8)
    outside = np.bitwise_xor.accumulate((letters == ord(QUOTE)).view(np.uint8)) == 0
    ends = np.flatnonzero((letters == ord(NEWLINE)) & outside)
    return int(ends[-1]) + 1 if len(ends) else 0


def _after_header(path: Path, block: bytes, options: ReadOptions, *, quoted: bool) -> tuple[_Parser, bytes]:
    """Return a parser for the columns of the first record, and the text after the header."""
    parser = _Parser(path, "," if quoted else "\t", quoted, SkippedLines(path, options.skip_bad))
    n_lines, header = next(parser.records(block), (0, []))
    if not header:
        raise DataError(f"{path}: {NOTHING}")
    parser.n_columns = len(header)
    without_header = by_number(options.columns)
    time = options.time
    if without_header and time in ((RECOGNISED,), (IGNORED,)):
        time = tuple(str(number + 1) for number in range(3, len(header)))[:2] or None
    parser.positions = choose_columns(header, options.columns, f"{path}:{n_lines}", time)
    parser.positions = parser.positions[: None if options.has_times else len(COLUMNS)]
    if without_header:
        return parser, block
    parser.n_lines = n_lines
    return parser, block.split(NEWLINE, n_lines)[-1] if block.count(NEWLINE) >= n_lines else b""


@dataclass
class _Parser:
    """Turns blocks of records into frames of labels."""

    path: Path
    separator: str
    quoted: bool
    skipped: SkippedLines
    n_columns: int = 0
    positions: list[int] = field(default_factory=list)
    n_lines: int = 0
    n_read: int = 0

    def parse(self, block: bytes) -> pl.DataFrame:
        """Return the labels in the next block of the file."""
        frame = self._parse_at_once(block)
        if frame is None:
            frame = self._parse_records(block)
        self.n_lines += block.count(NEWLINE)
        self.n_read += frame.height
        return frame

    def _parse_at_once(self, block: bytes) -> pl.DataFrame | None:
        """Return the triples if Polars parses the block without gaps, else None."""
        # Polars drops a carriage return at the end of a label; a NUL tells a binary file.
        if b"\r" + self.separator.encode() in block or b"\0" in block:
            return None
        try:
            frame = pl.read_csv(
                MARK + block,  # seeing the mark, Polars does not mistake text for compressed data
                has_header=False,
                separator=self.separator,
                quote_char='"' if self.quoted else None,
                schema={str(column): pl.String for column in range(self.n_columns)},
                columns=sorted(self.positions),
            )
        except pl.exceptions.PolarsError:
            return None
        labels = frame.select(
            pl.col(str(position)).alias(name) for position, name in zip(self.positions, PARTS, strict=False)
        )
        filled = pl.col(labels.columns[:END])
        has_gap = labels.select(pl.any_horizontal(filled.is_null() | (filled == "")).any()).item()
        return None if has_gap else labels

    def _parse_records(self, block: bytes) -> pl.DataFrame:
        rows = []
        for number, fields in self.records(block):
            if not max(self.positions) < len(fields) <= self.n_columns:
                self._skip(number, f"{self.n_columns} fields", str(len(fields)), fields)
                continue
            labels = [fields[position] for position in self.positions]
            if "" in labels[:END]:
                self._skip(number, "a label", f"an empty {PARTS[labels.index('')]}", fields)
                continue
            rows.append(labels)
        columns = PARTS[: len(self.positions)]
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")

    def records(self, block: bytes) -> Iterator[tuple[int, list[str]]]:
        """Yield the records of a block that are not blank, each with the number of its last line."""
        lines = io.StringIO(self._decoded(block), newline="\n")
        reader = csv.reader(
            lines,
            delimiter=self.separator,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            strict=True,
        )
        try:
            for fields in reader:
                if fields:
                    yield self.n_lines + reader.line_num, fields
        except csv.Error as error:
            line = f"{self.path}:{self.n_lines + reader.line_num}"
            separated = "commas, quoted where needed" if self.quoted else "tabs"
            raise DataError(f"{line}: expected fields separated by {separated}: {error}") from error

    def _decoded(self, block: bytes) -> str:
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            number = self.n_lines + first_undecodable_line(block)
            raise DataError(f"{self.path}:{number}: expected UTF-8 text, got other bytes") from error
        if "\0" in text:
            number = self.n_lines + text.count("\n", 0, text.index("\0")) + 1
            raise DataError(f"{self.path}:{number}: expected text, got a NUL character")
        return text

    def _skip(self, number: int, expected: str, got: str, fields: list[str]) -> None:
        line = self.separator.join(fields)
        shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
        self.skipped.add(number, f"expected {expected}, got {got}: {shown}")
