"""Builds the index that every kernel reads from a table of triples, and looks things up in it.

Lookups are neighbours, known answers, frequencies, and which splits state a triple. `on_tiny_table` compiles kernels in
advance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.base.machine import available_cores, map_in_threads
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.table import TripleTable, find_keys
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.kernel import (
    GraphArrays,
    Ints,
    count_domains,
    count_edges,
    count_segments,
    cut_segments,
    fill_held,
    fill_segments,
    inverses,
    list_domains,
    merge_edges,
    pack_edges,
    pair_segments,
)

MANY_RELATIONS = 2**14  # from here on relations are numbered by 32 bits, and kernels are compiled for that

TRIPLES = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 0, 2), (1, 0, 3), (3, 0, 0), (0, 0, 0)]


def on_tiny_table(work: Callable[[TripleTable], object], n_relations: int) -> None:
    """Do `work` on a table that kernels read like one with `n_relations`, unless this process did so before.

    Works that compare equal are the same: give a function or a frozen dataclass, not a lambda.
    """
    _do_once(work, MANY_RELATIONS if n_relations >= MANY_RELATIONS else 1)


@cache
def _do_once(work: Callable[[TripleTable], object], n_relations: int) -> None:
    work(tiny_table(n_relations))


def tiny_table(n_relations: int) -> TripleTable:
    """Return seven triples of the first relation between four entities, a reflexive one among them."""
    vocabulary = Vocabulary.from_labels(list("abcd"), [f"r{number:06d}" for number in range(n_relations)])
    return TripleTable.from_ids(np.array(TRIPLES, np.int32), vocabulary)


Room = Callable[[str, int, Any], NDArray[Any]]
"""Allocates an array, given its name, length and type."""

MOST_KEYS = 1 << 26  # sorted at a time
MOST_ROWS = 2**31 - 1  # and segments, numbered by 32 bits; more take 64


def build_graph(table: TripleTable, room: Room | None = None, *, most_keys: int = MOST_KEYS) -> GraphArrays:
    """Index the triples of `table` by relation and by neighbour, in memory or in the arrays that `room` returns.

    A reflexive triple h(c, c) is rewritten to h(c, self) (paper, section 4.4): an edge from c to `self` along h, and
    along h read backward as well, so that h(self, c), as other tools write it, means the same; and the edges back.

    Besides the arrays it needs 8 bytes for each of the `most_keys` edges that are sorted at a time.
    """
    if table.vocabulary.n_entities >= 2**31 - 1:
        raise DataError(f"a graph has at most 2^31 - 2 entities, got {table.vocabulary.n_entities}")
    room = room or _in_memory
    edges = _Edges(table, most_keys)
    relation_type = np.int16 if edges.n_relations < MANY_RELATIONS else np.int32
    # This array first holds the relations of the segments, then those of the neighbours.
    relations = room("neighbour_relations", edges.n_rows, relation_type)
    targets = room("targets", edges.n_rows, np.int32)
    edges.write(relations, targets, by_neighbour=False)
    segments = _segments(edges, relations, room)
    domain_offsets, domains = _domains(edges, segments, targets, room)
    neighbours = room("neighbours", edges.n_rows, np.int32)
    edges.write(neighbours, relations, by_neighbour=True)
    partners = room("partners", edges.n_rows, _int_type(len(segments[1])))
    arrays = (*segments, targets, neighbours, relations, partners, domain_offsets, domains)
    graph = _freeze(GraphArrays(edges.self_id, edges.n_relations, *arrays))
    _pair(graph, partners)
    partners.setflags(write=False)
    return graph


def _in_memory(name: str, length: int, kind: Any) -> NDArray[Any]:
    return np.empty(length, kind)


class _Edges:
    """The edges of a table: where the rows of each entity begin, and what they hold."""

    def __init__(self, table: TripleTable, most_keys: int) -> None:
        self._triples, self._most_keys = table.triples, most_keys
        self.self_id, self.n_relations = table.vocabulary.n_entities, table.vocabulary.n_relations
        self.forward, counts = np.zeros((2, self.self_id + 1), np.int64)
        count_edges(self._triples, self.self_id, self.forward, counts)
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.n_rows = int(self.starts[-1])

    def write(self, seconds: Ints, thirds: Ints, *, by_neighbour: bool) -> None:
        """Write the edges in the order of their source, then by relation or by neighbour."""
        bits = ((2 * self.n_relations).bit_length(), self.self_id.bit_length())
        widths = bits[::-1] if by_neighbour else bits
        filled: NDArray[np.int64] = np.zeros(self.self_id + 1, np.int64)
        for low, high in self._blocks(64 - sum(bits)):
            n_forward = int(self.forward[low:high].sum())
            n_backward = int(self.starts[high] - self.starts[low]) - n_forward
            buffer = np.empty(max(n_forward, n_backward), np.uint64)
            for backward in (False, True):
                n_keys = pack_edges(
                    self._triples, self.self_id, self.n_relations, low, high, backward, by_neighbour, bits, buffer
                )
                buffer[:n_keys].sort()
                merge_edges(buffer[:n_keys], low, widths, self.starts, filled, seconds, thirds)

    def _blocks(self, source_bits: int) -> Iterator[tuple[int, int]]:
        """Cut the entities into ranges with few enough edges to sort at a time, and few enough entities for a key."""
        low, n = 0, self.self_id + 1
        while low < n:
            fitting = int(np.searchsorted(self.starts, self.starts[low] + self._most_keys, side="right")) - 1
            high = min(max(fitting, low + 1), low + (1 << source_bits), n)
            yield low, high
            low = high


def _int_type(length: int) -> Any:
    """The smallest integers that can number `length` things."""
    return np.int32 if length <= MOST_ROWS else np.int64


def _segments(edges: _Edges, relations: Ints, room: Room) -> tuple[Ints, Ints, Ints]:
    n_segments = count_segments(edges.starts, relations)
    offsets = room("segment_offsets", edges.self_id + 2, _int_type(n_segments))
    owned = room("segment_relations", n_segments, relations.dtype)
    firsts = room("segment_starts", n_segments + 1, _int_type(edges.n_rows))
    cut_segments(edges.starts, relations, offsets, owned, firsts)
    return offsets, owned, firsts


def _domains(
    edges: _Edges, segments: tuple[Ints, Ints, Ints], targets: NDArray[np.int32], room: Room
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    counts = np.zeros(2 * edges.n_relations, np.int64)
    count_domains(edges.self_id, *segments, targets, counts)
    offsets = room("domain_offsets", len(counts) + 1, np.int64)
    offsets[:] = np.concatenate([[0], np.cumsum(counts)])
    domains = room("domains", int(offsets[-1]), np.int32)
    list_domains(edges.self_id, *segments, targets, offsets[:-1].copy(), domains)
    return offsets, domains


def _pair(graph: GraphArrays, partners: Ints) -> None:
    """Find the reverse of every edge, on all cores, since each lookup is a cache miss."""
    bounds = np.linspace(0, len(graph.segment_relations), 8 * available_cores() + 1).astype(np.int64)
    ranges = list(pairwise(bounds))
    map_in_threads(lambda rows: pair_segments(graph, *rows, partners), ranges, available_cores())


def _freeze(graph: GraphArrays) -> GraphArrays:
    """Make every array read-only, as memory maps and object stores have them: to Numba, that is another type."""
    fields: list[Any] = [frozen(field) if isinstance(field, np.ndarray) else field for field in graph]
    return GraphArrays(*fields)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array."""
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view


