"""What changes of a binary body when the graph does, without grounding it anew.

A body joins another pair of entities than before only through a changed fact. So the ways through each changed fact are
walked in the graph that has it, and the other graph is asked whether it joins the same two entities in another way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel, part
from anyburl.bodies.arrays import BodyChanges, ChangedFacts, Limits, PairTable, Scratch, SupportChanges
from anyburl.bodies.kernel_ends import middles_of_three
from anyburl.bodies.kernel_joins import joins_pair
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import inverse, joins, lower_bound, steps
from anyburl.rng import mix

LONGEST_COMPARED = 3
FEW = 8  # partners of one entity that are asked for one by one


@inlined
def enter_pair(table: PairTable, x: int, y: int, clock: int) -> bool:
    """Enter a pair; return whether it was not there. The table has room."""
    key = (np.uint64(x) << np.uint64(32)) | np.uint64(y)
    mask = len(table.keys) - 1
    place = np.int64(mix(key) & np.uint64(mask))
    while table.stamps[place] == clock:
        if table.keys[place] == key:
            return False
        place = (place + 1) & mask
    table.stamps[place] = clock
    table.keys[place] = key
    return True


@inlined
def count_joining(graph: GraphArrays, x: int, y: int, change: int, counts: NDArray[np.int64]) -> None:
    """Add `change` to the count of every relation from x to y."""
    first, last = joins(graph, x, y)
    for row in range(first, last):
        counts[graph.neighbour_relations[row]] += change


@inlined
def turn(graph: GraphArrays, body: NDArray[np.int32], length: int, backward: bool, scratch: Scratch) -> None:
    """Copy `body`, or its reversal, to `scratch.body`."""
    for i in range(length):
        scratch.body[i] = inverse(graph, int(body[length - 1 - i])) if backward else body[i]


@inlined
def is_met(graph: GraphArrays, y: int, relation: int, n_middles: int, clock: int, scratch: Scratch) -> bool:
    """Whether y is an end of the walk whose middles, two steps from its start, are listed and stamped with `clock`."""
    start, end = steps(graph, y, relation)
    if end - start > 8 * n_middles:
        for i in range(n_middles):
            b = scratch.listed[i]
            row = lower_bound(graph.targets, start, end, int(b))
            is_open = scratch.second_witness[b] >= 0 or scratch.first_witness[b] != y
            if is_open and row < end and graph.targets[row] == b:
                return True
        return False
    for row in range(start, end):
        b = graph.targets[row]
        if scratch.middles[b] == clock and (scratch.second_witness[b] >= 0 or scratch.first_witness[b] != y):
            return True
    return False


@part
def list_partners(
    graph: GraphArrays, length: int, x: int, inner: int, object_identity: bool, scratch: Scratch
) -> tuple[int, int]:
    """Write to `scratch.listed` where `scratch.body` leads from x if its first step goes to `inner`; return how many,
    and the work.
    """
    if length == 1:
        scratch.reached[0] = inner
        return 1, 1
    n_partners, work = 0, 0
    scratch.clock[0] += 1
    clock = scratch.clock[0]
    start, end = steps(graph, inner, int(scratch.body[1]))
    for row in range(start, end):
        z = int(graph.targets[row])
        if object_identity and z == x:
            continue
        first, last = (row, row + 1) if length == 2 else steps(graph, z, int(scratch.body[2]))
        work += 1 + last - first
        for next_row in range(first, last):
            y = int(graph.targets[next_row])
            if scratch.ends[y] != clock and not (object_identity and y in (x, inner)):
                scratch.ends[y] = clock
                scratch.reached[n_partners] = y
                n_partners += 1
    return n_partners, work


@part
def count_unjoined(
    graph: GraphArrays,
    other: GraphArrays,
    length: int,
    x: int,
    n_partners: int,
    backward: bool,
    change: int,
    pair_clock: int,
    limits: Limits,
    table: PairTable,
    scratch: Scratch,
) -> tuple[int, int]:
    """Count the pairs of x and its partners (`scratch.reached`) that `other` does not join, each once a body, and the
    heads that join them in `graph`; return how many, and the work.

    The walk is `scratch.body`; `backward` says that it is the body reversed.
    """
    n_pairs, n_middles, work, clock = 0, 0, n_partners, 0
    object_identity = limits.object_identity
    if length == 3 and object_identity and n_partners > FEW:
        scratch.clock[0] += 1
        n_middles, spent = middles_of_three(other, x, limits.start, False, scratch)
        work += spent
        clock = scratch.clock[0] if spent <= limits.start else 0
    for i in range(n_partners):
        y = int(scratch.reached[i])
        if clock > 0:
            joined = is_met(other, y, inverse(other, int(scratch.body[2])), n_middles, clock, scratch)
        else:
            joined = joins_pair(other, scratch.body, length, x, y, object_identity)
        if joined:
            continue
        near, far = (y, x) if backward else (x, y)
        if enter_pair(table, near, far, pair_clock):
            n_pairs += 1
            count_joining(graph, near, far, change, scratch.relation_counts)
    return n_pairs, work


@part
def compare_end(
    graph: GraphArrays,
    other: GraphArrays,
    length: int,
    fact: tuple[int, int],
    backward: bool,
    change: int,
    pair_clock: int,
    limits: Limits,
    table: PairTable,
    scratch: Scratch,
) -> tuple[int, int]:
    """Compare the ways whose first step is `fact` (source, target); return the pairs that only `graph` joins, and the
    work.
    """
    x, inner = fact
    n_partners, work = list_partners(graph, length, x, inner, limits.object_identity, scratch)
    n_pairs, more = count_unjoined(
        graph, other, length, x, n_partners, backward, change, pair_clock, limits, table, scratch
    )
    return n_pairs, work + more


@part
def compare_middle(
    graph: GraphArrays,
    other: GraphArrays,
    fact: tuple[int, int],
    backward: bool,
    change: int,
    pair_clock: int,
    limits: Limits,
    table: PairTable,
    scratch: Scratch,
) -> tuple[int, int]:
    """Compare the ways of length 3 whose second step is `fact`; as `compare_end`."""
    a, b = fact
    object_identity = limits.object_identity
    n_pairs, work = 0, 0
    start, end = steps(graph, a, inverse(graph, int(scratch.body[0])))
    first, last = steps(graph, b, int(scratch.body[2]))
    for row in range(start, end):
        x = int(graph.targets[row])
        if object_identity and x == b:
            continue
        n_partners = 0
        for next_row in range(first, last):
            y = int(graph.targets[next_row])
            if not (object_identity and y in (x, a)):
                scratch.reached[n_partners] = y
                n_partners += 1
        found, spent = count_unjoined(
            graph, other, 3, x, n_partners, backward, change, pair_clock, limits, table, scratch
        )
        n_pairs, work = n_pairs + found, work + spent
        if work > limits.budget:
            break
    return n_pairs, work


@inlined
def has_fewer_ends(graph: GraphArrays, body: NDArray[np.int32], a: int, b: int) -> bool:
    """Whether a fact in the middle of a body of length 3 has fewer entities after it than before."""
    start, end = steps(graph, a, inverse(graph, int(body[0])))
    first, last = steps(graph, b, int(body[2]))
    return last - first < end - start


@part
def compare_facts(
    old: GraphArrays,
    new: GraphArrays,
    facts: ChangedFacts,
    body: NDArray[np.int32],
    place: int,
    pair_clock: int,
    limits: Limits,
    table: PairTable,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Compare the ways that use a changed fact at one place of `body`; return the pairs gained, lost, and the work."""
    length, relation = len(body), int(body[place])
    gained, lost, work = 0, 0, 0
    for number in range(facts.offsets[relation], facts.offsets[relation + 1]):
        added = facts.added[number]
        graph, other, change = (new, old, 1) if added else (old, new, -1)
        source, target = int(facts.sources[number]), int(facts.targets[number])
        in_the_middle = length == 3 and place == 1
        backward = has_fewer_ends(graph, body, source, target) if in_the_middle else place > 0
        turn(new, body, length, backward, scratch)
        fact = (target, source) if backward else (source, target)
        if in_the_middle:
            found, spent = compare_middle(graph, other, fact, backward, change, pair_clock, limits, table, scratch)
        else:
            found, spent = compare_end(graph, other, length, fact, backward, change, pair_clock, limits, table, scratch)
        if added:
            gained += found
        else:
            lost += found
        work += spent
        if work > limits.budget:
            break
    return gained, lost, work


