"""From a table of triples to the index that every kernel reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.graph.arrays import GraphArrays, Ints
from anyburl.triples.table import TripleTable


def build_graph(table: TripleTable) -> GraphArrays:
    """Index the triples of `table` by relation and by neighbour.

    A reflexive triple h(c, c) is rewritten to h(c, self) (paper, section 4.4): an edge from c to `self` along h, and
    along h read backward as well, so that h(self, c), as other tools write it, means the same; and the edges back.
    """
    n_entities, n_relations = table.vocabulary.n_entities, table.vocabulary.n_relations
    sources, relations, targets = _directed_edges(table.triples, n_entities, n_relations)
    if len(sources) >= 2**31 or n_entities >= 2**31 - 1:
        raise DataError(f"the graph index holds at most 2^30 triples, got {len(table.triples)}")
    return _freeze(_arrays(n_entities, n_relations, sources, relations, targets))


def rewrite_reflexive(triples: NDArray[np.int32], self_id: int) -> NDArray[np.int32]:
    """Return the triples with the object of every h(c, c) replaced by `self`."""
    reflexive = triples[:, 0] == triples[:, 2]
    if not reflexive.any():
        return triples
    rewritten = triples.copy()
    rewritten[reflexive, 2] = self_id
    rewritten.setflags(write=False)
    return rewritten


def _directed_edges(
    triples: NDArray[np.int32], self_id: int, n_relations: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return source, directed relation and target of every edge, each triple read both ways."""
    subjects, relations, objects = np.ascontiguousarray(rewrite_reflexive(triples, self_id).T)
    reflexive = objects == self_id
    own, own_relations = subjects[reflexive], relations[reflexive]
    token = objects[reflexive]
    return (
        np.concatenate([subjects, objects, own, token]),
        np.concatenate([relations, relations + n_relations, own_relations + n_relations, own_relations]),
        np.concatenate([objects, subjects, token, own]),
    )


def _arrays(
    n_entities: int,
    n_relations: int,
    sources: NDArray[np.int32],
    relations: NDArray[np.int32],
    targets: NDArray[np.int32],
) -> GraphArrays:
    """Sort the edges both ways and cut them into segments."""
    relation_type = np.int16 if 2 * n_relations < 2**15 else np.int32
    by_source, by_relation, reached = _sort_edges(sources, relations, targets)
    starts = np.flatnonzero(np.diff(by_source, prepend=-1) | np.diff(by_relation, prepend=-1)).astype(np.int32)
    owners, owned = by_source[starts], by_relation[starts]
    # A segment that leads to `self` alone leads to no entity: it is not in the relation's domain.
    in_domain = (owners < n_entities) & (reached[starts] < n_entities)
    order = np.argsort(owned[in_domain], kind="stable")
    _, neighbours, joining = _sort_edges(sources, targets, relations)
    return GraphArrays(
        n_entities=n_entities,
        n_relations=n_relations,
        segment_offsets=np.searchsorted(owners, np.arange(n_entities + 2)).astype(np.int32),
        segment_relations=owned.astype(relation_type),
        segment_starts=np.append(starts, np.int32(len(reached))),
        targets=reached,
        neighbours=neighbours,
        neighbour_relations=joining.astype(relation_type),
        domain_offsets=np.searchsorted(owned[in_domain][order], np.arange(2 * n_relations + 1)).astype(np.int64),
        domains=owners[in_domain][order],
    )


def _sort_edges(
    first: NDArray[np.int32], second: NDArray[np.int32], third: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Sort the rows (first, second, third), packed into one integer each where they fit: one sort instead of three."""
    bits = [int(column.max(initial=0)).bit_length() for column in (first, second, third)]
    if sum(bits) > 63:
        order = np.lexsort((third, second, first))
        return first[order], second[order], third[order]
    packed = first.astype(np.int64)
    for column, width in ((second, bits[1]), (third, bits[2])):
        packed <<= width
        packed |= column
    packed.sort()
    low, middle = (1 << bits[2]) - 1, (1 << bits[1]) - 1
    return (
        (packed >> (bits[1] + bits[2])).astype(np.int32),
        ((packed >> bits[2]) & middle).astype(np.int32),
        (packed & low).astype(np.int32),
    )


def _freeze(graph: GraphArrays) -> GraphArrays:
    """Make every array read-only: memory maps and object stores hand out such arrays, and Numba types them apart."""
    for field in graph:
        if isinstance(field, np.ndarray):
            field.setflags(write=False)
    return graph


def segment_entities(graph: GraphArrays) -> Ints:
    """Return the entity that each segment belongs to."""
    counts = np.diff(graph.segment_offsets)
    owners = np.repeat(np.arange(graph.n_entities + 1, dtype=np.int32), counts)
    owners.setflags(write=False)
    return owners
