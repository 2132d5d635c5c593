"""The dumps of Wikidata and Freebase, as they are published: statements between entities become triples.

A dump is N-Triples, one statement a line, of which most are no triples here: lines are sorted by how their terms begin,
many at a time, and literals are not even looked at.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl

from anyburl.errors import DataError
from anyburl.polars_unstable import numbered_lines
from anyburl.rdf_terms import literal_text
from anyburl.triples.dumps import DUMPS, Dump
from anyburl.triples.frames import COLUMNS
from anyburl.triples.gathered import Gathered
from anyburl.triples.lines import read_blocks
from anyburl.triples.read_options import ReadOptions

KEPT = 0  # the kinds follow
ODD = "lines that are no statements"


def read_dump(path: Path, start: bytes, size: int, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the statements between entities, in pieces of about `size` bytes of text; count the others by kind."""
    assert options.dump is not None
    dump = DUMPS[options.dump]
    sorting = _Sorting(path, dump, options.language, gathered)
    n_triples = 0
    try:
        for block in _ahead(read_blocks(path, start, size)):
            frame = sorting.sort(block)
            n_triples += frame.height
            if frame.height:
                yield frame
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file is damaged or truncated ({error})") from error
    if not n_triples:
        raise DataError(f"{path}: no statements between entities of {dump.title}")


def _ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks, with the next one read and decompressed beside."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, b"")
        while block := coming.result():
            coming = pool.submit(next, blocks, b"")
            yield block


class _Sorting:
    """Sorts the lines of a dump."""

    def __init__(self, path: Path, dump: Dump, language: str, gathered: Gathered) -> None:
        self._path, self._dump, self._gathered = path, dump, gathered
        self._name = rf'^"(.*)"@{language}[ \t]*\.$'
        self._n_lines = self._n_statements = self._n_odd = 0
        self._kind = _number_of_first([dump.wanted, *(fits for _, fits in dump.kinds)]).alias("kind")

    def sort(self, block: bytes) -> pl.DataFrame:
        """Return the triples in a block of lines."""
        lines = self._lines(block)
        terms = pl.col("line").str.splitn(self._dump.separator, 3).struct.rename_fields(COLUMNS)
        fields = lines.with_columns(terms.alias("terms")).unnest("terms")
        is_statement = _is_statement().fill_null(value=False)
        statements = fields.filter(is_statement).with_columns(self._kind)
        self._n_statements += statements.height
        self._leave_out(fields.filter(~is_statement))
        self._count(statements["kind"])
        self._gather_names(statements.filter(self._dump.names_relations()))
        self._n_lines += block.count(b"\n")
        wanted = statements.filter(pl.col("kind") == KEPT)
        self._leave_out(wanted.filter(~_has_plain_terms()))
        return wanted.filter(_has_plain_terms()).select(pl.col(COLUMNS).str.strip_chars("<> \t."))

    def _leave_out(self, odd: pl.DataFrame) -> None:
        """Count odd lines, of which billions of lines have a few; if most lines are odd, it is another file."""
        if not odd.height:
            return
        self._gathered.left_out[ODD] += odd.height
        self._n_odd += odd.height
        if self._n_odd > self._n_statements:
            _refuse_line(self._path, odd["number"][0], odd["line"][0], self._dump)

    def _lines(self, block: bytes) -> pl.DataFrame:
        """Return the lines of a block with their numbers, except blank ones and comments."""
        try:
            lines = numbered_lines(block, self._n_lines + 1)
        except pl.exceptions.PolarsError:  # some bytes are no UTF-8
            lines = numbered_lines(block.decode(errors="replace").encode(), self._n_lines + 1)
        text = pl.col("line").str.strip_chars_end(" \t\r")
        return lines.with_columns(text).filter((text != "") & ~text.str.starts_with("#"))

    def _count(self, kinds: pl.Series) -> None:
        counts = np.bincount(kinds.to_numpy(), minlength=KEPT + 1 + len(self._dump.kinds))
        for (kind, _), n_statements in zip(self._dump.kinds, counts[KEPT + 1 :].tolist(), strict=True):
            if n_statements:
                self._gathered.left_out[kind] += n_statements

    def _gather_names(self, labels: pl.DataFrame) -> None:
        """Keep the names of relations in the language wanted."""
        if self._dump.named is None or not labels.height:
            return
        start, meant = self._dump.named
        named = labels.select("subject", name=pl.col("object").str.extract(self._name)).drop_nulls()
        for subject, name in named.iter_rows():
            self._gathered.names[meant + subject[len(start) : -1]] = " ".join(literal_text(name).split())


def _number_of_first(conditions: list[pl.Expr]) -> pl.Expr:
    """Return which of the conditions is the first that holds; the last one holds in any case."""
    number = pl.lit(len(conditions) - 1, pl.UInt8)
    for earlier in reversed(range(len(conditions) - 1)):
        number = pl.when(conditions[earlier]).then(pl.lit(earlier, pl.UInt8)).otherwise(number)
    return number


def _is_statement() -> pl.Expr:
    """Whether three terms and a full stop may be a statement; literals need a closer look."""
    starts = pl.col("subject").str.starts_with("<") | pl.col("subject").str.starts_with("_:")
    return starts & pl.col("relation").str.starts_with("<") & pl.col("object").str.ends_with(".")


def _has_plain_terms() -> pl.Expr:
    """Whether the terms of a statement, which are known to begin as IRIs, end as such, and nothing else follows."""
    ends = [pl.col(name).str.ends_with(">") for name in COLUMNS[:2]]
    return pl.all_horizontal(*ends, pl.col("object").str.contains("^<[^<> ]*>[ \t]*\\.$"))


def _refuse_line(path: Path, number: int, line: str, dump: Dump) -> NoReturn:
    shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
    form = f"N-Triples, as {dump.title} publishes them, separated by {'tabs' if dump.separator == chr(9) else 'blanks'}"
    raise DataError(f"{path}:{number}: expected {form}, got {shown}")
