"""What the data says already: which splits hold a triple, and what else answers its two queries."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.groundings import Ids
from anyburl.graph.arrays import GraphArrays
from anyburl.triples.dataset import SPLITS, Dataset
from anyburl.triples.table import TripleTable

Ints = NDArray[np.int32]


def holding_splits(dataset: Dataset, triple: Ids) -> tuple[str, ...]:
    """Return the names of the splits that hold `triple`."""
    return tuple(split for split in SPLITS if _holds(dataset.split(split), triple))


def other_answers(dataset: Dataset, graph: GraphArrays, triple: Ids) -> tuple[Ints, Ints]:
    """Return the known objects of (s, r, ?) and the known subjects of (?, r, o), without the triple's own.

    Those of train come from its `graph`: to look through all of train would take longer than the rest.
    """
    subject, relation, object = triple
    tables = (dataset.valid.triples, dataset.test.triples)
    objects = [table[(table[:, 0] == subject) & (table[:, 1] == relation), 2] for table in tables]
    subjects = [table[(table[:, 2] == object) & (table[:, 1] == relation), 0] for table in tables]
    all_objects = np.concatenate([known_answers(graph, subject, relation), *objects])
    all_subjects = np.concatenate([known_answers(graph, object, relation + graph.n_relations), *subjects])
    return all_objects[all_objects != object], all_subjects[all_subjects != subject]


def find_segment(graph: GraphArrays, entity: int, relation: int) -> int:
    """Return the segment of an entity for a directed relation, -1 if it has none."""
    start, end = int(graph.segment_offsets[entity]), int(graph.segment_offsets[entity + 1])
    segment = start + int(np.searchsorted(graph.segment_relations[start:end], relation))
    return segment if segment < end and graph.segment_relations[segment] == relation else -1


def neighbours(graph: GraphArrays, entity: int) -> Ints:
    """Return what any fact joins with `entity`; a reflexive fact joins it with itself."""
    first, last = (int(graph.segment_starts[graph.segment_offsets[entity + i]]) for i in (0, 1))
    return _spell_out_self(graph, entity, graph.neighbours[first:last])


def _place(table: TripleTable, triple: Ids) -> int:
    """Return the row where `triple` is or would be: tables are sorted."""
    triples = table.triples
    return bisect_left(range(len(triples)), triple, key=lambda row: tuple(triples[row].tolist()))


def _holds(table: TripleTable, triple: Ids) -> bool:
    row = _place(table, triple)
    return row < len(table) and tuple(table.triples[row].tolist()) == triple


def known_answers(graph: GraphArrays, entity: int, relation: int) -> Ints:
    """Return what a directed relation leads to, `self` being the entity."""
    segment = find_segment(graph, entity, relation)
    if segment < 0:
        return np.empty(0, np.int32)
    found = graph.targets[graph.segment_starts[segment] : graph.segment_starts[segment + 1]]
    return _spell_out_self(graph, entity, found)


def _spell_out_self(graph: GraphArrays, entity: int, found: Ints) -> Ints:
    return np.where(found == graph.n_entities, np.int32(entity), found)
