"""What the data says already: which splits hold a triple, and the answers of its two queries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.groundings import Ids
from anyburl.graph.arrays import GraphArrays
from anyburl.ranking.arrays import QueryArrays
from anyburl.triples.dataset import SPLITS, Dataset
from anyburl.triples.table import TripleTable

Ints = NDArray[np.int32]


def holding_splits(dataset: Dataset, triple: Ids) -> tuple[str, ...]:
    """Return the names of the splits that hold `triple`."""
    return tuple(split for split in SPLITS if _holds(dataset.split(split), triple))


def both_queries(dataset: Dataset, triple: Ids) -> QueryArrays:
    """Return (s, r, ?) and (?, r, o), each with the triple's own answer as target and the other known ones excluded."""
    subject, relation, object = triple
    objects = np.unique(np.concatenate([_objects(table, subject, relation) for table in _tables(dataset)]))
    subjects = np.unique(np.concatenate([_subjects(table, relation, object) for table in _tables(dataset)]))
    objects, subjects = objects[objects != object], subjects[subjects != subject]
    return QueryArrays(
        entities=np.array([subject, object], np.int32),
        relations=np.array([relation, relation + dataset.vocabulary.n_relations], np.int32),
        target_offsets=np.arange(3, dtype=np.int64),
        targets=np.array([object, subject], np.int32),
        excluded_offsets=np.cumsum([0, len(objects), len(subjects)], dtype=np.int64),
        excluded=np.concatenate([objects, subjects]),
    )


def are_connected(graph: GraphArrays, subject: int, object: int) -> bool:
    """Tell whether any fact joins two different entities, either way."""
    first, last = (int(graph.segment_starts[graph.segment_offsets[subject + i]]) for i in (0, 1))
    row = first + int(np.searchsorted(graph.neighbours[first:last], object))
    return subject != object and row < last and int(graph.neighbours[row]) == object


def _tables(dataset: Dataset) -> Iterator[TripleTable]:
    return (dataset.split(split) for split in SPLITS)


def _place(table: TripleTable, triple: Ids) -> int:
    """Return the row where `triple` is or would be: tables are sorted."""
    triples = table.triples
    return bisect_left(range(len(triples)), triple, key=lambda row: tuple(triples[row].tolist()))


def _holds(table: TripleTable, triple: Ids) -> bool:
    row = _place(table, triple)
    return row < len(table) and tuple(table.triples[row].tolist()) == triple


def _objects(table: TripleTable, subject: int, relation: int) -> Ints:
    first, last = _place(table, (subject, relation, 0)), _place(table, (subject, relation + 1, 0))
    return table.triples[first:last, 2]


def _subjects(table: TripleTable, relation: int, object: int) -> Ints:
    triples = table.triples
    return np.asarray(triples[(triples[:, 2] == object) & (triples[:, 1] == relation), 0])
