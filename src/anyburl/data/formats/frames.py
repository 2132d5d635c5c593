"""Turns objects that hold triples into a Polars frame of labels.

Those of other packages are recognised by their attributes, so none of the packages need be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, quoted
from anyburl.data.options import COLUMNS as COLUMNS
from anyburl.data.options import IGNORED, KNOWN, PARTS, choose_columns, has_usual_names, time_positions


def is_network(data: object) -> bool:
    """Whether this is a graph of NetworkX."""
    return all(hasattr(data, name) for name in ("is_directed", "is_multigraph", "edges"))


def network_triples(graph: Any, attribute: str | None) -> list[tuple[object, object, object]]:
    """Return the edges as triples.

    The relation is an attribute of every edge: the given one, or one with a usual name. If there is none, the keys of a
    multigraph are the relations, unless they are numbers.
    """
    if not graph.is_directed():
        raise DataError("expected a directed graph, got an undirected one, whose edges have no subject and object")
    edges = list(graph.edges(data=True))
    name = _relation_attribute(edges) if attribute is None else attribute
    if name is not None:
        return [
            (subject, _attribute(subject, object, attributes, name), object) for subject, object, attributes in edges
        ]
    if graph.is_multigraph() and all(isinstance(key, str) for _, _, key in graph.edges(keys=True)):
        return [(subject, key, object) for subject, object, key in graph.edges(keys=True)]
    if edges:
        raise DataError("expected edges with an attribute named relation or string keys, got edges with neither")
    return []


def _relation_attribute(edges: list[tuple[object, object, dict[str, object]]]) -> str | None:
    """Return the only attribute with a usual name that every edge has."""
    if not edges:
        return None
    common = set.intersection(*({*attributes} for _, _, attributes in edges))
    usual = [name for name in common if str(name).lower() in KNOWN["relation"]]
    if len(usual) > 1:
        raise DataError(
            f"expected one edge attribute as the relation, got {' and '.join(sorted(usual))}; choose one with columns"
        )
    return usual[0] if usual else None


def _attribute(subject: object, object: object, attributes: dict[str, object], name: str) -> object:
    if name not in attributes:
        raise DataError(
            f"expected an attribute {name!r} on every edge, got none on the edge from {subject!r} to {object!r}"
        )
    return attributes[name]


def is_factory(data: object) -> bool:
    """Whether this is a triples factory of PyKEEN."""
    return hasattr(data, "mapped_triples")


def factory_labels(factory: Any) -> Any:
    """Return the labelled triples of a factory; inverse triples are left to the rules."""
    if not hasattr(factory, "label_triples"):
        kind = type(factory).__name__
        raise DataError(f"expected a TriplesFactory, which knows its labels, got a {kind}; use with_labels")
    return factory.label_triples(factory.mapped_triples)


def is_rdflib(data: object) -> bool:
    """Whether this is a graph of RDFLib."""
    return all(hasattr(data, name) for name in ("serialize", "triples", "namespaces"))


def write_rdflib(graph: Any, folder: Path) -> Path:
    """Write a graph, or several named ones, into a folder; return the file."""
    several = hasattr(graph, "quads")
    path = folder / ("rdflib.nq" if several else "rdflib.nt")
    graph.serialize(destination=str(path), format="nquads" if several else "nt", encoding="utf-8")
    return path


TriplesLike = pl.DataFrame | pl.LazyFrame | NDArray[Any] | Iterable[Sequence[object]] | Any
"""A Polars or pandas frame, a table of Arrow, a NumPy array of three columns, a graph of NetworkX, a factory of PyKEEN,
or an iterable of (subject, relation, object)."""


def label_frame(
    triples: TriplesLike, columns: Sequence[str] | None = None, first: int = 0, time: Sequence[str] | None = None
) -> pl.DataFrame:
    """Return the triples as strings in the columns subject, relation and object, in the order given.

    A frame gives the `columns` chosen, else those of these names, else the three that it has. `first` is the number of
    the first row, for errors. With `time`, as in `ReadOptions`, the times of facts follow, and their ends.
    """
    if isinstance(triples, pl.LazyFrame):
        triples = triples.collect()
    if isinstance(triples, pl.DataFrame):
        frame = _from_polars(triples, columns, time)
    elif isinstance(triples, np.ndarray):
        frame = _from_array(triples, time)
    elif hasattr(triples, "columns") and hasattr(triples, "isna"):
        frame = _from_pandas(triples, columns, time)
    elif hasattr(triples, "__arrow_c_stream__") or hasattr(triples, "__arrow_c_array__"):
        frame = _from_polars(pl.DataFrame(triples), columns, time)
    elif is_network(triples):
        frame = _from_rows(network_triples(triples, columns[1] if columns else None))
    elif is_factory(triples):
        frame = _from_array(factory_labels(triples))
    else:
        frame = _from_rows(triples, time)
    return _without_gaps(frame.select(COLUMNS) if time == (IGNORED,) else frame, first)


def _chosen_columns(names: Sequence[object], columns: Sequence[str] | None, time: Sequence[str] | None) -> list[int]:
    """Return the positions of the three columns that hold the triples, and those of times."""
    if columns is None and all(names.count(name) == 1 for name in COLUMNS):
        times = [] if time in (None, (IGNORED,)) else time_positions([str(name) for name in names], time, "the frame")
        return [names.index(name) for name in COLUMNS] + times
    if len(names) < 3:
        raise DataError(f"expected a frame with subject, relation and object, got the columns {list(names)}")
    texts = [str(name) for name in names]
    if columns is None and len(names) == 3 and not has_usual_names(texts):
        return [0, 1, 2]
    return choose_columns(texts, columns, "the frame", time)


def _from_polars(frame: pl.DataFrame, columns: Sequence[str] | None, time: Sequence[str] | None) -> pl.DataFrame:
    positions = _chosen_columns(frame.columns, columns, time)
    return pl.DataFrame([_text(frame.to_series(i)) for i in positions], schema=PARTS[: len(positions)])


def _text(column: pl.Series) -> pl.Series:
    if isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    if column.dtype.is_float():
        column = column.fill_nan(None)
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        message = f"expected labels in the column {column.name!r}, got values of type {column.dtype}"
        raise DataError(message) from error


def _from_array(array: NDArray[Any], time: Sequence[str] | None = None) -> pl.DataFrame:
    n_columns = len(COLUMNS) if time is None else max(len(COLUMNS) + 1, min(array.shape[-1], len(PARTS)))
    if array.ndim != 2 or array.shape[1] != n_columns:
        raise DataError(f"expected an array of shape (n, {n_columns}), got {array.shape}")
    if array.dtype.kind not in "iuUOT":
        raise DataError(f"expected an array of strings or integers, got {array.dtype}")
    columns, names = np.ascontiguousarray(array.T), PARTS[:n_columns]
    if array.dtype.kind in "iu":
        return pl.DataFrame([pl.Series(column).cast(pl.String) for column in columns], schema=names)
    return pl.DataFrame([_strings(column.tolist()) for column in columns], schema=names)


def _from_pandas(frame: Any, columns: Sequence[str] | None, time: Sequence[str] | None) -> pl.DataFrame:
    labels = []
    for i in _chosen_columns(list(frame.columns), columns, time):
        column = frame.iloc[:, i]
        values = column.astype(object).where(~column.isna(), None)
        labels.append(_strings(values.tolist()))
    return pl.DataFrame(labels, schema=PARTS[: len(labels)])


def _from_rows(rows: Iterable[Sequence[object]], time: Sequence[str] | None = None) -> pl.DataFrame:
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError(f"expected a frame, an array or a list of triples, got {_shortened(rows)}")
    listed = list(rows)
    names = COLUMNS if time is None else PARTS[: max(4, min(5, len(listed[0]) if listed else 4))]
    for number, row in enumerate(listed):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray) or len(row) != len(names):
            raise DataError(f"row {number}: expected ({', '.join(names)}), got {_shortened(row)}")
    columns: list[Sequence[object]] = list(zip(*listed, strict=True)) if listed else [()] * len(names)
    return pl.DataFrame([_strings(column) for column in columns], schema=names)


def _strings(values: Iterable[object]) -> pl.Series:
    """Return values as labels: null for None and for NaN, which differs from itself."""
    missing = {type(None), float, np.float64}
    texts = [None if type(v) in missing and (v is None or v != v) else str(v) for v in values]
    return pl.Series(texts, dtype=pl.String)


def _without_gaps(frame: pl.DataFrame, first: int) -> pl.DataFrame:
    """Return the frame; raise an error for a missing or empty label."""
    gaps = {name: frame[name].is_null() | (frame[name] == "") for name in COLUMNS}
    rows = {name: row for name, gap in gaps.items() if (row := gap.arg_max()) is not None and gap[row]}
    if rows:
        name = min(rows, key=lambda column: rows[column])
        raise DataError(f"row {first + rows[name]}: expected a label, got an empty {name}: {frame.row(rows[name])}")
    return frame


def _shortened(value: object) -> str:
    text = quoted(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
