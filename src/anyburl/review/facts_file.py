"""Facts to review, from a file that `anyburl complete` wrote."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from anyburl import checking
from anyburl.errors import DataError
from anyburl.polars_unstable import UNREADABLE
from anyburl.reading import check_regular
from anyburl.review.log import ReviewLog
from anyburl.review.queue import QueuedFact, ReviewQueue
from anyburl.sealed import scan_parquet
from anyburl.triples.frames import COLUMNS

SCHEMA = {
    **dict.fromkeys(COLUMNS, pl.String),
    "score": pl.Float64,
    "probability": pl.Float64,
    "rule": pl.String,
    "rules": pl.Int32,
}


def queue_from_file(
    path: str | os.PathLike[str], log: ReviewLog, *, relation: str | None = None, top: int = 50
) -> ReviewQueue:
    """Return the `top` best facts of a file (.parquet, .tsv, .jsonl; text also .gz) that have no standing verdict."""
    checking.whole("top", top, 1, checking.MOST_KEPT)
    judged = pl.LazyFrame(list(log.standing()), schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    best_first = [-pl.col("score"), -pl.col("rules"), *map(pl.col, COLUMNS)]
    try:
        facts = _scan(Path(path)).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
        if relation is not None:
            facts = facts.filter(pl.col("relation") == relation)
        waiting = facts.join(judged, on=list(COLUMNS), how="anti")
        found = waiting.sort(best_first).head(top).collect(engine="streaming")
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path}: cannot read the facts ({reason}); expected a file written by `anyburl complete`"
        ) from error
    return ReviewQueue(tuple(_fact(*row) for row in found.iter_rows()), True)


def _fact(
    subject: str, relation: str, object: str, score: float, probability: float | None, rule: str, n_rules: int
) -> QueuedFact:
    return QueuedFact((subject, relation, object), score, probability, rule, n_rules)


def _scan(path: Path) -> pl.LazyFrame:
    check_regular(path, "facts", DataError)
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        return scan_parquet(path)
    if name.endswith(".tsv"):
        return pl.scan_csv(path, separator="\t", quote_char=None, infer_schema=False)
    if name.endswith(".jsonl"):
        return pl.scan_ndjson(path, schema=SCHEMA)
    raise DataError(f"{path}: expected facts as .parquet, .tsv or .jsonl")
