"""The index of a graph in a folder: one .npy file per array, memory-mapped by whoever opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import build_graph
from anyburl.mapped import open_record, save_sizes
from anyburl.triples.table import TripleTable

GRAPH = "graph"  # the folder within the folder of an index


def graph_of(table: TripleTable) -> GraphArrays:
    """Return the graph of a table: mapped where its index is in a folder, built otherwise."""
    return build_graph(table) if table.folder is None else open_graph(table.folder / GRAPH)


def store_graph(table: TripleTable, folder: Path) -> GraphArrays:
    """Build the graph of `table` in a subfolder of `folder`; return it, mapped."""
    target = folder / GRAPH
    target.mkdir(parents=True, exist_ok=True)

    def mapped(name: str, length: int, kind: Any) -> NDArray[Any]:
        path = target / f"{name}.npy"
        if not length:  # an empty file cannot be mapped
            np.save(path, np.empty(0, kind))
            return np.empty(0, kind)
        return np.lib.format.open_memmap(path, "w+", np.dtype(kind), (length,))

    graph = build_graph(table, mapped)
    save_sizes(graph, target)
    return open_graph(target)


def open_graph(folder: Path) -> GraphArrays:
    """Map the arrays of a stored graph; they are read as they are used."""
    try:
        return open_record(GraphArrays, folder)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"{folder}: expected the graph that `anyburl index` wrote, which is missing or damaged"
        ) from error
