"""Graphs in several files: KGX (an edge file and a node file, tab-separated or JSON lines) and OGB.

OGB (ogbl-wikikg2, ogbl-biokg):

raw/edge.csv.gz, raw/edge_reltype.csv.gz           train: two indices of nodes, and the index of a relation
raw/relations/HEAD___RELATION___TAIL/edge.csv.gz   train, if nodes have types
mapping/*.csv.gz                                   the labels behind the indices
split/*/*.pt                                       valid and test, pickled: these are not read
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.base.errors import DataError
from anyburl.base.files import is_text
from anyburl.base.polars_unstable import frame_batches, line_batches
from anyburl.data.attributes import DATE, NUMBER
from anyburl.data.formats.delimited import MARK, read_blocks, read_delimited
from anyburl.data.formats.rdf import VALUE_ROWS
from anyburl.data.options import COLUMNS, Gathered, ReadOptions

KGX_EDGES = re.compile(r"(?:.*[_.-])?edges\.(tsv|jsonl)(\.gz|\.zst)?", re.IGNORECASE)
KGX_FIELDS = ("subject", "predicate", "object")
CATEGORY = "category"  # the relation between a node and its categories
NODE_FIELDS = ("id", "name", CATEGORY)
LINES_AT_A_TIME = 1 << 18  # lines at a time


def find_edges(folder: Path) -> Path | None:
    """Return the file of edges in a folder."""
    files = sorted(path for path in folder.iterdir() if KGX_EDGES.fullmatch(path.name))
    if len(files) > 1:
        raise DataError(f"{folder}: expected one edge file, got {' and '.join(path.name for path in files)}")
    return files[0] if files else None


def is_kgx(path: Path, start: bytes) -> bool:
    """Whether a file holds edges of KGX, by its name and, unless it is JSON, by its header."""
    named = KGX_EDGES.fullmatch(path.name)
    if not named or named[1].lower() == "jsonl":
        return named is not None
    header = next(read_blocks(path, start, 1), b"").removeprefix(MARK).rstrip(b"\r\n")
    return {name.encode() for name in KGX_FIELDS} <= {*header.split(b"\t")}


def read_kgx(path: Path, start: bytes, gathered: Gathered, size: int) -> Iterator[pl.DataFrame]:
    """Yield the edges of a file and, as the relation `category`, the categories of the nodes in the file beside it.

    The names of nodes go to `gathered`, and those of their properties that are numbers, dates or booleans.
    """
    if ".jsonl" in path.name.lower():
        yield from _json_edges(path)
    else:
        yield from read_delimited(path, start, ReadOptions(columns=KGX_FIELDS), size, gathered)
    nodes = path.with_name(re.sub(r"(?i)edges(?=\.(?:tsv|jsonl))", "nodes", path.name))
    if nodes.is_file():
        for batch in _json_nodes(nodes, gathered) if ".jsonl" in path.name.lower() else _table_nodes(nodes):
            _gather_properties(batch, gathered)
            named = batch.filter(pl.col("name").str.strip_chars() != "")
            gathered.names.update(zip(named["id"], named["name"], strict=True))
            yield _categories(batch)


def _gather_properties(nodes: pl.DataFrame, gathered: Gathered) -> None:
    """Keep the columns of nodes that hold values only; of a column with text, one row, which marks it as text."""
    for name in nodes.columns:
        if name in NODE_FIELDS:
            continue
        given = nodes.filter(pl.col(name).str.strip_chars() != "")
        is_value = given[name].str.strip_chars().str.contains(rf"(?i)^(?:{NUMBER}|{DATE}|true|false)$")
        rows = given.select(
            pl.col("id").alias("entity"),
            pl.lit(name).alias("attribute"),
            pl.col(name).alias("text"),
            pl.lit(None, pl.String).alias("kind"),
            pl.lit(None, pl.String).alias("origin"),
        )
        if rows.height:
            gathered.values.append((gathered.split, rows if is_value.all() else rows.filter(~is_value).head(1)))


def _categories(nodes: pl.DataFrame) -> pl.DataFrame:
    subject, relation, object = COLUMNS
    each = nodes.explode("category").filter(pl.col("category") != "")
    return each.select(pl.col("id").alias(subject), pl.lit(CATEGORY).alias(relation), pl.col("category").alias(object))


def _table_nodes(path: Path) -> Iterator[pl.DataFrame]:
    """Yield id, name and categories, several of which are separated by |, then the other columns."""
    try:
        table = pl.scan_csv(path, separator="\t", quote_char=None, infer_schema=False, glob=False)
        missing = [name for name in ("id", "category") if name not in table.collect_schema().names()]
        if missing:
            raise DataError(f"{path}:1: expected a column {missing[0]!r} of nodes")
        name = pl.col("name") if "name" in table.collect_schema().names() else pl.lit(None, pl.String).alias("name")
        nodes = table.select("id", name, pl.col("category").str.split("|"), pl.exclude(NODE_FIELDS))
        yield from frame_batches(nodes.filter(pl.col("id").is_not_null()), LINES_AT_A_TIME)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: cannot read the node table ({reason})") from error


def _json_edges(path: Path) -> Iterator[pl.DataFrame]:
    n_read = 0
    for batch in _json_lines(path):
        rows = [_edge_labels(path, number, edge) for number, edge in batch]
        yield pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
        n_read += len(rows)
    if not n_read:
        raise DataError(f"{path}: expected edges with subject, predicate and object, got an empty file")


def _edge_labels(path: Path, number: int, edge: dict[str, Any]) -> tuple[str, ...]:
    labels = tuple(edge.get(name) for name in KGX_FIELDS)
    if not all(is_text(label) and label for label in labels):
        raise DataError(f"{path}:{number}: expected an edge with subject, predicate and object, got {str(edge)[:80]!r}")
    return labels  # type: ignore[return-value]


def _json_nodes(path: Path, gathered: Gathered) -> Iterator[pl.DataFrame]:
    for batch in _json_lines(path):
        rows = [_node(path, number, node) for number, node in batch]
        values = [
            (node["id"], name, json.dumps(value), "boolean" if isinstance(value, bool) else "number", None)
            for _, node in batch
            for name, value in node.items()
            if isinstance(value, int | float)
        ]
        gathered.values.append((gathered.split, pl.DataFrame(values, schema=VALUE_ROWS, orient="row")))
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
        for batch in line_batches(path, LINES_AT_A_TIME, numbered=True):
            yield [(number, _parsed(path, number, line)) for number, line in batch.rows() if line.strip()]
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: expected UTF-8 text, plain, .gz or .zst") from error


def _parsed(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        parsed = json.loads(line.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: expected a line of JSON, got {line[:80]!r}") from error
    if not isinstance(parsed, dict):
        raise DataError(f"{path}:{number}: expected an object, got {line[:80]!r}")
    return parsed


EDGES_AT_A_TIME = 1 << 20  # edges at a time
OGB_EDGES, OGB_RELATIONS = Path("raw", "edge.csv.gz"), Path("raw", "edge_reltype.csv.gz")
OGB_TYPED = Path("raw", "relations")


def is_ogb(folder: Path) -> bool:
    """Whether a folder has the layout of OGB."""
    return (folder / OGB_EDGES).is_file() or (folder / OGB_TYPED).is_dir()


def read_ogb(folder: Path, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the edges of train as labels; the number of split files that are not read goes to `gathered`."""
    yield from _read_typed(folder) if (folder / OGB_TYPED).is_dir() else _read_plain(folder)
    pickled = [*folder.glob("split/*/valid.pt"), *folder.glob("split/*/test.pt")]
    if pickled:
        gathered.left_out["pickled files of splits (.pt)"] += len(pickled)