def with_loops(graph: GraphArrays) -> GraphArrays:
    """Return the graph that rules walk without object identity, where h(c, c) is an edge from c to itself as well.

    It is an edge along h and one along h read backward, besides those between c and `self`. The numbers of segments
    stay. A graph without reflexive triples is returned as it is, and so is one that has these edges already.
    """
    token, targets = graph.n_entities, graph.targets
    rows = np.flatnonzero(targets[: graph.segment_starts[graph.segment_offsets[token]]] == token)
    segments = np.searchsorted(graph.segment_starts, rows, side="right") - 1
    entities, relations = segment_entities(graph, segments), graph.segment_relations[segments]
    starts = graph.segment_starts[segments].astype(np.int64)
    positions = starts + _n_below(targets, starts, rows, entities)
    if not len(rows) or targets[positions[0]] == entities[0]:
        return graph
    n_directed = 2 * graph.n_relations
    keys = entities.astype(np.int64) * n_directed + relations  # sorted, as segments are
    back = segments[np.searchsorted(keys, keys - relations + inverses(relations, graph.n_relations))]
    firsts, lasts = (graph.segment_starts[graph.segment_offsets[entities + i]].astype(np.int64) for i in (0, 1))
    near = firsts + _n_below(graph.neighbours, firsts, lasts, entities)
    moved = np.cumsum(np.bincount(segments + 1, minlength=len(graph.segment_starts)))
    new = np.flatnonzero(starts == rows)  # `self` was the only target
    new = new[np.argsort(relations[new], kind="stable")]
    return _freeze(
        graph._replace(
            segment_starts=(graph.segment_starts + moved).astype(_int_type(len(targets) + len(rows))),
            targets=np.insert(targets, positions, entities),
            partners=np.insert(graph.partners, positions, back),
            neighbours=np.insert(graph.neighbours, near, entities),
            neighbour_relations=np.insert(graph.neighbour_relations, near, relations),
            domain_offsets=graph.domain_offsets
            + np.concatenate([[0], np.cumsum(np.bincount(relations[new], minlength=n_directed))]),
            domains=np.insert(
                graph.domains,
                graph.domain_offsets[relations[new]] + _n_below_in_domains(graph, relations[new], entities[new]),
                entities[new],
            ),
        )
    )


def range_rows(starts: Ints, sizes: Ints) -> NDArray[np.int64]:
    """Return the rows of many ranges, one range after the other: from each start on, as many as its size."""
    ends = np.cumsum(sizes, dtype=np.int64)
    n_rows = int(ends[-1]) if len(ends) else 0
    return np.arange(n_rows) + np.repeat(starts - ends + sizes, sizes)


