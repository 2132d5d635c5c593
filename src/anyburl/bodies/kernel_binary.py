"""Ground a binary body once and count every head: all pairs (x, y) that it joins, all relations that join them too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part, prefetch
from anyburl.base.rng import mix
from anyburl.bodies.arrays import HUBS, NO_LIMIT, HeadArrays, Limits, Scratch
from anyburl.bodies.kernel_ends import AHEAD, ends_of, is_hashed, note_ends, note_facts, slot_of
from anyburl.bodies.kernel_sample import (
    CHECK,
    CLUSTER,
    FIRST_STARTS,
    HUB_FACTOR,
    LARGE_CLUSTER,
    add_to_cluster,
    close_cluster,
    close_hub,
    is_known,
    sample_start,
    shuffled,
    widest_reach,
)
from anyburl.graph.kernel import (
    GraphArrays,
    entity_rows,
    expect,
    expect_edges,
    expect_steps,
    expect_targets,
    inverse,
    joins,
    steps,
)

COMING = 15  # an index into `Scratch.coming` is a number modulo 16
LONGEST_SAMPLED = 3  # body with a start whose ends can be sampled
LONGEST_LISTED = 3  # body with relations whose rows are listed; longer ones gain nothing
MOST_LISTED = 2**31 - 1  # rows whose numbers fit `Scratch.rows`


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
    state.position, state.stride = visiting_order(total, key)
    state.visited, state.counted, state.groundings, state.touched, state.work = 0, 0, 0, 0, 0
    state.side, state.most_through, state.ended, state.noted = 0, 0, 0, 0
    state.sampled, state.clusters, state.cluster_starts, state.cluster_pairs, state.cluster_heads = 0, 0, 0, 0, 0
    state.pairs_squared, state.most_pairs, state.looks, state.next_look = 0.0, 0, 0, FIRST_STARTS
    state.hubs, state.hub_pairs, state.hub_spread, state.hubs_sampled = 0, 0, 0.0, 0


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
def orient(
    graph: GraphArrays, heads: HeadArrays, body: NDArray[np.int32], length: int, first_look: int, scratch: Scratch
) -> bool:
    """Copy `body` to `scratch.body` from the end to walk it from; return whether that is the far end (body reversed).

    That is the cheaper end. Of a body that will be estimated, it is the end whose starts differ less in their ends:
    a hub that few starts lead to, but that leads to many ends, would be missed from the one side, not from the other.
    """
    cost = walking_cost(graph, heads, body, length)
    for i in range(length):
        scratch.body[i] = inverse(graph, int(body[length - 1 - i]))
    far_cost = walking_cost(graph, heads, scratch.body, length)
    far = length > 1 and far_cost < cost
    far_widest = widest_reach(graph, heads, length, scratch)
    far_skew = far_widest * n_starts(graph, int(scratch.body[0]))
    for i in range(length):
        scratch.body[i] = body[i]
    widest = widest_reach(graph, heads, length, scratch)
    if length > 1 and min(cost, far_cost) > first_look:
        far = far_skew < widest * n_starts(graph, int(body[0]))
    if far:
        for i in range(length):
            scratch.body[i] = inverse(graph, int(body[length - 1 - i]))
    scratch.grounding[0].widest = far_widest if far else widest
    for position in range(HUBS):
        scratch.hubs[position] = heads.hubs[scratch.body[0], position]
    return far


@part
def list_rows(graph: GraphArrays, heads: HeadArrays, length: int, limits: Limits, scratch: Scratch) -> None:
    """Write to `scratch.rows` where the edges of every entity along the second and third relation of `scratch.body`
    are, if the walk looks that up more often than there are entities to list: reading it takes less than a search.
    """
    by_hand = length == 2 or limits.object_identity
    is_small = limits.first_look == NO_LIMIT and len(graph.targets) <= MOST_LISTED
    visits = float(n_starts(graph, int(scratch.body[0])))
    for step in range(1, length):
        relation, last = int(scratch.body[step]), int(scratch.body[step - 1])
        visits *= heads.edge_counts[last] / max(n_starts(graph, last), 1)
        scratch.is_listed[step - 1] = by_hand and is_small and min(visits, limits.budget) > n_starts(graph, relation)
        listed = int(scratch.rows_of[step - 1])
        if relation == listed or not scratch.is_listed[step - 1]:
            continue
        if listed >= 0:
            for position in range(graph.domain_offsets[listed], graph.domain_offsets[listed + 1]):
                entity = graph.domains[position]
                scratch.rows[step - 1, entity, 0], scratch.rows[step - 1, entity, 1] = 0, 0
        for position in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
            entity = graph.domains[position]
            first, end = steps(graph, int(entity), relation)
            scratch.rows[step - 1, entity, 0], scratch.rows[step - 1, entity, 1] = first, end
        scratch.rows_of[step - 1] = relation


@inlined
def n_starts(graph: GraphArrays, relation: int) -> int:
    """Return how many entities have a directed relation."""
    return int(graph.domain_offsets[relation + 1] - graph.domain_offsets[relation])


@inlined
def count_heads(graph: GraphArrays, x: int, n_ends: int, hashed: bool, scratch: Scratch) -> int:
    """Count every relation from x to an end, by x's edges or by the ends, whichever are fewer; return the work."""
    clock, n_heads = scratch.clock[0], scratch.grounding[0].cluster_heads
    start, end = entity_rows(graph, x)
    work = end - start
    if end - start <= 8 * n_ends:
        for row in range(start, end):
            position = slot_of(graph.neighbours[row], scratch.end_keys, scratch.ends, clock, hashed)
            if scratch.ends[position] == clock:
                n_heads = add_to_cluster(int(graph.neighbour_relations[row]), 1, n_heads, scratch)
    else:
        work = 0
        for i in range(n_ends):
            first, last = joins(graph, x, int(scratch.reached[i]))
            for row in range(first, last):
                n_heads = add_to_cluster(int(graph.neighbour_relations[row]), 1, n_heads, scratch)
            work += CHECK + last - first
    scratch.grounding[0].cluster_heads = n_heads
    return work


