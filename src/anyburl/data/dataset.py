"""`Dataset`: train, valid and test over one vocabulary; how to load, split and type it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, InvalidOptionError, quoted
from anyburl.base.machine import check_not_forked
from anyburl.data.attributes import Attributes
from anyburl.data.files import SPLITS as SPLITS
from anyburl.data.formats.frames import COLUMNS, TriplesLike, is_rdflib, label_frame, write_rdflib
from anyburl.data.names import Names
from anyburl.data.options import Gathered, ReadOptions
from anyburl.data.sources import located, read_value_files, reporting
from anyburl.data.stored import open_index
from anyburl.data.table import Ids, TripleTable, fingerprint, tables_of
from anyburl.data.terms import RDF_TYPE, SUBCLASS, WELL_KNOWN
from anyburl.data.values import read_attributes, recognise_values, take_named_values
from anyburl.data.vocabulary import Vocabulary


def split_table(table: TripleTable, shares: Sequence[float], seed: int) -> list[TripleTable]:
    """Return train, valid and test of about these shares, drawn at random, over the vocabulary of the table.

    A table is in the order of its labels, so the same triples are divided in the same way, whatever their order was.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(table))
    parts = split_rows(table.triples, order, shares)
    train, valid, test = (table.triples[parts == part] for part in range(3))
    return [
        TripleTable(table.vocabulary, train, table.n_duplicates),
        TripleTable(table.vocabulary, valid),
        TripleTable(table.vocabulary, test),
    ]


