"""Turns SPARQL results into triples of labels, treating literals and names like RDF files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from anyburl.rdf_terms import own_labels
from anyburl.triples.frames import COLUMNS
from anyburl.triples.gathered import Gathered
from anyburl.triples.ranges import KINDS, Values
from anyburl.triples.rdf_names import NAMING, gather_name
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.remote.results import LiteralTerm, Row, is_literal, label

NAMES = ("s", "p", "o")
SCHEMA = dict.fromkeys(COLUMNS, pl.String)


def all_triples(rows: Iterable[Row]) -> pl.DataFrame:
    """Return all rows as labels."""
    labels = [tuple(label(row[name]) for name in NAMES) for row in rows]
    return pl.DataFrame(labels, schema=SCHEMA, orient="row")


class Statements:
    """Sorts rows into triples, names, values and what is left out."""

    def __init__(self, options: ReadOptions, gathered: Gathered) -> None:
        self._options, self._gathered = options, gathered
        self._values = Values()

    def triples(self, rows: Sequence[Row]) -> pl.DataFrame:
        """Return the rows that are wanted, as labels; IRIs that stand for other labels are those labels again."""
        frame = all_triples(row for row in rows if not is_literal(row["o"]) or self._is_kept(row))
        return frame.select(own_labels(column) for column in frame)

    def ranges(self) -> Iterator[pl.DataFrame]:
        """Yield the triples of numbers and dates, once all of them are known."""
        if self._values:
            yield self._values.triples(self._gathered)

    def _is_kept(self, row: Row) -> bool:
        """Return whether a row with a literal becomes a triple as it is; if not, see to what becomes of it."""
        literal = LiteralTerm.of(row["o"])
        subject, relation = label(row["s"]), label(row["p"])
        if relation in NAMING:
            gather_name(self._gathered, subject, relation, literal, self._options.language)
        if self._options.literals == "keep":
            return True
        kind = KINDS.get(literal.datatype) if self._options.literals == "ranges" else None
        if kind is not None:
            self._values.add(subject, relation, kind, literal.value)
        elif relation not in NAMING:
            self._gathered.left_out["literals"] += 1
        return False
