"""Reads facts that `anyburl complete` wrote, in any format."""

from __future__ import annotations

import gzip
import json
import zlib
from io import BytesIO
from pathlib import Path

import polars as pl

from anyburl.completion.files import PARQUET, SUFFIXES
from anyburl.errors import DataError
from anyburl.polars_unstable import UNREADABLE
from anyburl.rdf_terms import OWN
from anyburl.reading import first_bytes
from anyburl.sealed import scan_parquet
from anyburl.triples.files import read_triples
from anyburl.triples.frames import COLUMNS
from anyburl.triples.lines import GZIP
from anyburl.triples.read_options import ReadOptions

TYPES: dict[str, type[pl.DataType]] = {
    "score": pl.Float64,
    "probability": pl.Float64,
    "closed_world": pl.Float64,
    "rules": pl.Int64,
}
"""The types of the columns that are no text. The facts behind a fact become JSON."""


def read_facts(path: Path) -> pl.DataFrame:
    """Return the facts in a file, with the columns that it has; RDF holds triples alone."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: expected a file written by `anyburl complete`, ending in {_listed()}")
    start = first_bytes(path, "facts", DataError)
    try:
        return check_facts(_read(path, suffix, packed=start.startswith(GZIP)))
    except (*UNREADABLE, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot read the facts ({' '.join(str(error).split())[:200]})") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def check_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Return facts of `Reasoner.complete`, each once, with lists as text; refuse a frame of anything else."""
    missing = [name for name in COLUMNS if name not in facts.columns]
    if missing:
        raise DataError(f"expected facts as `anyburl complete` writes them, got no column {missing[0]!r}")
    if not facts.height:
        raise DataError("no facts to publish")
    if any(facts[name].null_count() for name in COLUMNS):
        raise DataError("a fact has no subject, relation or object")
    facts = facts.select(_column(column) for column in facts)
    return facts.unique(COLUMNS, keep="first", maintain_order=True)


def _read(path: Path, suffix: str, *, packed: bool) -> pl.DataFrame:
    if suffix == PARQUET:
        return scan_parquet(path).collect()
    if suffix not in (".tsv", ".jsonl"):
        return read_triples(path, ReadOptions(literals="keep")).filter(~_is_provenance())
    text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    if suffix == ".jsonl":
        return pl.read_ndjson(BytesIO(text), infer_schema_length=None)
    return pl.read_csv(text, separator="\t", quote_char=None, infer_schema=False)


def _is_provenance() -> pl.Expr:
    """Tell which statements are about facts, and not facts themselves."""
    quoted = pl.any_horizontal(pl.col("subject", "object").str.starts_with("<<"))
    of_ours = pl.col("subject").str.starts_with(f"{OWN}statement:")
    return quoted | of_ours | pl.col("relation").str.starts_with(f"{OWN}provenance:")


def _column(column: pl.Series) -> pl.Series:
    if column.dtype == pl.List:
        told = [
            None if reason is None else json.dumps(reason, ensure_ascii=False, default=str)
            for reason in column.to_list()
        ]
        return pl.Series(column.name, told, dtype=pl.String)
    return column.cast(TYPES.get(column.name, pl.String))


def _listed() -> str:
    return f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
