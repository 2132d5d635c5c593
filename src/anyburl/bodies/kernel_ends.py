"""Where a body leads from one entity, under object identity, without walking every way.

Object identity demands that no entity occurs twice on a way. Of the ways that lead to an entity v by p inner entities,
only those matter that a continuation by at most q more entities might need: a further way is *needed* if some q
entities meet every way kept so far but not this one. By Bollobás' theorem at most C(p + q, p) ways are ever kept
(length 3: two witnesses), so a level of the walk costs a join, not an enumeration.

The distinct ends of a binary body, by length, are counted in small sets of entities: a start that leads to a few
hundred of ten million should not touch as many cache lines. A stamp array over all entities is a set, too, and the
faster one as long as it fits the caches: `hashed` tells which one it is. Both use the same arrays.

Predictions are counted under the partial completeness assumption (PCA) of AMIE as well. It takes a relation to be known
completely for an entity that has a fact of it: as its subject or as its object, whichever is the more functional
direction. So of the pairs (x, y) that a rule predicts, it can judge those whose x (or whose y) has a fact of the head's
relation; about the others it says nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, merged, part
from anyburl.bodies.arrays import HASHED_PLACES, HeadArrays, LevelArrays, Limits, PcaArrays, Scratch
from anyburl.graph.kernel import GraphArrays, expect, expect_steps, expect_targets, find_segment, inverse, steps


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
    elif kept == 0:
        levels.n_witnesses[other, next_slot] = 1
    elif can_be_met(levels, other, next_slot, size + 1, q, kept):
        levels.n_witnesses[other, next_slot] = kept + 1
        # Up to q ways can always be met: by one entity of each.
        levels.full[other, next_slot] = kept >= q and not can_be_met(levels, other, next_slot, size + 1, q, -1)


@inlined
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

    Inlined, since a level has three nodes on average (WN18RR): passing the arrays takes a fifth of the time.
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
            if object_identity and entity == start:
                continue
            next_slot = n_next
            if levels.stamps[other, entity] == clock:
                next_slot = int(levels.slots[other, entity])
                if levels.full[other, next_slot]:
                    continue
            if not object_identity or (q == 0 and is_open(levels, side, slot, size, entity)):
                new_node(levels, other, n_next, entity, clock)
                levels.full[other, n_next] = True
                n_next += 1
                continue
            if q == 0:
                continue
            for way in range(levels.n_witnesses[side, slot]):
                if contains(levels, side, slot, way, size, entity):
                    continue
                work += 1
                if next_slot == n_next:
                    new_node(levels, other, n_next, entity, clock)
                    n_next += 1
                extend_way(levels, side, other, slot, way, size, next_slot, q)
                if levels.full[other, next_slot]:
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


@inlined
def is_hashed(length: int, limits: Limits) -> bool:
    """Whether the walk from one start of a B body is so short that its entities are hashed."""
    by_hand = length == 2 or (length == 3 and limits.object_identity)
    return bool(by_hand and limits.start <= HASHED_PLACES // 4)


@inlined
def slot_of(entity: int, keys: NDArray[np.int32], stamps: NDArray[np.int64], clock: int, hashed: bool) -> int:
    """Return the slot of `entity`, or the one where it belongs: it is there if the slot has the stamp `clock`."""
    if not hashed:
        return int(entity)
    slot = ((int(entity) * 0x9E3779B1) >> 12) & (HASHED_PLACES - 1)
    while stamps[slot] == clock and keys[slot] != entity:
        slot = (slot + 1) & (HASHED_PLACES - 1)
    return slot


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
def expect_walk(graph: GraphArrays, entities: NDArray[np.int32], position: int, last: int, relation: int) -> None:
    """Have loaded what the walk along `relation` needs of those that come a few positions after `position`."""
    if position + AHEAD < last:
        expect(graph, int(entities[position + AHEAD]))
    if position + AHEAD // 2 < last:
        expect_steps(graph, int(entities[position + AHEAD // 2]))
    if position + AHEAD // 4 < last:
        expect_targets(graph, int(entities[position + AHEAD // 4]), relation)


@inlined
def steps_by(graph: GraphArrays, step: int, entity: int, scratch: Scratch) -> tuple[int, int]:
    """Return what `steps` does for relation number `step`, the second or third of `scratch.body`."""
    if scratch.is_listed[step - 1]:
        return int(scratch.rows[step - 1, entity, 0]), int(scratch.rows[step - 1, entity, 1])
    return steps(graph, entity, int(scratch.body[step]))


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
        start, end = steps_by(graph, 1, int(graph.targets[row]), scratch)
        if work + end - start > limit:
            return n_ends, limit + 1
        work += end - start
        for next_row in range(start, end):
            y = graph.targets[next_row]
            slot = slot_of(y, scratch.end_keys, scratch.ends, clock, hashed)
            if scratch.ends[slot] != clock and (y != x or not object_identity):
                scratch.ends[slot] = clock
                if hashed:
                    scratch.end_keys[slot] = y
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
        start, end = steps_by(graph, 1, int(a), scratch)
        if work + end - start > limit:
            return 0, limit + 1
        work += end - start
        for next_row in range(start, end):
            b = graph.targets[next_row]
            slot = slot_of(b, scratch.middle_keys, scratch.middles, clock, hashed)
            if scratch.middles[slot] != clock:
                if b != x:
                    scratch.middles[slot] = clock
                    if hashed:
                        scratch.middle_keys[slot] = b
                    scratch.first_witness[slot] = a
                    scratch.second_witness[slot] = -1
                    scratch.listed[n_middles] = b
                    n_middles += 1
            else:
                scratch.second_witness[slot] = a
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
        start, end = steps_by(graph, 2, b, scratch)
        if work + end - start > limit:
            return n_ends, limit + 1
        work += end - start
        middle = slot_of(b, scratch.middle_keys, scratch.middles, clock, hashed)
        single = scratch.second_witness[middle] == -1
        witness = scratch.first_witness[middle]
        for row in range(start, end):
            y = graph.targets[row]
            slot = slot_of(y, scratch.end_keys, scratch.ends, clock, hashed)
            if scratch.ends[slot] != clock and y != x and not (single and y == witness):
                scratch.ends[slot] = clock
                if hashed:
                    scratch.end_keys[slot] = y
                scratch.reached[n_ends] = y
                n_ends += 1
    return n_ends, work


@inlined
def ends_of_more(
    graph: GraphArrays, length: int, x: int, object_identity: bool, limit: int, scratch: Scratch
) -> tuple[int, int]:
    """Write the ends of a body of length 3 or more to `scratch.reached`; return how many, and the work.

    A walk to the entities before the ends, each with ways to avoid any end. The ends themselves need no ways: entering
    them as a level touches four times as much memory.
    """
    levels, clock, relation = scratch.levels, scratch.clock, int(scratch.body[length - 1])
    side, n_nodes, work = reach(graph, scratch.body, length - 1, x, 1, object_identity, levels, clock, limit)
    if work > limit:
        return 0, work
    clock[0] += 1
    now, offset, n_ends = clock[0], int(graph.domain_offsets[relation]), 0
    n_domain = int(graph.domain_offsets[relation + 1]) - offset
    by_domain = 2 * n_domain < n_nodes
    n_turns = n_domain if by_domain else n_nodes
    work += n_turns
    for turn in range(n_turns):
        slot = turn
        if by_domain:
            if levels.stamps[side, graph.domains[offset + turn]] != now - 1:
                continue
            slot = int(levels.slots[side, graph.domains[offset + turn]])
        first, last = steps(graph, int(levels.nodes[side, slot]), relation)
        work += last - first
        if work > limit:
            return n_ends, work
        all_open = levels.full[side, slot] or not object_identity
        for row in range(first, last):
            y = graph.targets[row]
            if scratch.ends[y] == now or (object_identity and y == x):
                continue
            if all_open or is_open(levels, side, slot, length - 2, int(y)):
                scratch.ends[y] = now
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
    return ends_of_more(graph, length, x, object_identity, limit, scratch)


@inlined
def note_facts(graph: GraphArrays, entity: int, side: int, n_pairs: int, pca: PcaArrays) -> None:
    """Count `n_pairs` pairs for every relation of the entity that they start from (side 0) or end in (side 1)."""
    for segment in range(graph.segment_offsets[entity], graph.segment_offsets[entity + 1]):
        pca.having[side, graph.segment_relations[segment]] += n_pairs


@inlined
def note_ends(n_ends: int, n_pairs: int, scratch: Scratch) -> None:
    """Count `n_pairs` pairs for each of the `n_ends` ends in `scratch.reached`."""
    pca, state = scratch.pca, scratch.grounding[0]
    n_ended = state.ended
    for i in range(n_ends):
        y = scratch.reached[i]
        if pca.end_pairs[y] == 0:
            pca.ended[n_ended] = y
            n_ended += 1
        pca.end_pairs[y] += n_pairs
    state.ended = n_ended


@part
def note_facts_of_ends(graph: GraphArrays, scratch: Scratch) -> None:
    """Count the pairs of a B body, which was grounded, for every relation of their ends."""
    pca = scratch.pca
    for i in range(scratch.grounding[0].ended):
        y = int(pca.ended[i])
        note_facts(graph, y, 1, int(pca.end_pairs[y]), pca)
        pca.end_pairs[y] = 0


@inlined
def note_through(x: int, entity: int, is_first: bool, scratch: Scratch) -> None:
    """Take note that the member x satisfies the unary body only through `entity`."""
    pca, state = scratch.pca, scratch.grounding[0]
    pca.members[state.noted] = x
    pca.earlier[state.noted] = -1 if is_first else pca.latest[entity]
    pca.latest[entity] = state.noted
    state.noted += 1


@inlined
def pca_of_pairs(graph: GraphArrays, heads: HeadArrays, joining: int, scratch: Scratch) -> int:
    """Return how many pairs of a B body the assumption can judge for the head `joining`, directed as the body was
    walked.
    """
    if heads.functional[joining]:
        return int(scratch.pca.having[0, joining])
    return int(scratch.pca.having[1, inverse(graph, joining)])


@part
def pca_of_members(
    graph: GraphArrays,
    heads: HeadArrays,
    head: int,
    head_constant: int,
    predictions: int,
    all_count: bool,
    scratch: Scratch,
) -> int:
    """Return how many of the `predictions` of a unary head the assumption can judge; `all_count` as for those.

    All or none if the constant decides. In h(X, self), X is both subject and object.
    """
    clock, needed = scratch.grounding[0].clock, head
    if not heads.functional[head]:
        needed = inverse(graph, head)
        if head_constant < graph.n_entities:
            return predictions if find_segment(graph, head_constant, needed) >= 0 else 0
    n_having = int(scratch.pca.having[0, needed])
    if all_count:
        return n_having
    if scratch.members[head_constant] == clock and find_segment(graph, head_constant, needed) >= 0:
        n_having -= 1
    if scratch.through_stamps[head_constant] == clock:
        member = int(scratch.pca.latest[head_constant])
        while member >= 0:
            if find_segment(graph, int(scratch.pca.members[member]), needed) >= 0:
                n_having -= 1
            member = int(scratch.pca.earlier[member])
    return n_having
