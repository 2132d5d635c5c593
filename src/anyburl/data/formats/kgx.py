"""KGX: an edge file and a node file with names and categories, tab-separated or as JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.base.errors import DataError
from anyburl.base.polars_unstable import frame_batches, line_batches
from anyburl.base.reading import is_text
from anyburl.data.formats.delimited import MARK, read_blocks, read_delimited
from anyburl.data.options import COLUMNS, Gathered, ReadOptions

EDGES = re.compile(r"(?:.*[_.-])?edges\.(tsv|jsonl)(\.gz|\.zst)?", re.IGNORECASE)
FIELDS = ("subject", "predicate", "object")
CATEGORY = "category"  # the relation between a node and its categories
ROWS = 1 << 18  # lines at a time


def find_edges(folder: Path) -> Path | None:
    """Return the file of edges in a folder."""
    found = sorted(path for path in folder.iterdir() if EDGES.fullmatch(path.name))
    if len(found) > 1:
        raise DataError(f"{folder}: expected one edge file, got {' and '.join(path.name for path in found)}")
    return found[0] if found else None


def is_kgx(path: Path, start: bytes) -> bool:
    """Whether a file holds edges as KGX writes them: its name says so and, if there are tabs, its first line does."""
    named = EDGES.fullmatch(path.name)
    if not named or named[1].lower() == "jsonl":
        return named is not None
    header = next(read_blocks(path, start, 1), b"").removeprefix(MARK).rstrip(b"\r\n")
    return {name.encode() for name in FIELDS} <= {*header.split(b"\t")}


def read_kgx(path: Path, start: bytes, gathered: Gathered, size: int) -> Iterator[pl.DataFrame]:
    """Yield the edges of a file and, as the relation `category`, the categories of the nodes in the file beside it.

    The names of nodes go to `gathered`.
    """
    if ".jsonl" in path.name.lower():
        yield from _json_edges(path)
    else:
        yield from read_delimited(path, start, ReadOptions(columns=FIELDS), size)
    nodes = path.with_name(re.sub(r"(?i)edges(?=\.(?:tsv|jsonl))", "nodes", path.name))
    if nodes.is_file():
        for batch in _json_nodes(nodes) if ".jsonl" in path.name.lower() else _table_nodes(nodes):
            named = batch.filter(pl.col("name").str.strip_chars() != "")
            gathered.names.update(zip(named["id"], named["name"], strict=True))
            yield _categories(batch)


def _categories(nodes: pl.DataFrame) -> pl.DataFrame:
    subject, relation, object = COLUMNS
    each = nodes.explode("category").filter(pl.col("category") != "")
    return each.select(pl.col("id").alias(subject), pl.lit(CATEGORY).alias(relation), pl.col("category").alias(object))


def _table_nodes(path: Path) -> Iterator[pl.DataFrame]:
    """Yield id, name and categories; several categories are separated by |."""
    try:
        table = pl.scan_csv(path, separator="\t", quote_char=None, infer_schema=False, glob=False)
        missing = [name for name in ("id", "category") if name not in table.collect_schema().names()]
        if missing:
            raise DataError(f"{path}:1: expected a column {missing[0]!r} of nodes")
        name = pl.col("name") if "name" in table.collect_schema().names() else pl.lit(None, pl.String).alias("name")
        nodes = table.select("id", name, pl.col("category").str.split("|"))
        yield from frame_batches(nodes.filter(pl.col("id").is_not_null()), ROWS)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: cannot read the node table ({reason})") from error


def _json_edges(path: Path) -> Iterator[pl.DataFrame]:
    n_read = 0
    for batch in _json_lines(path):
        rows = [_labels(path, number, edge) for number, edge in batch]
        yield pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
        n_read += len(rows)
    if not n_read:
        raise DataError(f"{path}: expected edges with subject, predicate and object, got an empty file")


def _labels(path: Path, number: int, edge: dict[str, Any]) -> tuple[str, ...]:
    labels = tuple(edge.get(name) for name in FIELDS)
    if not all(is_text(label) and label for label in labels):
        raise DataError(f"{path}:{number}: expected an edge with subject, predicate and object, got {str(edge)[:80]!r}")
    return labels  # type: ignore[return-value]


def _json_nodes(path: Path) -> Iterator[pl.DataFrame]:
    for batch in _json_lines(path):
        rows = [_node(path, number, node) for number, node in batch]
        yield pl.DataFrame(
            rows, schema={"id": pl.String, "name": pl.String, "category": pl.List(pl.String)}, orient="row"
        )


def _node(path: Path, number: int, node: dict[str, Any]) -> tuple[str, str | None, list[str]]:
    identifier, name, category = (node.get(field) for field in ("id", "name", "category"))
    if not is_text(identifier) or not identifier:
        raise DataError(f"{path}:{number}: expected a node with an id, got {str(node)[:80]!r}")
    listed = category if isinstance(category, list) else [category]
    return identifier, name if is_text(name) else None, [kind for kind in listed if is_text(kind)]


def _json_lines(path: Path) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Yield the objects of a file with the numbers of their lines, many at a time."""
    try:
        for batch in line_batches(path, ROWS, numbered=True):
            yield [(number, _parsed(path, number, line)) for number, line in batch.rows() if line.strip()]
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: expected UTF-8 text, plain, .gz or .zst") from error


def _parsed(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: expected a line of JSON, got {line[:80]!r}") from error
    if not isinstance(found, dict):
        raise DataError(f"{path}:{number}: expected an object, got {line[:80]!r}")
    return found
