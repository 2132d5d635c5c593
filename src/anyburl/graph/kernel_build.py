"""Building the index: edges packed into one integer each, sorted, and written to the rows of their source.

A triple is read forward, an edge from its subject along r, and backward, one from its object along r + R. A reflexive
triple h(c, c) stands for h(c, self) and for h(self, c), each read both ways.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import kernel
from anyburl.graph.arrays import GraphArrays, Ints
from anyburl.graph.kernel import find_segment, inverse


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
                place, d, entity = np.uint64(source - low), np.uint64(relation), np.uint64(target)
                if by_neighbour:
                    keys[n_keys] = (((place << entity_bits) | entity) << relation_bits) | d
                else:
                    keys[n_keys] = (((place << relation_bits) | d) << entity_bits) | entity
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
    places: NDArray[np.int64],
    domains: NDArray[np.int32],
) -> None:
    """Write these entities, in order; `places` says where those of each relation begin, and is advanced."""
    for entity in range(n_entities):
        for segment in range(segment_offsets[entity], segment_offsets[entity + 1]):
            if targets[segment_starts[segment]] < n_entities:
                relation = segment_relations[segment]
                domains[places[relation]] = entity
                places[relation] += 1


@kernel
def pair_segments(graph: GraphArrays, first: int, last: int, partners: Ints) -> None:
    """Write for each row of `targets` in the segments from `first` to `last` the segment of its target that leads
    back.
    """
    for segment in range(first, last):
        back = inverse(graph, int(graph.segment_relations[segment]))
        for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
            partners[row] = find_segment(graph, int(graph.targets[row]), back)
