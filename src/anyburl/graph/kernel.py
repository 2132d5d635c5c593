"""What the graph is: flat, frozen int arrays that kernels, memory maps and object stores share without copying.

Looks up the edges of an entity along a directed relation, which every other kernel uses; and builds the index: edges
are packed into one integer each, sorted, and written to the rows of their source. A triple is an edge from its subject
along r, and one from its object along r + R. A reflexive triple h(c, c) stands for h(c, self) and for h(self, c), each
read both ways.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, prefetch

Ints = NDArray[Any]  # int16 or int32 (relations), int32 or int64 (rows): chosen by size, see `build_graph`


class GraphArrays(NamedTuple):
    """Two views of the same directed edges, and the domain of each directed relation.

    With R relations, directed relation `d` in [0, R) is a relation read forward, `d + R` the same read backward: every
    triple is an edge from its subject along `d` and one from its object along `d + R`. Entity ids are [0,
    n_entities); the id `n_entities` is the token `self`: a reflexive triple h(c, c) is stored as h(c, self), see
    `build_graph`.

    The rows of an entity are the same range in both views, since both list all its edges.
    """

    n_entities: int
    n_relations: int
    segment_offsets: Ints  # entity -> its first segment; one segment per directed relation that it has, sorted
    segment_relations: Ints  # segment -> directed relation
    segment_starts: Ints  # segment -> its first row in `targets`
    targets: NDArray[np.int32]  # by relation: row -> entity reached, sorted within a segment
    neighbours: NDArray[np.int32]  # by neighbour: row -> entity reached, sorted within an entity
    neighbour_relations: Ints  # by neighbour: row -> directed relation, sorted within a neighbour
    partners: Ints  # by relation: row -> the segment of its target that leads back
    domain_offsets: NDArray[np.int64]  # directed relation -> its first row in `domains`
    domains: NDArray[np.int32]  # the entities that have the relation (and lead to an entity by it), sorted


def inverses(relations: NDArray[np.int32], n_relations: int) -> NDArray[np.int32]:
    """Return the directed relations read the other way round; -1 (padding) stays."""
    flipped = np.where(relations < n_relations, relations + n_relations, relations - n_relations)
    return np.where(relations < 0, -1, flipped).astype(np.int32)


@inlined
def inverse(graph: GraphArrays, relation: int) -> int:
    """Return the directed relation read the other way round."""
    if relation < graph.n_relations:
        return int(relation + graph.n_relations)
    return int(relation - graph.n_relations)


@inlined
def lower_bound(values: Ints, start: int, end: int, value: int) -> int:
    """Return the first row of the sorted `values[start:end]` that is not below `value`."""
    while start < end:
        middle = (start + end) >> 1
        if values[middle] < value:
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
    """Prefetch the offset of the segments of `entity`: on a large graph nothing is in the caches."""
    prefetch(graph.segment_offsets, int(entity))


@inlined
def expect_steps(graph: GraphArrays, entity: int) -> None:
    """Prefetch the segments of `entity`, some time after `expect`."""
    segment = int(graph.segment_offsets[entity])
    prefetch(graph.segment_relations, segment)
    prefetch(graph.segment_starts, segment)


@inlined
def expect_targets(graph: GraphArrays, entity: int, relation: int) -> None:
    """Prefetch the targets of `entity` along `relation`, some time after `expect_steps`."""
    segment = find_segment(graph, entity, relation)
    if segment >= 0:
        prefetch(graph.targets, int(graph.segment_starts[segment]))


@inlined
def expect_edges(graph: GraphArrays, entity: int) -> None:
    """Prefetch the edges of `entity`, some time after `expect_steps`."""
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
    i = len(hubs) - 1
    while i > 0 and degrees[i - 1] < degree:
        hubs[i], degrees[i] = hubs[i - 1], degrees[i - 1]
        i -= 1
    hubs[i], degrees[i] = entity, degree


@kernel
def fill_segments(graph: GraphArrays, entities: NDArray[np.int32], relations: NDArray[np.int32], out: Ints) -> None:
    """Write the segment of each entity for its directed relation, -1 where there is none."""
    for i in range(len(entities)):
        out[i] = find_segment(graph, int(entities[i]), int(relations[i]))


@inlined
def is_before(triples: NDArray[np.int32], row: int, queried: NDArray[np.int32], i: int) -> bool:
    """Whether the triple at `row` comes before the one that is looked for."""
    for column in range(3):
        if triples[row, column] != queried[i, column]:
            return bool(triples[row, column] < queried[i, column])
    return False


@kernel
def fill_held(triples: NDArray[np.int32], queried: NDArray[np.int32], out: NDArray[np.bool_]) -> None:
    """Write which of the `queried` triples are among the sorted `triples`."""
    for i in range(len(queried)):
        low, high = 0, len(triples)
        while low < high:
            middle = (low + high) >> 1
            if is_before(triples, middle, queried, i):
                low = middle + 1
            else:
                high = middle
        out[i] = low < len(triples)
        if out[i]:
            for column in range(3):
                out[i] &= triples[low, column] == queried[i, column]


@kernel
def count_edges(triples: NDArray[np.int32], self_id: int, forward: NDArray[np.int64], all_: NDArray[np.int64]) -> None:
    """Add up for each entity its forward edges, and all its edges."""
    for i in range(len(triples)):
        subject, object_ = triples[i, 0], triples[i, 2]
        if subject == object_:
            object_ = self_id
            forward[object_] += 1
            all_[subject] += 1
            all_[object_] += 1
        forward[subject] += 1
        all_[subject] += 1
        all_[object_] += 1


@kernel
def pack_edges(
    triples: NDArray[np.int32],
    self_id: int,
    n_relations: int,
    low: int,
    high: int,
    backward: bool,
    by_neighbour: bool,
    widths: tuple[int, int],
    keys: NDArray[np.uint64],
) -> int:
    """Write a key (source, relation, target) or, `by_neighbour`, (source, target, relation) for each edge of one
    reading whose source is in [low, high); return how many. `widths` are the bits of a relation and of an entity.
    """
    relation_bits, entity_bits = np.uint64(widths[0]), np.uint64(widths[1])
    n_keys = 0
    for i in range(len(triples)):
        source, relation, target = triples[i, 0], triples[i, 1], triples[i, 2]
        reflexive = source == target
        if reflexive:
            target = self_id
        if backward:
            source, target = target, source
            relation += n_relations
        for _ in range(2 if reflexive else 1):
            if low <= source < high:
                offset, d, entity = np.uint64(source - low), np.uint64(relation), np.uint64(target)
                if by_neighbour:
                    keys[n_keys] = (((offset << entity_bits) | entity) << relation_bits) | d
                else:
                    keys[n_keys] = (((offset << relation_bits) | d) << entity_bits) | entity
                n_keys += 1
            source, target = target, source
    return n_keys


@kernel
def merge_edges(
    keys: NDArray[np.uint64],
    low: int,
    widths: tuple[int, int],
    starts: NDArray[np.int64],
    filled: NDArray[np.int64],
    seconds: Ints,
    thirds: Ints,
) -> None:
    """Merge sorted keys (source, second, third) into the rows of their sources, of which the first `filled` are in
    order; `widths` are the bits of a second and of a third.
    """
    second_bits, third_bits = np.uint64(widths[0]), np.uint64(widths[1])
    second_mask = (np.uint64(1) << second_bits) - np.uint64(1)
    third_mask = (np.uint64(1) << third_bits) - np.uint64(1)
    last = len(keys) - 1
    while last >= 0:
        source = int(keys[last] >> (second_bits + third_bits)) + low
        first = last
        while first > 0 and int(keys[first - 1] >> (second_bits + third_bits)) + low == source:
            first -= 1
        # From the end: earlier rows move back, never over rows that are still to be moved.
        old, key = starts[source] + filled[source] - 1, last
        row = old + last - first + 1
        filled[source] += last - first + 1
        while key >= first:
            second = np.int64((keys[key] >> third_bits) & second_mask)
            third = np.int64(keys[key] & third_mask)
            if old >= starts[source] and (seconds[old] > second or (seconds[old] == second and thirds[old] > third)):
                seconds[row], thirds[row] = seconds[old], thirds[old]
                old -= 1
            else:
                seconds[row], thirds[row] = second, third
                key -= 1
            row -= 1
        last = first - 1


@kernel
def count_segments(starts: NDArray[np.int64], relations: Ints) -> int:
    """Return how many segments there are: runs of one relation among the rows of an entity."""
    n_segments = 0
    for entity in range(len(starts) - 1):
        for row in range(starts[entity], starts[entity + 1]):
            if row == starts[entity] or relations[row] != relations[row - 1]:
                n_segments += 1
    return n_segments


@kernel
def cut_segments(starts: NDArray[np.int64], relations: Ints, offsets: Ints, owned: Ints, firsts: Ints) -> None:
    """Write where the segments of each entity begin, the relation of each segment and its first row."""
    n_segments = 0
    for entity in range(len(starts) - 1):
        offsets[entity] = n_segments
        for row in range(starts[entity], starts[entity + 1]):
            if row == starts[entity] or relations[row] != relations[row - 1]:
                owned[n_segments] = relations[row]
                firsts[n_segments] = row
                n_segments += 1
    offsets[len(starts) - 1] = n_segments
    firsts[n_segments] = starts[len(starts) - 1]


@kernel
def count_domains(
    n_entities: int, segment_offsets: Ints, segment_relations: Ints, segment_starts: Ints, targets: Ints, counts: Ints
) -> None:
    """Count for each directed relation the entities that lead to an entity by it (not to `self` alone)."""
    for segment in range(segment_offsets[n_entities]):
        if targets[segment_starts[segment]] < n_entities:
            counts[segment_relations[segment]] += 1


@kernel
def list_domains(
    n_entities: int,
    segment_offsets: Ints,
    segment_relations: Ints,
    segment_starts: Ints,
    targets: Ints,
    next_rows: NDArray[np.int64],
    domains: NDArray[np.int32],
) -> None:
    """Write these entities, in order; `next_rows` are the first rows of each relation, and are advanced."""
    for entity in range(n_entities):
        for segment in range(segment_offsets[entity], segment_offsets[entity + 1]):
            if targets[segment_starts[segment]] < n_entities:
                relation = segment_relations[segment]
                domains[next_rows[relation]] = entity
                next_rows[relation] += 1


@kernel
def pair_segments(graph: GraphArrays, first: int, last: int, partners: Ints) -> None:
    """Write for each row of `targets` in the segments from `first` to `last` the segment of its target that leads
    back.
    """
    for segment in range(first, last):
        back = inverse(graph, int(graph.segment_relations[segment]))
        for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
            partners[row] = find_segment(graph, int(graph.targets[row]), back)
