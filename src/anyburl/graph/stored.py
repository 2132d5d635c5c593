"""The index of a data set in a folder: its tables and its graph, one memory-mapped .npy file per array."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import callback
from anyburl.base.errors import DataError
from anyburl.base.files import at_home
from anyburl.base.machine import has_huge_pages, memory_left
from anyburl.base.sealed import open_array, open_record, read_array, save_record, save_sizes
from anyburl.base.writing import replacing_folder
from anyburl.data.attributes import Attributes
from anyburl.data.catalogue import is_index
from anyburl.data.dataset import SPLITS, Dataset, load_dataset, split_table
from anyburl.data.names import Names
from anyburl.data.options import Gathered, ReadOptions
from anyburl.data.sources import DataLocation, located
from anyburl.data.stored import (
    LABEL_FILES,
    IndexCard,
    Progress,
    label_slices,
    map_triples,
    write_labels,
    write_names,
    write_tables,
)
from anyburl.data.table import PIECE, TripleTable, fingerprint_of
from anyburl.data.values import read_attributes
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import build_graph
from anyburl.graph.kernel import GraphArrays

GRAPH = "graph"  # the folder within the folder of an index


def graph_of(table: TripleTable) -> GraphArrays:
    """Return the graph of a table: mapped where its index is in a folder, built otherwise."""
    return build_graph(table) if table.folder is None else open_graph(table.folder / GRAPH, table)


def graph_to_walk(table: TripleTable) -> GraphArrays:
    """Return the graph of a table for random access: a stored one is read into huge pages, if the system has them and
    twice its size is free.
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
    """Map the arrays of a stored graph, and check their sizes."""
    try:
        return _checked(open_record(GraphArrays, folder, open_one), table)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{folder}: the graph that `anyburl index` wrote is missing or damaged") from error


def _checked(graph: GraphArrays, table: TripleTable) -> GraphArrays:
    """Raise ValueError for arrays with other sizes than those of a graph with these labels."""
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


def build_index(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    progress: Progress | None = None,
    options: ReadOptions | None = None,
) -> Dataset:
    """Build the index of a data set in a new folder and open it.

    `data` is a name, folder or file as for `load_dataset`. Afterwards, `load_dataset` and every command that takes DATA
    accept `out`. Labels are read in pieces, so the text may be much larger than memory. `progress` is called with the
    current step and the number of lines or triples. An interrupted build leaves nothing behind.
    """
    write_index(data, out, progress, options)
    return load_dataset(at_home(out))


def write_index(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    progress: Progress | None = None,
    options: ReadOptions | None = None,
) -> IndexCard:
    """Build an index and return its card; unlike in `build_index`, labels need not fit into memory."""
    (options or ReadOptions()).check_timeless()
    target = at_home(out).resolve()  # of a link, its target is written
    callback("progress", progress)
    check_index_output(target)
    with located(data) as source, replacing_folder(target) as folder:
        if source.index is not None:
            raise DataError(f"{source.source} is already an index: pass the data it was built from")
        source.check_split(options or ReadOptions())
        return _write_index(source, options or ReadOptions(), folder, progress or (lambda doing, n: None))


def check_index_output(out: Path) -> None:
    """Raise an error if the folder is not free."""
    if out.is_dir() and is_index(out):
        raise DataError(f"{out} already contains an index: choose another folder, or remove this one")
    if out.is_dir() and any(out.iterdir()):
        raise DataError(f"{out} is not empty: an index needs a folder of its own")
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file: an index is written to a folder")


def _write_index(source: DataLocation, options: ReadOptions, folder: Path, progress: Progress) -> IndexCard:
    gathered = Gathered()
    n_entities, n_relations, triples, duplicates = write_tables(source, options, gathered, folder, progress)
    tables = _open_tables(folder, Vocabulary.unnamed(n_entities, n_relations), triples)
    if options.split:
        progress("splitting", triples["train"])
        tables, triples = _write_split(folder, tables[0], options)
    progress("indexing", triples["train"])
    store_graph(tables[0], folder)
    write_names(Names(gathered.names), folder)
    attributes = _write_attributes(gathered, options, folder, n_entities)
    progress("computing the fingerprint", sum(triples.values()))
    sizes = {"entities": n_entities, "relations": n_relations}
    labels = [(n, label_slices(folder / LABEL_FILES[kind], n, PIECE)) for kind, n in sizes.items()]
    card = IndexCard(
        name=source.name,
        source=os.path.abspath(source.source) if os.path.exists(source.source) else source.source,
        fingerprint=attributes.joined(fingerprint_of(labels, tables)),
        triples=triples,
        duplicates=duplicates,
        **sizes,
        reading=options.to_json(),
        prefixes={**gathered.prefixes, **options.prefixes},
        left_out=dict(+gathered.left_out),
    )
    card.write(folder)
    return card


def _write_attributes(gathered: Gathered, options: ReadOptions, folder: Path, n_entities: int) -> Attributes:
    """Write the training values, if there are any; only then are all labels of entities in memory."""
    if not gathered.values and not options.names_attributes:
        return Attributes()
    entities = pl.concat(
        [pl.Series(dtype=pl.String), *label_slices(folder / LABEL_FILES["entities"], n_entities, PIECE)]
    )
    vocabulary = Vocabulary(entities, pl.Series(dtype=pl.String))
    attributes = read_attributes(gathered, vocabulary, options)["train"]
    attributes.save(folder, vocabulary)
    return attributes


def _open_tables(folder: Path, vocabulary: Vocabulary, splits: Mapping[str, int]) -> list[TripleTable]:
    mapped = [map_triples(folder / f"{split}.npy", n) for split, n in splits.items()]
    return [TripleTable.checked_before(vocabulary, triples) for triples in mapped]


def _write_split(folder: Path, table: TripleTable, options: ReadOptions) -> tuple[list[TripleTable], dict[str, int]]:
    """Split the triples of a folder; return its tables and their sizes."""
    assert options.split is not None
    tables = split_table(table, options.split, options.split_seed)
    for split, part in zip(SPLITS, tables, strict=True):
        np.save(folder / f"{split}.new.npy", part.triples)
        os.replace(folder / f"{split}.new.npy", folder / f"{split}.npy")
    triples = {split: len(part) for split, part in zip(SPLITS, tables, strict=True)}
    return _open_tables(folder, table.vocabulary, triples), triples


def store_dataset(dataset: Dataset, graph: GraphArrays, folder: Path) -> None:
    """Write a data set that is in memory, and the graph of its train split, as an index into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary, tables = dataset.vocabulary, {split: dataset.split(split) for split in SPLITS}
    write_labels(vocabulary.entities, folder / "entities.arrow")
    write_labels(vocabulary.relations, folder / "relations.arrow")
    for split, table in tables.items():
        np.save(folder / f"{split}.npy", np.ascontiguousarray(table.triples, np.int32))
    save_record(graph, folder / GRAPH)
    write_names(dataset.names, folder)
    dataset.attributes.save(folder, vocabulary)
    IndexCard(
        name=dataset.name,
        source=dataset.source,
        fingerprint=dataset.fingerprint,
        triples={split: len(table) for split, table in tables.items()},
        duplicates={split: table.n_duplicates for split, table in tables.items()},
        entities=vocabulary.n_entities,
        relations=vocabulary.n_relations,
        reading=dataset.reading.to_json(),
        prefixes=dataset.names.prefixes,
        left_out=dict(dataset.left_out),
    ).write(folder)
