"""Lookups in the graph and the splits: neighbours, known answers, frequencies, and which splits state a triple."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from anyburl.data.dataset import SPLITS, Dataset
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.build import frozen, range_rows
from anyburl.graph.kernel import fill_held, fill_segments

Ids = tuple[int, int, int]
Ints = NDArray[np.int32]
Segments = NDArray[np.int32] | NDArray[np.int64]  # as the graph numbers them


def lookup_segment(graph: GraphArrays, entity: int, relation: int) -> int:
    """Return the segment of an entity for a directed relation, -1 if it has none."""
    start, end = int(graph.segment_offsets[entity]), int(graph.segment_offsets[entity + 1])
    segment = start + int(np.searchsorted(graph.segment_relations[start:end], relation))
    return segment if segment < end and graph.segment_relations[segment] == relation else -1


def lookup_segments(graph: GraphArrays, entities: Ints, relations: Ints) -> Segments:
    """Return the segments of many entities, each for its directed relation."""
    segments = np.empty(len(entities), graph.segment_offsets.dtype)
    fill_segments(graph, entities.copy(), relations.copy(), segments)  # kernels are compiled for writable arrays
    return segments


def neighbours(graph: GraphArrays, entity: int) -> Ints:
    """Return the neighbours of an entity along any relation; a reflexive fact makes it its own neighbour."""
    first, last = (int(graph.segment_starts[graph.segment_offsets[entity + i]]) for i in (0, 1))
    return _without_self(graph, entity, graph.neighbours[first:last])


def known_answers(graph: GraphArrays, entity: int, relation: int) -> Ints:
    """Return the answers to (entity, directed relation, ?) in the graph, with `self` replaced by the entity."""
    segment = lookup_segment(graph, entity, relation)
    if segment < 0:
        return np.empty(0, np.int32)
    return _without_self(graph, entity, graph.targets[slice(*graph.segment_starts[segment : segment + 2])])


def all_known_answers(graph: GraphArrays, entities: Ints, relations: Ints) -> tuple[NDArray[np.int64], Ints]:
    """Return the answers to many queries (entity, directed relation, ?): offsets of each query, and the answers."""
    starts, sizes = _segment_rows(graph, lookup_segments(graph, entities, relations))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return offsets, _without_self(graph, np.repeat(entities, sizes), graph.targets[range_rows(starts, sizes)])


def answer_counts(graph: GraphArrays, entities: Ints, relations: Ints) -> NDArray[np.int64]:
    """Return how many answers the graph holds to each query (entity, directed relation, ?)."""
    return _segment_rows(graph, lookup_segments(graph, entities, relations))[1]


def _segment_rows(graph: GraphArrays, segments: Segments) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row and the number of rows of each segment; the segment -1 has none."""
    starts = graph.segment_starts[segments].astype(np.int64)
    return starts, np.where(segments >= 0, graph.segment_starts[segments + 1] - starts, 0)


def degrees(graph: GraphArrays, entities: Ints) -> NDArray[np.int64]:
    """Return how many edges each entity has."""
    first, last = (graph.segment_starts[graph.segment_offsets[entities + i]] for i in (0, 1))
    return last.astype(np.int64) - first


def relation_counts(
    graph: GraphArrays, edge_starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for each directed relation its edges, the entities that it leads to, and those that it starts from.

    `edge_starts` are the first edges of each entry of `domains`, without `self`.
    """
    n_starts = np.diff(graph.domain_offsets)
    n_ends = n_starts[inverses(np.arange(len(n_starts), dtype=np.int32), graph.n_relations)]
    return np.diff(edge_starts[graph.domain_offsets]), n_ends, n_starts


def other_answers(dataset: Dataset, graph: GraphArrays, triple: Ids) -> tuple[Ints, Ints]:
    """Return the known objects of (s, r, ?) and the known subjects of (?, r, o), without the triple's own.

    Those of train come from its `graph`, which is faster than a scan of the table.
    """
    subject, relation, object = triple
    tables = (dataset.valid.triples, dataset.test.triples)
    objects = [table[(table[:, 0] == subject) & (table[:, 1] == relation), 2] for table in tables]
    subjects = [table[(table[:, 2] == object) & (table[:, 1] == relation), 0] for table in tables]
    all_objects = np.concatenate([known_answers(graph, subject, relation), *objects])
    all_subjects = np.concatenate([known_answers(graph, object, relation + graph.n_relations), *subjects])
    return all_objects[all_objects != object], all_subjects[all_subjects != subject]


def held_by(dataset: Dataset, triples: Ints) -> NDArray[np.uint8]:
    """Return which splits hold each of the triples (rows of ids), as bits: 1 for train, 2 for valid, 4 for test."""
    rows, bits = np.array(triples, np.int32, order="C").reshape(-1, 3), np.zeros(len(triples), np.uint8)
    for bit, split in enumerate(SPLITS):
        held = np.empty(len(rows), np.bool_)
        table = np.ascontiguousarray(dataset.split(split).triples, np.int32)
        fill_held(frozen(table), rows, held)  # read-only, whatever table it is: one compilation serves all
        bits |= held.astype(np.uint8) << bit
    return bits


def split_names(bits: int) -> tuple[str, ...]:
    """Return the names of the splits behind the bits of `held_by`."""
    return tuple(split for bit, split in enumerate(SPLITS) if bits >> bit & 1)


def split_bits(splits: Iterable[str]) -> np.uint8:
    """Return the bits of `held_by` that stand for some splits."""
    return np.uint8(sum(1 << SPLITS.index(split) for split in splits))


def holding_splits(dataset: Dataset, triple: Ids) -> tuple[str, ...]:
    """Return the names of the splits that hold `triple`."""
    return split_names(int(held_by(dataset, np.array([triple], np.int32))[0]))


def _without_self(graph: GraphArrays, entity: int | Ints, answers: Ints) -> Ints:
    return np.where(answers == graph.n_entities, entity, answers).astype(np.int32)