def split_rows(triples: Ids, order: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.int8]:
    """Return the split of each triple: 0 for train, 1 for valid, 2 for test.

    The first triple in `order` of every entity and every relation stays in train, so that none is only in valid or
    test. The others go to test and then to valid in that order; where they do not suffice, in proportion.
    """
    parts = np.zeros(len(triples), np.int8)
    is_first = np.zeros(len(triples), np.bool_)
    drawn = triples[order]
    is_first[_first_rows(drawn[:, [0, 2]].ravel()) // 2] = True
    is_first[_first_rows(drawn[:, 1])] = True
    free = order[~is_first]
    n_valid, n_test = split_sizes(len(triples), len(free), shares)
    parts[free[:n_test]] = 2
    parts[free[n_test : n_test + n_valid]] = 1
    return parts


def _first_rows(ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the positions where ids occur first."""
    first = np.full(int(ids.max(initial=-1)) + 1, -1, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # of several writes to one id, the last counts
    return first[first >= 0]


def split_sizes(n_triples: int, n_free: int, shares: Sequence[float]) -> tuple[int, int]:
    """Return how many triples valid and test get, if `n_free` may leave train."""
    n_valid, n_test = (round(n_triples * share) for share in shares[1:])
    if n_valid + n_test <= n_free:
        return n_valid, n_test
    n_test = n_free * n_test // (n_valid + n_test)
    return n_free - n_test, n_test


@dataclass(frozen=True, eq=False)
class Dataset:
    """Three tables of triples over one shared vocabulary; nothing is dropped across the splits.

    `stored_fingerprint` is the fingerprint if it is already known, as in an index. `reading` records how the data was
    read, `names` holds readable names of labels, and `left_out` counts statements that did not become triples, by kind.
    `attributes` are the numbers, dates and booleans of entities that rules may be learned from; `held_out` has those of
    valid and test.
    """

    name: str
    train: TripleTable
    valid: TripleTable
    test: TripleTable
    source: str | None = None
    stored_fingerprint: str | None = field(default=None, repr=False)
    reading: ReadOptions = field(default=ReadOptions(), repr=False)
    names: Names = field(default_factory=Names, repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict, repr=False)
    attributes: Attributes = field(default_factory=Attributes, repr=False)
    held_out: Mapping[str, Attributes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f"expected text as the name of a data set, got {quoted(self.name)}")
        for table in (self.train, self.valid, self.test):
            if not isinstance(table, TripleTable):
                raise DataError(
                    f"expected a TripleTable per split, got {type(table).__name__}: use Dataset.from_triples"
                )
        if not all(self.vocabulary.same_labels(table.vocabulary) for table in (self.valid, self.test)):
            raise DataError("expected one vocabulary for train, valid and test: use Dataset.from_triples")
        if not self.attributes.empty and self.vocabulary.values is not self.attributes:
            for split in SPLITS:
                object.__setattr__(self, split, self.split(split).with_values(self.attributes))

    @classmethod
    def from_triples(
        cls,
        train: TripleTable | TriplesLike,
        valid: TripleTable | TriplesLike | None = None,
        test: TripleTable | TriplesLike | None = None,
        name: str = "triples",
        options: ReadOptions | None = None,
    ) -> Dataset:
        """Make a data set from anything that holds triples: tables, frames, graphs of other packages, lists of tuples.

        `options` choose columns, and may split train if it is the only split.
        """
        options = options or ReadOptions()
        gathered = Gathered()
        frames: list[pl.DataFrame] = []
        for split, triples in zip(SPLITS, (train, valid, test), strict=True):
            gathered.split = split
            frames += take_named_values(
                [_labels(split, triples, options)], options, gathered, f"the triples of {split}"
            )
        if not any(len(frame) for frame in frames):
            raise DataError("expected at least one triple (subject, relation, object), got none")
        if options.split and any(len(frame) for frame in frames[1:]):
            raise DataError("the data already has valid or test: drop the option split")
        read_value_files({}, options, gathered)
        return _made(name, tables_of([[frame] for frame in frames]), options, gathered)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.train.vocabulary

    def split(self, name: str) -> TripleTable:
        """Return a split by its name."""
        if name not in SPLITS:
            raise InvalidOptionError("split", "train, valid or test", name)
        table: TripleTable = getattr(self, name)
        return table

    @cached_property
    def fingerprint(self) -> str:
        """A digest of labels, triples and values: the same data in another order has the same fingerprint."""
        if self.stored_fingerprint is not None:
            return self.stored_fingerprint
        tables = [self.split(split) for split in SPLITS]
        if not self.attributes.empty:
            tables = _without_names(tables, list(self.attributes))
        return self.attributes.joined(fingerprint(tables[0].vocabulary, tables))

    def __repr__(self) -> str:
        counts = ", ".join(f"{split} {len(self.split(split))}" for split in SPLITS)
        words = self.vocabulary
        return f"Dataset({self.name!r}: {counts}; {words.n_entities} entities, {words.n_relations} relations)"


def _without_names(tables: list[TripleTable], names: list[str]) -> list[TripleTable]:
    """Return tables whose relations are those of triples, without the names of attributes, as files have them."""
    vocabulary = tables[0].vocabulary
    kept = ~vocabulary.relations.is_in(names).to_numpy()
    for table in tables:
        kept[table.triples[:, 1]] = True
    ids = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    plain = Vocabulary(vocabulary.entities, vocabulary.relations.filter(pl.Series(kept)))
    moved = [np.column_stack([table.triples[:, 0], ids[table.triples[:, 1]], table.triples[:, 2]]) for table in tables]
    return [TripleTable.checked_before(plain, triples) for triples in moved]


DataLike = str | os.PathLike[str] | Dataset | TripleTable | TriplesLike
"""A data set by name, folder or file; a `Dataset`; or its train triples in a table, frame, array or list."""


Read = Callable[[int], None]
"""Called with the number of triples read so far."""


def load_dataset(
    data: DataLike,
    options: ReadOptions | None = None,
    progress: Read = lambda n_triples: None,
    *,
    attributes: Mapping[str, str] | None = None,
) -> Dataset:
    """Load a data set by name, from a folder, a file or a database (train only), or from triples in memory.

    A folder contains triple files, or what `anyburl index` wrote, which opens at once and is read on demand. Names are
    matched loosely (FB15k-237, fb15k237). A name is looked up among the built-in data sets and in the folder
    $ANYBURL_DATA; otherwise its files are downloaded on first use (`anyburl datasets` lists the names). An address is a
    SPARQL endpoint (sparql:http://host/path) or a database table (postgresql://host/db#t, duckdb:path#t,
    sqlite:path#t).

    Triples in memory become the train split: a `TripleTable`, a Polars or pandas frame, an Arrow table, a directed
    NetworkX graph, an RDFLib graph, a PyKEEN factory, a NumPy array with three columns (integers become labels) or a
    list of (subject, relation, object). `Dataset.from_triples` takes valid and test as well. A `Dataset` is returned
    unchanged. `options` set how data is read and whether it is split; `progress` is called with the number of triples
    read so far. `attributes` are relations, or columns of a file of values, with the kinds of their values (number,
    date, boolean): short for the option `attribute`.
    """
    check_not_forked()
    if isinstance(data, Dataset):
        return data
    if attributes is not None:
        options = replace(options or ReadOptions(), attribute=attributes)
    if options is not None:
        options.check_timeless()
    if isinstance(data, TripleTable) and not (options and (options.split or options.names_attributes)):
        return _train_only(data)
    if isinstance(data, str | os.PathLike):
        return _located(data, options or ReadOptions(), progress)
    if is_rdflib(data):
        return _from_rdflib(data, options or ReadOptions(), progress)
    return Dataset.from_triples(data, options=options)


def facts_in_order(data: DataLike) -> pl.DataFrame:
    """Return the labels of train facts, in the order in which they are given, those given twice included.

    `data` is what `load_dataset` takes.
    """
    if isinstance(data, str | os.PathLike):
        with located(data) as source:
            if source.index is None:
                batches = source.batches("train", ReadOptions(), Gathered())
                labels = [batch.select(pl.col(COLUMNS).cast(pl.String)) for batch in batches]
                return pl.concat([_labels("train", None, ReadOptions()), *labels])
    elif not isinstance(data, Dataset | TripleTable) and not is_rdflib(data):
        return label_frame(data, None)
    return load_dataset(data).train.to_polars()


def load_recorded(data: Mapping[str, Any]) -> Dataset:
    """Load the data that options.json of a run folder, or the card of a prepared one, describes."""
    return load_dataset(data["source"], ReadOptions.from_json(data.get("reading", {})))


def _from_rdflib(graph: Any, options: ReadOptions, progress: Read) -> Dataset:
    """Write a graph of RDFLib to a temporary file and read that, with the prefixes of the graph."""
    with TemporaryDirectory() as folder:
        dataset = _located(write_rdflib(graph, Path(folder)), options, progress)
    prefixes = {prefix: str(iri) for prefix, iri in graph.namespaces()}
    return replace(dataset, source=None, names=Names(dataset.names, {**prefixes, **dataset.names.prefixes}))


def _train_only(train: TripleTable) -> Dataset:
    if not len(train):
        raise DataError("expected at least one triple, got an empty table")
    nothing = TripleTable(train.vocabulary, np.empty((0, 3), np.int32))
    return Dataset("triples", train, nothing, nothing)


def _located(data: str | os.PathLike[str], options: ReadOptions, progress: Read) -> Dataset:
    with located(data) as source:
        source.check_split(options)
        if source.index is not None:
            return load_index(source.index, source.source)
        gathered, reported = Gathered(), reporting(progress)
        tables = tables_of([reported(source.batches(split, options, gathered)) for split in SPLITS])
    names = Names(gathered.names, {**gathered.prefixes, **options.prefixes})
    return _made(source.name, tables, options, gathered, source=source.source, names=names)


def load_index(folder: Path, source: str) -> Dataset:
    """Open the folder that `anyburl index` wrote for a data set; `source` is what is recorded as where it is."""
    check_not_forked()
    stored = open_index(folder)
    train, valid, test = stored.tables
    return Dataset(
        stored.card.name,
        train,
        valid,
        test,
        source,
        stored.card.fingerprint,
        names=stored.names,
        left_out=stored.card.left_out,
        attributes=stored.attributes,
    )


def _made(name: str, tables: list[TripleTable], options: ReadOptions, gathered: Gathered, **more: Any) -> Dataset:
    """Return the data set of some triples and of the values that were read with them."""
    tables = recognise_values(tables, options, gathered)
    if options.split:
        tables = split_table(tables[0], options.split, options.split_seed)
    train, valid, test = tables
    values = read_attributes(gathered, train.vocabulary, options)
    return Dataset(
        name,
        train,
        valid,
        test,
        reading=options,
        left_out=+gathered.left_out,
        attributes=values.pop("train"),
        held_out={split: own for split, own in values.items() if not own.empty},
        **more,
    )


def _labels(split: str, triples: TripleTable | TriplesLike | None, options: ReadOptions) -> pl.DataFrame:
    if triples is None:
        return pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))
    try:
        if isinstance(triples, TripleTable):
            return triples.to_polars()
        return label_frame(triples, options.columns, time=options.time)
    except DataError as error:
        raise DataError(f"{split}: {error}") from error


HIERARCHIES = {RDF_TYPE: SUBCLASS, f"{WELL_KNOWN['wdt']}P31": f"{WELL_KNOWN['wdt']}P279"}
"""The relation that orders classes, for relations that state types: rdf:type, and instance of in Wikidata."""


def default_types(dataset: Dataset) -> str | None:
    """Return the relation that states types in RDF, if the data has it."""
    return RDF_TYPE if RDF_TYPE in dataset.vocabulary.relations else None


def stated_types(dataset: Dataset, relation: int) -> pl.DataFrame:
    """Return the types that train states by a relation: columns entity and type, distinct."""
    train = dataset.train.triples
    stated = train[train[:, 1] == relation]
    return pl.DataFrame({"entity": stated[:, 0], "type": stated[:, 2]})


def all_types(dataset: Dataset, relation: int) -> pl.DataFrame:
    """Return the types that train states by a relation, and their superclasses, if there is a relation for these.

    Superclasses tell where an entity may occur, but not what occurs at one end of a relation: the highest class does
    everywhere.
    """
    vocabulary, known = dataset.vocabulary, stated_types(dataset, relation)
    ordering = HIERARCHIES.get(vocabulary.relation_label(relation))
    if ordering is None or ordering not in vocabulary.relations:
        return known
    above = stated_types(dataset, vocabulary.relation_id(ordering)).rename({"entity": "type", "type": "above"})
    newest = known
    while newest.height:
        higher = newest.join(above, on="type").select("entity", type="above").unique()
        newest = higher.join(known, on=["entity", "type"], how="anti")
        known = pl.concat([known, newest])
    return known.sort("entity", "type")
