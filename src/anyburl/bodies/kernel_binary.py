"""Ground a binary body once and count every head: all pairs (x, y) that it joins, all relations that join them too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel, merged, part
from anyburl.bodies.arrays import (
    HeadArrays,
    Limits,
    Scratch,
)
from anyburl.bodies.kernel_pca import note_ends, note_facts
from anyburl.bodies.kernel_reach import reach
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import entity_rows, inverse, joins, steps
from anyburl.rng import mix


@kernel
def visiting_order(n: int, key: np.uint64) -> tuple[int, int]:
    """Return (first, stride): first + i * stride modulo n visits all of [0, n) once, in an order drawn by `key`."""
    if n <= 2:
        return 0, 1
    draw = mix(key)
    stride = 1 + int(np.int64((draw >> np.uint64(33)) % np.uint64(n - 1)))
    while True:
        a, b = n, stride
        while b:
            a, b = b, a % b
        if a == 1:
            break
        stride = stride % (n - 1) + 1
    return int(np.int64((draw & np.uint64(0x7FFFFFFF)) % np.uint64(n))), stride


@inlined
def begin_grounding(total: int, key: np.uint64, scratch: Scratch) -> None:
    """Start to ground a body from its `total` starts, unless one is under way."""
    state = scratch.grounding[0]
    if state.under_way:
        return
    scratch.clock[0] += 1
    state.under_way, state.starts, state.clock = True, total, scratch.clock[0]
    state.place, state.stride = visiting_order(total, key)
    state.visited, state.counted, state.found, state.touched, state.work = 0, 0, 0, 0, 0
    state.side, state.most_through, state.ended, state.noted = 0, 0, 0, 0


@inlined
def end_grounding(done: bool, scratch: Scratch) -> bool:
    """Record whether the grounding is done; return it."""
    scratch.grounding[0].under_way = not done
    return done


@part
def walking_cost(graph: GraphArrays, heads: HeadArrays, body: NDArray[np.int32], length: int) -> float:
    """Estimate the edges touched by grounding `body` from its first relation's domain, from average fan-outs."""
    cost, width, n_starts = 0.0, 1.0, 0.0
    for step in range(length):
        relation = int(body[step])
        back = inverse(graph, relation)
        sources = float(graph.domain_offsets[relation + 1] - graph.domain_offsets[relation])
        targets = float(graph.domain_offsets[back + 1] - graph.domain_offsets[back])
        if sources == 0.0:
            return 0.0
        if step == 0:
            n_starts = sources
        edges = width * heads.edge_counts[relation] / sources
        cost += edges
        width = min(edges, targets)
    return cost * n_starts


@part
def orient(graph: GraphArrays, heads: HeadArrays, body: NDArray[np.int32], length: int, scratch: Scratch) -> bool:
    """Copy `body` to `scratch.body` from its cheaper end; return whether that is the far end (body reversed)."""
    for i in range(length):
        scratch.body[i] = inverse(graph, int(body[length - 1 - i]))
    if length > 1 and walking_cost(graph, heads, scratch.body, length) < walking_cost(graph, heads, body, length):
        return True
    for i in range(length):
        scratch.body[i] = body[i]
    return False


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
def ends_of_two(graph: GraphArrays, x: int, object_identity: bool, limit: int, scratch: Scratch) -> tuple[int, int]:
    """Write the ends y of x - a - y to `scratch.reached`; return how many, and the work. Only y = x can fail."""
    clock = scratch.clock[0]
    first, last = steps(graph, x, int(scratch.body[0]))
    work, n_ends = last - first, 0
    relation = int(scratch.body[1])
    for row in range(first, last):
        start, end = steps(graph, int(graph.targets[row]), relation)
        work += end - start
        if work > limit:
            break
        for next_row in range(start, end):
            y = graph.targets[next_row]
            if scratch.ends[y] != clock and (y != x or not object_identity):
                scratch.ends[y] = clock
                scratch.reached[n_ends] = y
                n_ends += 1
    return n_ends, work


@inlined
def middles_of_three(graph: GraphArrays, x: int, limit: int, scratch: Scratch) -> tuple[int, int]:
    """Write the b of x - a - b to `scratch.listed`, each with up to two witnesses a; return how many, and the work."""
    clock = scratch.clock[0]
    first, last = steps(graph, x, int(scratch.body[0]))
    work, n_middles = last - first, 0
    for row in range(first, last):
        a = graph.targets[row]
        start, end = steps(graph, int(a), int(scratch.body[1]))
        work += end - start
        if work > limit:
            break
        for next_row in range(start, end):
            b = graph.targets[next_row]
            if scratch.middles[b] != clock:
                if b != x:
                    scratch.middles[b] = clock
                    scratch.first_witness[b] = a
                    scratch.second_witness[b] = -1
                    scratch.listed[n_middles] = b
                    n_middles += 1
            else:
                scratch.second_witness[b] = a
    return n_middles, work


