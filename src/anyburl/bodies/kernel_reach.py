"""Where a body leads from one entity, under object identity, without walking every way.

Object identity demands that no entity occurs twice on a way. Of the ways that lead to an entity v by p inner entities,
only those matter that a continuation by at most q more entities might need: a further way is *needed* if some q
entities meet every way kept so far but not this one. By Bollobás' theorem at most C(p + q, p) ways are ever kept
(length 3: two witnesses), so a level of the walk costs a join, not an enumeration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, part
from anyburl.bodies.arrays import LevelArrays
from anyburl.graph.kernel import GraphArrays, steps


@inlined
def contains(levels: LevelArrays, side: int, slot: int, way: int, size: int, entity: int) -> bool:
    """Whether `entity` is one of the `size` inner entities of a way."""
    for i in range(size):
        if levels.witnesses[side, slot, way, i] == entity:
            return True
    return False


@inlined
def can_be_met(levels: LevelArrays, side: int, slot: int, size: int, q: int, spare: int) -> bool:
    """Whether some `q` entities meet every way kept in `slot`, none of them on the way `spare` (-1: no such condition).

    Depth first: the first way not met yet must be met by one of its entities.
    """
    kept = int(levels.n_witnesses[side, slot])
    depth = 0
    levels.chosen[0, 0] = 0
    levels.chosen[1, 0] = 0
    while depth >= 0:
        met = levels.chosen[0, depth]
        way = 0
        while way < kept and (met >> way) & 1:
            way += 1
        if way == kept:
            return True
        if depth == q or levels.chosen[1, depth] == size:
            depth -= 1
            continue
        entity = int(levels.witnesses[side, slot, way, levels.chosen[1, depth]])
        levels.chosen[1, depth] += 1
        if spare >= 0 and contains(levels, side, slot, spare, size, entity):
            continue
        for other in range(kept):
            if contains(levels, side, slot, other, size, entity):
                met |= 1 << other
        depth += 1
        levels.chosen[0, depth] = met
        levels.chosen[1, depth] = 0
    return False


@inlined
def is_open(levels: LevelArrays, side: int, slot: int, size: int, entity: int) -> bool:
    """Whether some way to node `slot` avoids `entity`."""
    if levels.full[side, slot]:
        return True
    for way in range(levels.n_witnesses[side, slot]):
        if not contains(levels, side, slot, way, size, entity):
            return True
    return False


@inlined
def new_node(levels: LevelArrays, side: int, n_nodes: int, entity: int, clock: int) -> None:
    """Enter `entity` as node number `n_nodes` of a level, with no way to it yet."""
    levels.stamps[side, entity] = clock
    levels.slots[side, entity] = n_nodes
    levels.nodes[side, n_nodes] = entity
    levels.n_witnesses[side, n_nodes] = 0
    levels.full[side, n_nodes] = False


@inlined
def extend_way(
    levels: LevelArrays, side: int, other: int, slot: int, way: int, size: int, next_slot: int, q: int
) -> None:
    """Offer the way `way` to node `slot`, lengthened by that node, to node `next_slot` of the next level."""
    kept = int(levels.n_witnesses[other, next_slot])
    for i in range(size):
        levels.witnesses[other, next_slot, kept, i] = levels.witnesses[side, slot, way, i]
    levels.witnesses[other, next_slot, kept, size] = levels.nodes[side, slot]
    if size == 0:
        # Ways of one entity each are all different: any q + 1 of them are enough.
        levels.n_witnesses[other, next_slot] = kept + 1
        levels.full[other, next_slot] = kept == q
    elif kept == 0 or can_be_met(levels, other, next_slot, size + 1, q, kept):
        levels.n_witnesses[other, next_slot] = kept + 1
        levels.full[other, next_slot] = not can_be_met(levels, other, next_slot, size + 1, q, -1)


@part
def extend_level(
    graph: GraphArrays,
    relation: int,
    start: int,
    size: int,
    q: int,
    object_identity: bool,
    levels: LevelArrays,
    side: int,
    other: int,
    n_nodes: int,
    clocks: tuple[int, int],
    limit: int,
) -> tuple[int, int]:
    """Step from every node of level `side` along `relation`, to level `other`; return its nodes and the work done.

    `clocks` are the stamps of the two levels. It iterates over the level's nodes or the relation's domain, whichever
    are fewer. Past `limit` edges it gives up.
    """
    offset = graph.domain_offsets[relation]
    n_domain = int(graph.domain_offsets[relation + 1] - offset)
    by_domain = 2 * n_domain < n_nodes
    n_turns = n_domain if by_domain else n_nodes
    n_next, work, clock = 0, n_turns, clocks[1]
    for turn in range(n_turns):
        slot = turn
        if by_domain:
            if levels.stamps[side, graph.domains[offset + turn]] != clocks[0]:
                continue
            slot = int(levels.slots[side, graph.domains[offset + turn]])
        first, last = steps(graph, int(levels.nodes[side, slot]), relation)
        work += last - first
        if work > limit:
            break
        for row in range(first, last):
            entity = int(graph.targets[row])
            if levels.closed[other, entity] == clock or (object_identity and entity == start):
                continue
            if not object_identity or (q == 0 and is_open(levels, side, slot, size, entity)):
                new_node(levels, other, n_next, entity, clock)
                levels.full[other, n_next] = True
                levels.closed[other, entity] = clock
                n_next += 1
                continue
            if q == 0:
                continue
            for way in range(levels.n_witnesses[side, slot]):
                if contains(levels, side, slot, way, size, entity):
                    continue
                work += 1
                if levels.stamps[other, entity] != clock:
                    new_node(levels, other, n_next, entity, clock)
                    n_next += 1
                extend_way(levels, side, other, slot, way, size, int(levels.slots[other, entity]), q)
                if levels.full[other, levels.slots[other, entity]]:
                    levels.closed[other, entity] = clock
                    break
    return n_next, work


@part
def reach(
    graph: GraphArrays,
    body: NDArray[np.int32],
    length: int,
    start: int,
    extra: int,
    object_identity: bool,
    levels: LevelArrays,
    clock: NDArray[np.int64],
    limit: int,
) -> tuple[int, int, int]:
    """Walk `body` from `start` level by level; return the side of `levels` that holds the ends, how many, and the work.

    Each end keeps as many ways as it takes to avoid any `extra` further entities. `clock` is advanced once a level.
    If the work exceeds `limit`, the walk was given up and there are no ends.
    """
    first, last = steps(graph, start, int(body[0]))
    side, work = 0, 1 + last - first
    n_nodes = 0
    clock[0] += 1
    if work > limit:
        return side, 0, work
    for row in range(first, last):
        new_node(levels, 0, n_nodes, int(graph.targets[row]), clock[0])
        levels.n_witnesses[0, n_nodes] = 1
        levels.full[0, n_nodes] = True
        n_nodes += 1
    for step in range(1, length):
        clock[0] += 1
        q = length - step - 1 + extra
        n_nodes, spent = extend_level(
            graph,
            int(body[step]),
            start,
            step - 1,
            q,
            object_identity,
            levels,
            side,
            1 - side,
            n_nodes,
            (clock[0] - 1, clock[0]),
            limit - work,
        )
        side = 1 - side
        work += spent
        if work > limit:
            return side, 0, work
    return side, n_nodes, work


@part
def shared_by_ways(levels: LevelArrays, side: int, slot: int, size: int) -> int:
    """Write the entities that every way to node `slot` goes through to `levels.cut`; return how many."""
    n_cut = 0
    for i in range(size):
        entity = int(levels.witnesses[side, slot, 0, i])
        in_all = True
        for way in range(1, levels.n_witnesses[side, slot]):
            in_all = in_all and contains(levels, side, slot, way, size, entity)
        if in_all:
            levels.cut[n_cut] = entity
            n_cut += 1
    return n_cut
