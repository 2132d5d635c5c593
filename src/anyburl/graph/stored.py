"""The index of a graph in a folder: one .npy file per array, memory-mapped by whoever opens it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from anyburl.errors import DataError
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.index import build_graph
from anyburl.triples.table import TripleTable

GRAPH = "graph"  # the folder within the folder of an index
SIZES = "sizes.json"  # the numbers among the fields


def graph_of(table: TripleTable) -> GraphArrays:
    """Return the graph of a table: mapped where its index is in a folder, built otherwise."""
    return build_graph(table) if table.folder is None else open_graph(table.folder / GRAPH)


def store_graph(table: TripleTable, folder: Path) -> GraphArrays:
    """Build the graph of `table` into a folder of its own within `folder`; return it."""
    graph = build_graph(table)
    target = folder / GRAPH
    target.mkdir(parents=True, exist_ok=True)
    numbers = {}
    for name, value in graph._asdict().items():
        if isinstance(value, np.ndarray):
            np.save(target / f"{name}.npy", value)
        else:
            numbers[name] = value
    (target / SIZES).write_text(json.dumps(numbers), "utf-8")
    return graph


def open_graph(folder: Path) -> GraphArrays:
    """Map the arrays of a stored graph; nothing is read before it is used."""
    try:
        fields = dict(json.loads((folder / SIZES).read_text("utf-8")))
        for name in GraphArrays._fields:
            if name not in fields:
                fields[name] = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))
        return GraphArrays(**fields)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"{folder}: expected the graph that `anyburl index` wrote, got none or a damaged one"
        ) from error
