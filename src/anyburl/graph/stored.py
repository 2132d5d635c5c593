"""The index of a graph in a folder: one memory-mapped .npy file per array."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import build_graph
from anyburl.mapped import open_array, open_record, read_array, save_sizes
from anyburl.memory import has_huge_pages, memory_left
from anyburl.triples.table import TripleTable

GRAPH = "graph"  # the folder within the folder of an index


def graph_of(table: TripleTable) -> GraphArrays:
    """Return the graph of a table: mapped where its index is in a folder, built otherwise."""
    return build_graph(table) if table.folder is None else open_graph(table.folder / GRAPH, table)


def graph_to_walk(table: TripleTable) -> GraphArrays:
    """Return the graph of a table for those who will walk all over it: a stored one is read into huge pages, if the
    system has them and twice the memory that it takes is left.
    """
    folder = None if table.folder is None else table.folder / GRAPH
    if folder is None or not has_huge_pages() or not _fits(folder):
        return graph_of(table)
    return open_graph(folder, table, read_array)


def _fits(folder: Path) -> bool:
    left = memory_left()
    return left is not None and 2 * sum(file.stat().st_size for file in folder.glob("*.npy")) < left[0]


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
    return open_graph(target, table)


def open_graph(folder: Path, table: TripleTable, open_one: Callable[[Path], NDArray[Any]] = open_array) -> GraphArrays:
    """Map the arrays of a stored graph; they are read as they are used. Only their sizes are looked at."""
    try:
        return _checked(open_record(GraphArrays, folder, open_one), table)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{folder}: the graph that `anyburl index` wrote is missing or damaged") from error


def _checked(graph: GraphArrays, table: TripleTable) -> GraphArrays:
    """Refuse arrays that are not as long as those of a graph with these labels."""
    words, arrays = table.vocabulary, {name: value for name, value in graph._asdict().items() if name[:2] != "n_"}
    if (graph.n_entities, graph.n_relations) != (words.n_entities, words.n_relations):
        raise ValueError("its labels do not match")
    if any(array.ndim != 1 or array.dtype.kind != "i" for array in arrays.values()):
        raise ValueError("its arrays have unexpected types")
    n_segments, n_rows = len(graph.segment_relations), len(graph.targets)
    ends = (
        (graph.segment_offsets, words.n_entities + 2, n_segments),
        (graph.segment_starts, n_segments + 1, n_rows),
        (graph.domain_offsets, 2 * words.n_relations + 1, len(graph.domains)),
    )
    rows = (graph.neighbours, graph.neighbour_relations, graph.partners)
    if any(len(array) != n_rows for array in rows) or any(
        len(array) != n or array[-1] != end for array, n, end in ends
    ):
        raise ValueError("its arrays have unexpected sizes")
    return graph