@part
def ground_binary(
    graph: GraphArrays, length: int, limits: Limits, allowed: int, key: np.uint64, scratch: Scratch
) -> tuple[bool, int]:
    """Ground `scratch.body`, or continue with it, until `allowed` is spent; return whether it is done, and the work.

    `scratch.grounding` holds the pairs and the starts so far; `relation_counts` holds for each directed relation how
    many of the pairs (x, y) it joins; the caller clears it. The starts are visited in random order until every head is
    known well enough or the budget is spent: then the counts are a cluster sample.
    """
    relation = int(scratch.body[0])
    offset = int(graph.domain_offsets[relation])
    begin_grounding(int(graph.domain_offsets[relation + 1]) - offset, key, scratch)
    state = scratch.grounding[0]
    total, before, known = state.starts, state.work, False
    looks = limits.first_look < NO_LIMIT
    cluster, stride = CLUSTER if looks else LARGE_CLUSTER, state.stride
    if looks and state.visited == 0:
        state.position = 0
        if length <= LONGEST_SAMPLED and not limits.pca:
            visit_hubs(graph, length, limits, key, scratch)
    position = state.position
    if looks:
        for turn in range(position, position + 2 * AHEAD):
            choose_start(graph, offset, turn, total, key, scratch)
        for turn in range(position, min(position + AHEAD, total)):
            scratch.coming[turn & COMING] = graph.domains[scratch.coming_places[turn & COMING]]
    while state.visited < total and state.work <= limits.budget and state.work - before <= allowed and not known:
        if looks:
            x = int(scratch.coming[position & COMING])
            expect_starts(graph, length, offset, position, total, key, scratch)
            position += 1
            if is_hub(x, scratch):
                continue
        else:
            x = int(graph.domains[offset + position])
            position = (position + stride) % total
        state.visited += 1
        visit_start(graph, length, x, 1, limits, key, scratch)
        if state.cluster_starts == cluster:
            close_cluster(scratch)
            if state.work > limits.first_look and state.visited >= state.next_look:
                known = is_known(graph, limits, scratch)
    state.position = position
    done = known or state.visited == total or state.work > limits.budget
    if done and state.cluster_starts > 0:
        close_cluster(scratch)
    return end_grounding(done, scratch), state.work - before