@inlined
def ends_of_three(graph: GraphArrays, x: int, limit: int, scratch: Scratch) -> tuple[int, int]:
    """Write the ends y of x - a - b - y to `scratch.reached`; return how many, and the work.

    Under object identity only y = a can fail late: y is reached from b iff b has a witness a other than y.
    """
    clock = scratch.clock[0]
    n_middles, work = middles_of_three(graph, x, limit, scratch)
    n_ends = 0
    scratch.ends[x] = clock
    for i in range(n_middles):
        b = int(scratch.listed[i])
        start, end = steps(graph, b, int(scratch.body[2]))
        work += end - start
        if work > limit:
            break
        single = scratch.second_witness[b] == -1
        witness = scratch.first_witness[b]
        for row in range(start, end):
            y = graph.targets[row]
            if scratch.ends[y] != clock and not (single and y == witness):
                scratch.ends[y] = clock
                scratch.reached[n_ends] = y
                n_ends += 1
    return n_ends, work


@merged
def ends_of(
    graph: GraphArrays, length: int, x: int, object_identity: bool, limit: int, scratch: Scratch
) -> tuple[int, int]:
    """Write the distinct ends of `scratch.body` from x to `scratch.reached`, stamped in `ends`; how many,
    and the work. If that exceeds `limit`, the walk was given up and ends are missing.
    """
    if length == 1:
        scratch.clock[0] += 1
        return ends_of_one(graph, x, scratch)
    if length == 2:
        scratch.clock[0] += 1
        return ends_of_two(graph, x, object_identity, limit, scratch)
    if length == 3 and object_identity:
        scratch.clock[0] += 1
        return ends_of_three(graph, x, limit, scratch)
    side, n_ends, work = reach(graph, scratch.body, length, x, 0, object_identity, scratch.levels, scratch.clock, limit)
    for slot in range(n_ends):
        y = scratch.levels.nodes[side, slot]
        scratch.ends[y] = scratch.clock[0]
        scratch.reached[slot] = y
    return n_ends, work


@inlined
def count_heads(graph: GraphArrays, x: int, n_ends: int, scratch: Scratch) -> int:
    """Count every relation from x to an end, by x's edges or by the ends, whichever are fewer; return the work."""
    clock = scratch.clock[0]
    start, end = entity_rows(graph, x)
    if end - start <= 8 * n_ends:
        for row in range(start, end):
            y = graph.neighbours[row]
            if scratch.ends[y] == clock:
                scratch.relation_counts[graph.neighbour_relations[row]] += 1
        return end - start
    work = 0
    for i in range(n_ends):
        first, last = joins(graph, x, int(scratch.reached[i]))
        for row in range(first, last):
            scratch.relation_counts[graph.neighbour_relations[row]] += 1
        work += 4 + last - first
    return work


@part
def ground_binary(
    graph: GraphArrays, length: int, limits: Limits, allowed: int, key: np.uint64, scratch: Scratch
) -> tuple[bool, int]:
    """Ground `scratch.body`, or continue with it, until `allowed` is spent; return whether it is done, and the work.

    `scratch.grounding` holds the pairs and the starts so far; `relation_counts` holds for each directed relation how
    many of the pairs (x, y) it joins; the caller clears it. The starts are visited in random order until the budget is
    spent: then the counts are a cluster sample. A start that takes too much work by itself is left out.
    """
    relation = int(scratch.body[0])
    offset = int(graph.domain_offsets[relation])
    begin_grounding(int(graph.domain_offsets[relation + 1]) - offset, key, scratch)
    state = scratch.grounding[0]
    total, stride, place = state.starts, state.stride, state.place
    n_pairs, counted, visited, work = state.found, state.counted, state.visited, state.work
    before = work
    while visited < total and work <= limits.budget and work - before <= allowed:
        x = int(graph.domains[offset + place])
        place = (place + stride) % total
        visited += 1
        n_ends, spent = ends_of(graph, length, x, limits.object_identity, limits.start, scratch)
        work += spent
        if spent > limits.start:
            continue
        counted += 1
        n_pairs += n_ends
        if n_ends > 0:
            work += count_heads(graph, x, n_ends, scratch)
            if limits.pca:
                note_facts(graph, x, 0, n_ends, scratch.pca)
                note_ends(n_ends, scratch)
    state.place, state.found, state.counted, state.visited, state.work = place, n_pairs, counted, visited, work
    return end_grounding(visited == total or work > limits.budget, scratch), work - before
