"""Sampling straight paths (paper, sections 2.2 and 3.1), the table of seen bodies, and which relations follow which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, prefetch
from anyburl.base.rng import mix, next_uint64, randint
from anyburl.bodies.arrays import HeadTriples, PathArrays, SeenArrays
from anyburl.graph.kernel import GraphArrays, entity_rows, expect, expect_edges, expect_steps, inverse, joins

TRIES = 8  # to close a cyclic path of a large graph
COMING = 15  # an index into `coming` is the number of an attempt modulo 16
BLOCK_BITS = 6  # of a row's number: those within a block, see `HeadTriples.owners`


@kernel
def list_owners(graph: GraphArrays, owners: NDArray[np.int32]) -> None:
    """Write to `owners` which entity the first row of each block of rows belongs to."""
    last_in_block = (1 << BLOCK_BITS) - 1
    for entity in range(graph.n_entities):
        first, last = entity_rows(graph, entity)
        for block in range((first + last_in_block) >> BLOCK_BITS, (last + last_in_block) >> BLOCK_BITS):
            owners[block] = entity


@inlined
def n_heads(graph: GraphArrays, heads: HeadTriples) -> int:
    """Return how many heads there are to draw from: triples, or rows of the graph, without those of `self`."""
    if len(heads.owners) == 0:
        return len(heads.triples)
    return int(graph.segment_starts[graph.segment_offsets[graph.n_entities]])


@inlined
def owner_of(graph: GraphArrays, heads: HeadTriples, row: int) -> int:
    """Return the entity that a row belongs to."""
    entity = int(heads.owners[row >> BLOCK_BITS])
    while graph.segment_starts[graph.segment_offsets[entity + 1]] <= row:
        entity += 1
    return entity


@inlined
def head_at(graph: GraphArrays, heads: HeadTriples, row: int, state: NDArray[np.uint64]) -> tuple[int, int, int]:
    """Return the head triple of a row as an edge: start, directed relation, other end; subject or object starts the
    walk.

    Of h(c, c), read as h(c, self), the walk can start at c only; the graph has it there in both readings.
    """
    if len(heads.owners) > 0:
        relation, other = int(graph.neighbour_relations[row]), int(graph.neighbours[row])
        if other == graph.n_entities:
            relation %= graph.n_relations
        return owner_of(graph, heads, row), relation, other
    triples = heads.triples
    subject, relation, object_ = int(triples[row, 0]), int(triples[row, 1]), int(triples[row, 2])
    if subject == object_:
        return subject, relation, graph.n_entities
    if next_uint64(state) >> np.uint64(63) == 0:
        return subject, relation, object_
    return object_, relation + graph.n_relations, subject


@inlined
def next_head(
    graph: GraphArrays, heads: HeadTriples, attempt: int, state: NDArray[np.uint64], coming: NDArray[np.int64]
) -> int:
    """Return the row of the head of an attempt, drawn some attempts before: on a large graph what the next ones need is
    loaded meanwhile. Draw a later one; `coming` holds those in between.
    """
    row = int(coming[attempt & COMING])
    drawn = randint(state, n_heads(graph, heads))
    coming[attempt & COMING] = drawn
    if len(heads.owners) > 0:
        prefetch(heads.owners, drawn >> BLOCK_BITS)
        prefetch(graph.neighbours, drawn)
        prefetch(graph.neighbour_relations, drawn)
    else:
        prefetch(heads.triples, 3 * drawn)
    for side in range(2):
        expect(graph, near_head(graph, heads, int(coming[(attempt + 8) & COMING]), side))
        expect_steps(graph, near_head(graph, heads, int(coming[(attempt + 4) & COMING]), side))
        expect_edges(graph, near_head(graph, heads, int(coming[(attempt + 2) & COMING]), side))
    return row


@inlined
def near_head(graph: GraphArrays, heads: HeadTriples, row: int, side: int) -> int:
    """Return one end of a head, or an entity whose place in memory is near that of its end."""
    if len(heads.owners) == 0:
        return int(heads.triples[row, 2 * side])
    return int(heads.owners[row >> BLOCK_BITS]) if side == 0 else int(graph.neighbours[row])


@inlined
def random_step(graph: GraphArrays, here: int, by_relation: bool, state: NDArray[np.uint64]) -> tuple[int, int]:
    """Return the directed relation and the end of a random edge of `here`: any edge, or, `by_relation`, any edge of a
    random one of its relations, so that a relation with few edges is not lost among those of a hub.
    """
    if by_relation:
        first, last = int(graph.segment_offsets[here]), int(graph.segment_offsets[here + 1])
        segment = first + randint(state, last - first)
        start, end = int(graph.segment_starts[segment]), int(graph.segment_starts[segment + 1])
        return int(graph.segment_relations[segment]), int(graph.targets[start + randint(state, end - start)])
    start, end = entity_rows(graph, here)
    edge = start + randint(state, end - start)
    return int(graph.neighbour_relations[edge]), int(graph.neighbours[edge])


@inlined
def walk_path(
    graph: GraphArrays,
    paths: PathArrays,
    row: int,
    n_steps: int,
    by_relation: bool,
    state: NDArray[np.uint64],
    visited: NDArray[np.int32],
) -> bool:
    """Walk `n_steps` random steps, if any, from the start of path `row`; False as soon as the path is not straight.

    `visited` is scratch with room for `n_steps + 2` entities.
    """
    visited[0] = paths.others[row]
    visited[1] = paths.starts[row]
    here = int(paths.starts[row])
    for step in range(n_steps):
        relation, here = random_step(graph, here, by_relation, state)
        if is_visited(visited, step + 2, here):
            return False
        visited[step + 2] = here
        paths.relations[row, step] = relation
        # `self` is no entity: it can be the constant at the end of an acyclic path, never a stop on the way.
        if here == graph.n_entities and step + 1 < paths.relations.shape[1]:
            return False
    paths.ends[row] = here
    return True


@inlined
def close(graph: GraphArrays, paths: PathArrays, row: int, state: NDArray[np.uint64]) -> bool:
    """Close the cyclic path `row`, walked up to `ends[row]`, by a random edge to the head's other end, if there is one.

    A path of one step is closed by another edge than the head's own.
    """
    here, other = int(paths.ends[row]), int(paths.others[row])
    first, last = joins(graph, here, other)
    n_choices = last - first
    if paths.relations.shape[1] == 1:
        n_choices -= 1
    if other == graph.n_entities:
        # h(c, self) is stored in both directions; the forward readings come first and are half of all.
        n_choices = (last - first) // 2 - 1
    if n_choices <= 0:
        return False
    choice = first + randint(state, n_choices)
    if paths.relations.shape[1] == 1 and graph.neighbour_relations[choice] >= paths.heads[row]:
        choice += 1
    paths.relations[row, paths.relations.shape[1] - 1] = graph.neighbour_relations[choice]
    paths.ends[row] = other
    return True


@inlined
def close_by_trying(
    graph: GraphArrays,
    paths: PathArrays,
    row: int,
    by_relation: bool,
    state: NDArray[np.uint64],
    visited: NDArray[np.int32],
) -> bool:
    """Close the cyclic path `row`, walked up to the step before the last inner entity, by the first of some random
    ones that an edge joins to the head's other end.

    All are looked up among the edges of that end: after the first, they are in the caches.
    """
    length, other = paths.relations.shape[1], int(paths.others[row])
    here = int(paths.ends[row])
    for _ in range(TRIES):
        relation, entity = random_step(graph, here, by_relation, state)
        first, last = joins(graph, other, entity)
        if first == last or entity == graph.n_entities or is_visited(visited, length, entity):
            continue
        back = int(graph.neighbour_relations[first + randint(state, last - first)])
        paths.relations[row, length - 2], paths.relations[row, length - 1] = relation, inverse(graph, back)
        paths.ends[row] = other
        return True
    return False


@inlined
def is_visited(visited: NDArray[np.int32], n_visited: int, entity: int) -> bool:
    """Whether `entity` is one of the first `n_visited` entities of a path."""
    for i in range(n_visited):
        if visited[i] == entity:
            return True
    return False


@kernel
def sample(
    graph: GraphArrays,
    heads: HeadTriples,
    cyclic: bool,
    attempts: int,
    mixed: bool,
    state: NDArray[np.uint64],
    visited: NDArray[np.int32],
    coming: NDArray[np.int64],
    paths: PathArrays,
) -> int:
    """Fill `paths` (room for `attempts`) with straight paths, cyclic or acyclic; return how many of the attempts gave
    one.

    Steps are uniform over edges; `mixed`, every other path's are uniform over relations, and a cyclic path has some
    tries to close.

    `visited` is scratch with room for the entities of one path, `coming` for 16 heads.
    """
    n_paths, length = 0, paths.relations.shape[1]
    tries = mixed and cyclic and length > 1
    n_steps = length - 1 - tries if cyclic else length
    n_rows = n_heads(graph, heads)
    if mixed:
        for turn in range(len(coming)):
            coming[turn] = randint(state, n_rows)
    for attempt in range(attempts):
        by_relation = mixed and attempt & 1 == 1
        row = next_head(graph, heads, attempt, state, coming) if mixed else randint(state, n_rows)
        start, head, other = head_at(graph, heads, row, state)
        if cyclic and other == graph.n_entities and length > 1:
            continue
        paths.starts[n_paths], paths.heads[n_paths], paths.others[n_paths] = start, head, other
        if not walk_path(graph, paths, n_paths, n_steps, by_relation, state, visited):
            continue
        if tries:
            if not close_by_trying(graph, paths, n_paths, by_relation, state, visited):
                continue
        elif cyclic and not close(graph, paths, n_paths, state):
            continue
        if not cyclic and paths.ends[n_paths] == graph.n_entities:
            # h(self, c) says the same as h(c, self): keep the forward reading.
            paths.relations[n_paths, length - 1] %= graph.n_relations
        n_paths += 1
    return n_paths


@inlined
def find_slot(table: SeenArrays, key: np.uint64) -> int:
    """Return the slot of `key`, or the empty slot where it belongs."""
    mask = len(table.keys) - 1
    slot = np.int64(mix(key) & np.uint64(mask))
    while table.first_spans[slot] >= 0 and table.keys[slot] != key:
        slot = (slot + 1) & mask
    return int(slot)


@kernel
def enter_keys(table: SeenArrays, keys: NDArray[np.uint64], span: int, is_new: NDArray[np.bool_]) -> tuple[int, int]:
    """Enter `keys`, mark the new ones; return how many, and how many rules of earlier spans were met again.

    Rules are met again once a span, however often their body is sampled in it (the paper's R_s is a set).
    The table has room for all keys.
    """
    n_new, n_known_rules = 0, 0
    for i in range(len(keys)):
        slot = find_slot(table, keys[i])
        if table.first_spans[slot] < 0:
            table.keys[slot] = keys[i]
            table.first_spans[slot] = span
            table.n_rules[slot] = 0
            is_new[i] = True
            n_new += 1
        else:
            is_new[i] = False
            if table.last_spans[slot] != span and table.first_spans[slot] != span:
                n_known_rules += table.n_rules[slot]
        table.last_spans[slot] = span
    return n_new, n_known_rules


@kernel
def record_rules(table: SeenArrays, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Note how many rules each body gave."""
    for i in range(len(keys)):
        table.n_rules[find_slot(table, keys[i])] = counts[i]


@kernel
def move_keys(old: SeenArrays, new: SeenArrays) -> None:
    """Enter everything of `old` into the larger, empty `new`."""
    for i in range(len(old.keys)):
        if old.first_spans[i] >= 0:
            slot = find_slot(new, old.keys[i])
            new.keys[slot] = old.keys[i]
            new.first_spans[slot] = old.first_spans[i]
            new.last_spans[slot] = old.last_spans[i]
            new.n_rules[slot] = old.n_rules[i]


@kernel
def mark_followers(graph: GraphArrays, follows: NDArray[np.bool_]) -> None:
    """Mark (d, e) where some entity is reached along d and left along e; `follows` is all False on entry."""
    for entity in range(graph.n_entities):
        first, last = graph.segment_offsets[entity], graph.segment_offsets[entity + 1]
        for into in range(first, last):
            arriving = inverse(graph, int(graph.segment_relations[into]))
            for out_of in range(first, last):
                follows[arriving, graph.segment_relations[out_of]] = True