def _n_below(values: Ints, starts: NDArray[np.int64], ends: NDArray[np.int64], bounds: Ints) -> NDArray[np.int64]:
    """Return how many of `values[start:end]` are below the bound beside it."""
    sizes = ends - starts
    owners = np.repeat(np.arange(len(starts)), sizes)
    return np.bincount(owners[values[range_rows(starts, sizes)] < bounds[owners]], minlength=len(starts))


def _n_below_in_domains(graph: GraphArrays, relations: Ints, entities: Ints) -> NDArray[np.int64]:
    """Return how many entities of each relation's domain are below the entity beside it."""
    counts: NDArray[np.int64] = np.zeros(len(relations), np.int64)
    for relation in np.unique(relations):
        domain = graph.domains[graph.domain_offsets[relation] : graph.domain_offsets[relation + 1]]
        counts[relations == relation] = np.searchsorted(domain, entities[relations == relation])
    return counts


def segment_entities(graph: GraphArrays, segments: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the entities that some segments belong to."""
    return (np.searchsorted(graph.segment_offsets, segments, side="right") - 1).astype(np.int32)


def owners(graph: GraphArrays, relation: int) -> NDArray[np.int32]:
    """Return the entities that have a directed relation, be it only to themselves."""
    entities = segment_entities(graph, np.flatnonzero(graph.segment_relations == relation))
    return entities[entities < graph.n_entities]


def find_segments(graph: GraphArrays, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the segment of each entity for each directed relation beside it, or -1 where it has none."""
    n_directed = 2 * graph.n_relations
    owners = segment_entities(graph, np.arange(len(graph.segment_relations)))
    keys = owners.astype(np.int64) * n_directed + graph.segment_relations
    queried = entities.astype(np.int64) * n_directed + relations
    return find_keys(queried, keys)


Ids = tuple[int, int, int]
EntityIds = NDArray[np.int32]
Segments = NDArray[np.int32] | NDArray[np.int64]  # as the graph numbers them


def lookup_segment(graph: GraphArrays, entity: int, relation: int) -> int:
    """Return the segment of an entity for a directed relation, -1 if it has none."""
    start, end = int(graph.segment_offsets[entity]), int(graph.segment_offsets[entity + 1])
    segment = start + int(np.searchsorted(graph.segment_relations[start:end], relation))
    return segment if segment < end and graph.segment_relations[segment] == relation else -1


def lookup_segments(graph: GraphArrays, entities: EntityIds, relations: EntityIds) -> Segments:
    """Return the segments of many entities, each for its directed relation."""
    segments = np.empty(len(entities), graph.segment_offsets.dtype)
    fill_segments(graph, entities.copy(), relations.copy(), segments)  # kernels are compiled for writable arrays
    return segments


def neighbours(graph: GraphArrays, entity: int) -> EntityIds:
    """Return the neighbours of an entity along any relation; a reflexive fact makes it its own neighbour."""
    first, last = (int(graph.segment_starts[graph.segment_offsets[entity + i]]) for i in (0, 1))
    return _without_self(graph, entity, graph.neighbours[first:last])


def known_answers(graph: GraphArrays, entity: int, relation: int) -> EntityIds:
    """Return the answers to (entity, directed relation, ?) in the graph, with `self` replaced by the entity."""
    segment = lookup_segment(graph, entity, relation)
    if segment < 0:
        return np.empty(0, np.int32)
    return _without_self(graph, entity, graph.targets[slice(*graph.segment_starts[segment : segment + 2])])


def all_known_answers(
    graph: GraphArrays, entities: EntityIds, relations: EntityIds
) -> tuple[NDArray[np.int64], EntityIds]:
    """Return the answers to many queries (entity, directed relation, ?): offsets of each query, and the answers."""
    starts, sizes = _segment_rows(graph, lookup_segments(graph, entities, relations))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return offsets, _without_self(graph, np.repeat(entities, sizes), graph.targets[range_rows(starts, sizes)])


def answer_counts(graph: GraphArrays, entities: EntityIds, relations: EntityIds) -> NDArray[np.int64]:
    """Return how many answers the graph holds to each query (entity, directed relation, ?)."""
    return _segment_rows(graph, lookup_segments(graph, entities, relations))[1]


def _segment_rows(graph: GraphArrays, segments: Segments) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row and the number of rows of each segment; the segment -1 has none."""
    starts = graph.segment_starts[segments].astype(np.int64)
    return starts, np.where(segments >= 0, graph.segment_starts[segments + 1] - starts, 0)


def degrees(graph: GraphArrays, entities: EntityIds) -> NDArray[np.int64]:
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


def other_answers(dataset: Dataset, graph: GraphArrays, triple: Ids) -> tuple[EntityIds, EntityIds]:
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


def held_by(dataset: Dataset, triples: EntityIds) -> NDArray[np.uint8]:
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


def _without_self(graph: GraphArrays, entity: int | EntityIds, answers: EntityIds) -> EntityIds:
    return np.where(answers == graph.n_entities, entity, answers).astype(np.int32)