@part
def visit_hubs(graph: GraphArrays, length: int, limits: Limits, key: np.uint64, scratch: Scratch) -> None:
    """Visit the starts with most edges."""
    state = scratch.grounding[0]
    for position in range(HUBS):
        x = int(scratch.hubs[position])
        if x < 0:
            break
        state.visited += 1
        state.share, state.weight = 1, 1
        visit_start(graph, length, x, HUB_FACTOR, limits, key, scratch)
        close_hub(position == HUBS - 1 or scratch.hubs[position + 1] < 0, scratch)
    state.next_look += state.visited
    state.hubs_sampled, state.sampled = state.sampled, 0


@inlined
def is_hub(x: int, scratch: Scratch) -> bool:
    """Whether a start was visited as a hub."""
    for position in range(scratch.grounding[0].hubs):
        if scratch.hubs[position] == x:
            return True
    return False


@inlined
def choose_start(graph: GraphArrays, offset: int, turn: int, total: int, key: np.uint64, scratch: Scratch) -> None:
    """Choose the start whose turn comes then, and have its number loaded."""
    if turn < total:
        position = offset + shuffled(turn, total, key)
        scratch.coming_places[turn & COMING] = position
        prefetch(graph.domains, position)


@inlined
def expect_starts(
    graph: GraphArrays, length: int, offset: int, turn: int, total: int, key: np.uint64, scratch: Scratch
) -> None:
    """Have what is needed of the next starts loaded, the nearer ones further along the body.

    Most starts lead to a few entities only: there is no time to load these when they are walked.
    """
    coming, body = scratch.coming, scratch.body
    choose_start(graph, offset, turn + 2 * AHEAD, total, key, scratch)
    if turn + AHEAD < total:
        x = graph.domains[scratch.coming_places[(turn + AHEAD) & COMING]]
        coming[(turn + AHEAD) & COMING] = x
        expect(graph, int(x))
        expect_steps(graph, int(coming[(turn + 6) & COMING]))
        expect_edges(graph, int(coming[(turn + 4) & COMING]))
        expect_targets(graph, int(coming[(turn + 4) & COMING]), int(body[0]))
        if length > 1:
            for far in range(1, 4):
                first, last = steps(graph, int(coming[(turn + far) & COMING]), int(body[0]))
                for row in range(first, min(last, first + AHEAD // 2)):
                    a = int(graph.targets[row])
                    if far == 3:
                        expect(graph, a)
                    elif far == 2:
                        expect_steps(graph, a)
                    else:
                        expect_targets(graph, a, int(body[1]))


@inlined
def visit_start(
    graph: GraphArrays, length: int, x: int, factor: int, limits: Limits, key: np.uint64, scratch: Scratch
) -> None:
    """Count the pairs that start at x. If they are too many, they are sampled, `factor` times as many as usual, or left
    out if the body is long.
    """
    state, identity = scratch.grounding[0], limits.object_identity
    n_ends, work = ends_of(graph, length, x, limits, scratch)
    state.work += work
    state.cluster_starts += 1
    n_found, weight = n_ends, 1
    if work > limits.start and length > 1:
        if length > LONGEST_SAMPLED:
            return
        n_ends, work = sample_start(graph, length, x, identity, factor, key, scratch)
        weight = state.weight
        n_found = n_ends // weight
        state.work += work
        state.sampled += 1
    elif n_ends > 0:
        state.work += count_heads(graph, x, n_ends, is_hashed(length, limits), scratch)
    state.counted += 1
    state.groundings += n_ends
    state.cluster_pairs += n_ends
    if limits.pca and n_ends > 0:
        note_facts(graph, x, 0, n_ends, scratch.pca)
        note_ends(n_found, weight, scratch)
