"""Builds the index of a data set in a folder that opens at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from anyburl.checking import callback
from anyburl.errors import DataError
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.stored import GRAPH, store_graph
from anyburl.mapped import save_record
from anyburl.reading import at_home
from anyburl.triples.building import Progress, write_tables
from anyburl.triples.dataset import SPLITS, Dataset, load_dataset
from anyburl.triples.fingerprint import PIECE, fingerprint_of
from anyburl.triples.gathered import Gathered
from anyburl.triples.names import Names
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.registry import is_index
from anyburl.triples.sources import Source, located
from anyburl.triples.splitting import split_table
from anyburl.triples.stored import LABEL_FILES, IndexCard, label_slices, map_triples, write_labels, write_names
from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary
from anyburl.writing import replacing_folder


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
    """Build an index and return what it says of itself; unlike in `build_index`, labels need not fit into memory."""
    target = at_home(out).resolve()  # whoever names a link means the folder that it leads to
    callback("progress", progress)
    check_index_output(target)
    with located(data) as source, replacing_folder(target) as folder:
        if source.index is not None:
            raise DataError(f"{source.source} is already an index: pass the data it was built from")
        source.check_split(options or ReadOptions())
        return _write_index(source, options or ReadOptions(), folder, progress or (lambda doing, n: None))


def check_index_output(out: Path) -> None:
    """Refuse a place that is not free."""
    if out.is_dir() and is_index(out):
        raise DataError(f"{out} already contains an index: choose another folder, or remove this one")
    if out.is_dir() and any(out.iterdir()):
        raise DataError(f"{out} is not empty: an index needs a folder of its own")
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file: an index is written to a folder")


def _write_index(source: Source, options: ReadOptions, folder: Path, progress: Progress) -> IndexCard:
    gathered = Gathered()
    n_entities, n_relations, triples, duplicates = write_tables(source, options, gathered, folder, progress)
    tables = _open_tables(folder, Vocabulary.unnamed(n_entities, n_relations), triples)
    if options.split:
        progress("splitting", triples["train"])
        tables, triples = _write_split(folder, tables[0], options)
    progress("indexing", triples["train"])
    store_graph(tables[0], folder)
    write_names(Names(gathered.names), folder)
    progress("computing the fingerprint", sum(triples.values()))
    sizes = {"entities": n_entities, "relations": n_relations}
    labels = [(n, label_slices(folder / LABEL_FILES[kind], n, PIECE)) for kind, n in sizes.items()]
    card = IndexCard(
        name=source.name,
        source=os.path.abspath(source.source) if os.path.exists(source.source) else source.source,
        fingerprint=fingerprint_of(labels, tables),
        triples=triples,
        duplicates=duplicates,
        **sizes,
        reading=options.to_json(),
        prefixes={**gathered.prefixes, **options.prefixes},
        left_out=dict(gathered.left_out),
    )
    card.write(folder)
    return card


def _open_tables(folder: Path, vocabulary: Vocabulary, splits: Mapping[str, int]) -> list[TripleTable]:
    mapped = [map_triples(folder / f"{split}.npy", n) for split, n in splits.items()]
    return [TripleTable.checked_before(vocabulary, triples) for triples in mapped]


def _write_split(folder: Path, table: TripleTable, options: ReadOptions) -> tuple[list[TripleTable], dict[str, int]]:
    """Divide the triples of a folder, and return its tables and how many triples each of them has."""
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
