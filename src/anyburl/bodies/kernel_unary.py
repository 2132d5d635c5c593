"""Ground a unary body once and count every head: all x that satisfy it, all edges of x.

Object identity makes the head's constant c a term like any other: an x that is c, or that satisfies the body only
through c, does not count for heads with c. So each x keeps its *cut*, the entities that all its ways share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, merged, part, prefetch
from anyburl.bodies.arrays import CONSTANT, DANGLING, GROUNDED, NO_LIMIT, BodyArrays, LevelArrays, Limits, Scratch
from anyburl.bodies.kernel_binary import begin_grounding, end_grounding
from anyburl.bodies.kernel_ends import AHEAD, contains, note_facts, note_through, reach, shared_by_ways
from anyburl.graph.kernel import GraphArrays, entity_rows, expect, expect_steps, inverse, steps


@inlined
def count_member(
    graph: GraphArrays, x: int, n_cut: int, clock: int, n_touched: int, limits: Limits, scratch: Scratch
) -> int:
    """Count x for every head that it satisfies, except those with a constant in its cut; return the new `n_touched`."""
    pca, is_large = limits.pca, counts_large(limits)
    cut = scratch.levels.cut
    for i in range(n_cut):
        entity = cut[i]
        if pca:
            note_through(x, int(entity), scratch.through_stamps[entity] != clock, scratch)
        if scratch.through_stamps[entity] != clock:
            scratch.through_stamps[entity] = clock
            scratch.through[entity] = 0
        scratch.through[entity] += 1
        if scratch.through[entity] > scratch.grounding[0].most_through:
            scratch.grounding[0].most_through = scratch.through[entity]
    if pca:
        note_facts(graph, x, 0, 1, scratch.pca)
    start, end = entity_rows(graph, x)
    for row in range(start, end):
        if is_large and row + AHEAD < end:
            prefetch(scratch.segment_counts, int(graph.partners[row + AHEAD]))
        if n_cut > 0 and in_cut(cut, n_cut, int(graph.targets[row])):
            continue
        segment = graph.partners[row]
        if scratch.segment_counts[segment] == 0:
            scratch.touched[n_touched] = segment
            scratch.touched_constants[n_touched] = graph.targets[row]
            n_touched += 1
        scratch.segment_counts[segment] += 1
    return n_touched


@inlined
def counts_large(limits: Limits) -> bool:
    """Whether the graph is so large that little of it is in the caches."""
    return bool(limits.first_look < NO_LIMIT)


@inlined
def expect_members(graph: GraphArrays, members: NDArray[np.int32], position: int, stride: int, total: int) -> None:
    """Have what is needed of the members after `position` loaded, the nearer ones further."""
    expect(graph, int(members[(position + AHEAD * stride) % total]))
    expect_steps(graph, int(members[(position + AHEAD // 2 * stride) % total]))
    row = entity_rows(graph, int(members[(position + AHEAD // 4 * stride) % total]))[0]
    prefetch(graph.targets, row)
    prefetch(graph.partners, row)


@inlined
def in_cut(cut: NDArray[np.int32], n_cut: int, entity: int) -> bool:
    """Whether `entity` is among the first `n_cut` of `cut`."""
    for i in range(n_cut):
        if cut[i] == entity:
            return True
    return False


@part
def cut_of_all(levels: LevelArrays, side: int, n_ends: int, size: int) -> int:
    """Write the entities that every way to every end goes through, the end included, to `levels.cut`; return
    how many.
    """
    n_cut = shared_by_ways(levels, side, 0, size)
    levels.cut[n_cut] = levels.nodes[side, 0]
    n_cut += 1
    for slot in range(1, n_ends):
        kept = 0
        for i in range(n_cut):
            entity = int(levels.cut[i])
            shared = entity == levels.nodes[side, slot]
            if not shared:
                shared = True
                for way in range(levels.n_witnesses[side, slot]):
                    shared = shared and contains(levels, side, slot, way, size, entity)
            if shared:
                levels.cut[kept] = entity
                kept += 1
        n_cut = kept
        if n_cut == 0:
            break
    return n_cut


@merged
def dangling_cut(
    graph: GraphArrays, length: int, x: int, object_identity: bool, limit: int, scratch: Scratch
) -> tuple[bool, int, int]:
    """Whether x satisfies the dangling `scratch.body`; the size of its cut (in `levels.cut`); and the work. If that
    exceeds `limit`, the walk was given up.
    """
    levels = scratch.levels
    if length == 1:
        start, end = steps(graph, x, int(scratch.body[0]))
        if object_identity and end - start == 1:
            levels.cut[0] = graph.targets[start]
            return True, 1, 1
        return end > start, 0, 1
    side, n_ends, work = reach(graph, scratch.body, length, x, 1, object_identity, levels, scratch.clock, limit)
    if n_ends == 0 or not object_identity:
        return n_ends > 0, 0, work
    return True, cut_of_all(levels, side, n_ends, length - 1), work


@part
def ground_dangling(
    graph: GraphArrays, length: int, limits: Limits, allowed: int, key: np.uint64, scratch: Scratch
) -> tuple[bool, int]:
    """Ground the U_d body `scratch.body`, or continue with it, until `allowed` is spent; return whether it is done, and
    the work.

    The members and the heads touched are left in `scratch.grounding`, the supports in `segment_counts`; the caller
    clears them by `touched`.
    """
    relation = int(scratch.body[0])
    offset = int(graph.domain_offsets[relation])
    begin_grounding(int(graph.domain_offsets[relation + 1]) - offset, key, scratch)
    state = scratch.grounding[0]
    if state.starts < limits.floor:  # no rule can be worth as much
        return end_grounding(True, scratch), 1
    total, stride, position, clock = state.starts, state.stride, state.position, state.clock
    domain = graph.domains[offset : offset + total]
    n_members, n_touched, work = state.groundings, state.touched, state.work
    counted, visited = state.counted, state.visited
    before = work
    while visited < total and work <= limits.budget and work - before <= allowed:
        x = int(domain[position])
        if counts_large(limits):
            expect_members(graph, domain, position, stride, total)
        position = (position + stride) % total
        visited += 1
        satisfied, n_cut, spent = dangling_cut(graph, length, x, limits.object_identity, limits.start, scratch)
        work += spent
        if spent > limits.start:
            continue
        counted += 1
        if satisfied:
            n_members += 1
            scratch.members[x] = clock
            n_touched = count_member(graph, x, n_cut, clock, n_touched, limits, scratch)
            start, end = entity_rows(graph, x)
            work += end - start
    state.position, state.groundings, state.touched, state.work = position, n_members, n_touched, work
    state.counted, state.visited = counted, visited
    return end_grounding(visited == total or work > limits.budget, scratch), work - before


@part
def ground_constant(
    graph: GraphArrays,
    length: int,
    constant: int,
    kind: int,
    limits: Limits,
    allowed: int,
    key: np.uint64,
    scratch: Scratch,
) -> tuple[bool, int]:
    """Ground a U_c body from its constant; `scratch.body` is the body reversed. As `ground_dangling` for the results.

    GROUNDED bodies count only heads with the same constant: the constant's own edges to members.
    """
    levels, state = scratch.levels, scratch.grounding[0]
    walked = 0
    if not state.under_way:
        side, total, walked = reach(
            graph, scratch.body, length, constant, 1, limits.object_identity, levels, scratch.clock, NO_LIMIT
        )
        begin_grounding(total, key, scratch)
        state.side = side
        if total < limits.floor:  # no rule can be worth as much
            return end_grounding(True, scratch), walked
        if kind == GROUNDED:
            return end_grounding(True, scratch), walked + count_own_heads(graph, constant, total, limits.pca, scratch)
    side, total, clock = int(state.side), state.starts, state.clock
    members = levels.nodes[side]
    position, stride, visited = state.position, state.stride, state.visited
    n_touched, work = state.touched, state.work  # finding the members does not count against counting them
    before = work
    while visited < total and work <= limits.budget and work - before <= allowed:
        x = int(members[position])
        if counts_large(limits):
            expect_members(graph, members, position, stride, total)
        n_cut = 0
        if length > 1 and limits.object_identity:
            n_cut = shared_by_ways(levels, side, position, length - 1)
        position = (position + stride) % total
        visited += 1
        scratch.members[x] = clock
        n_touched = count_member(graph, x, n_cut, clock, n_touched, limits, scratch)
        start, end = entity_rows(graph, x)
        work += end - start
    state.position, state.groundings, state.counted, state.visited = position, visited, visited, visited
    state.touched, state.work = n_touched, work
    return end_grounding(visited == total or work > limits.budget, scratch), walked + work - before


@part
def count_own_heads(graph: GraphArrays, constant: int, n_members: int, pca: bool, scratch: Scratch) -> int:
    """Count for each head with this constant the members that satisfy it; return the work."""
    levels, state = scratch.levels, scratch.grounding[0]
    clock = state.clock
    for slot in range(n_members):
        scratch.members[levels.nodes[state.side, slot]] = clock
        if pca:
            note_facts(graph, int(levels.nodes[state.side, slot]), 0, 1, scratch.pca)
    n_touched = 0
    for segment in range(graph.segment_offsets[constant], graph.segment_offsets[constant + 1]):
        count = 0
        for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
            if scratch.members[graph.targets[row]] == clock:
                count += 1
        if count > 0:
            scratch.segment_counts[segment] = count
            scratch.touched[n_touched] = segment
            scratch.touched_constants[n_touched] = constant
            n_touched += 1
    state.groundings, state.counted, state.visited, state.touched = n_members, n_members, n_members, n_touched
    start, end = entity_rows(graph, constant)
    return end - start


@part
def copy_body(graph: GraphArrays, bodies: BodyArrays, k: int, scratch: Scratch) -> None:
    """Copy a body to `scratch.body` as it is walked: U_d from the front, U_c from the back."""
    body, length = bodies.relations[k], bodies.relations.shape[1]
    for i in range(length):
        scratch.body[i] = body[i] if bodies.kinds[k] == DANGLING else inverse(graph, int(body[length - 1 - i]))


@merged
def ground_unary(
    graph: GraphArrays, bodies: BodyArrays, k: int, limits: Limits, allowed: int, scratch: Scratch
) -> tuple[bool, int]:
    """Ground the unary body `k`, as its kind is grounded; see `ground_dangling` for the results."""
    kind, length, key = int(bodies.kinds[k]), bodies.relations.shape[1], bodies.keys[k]
    if not scratch.grounding[0].under_way:
        copy_body(graph, bodies, k, scratch)
    if kind == DANGLING:
        return ground_dangling(graph, length, limits, allowed, key, scratch)
    return ground_constant(graph, length, int(bodies.constants[k]), kind, limits, allowed, key, scratch)


@inlined
def is_given_elsewhere(bodies: BodyArrays, k: int, head: int, head_constant: int) -> bool:
    """Whether body `k` with this head says nothing, as h(X, c) <= h(X, c), or is left to the other kind of U_c body."""
    if bodies.kinds[k] == GROUNDED:
        return bool(bodies.relations.shape[1] == 1 and bodies.relations[k, 0] == head)
    return bool(bodies.kinds[k] == CONSTANT and bodies.constants[k] == head_constant)


@inlined
def predicts_all(kind: int, object_identity: bool) -> bool:
    """Whether all members count for every head: the head's constant is a term of its own only if the body lacks it."""
    return kind == GROUNDED or not object_identity


@inlined
def unary_predictions(n_members: int, head_constant: int, all_count: bool, clock: int, scratch: Scratch) -> int:
    """Return how many members a head with this constant predicts: unless `all_count`, not itself, nor those that need
    it on their way.
    """
    if all_count:
        return n_members
    if scratch.members[head_constant] == clock:
        n_members -= 1
    if scratch.through_stamps[head_constant] == clock:
        n_members -= scratch.through[head_constant]
    return n_members
