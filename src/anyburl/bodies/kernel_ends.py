"""Where a binary body leads from one start: the distinct ends, by length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, merged
from anyburl.bodies.arrays import Limits, Scratch
from anyburl.bodies.kernel_hashed import is_hashed, place_of
from anyburl.bodies.kernel_reach import reach
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import expect, expect_steps, expect_targets, steps

AHEAD = 8  # entities: what they need is loaded before it is their turn


@inlined
def ends_of_one(graph: GraphArrays, x: int, scratch: Scratch) -> tuple[int, int]:
    """Write the ends y of x - y to `scratch.reached`; return how many, and the work."""
    clock = scratch.clock[0]
    first, last = steps(graph, x, int(scratch.body[0]))
    for row in range(first, last):
        y = graph.targets[row]
        scratch.ends[y] = clock
        scratch.reached[row - first] = y
    return last - first, 1 + last - first


@inlined
def expect_walk(graph: GraphArrays, entities: NDArray[np.int32], place: int, last: int, relation: int) -> None:
    """Have loaded what the walk along `relation` needs of those that come a few places after `place`."""
    if place + AHEAD < last:
        expect(graph, int(entities[place + AHEAD]))
    if place + AHEAD // 2 < last:
        expect_steps(graph, int(entities[place + AHEAD // 2]))
    if place + AHEAD // 4 < last:
        expect_targets(graph, int(entities[place + AHEAD // 4]), relation)


@inlined
def ends_of_two(
    graph: GraphArrays, x: int, object_identity: bool, limit: int, hashed: bool, scratch: Scratch
) -> tuple[int, int]:
    """Write the ends y of x - a - y to `scratch.reached`; return how many, and the work. Only y = x can fail."""
    clock = scratch.clock[0]
    first, last = steps(graph, x, int(scratch.body[0]))
    work, n_ends = last - first, 0
    relation = int(scratch.body[1])
    for row in range(first, last):
        if hashed:
            expect_walk(graph, graph.targets, row, last, relation)
        start, end = steps(graph, int(graph.targets[row]), relation)
        if work + end - start > limit:
            return n_ends, limit + 1
        work += end - start
        for next_row in range(start, end):
            y = graph.targets[next_row]
            place = place_of(y, scratch.end_keys, scratch.ends, clock, hashed)
            if scratch.ends[place] != clock and (y != x or not object_identity):
                scratch.ends[place] = clock
                if hashed:
                    scratch.end_keys[place] = y
                scratch.reached[n_ends] = y
                n_ends += 1
    return n_ends, work


@inlined
def middles_of_three(graph: GraphArrays, x: int, limit: int, hashed: bool, scratch: Scratch) -> tuple[int, int]:
    """Write the b of x - a - b to `scratch.listed`, each with up to two witnesses a; return how many, and the work."""
    clock = scratch.clock[0]
    first, last = steps(graph, x, int(scratch.body[0]))
    work, n_middles = last - first, 0
    for row in range(first, last):
        if hashed:
            expect_walk(graph, graph.targets, row, last, int(scratch.body[1]))
        a = graph.targets[row]
        start, end = steps(graph, int(a), int(scratch.body[1]))
        if work + end - start > limit:
            return 0, limit + 1
        work += end - start
        for next_row in range(start, end):
            b = graph.targets[next_row]
            place = place_of(b, scratch.middle_keys, scratch.middles, clock, hashed)
            if scratch.middles[place] != clock:
                if b != x:
                    scratch.middles[place] = clock
                    if hashed:
                        scratch.middle_keys[place] = b
                    scratch.first_witness[place] = a
                    scratch.second_witness[place] = -1
                    scratch.listed[n_middles] = b
                    n_middles += 1
            else:
                scratch.second_witness[place] = a
    return n_middles, work


@inlined
def ends_of_three(graph: GraphArrays, x: int, limit: int, hashed: bool, scratch: Scratch) -> tuple[int, int]:
    """Write the ends y of x - a - b - y to `scratch.reached`; return how many, and the work.

    Under object identity only y = a can fail late: y is reached from b iff b has a witness a other than y.
    """
    clock = scratch.clock[0]
    n_middles, work = middles_of_three(graph, x, limit, hashed, scratch)
    n_ends = 0
    for i in range(n_middles):
        if hashed:
            expect_walk(graph, scratch.listed, i, n_middles, int(scratch.body[2]))
        b = int(scratch.listed[i])
        start, end = steps(graph, b, int(scratch.body[2]))
        if work + end - start > limit:
            return n_ends, limit + 1
        work += end - start
        middle = place_of(b, scratch.middle_keys, scratch.middles, clock, hashed)
        single = scratch.second_witness[middle] == -1
        witness = scratch.first_witness[middle]
        for row in range(start, end):
            y = graph.targets[row]
            place = place_of(y, scratch.end_keys, scratch.ends, clock, hashed)
            if scratch.ends[place] != clock and y != x and not (single and y == witness):
                scratch.ends[place] = clock
                if hashed:
                    scratch.end_keys[place] = y
                scratch.reached[n_ends] = y
                n_ends += 1
    return n_ends, work


@merged
def ends_of(graph: GraphArrays, length: int, x: int, limits: Limits, scratch: Scratch) -> tuple[int, int]:
    """Write the distinct ends of `scratch.body` from x to `scratch.reached`, stamped in `ends`; how many,
    and the work. If that exceeds `limits.start`, the walk was given up and ends are missing.
    """
    object_identity, limit, hashed = limits.object_identity, limits.start, is_hashed(length, limits)
    if length == 1:
        scratch.clock[0] += 1
        return ends_of_one(graph, x, scratch)
    if length == 2:
        scratch.clock[0] += 1
        return ends_of_two(graph, x, object_identity, limit, hashed, scratch)
    if length == 3 and object_identity:
        scratch.clock[0] += 1
        return ends_of_three(graph, x, limit, hashed, scratch)
    side, n_ends, work = reach(graph, scratch.body, length, x, 0, object_identity, scratch.levels, scratch.clock, limit)
    for slot in range(n_ends):
        y = scratch.levels.nodes[side, slot]
        scratch.ends[y] = scratch.clock[0]
        scratch.reached[slot] = y
    return n_ends, work
