"""Tables in text: CSV, quoted as RFC 4180 says, and columns chosen from lines with tabs.

Polars parses blocks of whole records. Only a block that it stumbles over is parsed again by Python, to skip blank
lines and otherwise to say which line is wrong.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from anyburl.errors import DataError
from anyburl.triples.columns import by_number, choose_columns
from anyburl.triples.frames import COLUMNS
from anyburl.triples.lines import MARK, first_undecodable_line, read_blocks
from anyburl.triples.read_options import ReadOptions

CSV_SUFFIXES = (".csv", ".csv.gz", ".csv.zst")
QUOTE, NEWLINE = b'"', b"\n"
LONGEST = 1 << 26  # bytes of a record; what is longer has a quote that nothing closes
NOTHING = "expected lines with a subject, a relation and an object, got none"


def is_csv(path: Path) -> bool:
    """Whether the name of a file says that it is CSV."""
    return path.name.lower().endswith(CSV_SUFFIXES)


def read_delimited(path: Path, start: bytes, options: ReadOptions, size: int) -> Iterator[pl.DataFrame]:
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


def _whole_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text of blocks cut where a record ends: a line break between quotes is part of a label."""
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
    """Return where the last whole record ends: after a line break that an even number of quotes precedes."""
    if text.count(QUOTE) % 2 == 0:
        return len(text)
    letters = np.frombuffer(text, np.uint8)
    outside = np.bitwise_xor.accumulate((letters == ord(QUOTE)).view(np.uint8)) == 0
    ends = np.flatnonzero((letters == ord(NEWLINE)) & outside)
    return int(ends[-1]) + 1 if len(ends) else 0


def _after_header(path: Path, block: bytes, options: ReadOptions, *, quoted: bool) -> tuple[_Parser, bytes]:
    """Return the parser that the first record of a file asks for, and what follows the header."""
    parser = _Parser(path, "," if quoted else "\t", quoted)
    n_lines, header = next(parser.records(block), (0, []))
    if not header:
        raise DataError(f"{path}: {NOTHING}")
    parser.n_columns = len(header)
    parser.places = choose_columns(header, options.columns, f"{path}:{n_lines}")
    if by_number(options.columns):
        return parser, block
    parser.n_lines = n_lines
    return parser, block.split(NEWLINE, n_lines)[-1] if block.count(NEWLINE) >= n_lines else b""


@dataclass
class _Parser:
    """Turns the blocks of one file into frames of labels."""

    path: Path
    separator: str
    quoted: bool
    n_columns: int = 0
    places: list[int] = field(default_factory=list)
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
        """Return the triples if there is nothing odd about the block, else None."""
        # Polars drops a carriage return at the end of a label; a NUL tells a binary file.
        if b"\r" + self.separator.encode() in block or b"\0" in block:
            return None
        try:
            frame = pl.read_csv(
                MARK + block,  # seeing the mark, Polars does not take text for something compressed
                has_header=False,
                separator=self.separator,
                quote_char='"' if self.quoted else None,
                schema={str(column): pl.String for column in range(self.n_columns)},
                columns=sorted(self.places),
            )
        except pl.exceptions.PolarsError:
            return None
        labels = frame.select(pl.col(str(place)).alias(name) for place, name in zip(self.places, COLUMNS, strict=True))
        has_gap = labels.select(pl.any_horizontal(pl.all().is_null() | (pl.all() == "")).any()).item()
        return None if has_gap else labels

    def _parse_records(self, block: bytes) -> pl.DataFrame:
        rows = []
        for number, fields in self.records(block):
            if not max(self.places) < len(fields) <= self.n_columns:
                self._refuse(number, f"{self.n_columns} fields", str(len(fields)), fields)
            labels = [fields[place] for place in self.places]
            if "" in labels:
                self._refuse(number, "a label", f"an empty {COLUMNS[labels.index('')]}", fields)
            rows.append(labels)
        return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")

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
            place = f"{self.path}:{self.n_lines + reader.line_num}"
            separated = "commas, quoted where needed" if self.quoted else "tabs"
            raise DataError(f"{place}: expected fields separated by {separated}: {error}") from error

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

    def _refuse(self, number: int, expected: str, got: str, fields: list[str]) -> None:
        line = self.separator.join(fields)
        shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
        raise DataError(f"{self.path}:{number}: expected {expected}, got {got}: {shown}")
