"""Rows of SPARQL results as triples of labels: literals as the options say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from anyburl.triples.frames import COLUMNS
from anyburl.triples.gathered import Gathered
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.remote.results import Row, is_literal, label

NAMES = ("s", "p", "o")
SCHEMA = dict.fromkeys(COLUMNS, pl.String)


def all_triples(rows: Iterable[Row]) -> pl.DataFrame:
    """Return all rows as labels."""
    labels = [tuple(label(row[name]) for name in NAMES) for row in rows]
    return pl.DataFrame(labels, schema=SCHEMA, orient="row")


class Statements:
    """Sorts rows into triples and what is left out."""

    def __init__(self, options: ReadOptions, gathered: Gathered) -> None:
        self._options, self._gathered = options, gathered

    def triples(self, rows: Sequence[Row]) -> pl.DataFrame:
        """Return the rows that are wanted, as labels; others are counted."""
        if self._options.literals == "keep":
            return all_triples(rows)
        wanted = [row for row in rows if not is_literal(row["o"])]
        self._gathered.left_out["literals"] += len(rows) - len(wanted)
        return all_triples(wanted)
