"""From an entity, along a directed relation: what every other kernel is made of.

Many look-ups at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, prefetch
from anyburl.graph.arrays import GraphArrays, Ints


@inlined
def inverse(graph: GraphArrays, relation: int) -> int:
    """Return the directed relation read the other way round."""
    if relation < graph.n_relations:
        return int(relation + graph.n_relations)
    return int(relation - graph.n_relations)


@inlined
def lower_bound(values: Ints, start: int, end: int, wanted: int) -> int:
    """Return the first place in the sorted `values[start:end]` that is not below `wanted`."""
    while start < end:
        middle = (start + end) >> 1
        if values[middle] < wanted:
            start = middle + 1
        else:
            end = middle
    return start


@inlined
def find_segment(graph: GraphArrays, entity: int, relation: int) -> int:
    """Return the segment of `entity` for the directed `relation`, or -1 where it has none."""
    end = int(graph.segment_offsets[entity + 1])
    segment = lower_bound(graph.segment_relations, int(graph.segment_offsets[entity]), end, relation)
    if segment < end and graph.segment_relations[segment] == relation:
        return segment
    return -1


@inlined
def entity_rows(graph: GraphArrays, entity: int) -> tuple[int, int]:
    """Return the rows of all edges of `entity`: the same range in both views."""
    first = graph.segment_starts[graph.segment_offsets[entity]]
    return int(first), int(graph.segment_starts[graph.segment_offsets[entity + 1]])


@inlined
def steps(graph: GraphArrays, entity: int, relation: int) -> tuple[int, int]:
    """Return the rows of `targets` that hold the entities reached from `entity` along `relation`.

    The token `self` is no entity and is left out: it has the largest id, so it can only be the last target.
    """
    segment = find_segment(graph, entity, relation)
    if segment < 0:
        return 0, 0
    start, end = int(graph.segment_starts[segment]), int(graph.segment_starts[segment + 1])
    if has_self(graph) and graph.targets[end - 1] == graph.n_entities:
        end -= 1
    return start, end


@inlined
def has_self(graph: GraphArrays) -> bool:
    """Whether any triple is reflexive; where none is, no segment ends in `self`, and its last target can wait."""
    return bool(graph.segment_offsets[graph.n_entities] < graph.segment_offsets[graph.n_entities + 1])


@inlined
def expect(graph: GraphArrays, entity: int) -> None:
    """Have loaded what tells where the segments of `entity` are: on a large graph nothing is in the caches."""
    prefetch(graph.segment_offsets, int(entity))


@inlined
def expect_steps(graph: GraphArrays, entity: int) -> None:
    """Have the segments of `entity` loaded, some time after `expect`."""
    segment = int(graph.segment_offsets[entity])
    prefetch(graph.segment_relations, segment)
    prefetch(graph.segment_starts, segment)


@inlined
def expect_targets(graph: GraphArrays, entity: int, relation: int) -> None:
    """Have the targets of `entity` along `relation` loaded, some time after `expect_steps`."""
    segment = find_segment(graph, entity, relation)
    if segment >= 0:
        prefetch(graph.targets, int(graph.segment_starts[segment]))


@inlined
def expect_edges(graph: GraphArrays, entity: int) -> None:
    """Have the edges of `entity` loaded, some time after `expect_steps`."""
    row = int(graph.segment_starts[graph.segment_offsets[entity]])
    prefetch(graph.targets, row)
    prefetch(graph.neighbours, row)
    prefetch(graph.neighbour_relations, row)


@inlined
def has_edge(graph: GraphArrays, source: int, relation: int, target: int) -> bool:
    """Whether the directed `relation` leads from `source` to `target` (an entity or `self`)."""
    segment = find_segment(graph, source, relation)
    if segment < 0:
        return False
    end = int(graph.segment_starts[segment + 1])
    row = lower_bound(graph.targets, int(graph.segment_starts[segment]), end, target)
    return bool(row < end and graph.targets[row] == target)


@inlined
def joins(graph: GraphArrays, source: int, target: int) -> tuple[int, int]:
    """Return the rows of `neighbour_relations` with the directed relations that lead from `source` to `target`."""
    start, end = entity_rows(graph, source)
    first = lower_bound(graph.neighbours, start, end, target)
    last = first
    while last < end and graph.neighbours[last] == target:
        last += 1
    return first, last


@kernel
def count_relations(relations: Ints, counts: Ints) -> None:
    """Count how often each relation occurs in `relations`."""
    for row in range(len(relations)):
        counts[relations[row]] += 1


@kernel
def find_widest(graph: GraphArrays, widest: Ints, hubs: Ints, degrees: Ints) -> None:
    """Write the length of the longest segment of each directed relation to `widest`, and to its row of `hubs` the
    entities with most edges that have it, the first of equal ones first; `degrees` are those of `hubs`, zero on entry.
    """
    for entity in range(graph.n_entities):
        first, last = entity_rows(graph, entity)
        for segment in range(graph.segment_offsets[entity], graph.segment_offsets[entity + 1]):
            relation = graph.segment_relations[segment]
            length = int(graph.segment_starts[segment + 1]) - int(graph.segment_starts[segment])
            if graph.targets[graph.segment_starts[segment + 1] - 1] == graph.n_entities:
                length -= 1
            if length > widest[relation]:
                widest[relation] = length
            if length > 0 and last - first > degrees[relation, -1]:
                insert_hub(hubs[relation], degrees[relation], entity, last - first)


@inlined
def insert_hub(hubs: Ints, degrees: Ints, entity: int, degree: int) -> None:
    """Insert an entity into hubs sorted by falling degree, instead of the last one."""
    place = len(hubs) - 1
    while place > 0 and degrees[place - 1] < degree:
        hubs[place], degrees[place] = hubs[place - 1], degrees[place - 1]
        place -= 1
    hubs[place], degrees[place] = entity, degree


@kernel
def fill_segments(graph: GraphArrays, entities: NDArray[np.int32], relations: NDArray[np.int32], out: Ints) -> None:
    """Write the segment of each entity for its directed relation, -1 where there is none."""
    for i in range(len(entities)):
        out[i] = find_segment(graph, int(entities[i]), int(relations[i]))


@inlined
def is_before(triples: NDArray[np.int32], row: int, wanted: NDArray[np.int32], i: int) -> bool:
    """Whether the triple at `row` comes before the one that is looked for."""
    for column in range(3):
        if triples[row, column] != wanted[i, column]:
            return bool(triples[row, column] < wanted[i, column])
    return False


@kernel
def fill_held(triples: NDArray[np.int32], wanted: NDArray[np.int32], out: NDArray[np.bool_]) -> None:
    """Write which of the triples in `wanted` are among the sorted `triples`."""
    for i in range(len(wanted)):
        low, high = 0, len(triples)
        while low < high:
            middle = (low + high) >> 1
            if is_before(triples, middle, wanted, i):
                low = middle + 1
            else:
                high = middle
        out[i] = low < len(triples)
        if out[i]:
            for column in range(3):
                out[i] &= triples[low, column] == wanted[i, column]
