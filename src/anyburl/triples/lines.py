"""The text of a file of triples: read in blocks of whole lines, each parsed at once.

Polars parses. Only a block that it stumbles over is parsed again by lines, to skip what may be skipped and
otherwise to say which line is wrong.
"""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import polars as pl

from anyburl.errors import DataError
from anyburl.polars_unstable import line_batches, numbered_lines
from anyburl.triples.frames import COLUMNS

BLOCK = 1 << 25  # bytes of text that are parsed at a time
MOST_REST = 1 << 24  # bytes of a line that goes on after a block
GZIP, ZSTD, BZIP2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"
BYTE_ORDER_MARK = "\ufeff"
MARK = BYTE_ORDER_MARK.encode()


def read_blocks(path: Path, start: bytes, size: int, *, whole_lines: bool = True) -> Iterator[bytes]:
    """Yield the text of a file, decompressed, in blocks of about `size` bytes that, with `whole_lines`, end where a
    line does.

    `start` is how the file begins: it tells whether it is compressed, and how.
    """
    if start.startswith(ZSTD):
        yield from _read_zstd(path, size)
        return
    open_file = gzip.open if start.startswith(GZIP) else bz2.open if start.startswith(BZIP2) else open
    with open_file(path, "rb") as stream:
        while block := stream.read(size):
            yield block + _rest_of_line(path, stream) if whole_lines else block


def _rest_of_line(path: Path, stream: gzip.GzipFile | bz2.BZ2File | BinaryIO) -> bytes:
    """Return the rest of a line; one that is longer than any label is refused before it fills the memory."""
    rest = stream.readline(MOST_REST)
    if len(rest) == MOST_REST and not rest.endswith(b"\n"):
        raise DataError(f"{path}: expected lines of at most {MOST_REST:,} bytes, got a longer one: is it text?")
    return rest


def _read_zstd(path: Path, size: int) -> Iterator[bytes]:
    """Yield the lines that Polars finds in a file: Python before 3.14 cannot decompress zstd."""
    try:
        for batch in line_batches(path, max(1, size // 32)):
            yield (batch.select(pl.col("line").str.join("\n")).item() + "\n").encode()
    except pl.exceptions.PolarsError as error:
        number = _first_replaced_line(path)
        raise DataError(f"{path}:{number}: expected UTF-8 text, got other bytes") from error


class LineParser:
    """Turns the blocks of one file into frames of labels; the first line that is not blank decides on the separator."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._n_lines = 0
        self.separator: str | None = None

    def parse(self, block: bytes) -> pl.DataFrame:
        """Return the labels in the next block of the file."""
        # Polars takes a mark off the text and, seeing it, does not take text for something compressed.
        marked = block if not self._n_lines and block.startswith(MARK) else MARK + block
        frame = None if self.separator == " " else _parse_tabs(marked)
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
            text.str.split_exact(separator, 2).struct.rename_fields(COLUMNS).alias("fields"),
        ).unnest("fields")
        has_gap = pl.any_horizontal(pl.col(COLUMNS) == "")
        has_nul = pl.col("line").str.contains("\0", literal=True)
        wrong = fields.filter((pl.col("n_fields") != 3) | has_gap | has_nul)
        if wrong.height:
            _refuse_line(self._path, wrong.row(0, named=True), "tab" if tabs else "blank")
        return fields.select(COLUMNS)

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


def _parse_tabs(block: bytes) -> pl.DataFrame | None:
    """Return the triples if every line is three labels separated by tabs, else None."""
    # Polars overlooks an empty last field at the very end, and a carriage return that ends a label. A NUL tells a
    # binary file, or text of 16-bit characters.
    if block[-2:].rstrip(b"\r").endswith(b"\t") or b"\r\t" in block or b"\0" in block:
        return None
    try:
        frame = pl.read_csv(
            block, has_header=False, separator="\t", quote_char=None, schema=dict.fromkeys(COLUMNS, pl.String)
        )
    except pl.exceptions.PolarsError:
        return None
    # Polars fills up short lines with nulls, and reads blank lines and empty labels as nulls.
    gaps = frame.null_count().sum_horizontal().item()
    return None if gaps or not frame.height else frame


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
    if line.startswith("<http://rdf.freebase.com/"):
        hint = " (--dump freebase reads the dump of Freebase)"
    raise DataError(f"{path}:{row['number']}: expected 3 {separator}-separated fields{hint}, got {got}: {shown}")


def first_undecodable_line(block: bytes) -> int:
    """Return the number of the first line that is not UTF-8."""
    for number, line in enumerate(block.split(b"\n"), 1):
        try:
            line.decode()
        except UnicodeDecodeError:
            return number
    return 1


def _first_replaced_line(path: Path) -> int:
    """Return the number of the first line that is not UTF-8 in a file that only Polars can decompress.

    What it cannot decode it replaces by U+FFFD. A line before that has this character in earnest is named instead.
    """
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
