"""Rows of SPARQL results as triples of labels: literals as the options say."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from anyburl.triples.frames import COLUMNS
from anyburl.triples.gathered import Gathered
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.remote.results import Row, label

NAMES = ("s", "p", "o")
SCHEMA = dict.fromkeys(COLUMNS, pl.String)


def all_triples(rows: Iterable[Row]) -> pl.DataFrame:
    """Return all rows as labels."""
    labels = [tuple(label(row[name]) for name in NAMES) for row in rows]
    return pl.DataFrame(labels, schema=SCHEMA, orient="row")


def wanted_triples(found: pl.DataFrame, options: ReadOptions, gathered: Gathered) -> pl.DataFrame:
    """Leave out the literals that are not wanted, and count them."""
    if options.literals == "keep":
        return found
    wanted = found.filter(~pl.col("object").str.starts_with('"'))
    gathered.left_out["literals"] += found.height - wanted.height
    return wanted
