"""Knowledge graphs as OGB lays them out on disk: ogbl-wikikg2 and ogbl-biokg.

raw/edge.csv.gz, raw/edge_reltype.csv.gz           train: two indices of nodes, and the index of a relation
raw/relations/HEAD___RELATION___TAIL/edge.csv.gz   train, if nodes have types
mapping/*.csv.gz                                   the labels behind the indices
split/*/*.pt                                       valid and test, pickled: these are not read
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from anyburl.base.errors import DataError
from anyburl.data.options import COLUMNS, Gathered

ROWS = 1 << 20  # edges at a time
EDGES, RELATIONS = Path("raw", "edge.csv.gz"), Path("raw", "edge_reltype.csv.gz")
TYPED = Path("raw", "relations")


def is_ogb(folder: Path) -> bool:
    """Whether a folder is laid out as OGB does it."""
    return (folder / EDGES).is_file() or (folder / TYPED).is_dir()


def read_ogb(folder: Path, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the edges of train as labels; how many files of splits cannot be read goes to `gathered`."""
    yield from _read_typed(folder) if (folder / TYPED).is_dir() else _read_plain(folder)
    pickled = [*folder.glob("split/*/valid.pt"), *folder.glob("split/*/test.pt")]
    if pickled:
        gathered.left_out["pickled files of splits (.pt)"] += len(pickled)


def _read_plain(folder: Path) -> Iterator[pl.DataFrame]:
    if not (folder / RELATIONS).is_file():
        raise DataError(f"{folder}: expected {RELATIONS}, which every OGB knowledge graph has, got edges alone")
    edges, relations = _indices(folder / EDGES, 2), _indices(folder / RELATIONS, 1)
    if edges.height != relations.height:
        raise DataError(f"{folder}: expected a relation for each of {edges.height:,} edges, got {relations.height:,}")
    entities = _labels(folder / "mapping" / "nodeidx2entityid.csv.gz")
    names = _labels(folder / "mapping" / "reltype2relid.csv.gz")
    for start in range(0, edges.height, ROWS):
        ends, kinds = edges.slice(start, ROWS), relations.slice(start, ROWS)
        subjects, objects = (_decoded(ends[column], entities, folder / EDGES) for column in ("0", "1"))
        yield _frame(subjects, _decoded(kinds["0"], names, folder / RELATIONS), objects)


def _read_typed(folder: Path) -> Iterator[pl.DataFrame]:
    """Yield edges between nodes of types; a label is the type and the name, as in `drug:CID000001983`."""
    for place in sorted((folder / TYPED).iterdir()):
        subject, relation, object = _parts(place)
        edges = _indices(place / "edge.csv.gz", 2)
        subjects, objects = (
            pl.select(pl.lit(f"{kind}:") + _decoded(edges[column], _labels(_names(folder, kind)), place)).to_series()
            for kind, column in ((subject, "0"), (object, "1"))
        )
        yield _frame(subjects, pl.repeat(relation, edges.height, dtype=pl.String, eager=True), objects)


def _parts(place: Path) -> tuple[str, str, str]:
    parts = place.name.split("___")
    if len(parts) != 3:
        raise DataError(f"{place}: expected a folder HEAD___RELATION___TAIL")
    return parts[0], parts[1], parts[2]


def _names(folder: Path, kind: str) -> Path:
    return folder / "mapping" / f"{kind}_entidx2name.csv.gz"


def _frame(*columns: pl.Series) -> pl.DataFrame:
    return pl.DataFrame(list(columns), schema=COLUMNS)


def _indices(path: Path, n_columns: int) -> pl.DataFrame:
    schema = {str(column): pl.Int64 for column in range(n_columns)}
    try:
        found = pl.read_csv(path, has_header=False, schema=schema, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: expected {n_columns} indices per line ({reason})") from error
    if found.null_count().sum_horizontal().item():
        raise DataError(f"{path}: expected {n_columns} indices per line, got gaps")
    return found


def _labels(path: Path) -> pl.Series | None:
    """Return labels by index, or None where OGB has no file of them."""
    if not path.is_file():
        return None
    try:
        found = pl.read_csv(path, has_header=True, infer_schema=False, glob=False)
        indices, labels = found.to_series(0).cast(pl.Int64), found.to_series(1)
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