@part
def compare_heads(
    old: GraphArrays,
    new: GraphArrays,
    facts: ChangedFacts,
    body: NDArray[np.int32],
    object_identity: bool,
    scratch: Scratch,
) -> None:
    """Count the changed facts as heads, where the body joins their entities in both graphs: other pairs were gained or
    lost, and their heads are counted already.
    """
    length = len(body)
    leaves, arrives = facts.leaves[body[0]], facts.arrives[inverse(new, int(body[length - 1]))]
    for fact in range(len(facts.sources)):
        if not (leaves[fact] and arrives[fact]):
            continue
        x, y = int(facts.sources[fact]), int(facts.targets[fact])
        if joins_pair(new, body, length, x, y, object_identity) and joins_pair(
            old, body, length, x, y, object_identity
        ):
            scratch.relation_counts[facts.relations[fact]] += 1 if facts.added[fact] else -1


@part
def compare_body(
    old: GraphArrays,
    new: GraphArrays,
    facts: ChangedFacts,
    body: NDArray[np.int32],
    limits: Limits,
    table: PairTable,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Return the pairs that `body` gained and lost, and the work; `relation_counts` holds how supports changed."""
    gained, lost, work = 0, 0, 0
    scratch.clock[0] += 1
    pair_clock = scratch.clock[0]
    for place in range(len(body)):
        more, fewer, spent = compare_facts(old, new, facts, body, place, pair_clock, limits, table, scratch)
        gained, lost, work = gained + more, lost + fewer, work + spent
        if work > limits.budget:
            return gained, lost, work
    compare_heads(old, new, facts, body, limits.object_identity, scratch)
    return gained, lost, work


@kernel
def compare_bodies(
    old: GraphArrays,
    new: GraphArrays,
    facts: ChangedFacts,
    bodies: NDArray[np.int32],
    first: int,
    limits: Limits,
    table: PairTable,
    scratch: Scratch,
    changes: BodyChanges,
    out: SupportChanges,
) -> tuple[int, int]:
    """Compare the B bodies (rows of directed relations, at most LONGEST_COMPARED) from number `first` on, until the
    work or the room of `out` ends; return the next body and the rows written.

    Both graphs have the same ids. `table` has room for more pairs than `limits.budget`, `out` for at least all directed
    relations.
    """
    n_rows, work, k = 0, 0, first
    while k < len(bodies) and work <= limits.work and n_rows + 2 * new.n_relations <= len(out.heads):
        gained, lost, spent = compare_body(old, new, facts, bodies[k], limits, table, scratch)
        changes.gained[k], changes.lost[k], changes.unfinished[k] = gained, lost, spent > limits.budget
        work += spent + len(facts.sources) // 64 + 1
        for head in range(2 * new.n_relations):
            change = scratch.relation_counts[head]
            if change != 0:
                scratch.relation_counts[head] = 0
                out.bodies[n_rows], out.heads[n_rows], out.supports[n_rows] = k, head, change
                n_rows += 1
        k += 1
    return k, n_rows