def _read_plain(folder: Path) -> Iterator[pl.DataFrame]:
    if not (folder / OGB_RELATIONS).is_file():
        raise DataError(f"{folder}: expected {OGB_RELATIONS}, which every OGB knowledge graph has, got edges alone")
    edges, relations = _indices(folder / OGB_EDGES, 2), _indices(folder / OGB_RELATIONS, 1)
    if edges.height != relations.height:
        raise DataError(f"{folder}: expected a relation for each of {edges.height:,} edges, got {relations.height:,}")
    entities = _ogb_labels(folder / "mapping" / "nodeidx2entityid.csv.gz")
    names = _ogb_labels(folder / "mapping" / "reltype2relid.csv.gz")
    for start in range(0, edges.height, EDGES_AT_A_TIME):
        ends, kinds = edges.slice(start, EDGES_AT_A_TIME), relations.slice(start, EDGES_AT_A_TIME)
        subjects, objects = (_decoded(ends[column], entities, folder / OGB_EDGES) for column in ("0", "1"))
        yield _frame(subjects, _decoded(kinds["0"], names, folder / OGB_RELATIONS), objects)


def _read_typed(folder: Path) -> Iterator[pl.DataFrame]:
    """Yield edges between nodes of types; a label is the type and the name, as in `drug:CID000001983`."""
    for inner in sorted((folder / OGB_TYPED).iterdir()):
        parts = inner.name.split("___")
        if len(parts) != 3:
            raise DataError(f"{inner}: expected a folder HEAD___RELATION___TAIL")
        subject, relation, object = parts
        edges = _indices(inner / "edge.csv.gz", 2)
        subjects, objects = (
            pl.select(
                pl.lit(f"{kind}:")
                + _decoded(edges[column], _ogb_labels(folder / "mapping" / f"{kind}_entidx2name.csv.gz"), inner)
            ).to_series()
            for kind, column in ((subject, "0"), (object, "1"))
        )
        yield _frame(subjects, pl.repeat(relation, edges.height, dtype=pl.String, eager=True), objects)


def _frame(*columns: pl.Series) -> pl.DataFrame:
    return pl.DataFrame(list(columns), schema=COLUMNS)


def _indices(path: Path, n_columns: int) -> pl.DataFrame:
    schema = {str(column): pl.Int64 for column in range(n_columns)}
    try:
        table = pl.read_csv(path, has_header=False, schema=schema, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: expected {n_columns} indices per line ({reason})") from error
    if table.null_count().sum_horizontal().item():
        raise DataError(f"{path}: expected {n_columns} indices per line, got gaps")
    return table


def _ogb_labels(path: Path) -> pl.Series | None:
    """Return labels by index, or None where OGB has no file of them."""
    if not path.is_file():
        return None
    try:
        table = pl.read_csv(path, has_header=True, infer_schema=False, glob=False)
        indices, labels = table.to_series(0).cast(pl.Int64), table.to_series(1)
    except (pl.exceptions.PolarsError, OSError, IndexError) as error:
        raise DataError(f"{path}: expected a header and lines of index and label") from error
    order = indices.arg_sort()
    if indices.gather(order).to_list() != list(range(len(indices))) or labels.null_count():
        raise DataError(f"{path}: expected a label for every index from 0")
    return labels.gather(order)


def _decoded(indices: pl.Series, labels: pl.Series | None, where: Path) -> pl.Series:
    if labels is None:
        return indices.cast(pl.String)
    wrong = indices.filter((indices < 0) | (indices >= len(labels)))
    if len(wrong):
        raise DataError(f"{where}: expected indices below {len(labels):,}, got {wrong[0]}")
    return labels.gather(indices)
