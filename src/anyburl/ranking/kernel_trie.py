"""B rules: the bodies of one head relation form a trie, walked from the query's entity with shared beginnings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, merged, part
from anyburl.base.rng import mix
from anyburl.bodies.arrays import NO_LIMIT, LevelArrays
from anyburl.bodies.kernel_ends import extend_level, is_open, new_node
from anyburl.bodies.kernel_values import compares
from anyburl.graph.kernel import GraphArrays, Ints, expect, expect_steps, find_segment, inverse, steps
from anyburl.ranking.arrays import (
    AttributeArrays,
    CandidateArrays,
    Leaf,
    QueryArrays,
    QueryState,
    RelationEdges,
    RuleIndex,
    TrieWalk,
    Workspace,
)
from anyburl.ranking.kernel_order import least_of_best
from anyburl.ranking.kernel_short import (
    FEW_FIRINGS,
    fire,
    first_link,
    link_segments,
    matters,
    n_links,
    put_ahead,
    start_links,
)


@kernel
def count_sort(keys: Ints, order: NDArray[np.int32], starts: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    """Write `order` to `out`, sorted by `keys[order]`, equal keys in the order they had.

    `starts` has room for every key and one more, and is all zero on entry; spent on exit.
    """
    for i in range(len(keys)):
        starts[keys[i] + 1] += 1
    for key in range(1, len(starts)):
        starts[key] += starts[key - 1]
    for i in range(len(order)):
        row = order[i]
        key = keys[row]
        out[starts[key]] = row
        starts[key] += 1


@kernel
def count_steps(graph: GraphArrays, sizes: NDArray[np.int64]) -> None:
    """Write for each position in `domains` how many entities its entity reaches by its relation."""
    for relation in range(2 * graph.n_relations):
        for position in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
            first, last = steps(graph, int(graph.domains[position]), relation)
            sizes[position] = last - first


@kernel
def copy_steps(graph: GraphArrays, starts: NDArray[np.int64], ends: NDArray[np.int32]) -> None:
    """Write those entities from `starts[position]` on."""
    for relation in range(2 * graph.n_relations):
        for position in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
            first, last = steps(graph, int(graph.domains[position]), relation)
            for row in range(first, last):
                ends[starts[position] + row - first] = graph.targets[row]


@kernel
def number_counts(
    types: NDArray[np.uint8],
    supports: NDArray[np.int32],
    predictions: NDArray[np.int64],
    table: NDArray[np.int32],
    firsts: NDArray[np.int32],
    codes: NDArray[np.int32],
) -> int:
    """Give rules with the same type, support and predictions the same code, from 0 on, in the order of their first.

    `table` is a hash table of codes (-1: empty; its length is a power of two), `firsts` gets the first rule of each
    code. Return the number of codes, or -1 once half of the table is full.
    """
    mask, n_codes = len(table) - 1, 0
    for rule in range(len(types)):
        if 2 * n_codes >= len(table):
            return -1
        key = (np.uint64(supports[rule]) << np.uint64(34)) ^ (np.uint64(predictions[rule]) << np.uint64(2))
        slot = np.int64(mix(key ^ np.uint64(types[rule])) & np.uint64(mask))
        while True:
            code = int(table[slot])
            if code < 0:
                table[slot] = n_codes
                firsts[n_codes] = rule
                codes[rule] = n_codes
                n_codes += 1
                break
            other = firsts[code]
            if (
                types[other] == types[rule]
                and supports[other] == supports[rule]
                and predictions[other] == predictions[rule]
            ):
                codes[rule] = code
                break
            slot = (slot + 1) & mask
    return n_codes


@kernel
def find_best_below(
    first_children: NDArray[np.int64],
    n_children: NDArray[np.int32],
    codes: NDArray[np.int32],
    scores: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Write for each node of the tries the highest score of the rules that end at it or below; children come later."""
    for node in range(len(codes) - 1, -1, -1):
        best = scores[codes[node]] if codes[node] >= 0 else np.int64(-1)
        for child in range(first_children[node], first_children[node] + n_children[node]):
            best = max(best, out[child])
        out[node] = best


FEW_OPENED = 3  # from then on, searching costs more than listing all segments
UNDECIDED_WORK = 8  # work of looking back from one candidate


@inlined
def first_level(graph: GraphArrays, s: int, relation: int, levels: LevelArrays, clock: int) -> int:
    """Enter the entities that `relation` leads to from s as level 0; return how many."""
    start, end = steps(graph, s, relation)
    for row in range(start, end):
        new_node(levels, 0, row - start, int(graph.targets[row]), clock)
        levels.n_witnesses[0, row - start] = 1
        levels.full[0, row - start] = True
    return end - start


@part
def link_first_level(graph: GraphArrays, walk: TrieWalk) -> None:
    """List the segments of the entities of level 0, as long as there is room."""
    start_links(walk.first_level, walk.clocks[0])
    for slot in range(walk.n_nodes[0]):
        if not link_segments(graph, int(walk.levels.nodes[0, slot]), walk.first_level):
            return


@inlined
def enter_targets(graph: GraphArrays, node: int, segment: int, s: int, q: int, walk: TrieWalk, n: int) -> int:
    """Enter where a segment of `node` leads, see `second_level`; return how many entities level 1 has."""
    levels, clock = walk.levels, walk.clock[0]
    for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
        entity = int(graph.targets[row])
        if entity == s or entity == graph.n_entities:
            continue
        if levels.stamps[1, entity] != clock:
            new_node(levels, 1, n, entity, clock)
            n += 1
        reached = int(levels.slots[1, entity])
        kept = int(levels.n_witnesses[1, reached])
        if kept <= q:
            levels.witnesses[1, reached, kept, 0] = node
            levels.n_witnesses[1, reached] = kept + 1
            levels.full[1, reached] = kept == q
    return n


@inlined
def second_level(graph: GraphArrays, s: int, relation: int, q: int, walk: TrieWalk) -> int:
    """Enter the entities that `relation` leads to from level 0 as level 1; return how many.

    As `extend_level` does under object identity, for ways of one inner entity each: the first q + 1 are kept.
    """
    n_reached, links = 0, walk.first_level
    walk.n_opened[0] += 1
    if walk.n_opened[0] == FEW_OPENED:
        link_first_level(graph, walk)
    if links.mark[0] == walk.clocks[0]:
        link = first_link(links, relation)
        while link >= 0:
            node, segment = int(links.entities[link]), int(links.segments[link])
            n_reached = enter_targets(graph, node, segment, s, q, walk, n_reached)
            link = int(links.following[link])
        return n_reached
    for slot in range(walk.n_nodes[0]):
        node = int(walk.levels.nodes[0, slot])
        segment = find_segment(graph, node, relation)
        if segment >= 0:
            n_reached = enter_targets(graph, node, segment, s, q, walk, n_reached)
    return n_reached


@inlined
def leaf_work(graph: GraphArrays, edges: RelationEdges, relation: int, n_nodes: int) -> tuple[bool, int]:
    """Return whether it is less work to look back from every end of `relation` than to step forward from `n_nodes`
    nodes, and how much work that is.

    Forward, all edges of the nodes are gone through; backward, each end's edges up to the first that starts at a node.
    """
    back = inverse(graph, relation)
    first, last = int(graph.domain_offsets[relation]), int(graph.domain_offsets[relation + 1])
    n_starts, n_edges = last - first, int(edges.starts[last] - edges.starts[first])
    n_ends = int(graph.domain_offsets[back + 1] - graph.domain_offsets[back])
    if n_starts == 0 or n_nodes == 0:
        return False, 0
    met = min(n_nodes, n_starts)
    forward = 8 * min(n_nodes, 2 * n_starts) + n_edges * met // n_starts
    backward = 2 * n_ends + min(n_edges, n_ends * n_starts // met)
    return backward < forward, min(backward, forward)


@inlined
def push_node(
    graph: GraphArrays, start: int, end: int, s: int, avoided: int, question: QueryState, space: Workspace, n: int
) -> int:
    """List the entities of some rows that matter and were not listed before, but for s and `avoided`; there is room for
    all.

    Without a branch that depends on the entity: half of them are new, which no processor can guess.
    """
    walk, candidates, firings = space.walk, space.candidates, space.firings
    clock, only_tied = walk.clock[0], question.tied >= 0
    marks, mark = (candidates.tied, question.tied) if only_tied else (candidates.excluded, question.query)
    for row in range(start, end):
        entity = int(graph.targets[row])
        seen = walk.ends[entity]
        new = (seen != clock) & ((marks[entity] == mark) == only_tied) & (entity != s) & (entity != avoided)
        firings.candidates[n] = entity
        walk.ends[entity] = clock if new else seen
        n += new
    return n


AHEAD = 6  # nodes: what they need is loaded before it is their turn


@merged
def push_leaf(graph: GraphArrays, leaf: Leaf, question: QueryState, space: Workspace, n: int) -> int:
    """Take the last step of a body from the nodes of a level and fire for each end: no level needs to be kept."""
    walk, firings, relation, side = space.walk, space.firings, leaf.relation, leaf.side
    levels, n_nodes = walk.levels, int(walk.n_nodes[side])
    offset = graph.domain_offsets[relation]
    n_domain = int(graph.domain_offsets[relation + 1] - offset)
    by_domain = 2 * n_domain < n_nodes
    clock, room, first = walk.clock[0], len(firings.candidates), n
    avoided_s = question.s if question.object_identity else -1
    for turn in range(n_domain if by_domain else n_nodes):
        slot = turn
        if by_domain:
            if levels.stamps[side, graph.domains[offset + turn]] != walk.clocks[side]:
                continue
            slot = int(levels.slots[side, graph.domains[offset + turn]])
        if turn + AHEAD < n_nodes:
            expect(graph, int(levels.nodes[side, turn + AHEAD]))
            expect_steps(graph, int(levels.nodes[side, turn + AHEAD // 2]))
        start, end = steps(graph, int(levels.nodes[side, slot]), relation)
        all_open = levels.full[side, slot] or not question.object_identity
        one_way = side == 1 and levels.n_witnesses[side, slot] == 1
        if (all_open or one_way) and n + end - start <= room:
            avoided = -1 if all_open else int(levels.witnesses[side, slot, 0, 0])
            n = push_node(graph, start, end, avoided_s, avoided, question, space, n)
            continue
        for row in range(start, end):
            entity = int(graph.targets[row])
            if walk.ends[entity] == clock or entity == avoided_s:
                continue
            if matters(space.candidates, question, entity) and (all_open or is_open(levels, side, slot, side, entity)):
                walk.ends[entity] = clock
                n = fire(space.candidates, firings, n, question, entity, leaf.score, leaf.rule)
    if leaf.score > question.top and n <= room:
        for i in range(first, n):
            put_ahead(space.candidates, question, int(firings.candidates[i]))
        return first
    for i in range(first, min(n, room)):
        firings.scores[i] = leaf.score
        firings.rules[i] = leaf.rule
    return n


@merged
def pull_leaf(
    graph: GraphArrays, edges: RelationEdges, leaf: Leaf, question: QueryState, space: Workspace, n: int
) -> int:
    """The same from the other end: fire for each entity that the last step leads to from some node of the level."""
    walk, candidates, side = space.walk, space.candidates, leaf.side
    levels, back = walk.levels, inverse(graph, leaf.relation)
    for position in range(graph.domain_offsets[back], graph.domain_offsets[back + 1]):
        entity = int(graph.domains[position])
        if candidates.excluded[entity] == question.query or not matters(candidates, question, entity):
            continue
        if entity == question.s and question.object_identity:
            continue
        for row in range(edges.starts[position], edges.starts[position + 1]):
            node = int(edges.ends[row])
            if levels.stamps[side, node] != walk.clocks[side]:
                continue
            if not question.object_identity or is_open(levels, side, int(levels.slots[side, node]), side, entity):
                walk.ends[entity] = walk.clock[0]
                n = fire(candidates, space.firings, n, question, entity, leaf.score, leaf.rule)
                break
    return n


@merged
def fire_undecided(graph: GraphArrays, leaf: Leaf, question: QueryState, space: Workspace, n: int) -> int:
    """The same for the undecided candidates only: fire for those that the last step leads to."""
    walk, candidates, side = space.walk, space.candidates, leaf.side
    levels, links = walk.levels, walk.undecided
    link = first_link(links, inverse(graph, leaf.relation))
    while link >= 0:
        entity, segment = int(links.entities[link]), int(links.segments[link])
        link = int(links.following[link])
        if entity == question.s and question.object_identity:
            continue
        for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
            node = int(graph.targets[row])
            if levels.stamps[side, node] != walk.clocks[side]:
                continue
            if not question.object_identity or is_open(levels, side, int(levels.slots[side, node]), side, entity):
                walk.ends[entity] = walk.clock[0]
                n = fire(candidates, space.firings, n, question, entity, leaf.score, leaf.rule)
                break
    return n


@merged
def fire_level(
    depth: int, score: int, rule: int, n_undecided: int, question: QueryState, space: Workspace, n: int
) -> int:
    """Fire for every entity of a level, or for the undecided candidates in it."""
    walk, candidates = space.walk, space.candidates
    levels, clock = walk.levels, walk.clocks[depth]
    for i in range(walk.n_nodes[depth] if n_undecided < 0 else n_undecided):
        entity = int(levels.nodes[depth, i] if n_undecided < 0 else candidates.undecided[i])
        if levels.stamps[depth, entity] == clock:
            walk.ends[entity] = clock
            n = fire(candidates, space.firings, n, question, entity, score, rule)
    return n


@merged
def fire_compared(
    values: AttributeArrays, step: int, leaf: Leaf, question: QueryState, space: Workspace, n: int
) -> int:
    """Fire for every entity of a level that matters and compares with s as a rule says; `step` is counted after all
    relations.
    """
    walk = space.walk
    levels, attribute, order = walk.levels, step // 3, step % 3 - 1
    start, end = int(values.offsets[attribute]), int(values.offsets[attribute + 1])
    for i in range(walk.n_nodes[leaf.side]):
        entity = int(levels.nodes[leaf.side, i])
        if matters(space.candidates, question, entity) and compares(
            values.entities, values.values, start, end, question.s, entity, order
        ):
            walk.ends[entity] = walk.clock[0]
            n = fire(space.candidates, space.firings, n, question, entity, leaf.score, leaf.rule)
    return n


BY_TARGETS = -1
"""How rules are passed over: those that are worse than one that predicts the targets; a positive number says how many
of the best candidates matter, 0 that all rules fire.
"""


@inlined
def needed_score(queries: QueryArrays, q: int, candidates: CandidateArrays) -> int:
    """Return the highest score that all targets are predicted by, -1 if one is not predicted yet: rules with lower
    scores can only break ties.
    """
    lowest = np.int64(2**62)
    for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
        lowest = min(lowest, candidates.reached[queries.targets[i]])
    return int(lowest)


@inlined
def raise_floor(
    queries: QueryArrays,
    question: QueryState,
    prune: int,
    score: int,
    space: Workspace,
    n_before: int,
    n: int,
) -> int:
    """Return the score that rules need, as far as is known after one with this score has fired, the firings from
    `n_before` to before `n`.

    For targets, that is the highest score that all are predicted by. For the best candidates, it is a score that so
    many have; that is counted when there are twice as many firings as at the last time.
    """
    walk, candidates, firings = space.walk, space.candidates, space.firings
    if prune > 0:
        if n - n_before >= prune:
            return score
        if n > walk.n_linked[0] and n <= len(firings.candidates):
            walk.n_linked[0] = 2 * n
            return least_of_best(candidates, firings, n, prune)
        return -1
    for i in range(queries.target_offsets[question.q], queries.target_offsets[question.q + 1]):
        target = queries.targets[i]
        if walk.ends[target] == walk.clock[0] and candidates.excluded[target] != question.query:
            candidates.reached[target] = max(candidates.reached[target], score)
    return needed_score(queries, question.q, candidates)


MOST_STEPS = 3  # of bodies, for levels to be kept: then a node of level 1 has one way that matters, or is full


@inlined
def kept_slot(walk: TrieWalk, s: int, relation: int) -> int:
    """Return where it is noted whether the level that `relation` leads to from level 0 is kept; `keys` tells. What is
    kept is forgotten once it is about another entity than s.
    """
    kept = walk.kept
    if kept.entity[0] != s:
        kept.entity[0], kept.n[0] = s, 0
        kept.keys[:] = -1
    return int((kept_key(walk, relation) * 0x9E3779B1) >> 12) & (len(kept.keys) - 1)


@inlined
def kept_key(walk: TrieWalk, relation: int) -> int:
    """Return the number of the steps that lead to level 1."""
    return int(walk.steps[0]) << 32 | relation


@inlined
def load_level(walk: TrieWalk, slot: int) -> int:
    """Enter the level that is kept in `slot` as level 1; return how many entities it has."""
    kept, levels, clock = walk.kept, walk.levels, walk.clock[0]
    first, n = int(kept.starts[slot]), int(kept.sizes[slot])
    for i in range(n):
        entity, way = int(kept.nodes[first + i]), kept.ways[first + i]
        levels.stamps[1, entity], levels.slots[1, entity], levels.nodes[1, i] = clock, i, entity
        levels.n_witnesses[1, i], levels.full[1, i], levels.witnesses[1, i, 0, 0] = 1, way < 0, way
    return n


@inlined
def keep_level(walk: TrieWalk, slot: int, relation: int, n: int) -> None:
    """Keep level 1, if there is room for its `n` entities."""
    kept, levels = walk.kept, walk.levels
    first = int(kept.n[0])
    if first + n > len(kept.nodes):
        return
    for i in range(n):
        kept.nodes[first + i] = levels.nodes[1, i]
        kept.ways[first + i] = -1 if levels.full[1, i] else levels.witnesses[1, i, 0, 0]
    kept.keys[slot], kept.starts[slot], kept.sizes[slot] = kept_key(walk, relation), first, n
    kept.n[0] = first + n


@part
def open_levels(graph: GraphArrays, question: QueryState, depth: int, walk: TrieWalk) -> None:
    """Enter where the steps of the walk lead, level by level up to `depth`, as far as that has not been done."""
    for level in range(depth + 1):
        if walk.n_nodes[level] >= 0:
            continue
        walk.clock[0] += 1
        walk.clocks[level] = walk.clock[0]
        relation, n_reached = int(walk.steps[level]), 0
        if level == 0:
            walk.n_opened[0] = 0
            n_reached = first_level(graph, question.s, relation, walk.levels, walk.clock[0])
        elif walk.n_nodes[level - 1] == 0:
            n_reached = 0
        elif level == 1 and question.object_identity and question.longest <= MOST_STEPS:
            slot = kept_slot(walk, question.s, relation)
            if walk.kept.keys[slot] == kept_key(walk, relation):
                n_reached = load_level(walk, slot)
            else:
                n_reached = second_level(graph, question.s, relation, question.longest - 2, walk)
                keep_level(walk, slot, relation, n_reached)
        elif level == 1 and question.object_identity:
            n_reached = second_level(graph, question.s, relation, question.longest - 2, walk)
        else:
            n_reached, _ = extend_level(
                graph,
                relation,
                question.s,
                level - 1,
                question.longest - level - 1,
                question.object_identity,
                walk.levels,
                level - 1,
                level,
                int(walk.n_nodes[level - 1]),
                (walk.clocks[level - 1], walk.clocks[level]),
                NO_LIMIT,
            )
        walk.n_nodes[level] = n_reached


@part
def fire_trie(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    question: QueryState,
    prune: int,
    n_undecided: int,
    space: Workspace,
    n: int,
) -> tuple[int, int, int]:
    """Fire the B rules with head d from s, depth first: level i of the walk holds where the first i + 1 steps lead. It
    is found out when the first rule below it is to fire.

    With `prune`, rules are passed over that cannot change which candidates rank before the targets, or are the best;
    return the number of firings, the score from which on all rules have fired (-1: all of them), and one that is at
    least as high as that of any rule below (-1: there are none). If `n_undecided` is not negative, only so many
    undecided candidates matter, which `link_undecided` has linked; without `QueryState.tied`, rules fire for others as
    well where that is less work.
    """
    trie, edges, walk, candidates = index.trie, index.edges, space.walk, space.candidates
    n_directed = 2 * graph.n_relations
    floor, highest_left = question.least, -1
    if prune == BY_TARGETS:
        floor = max(floor, needed_score(queries, question.q, candidates))
    elif prune > 0:
        walk.n_linked[0] = 2 * n + FEW_FIRINGS
        floor = max(floor, least_of_best(candidates, space.firings, n, prune))
    depth = 0
    walk.next_child[0], walk.end_child[0] = trie.roots[question.d], trie.roots[question.d + 1]
    while depth >= 0:
        if walk.next_child[depth] == walk.end_child[depth]:
            depth -= 1
            continue
        node = walk.next_child[depth]
        walk.next_child[depth] += 1
        relation, n_children = int(trie.relations[node]), int(trie.n_children[node])
        if floor >= 0 and index.best_below[node] < floor:
            if index.best_below[node] > highest_left and (depth > 0 or find_segment(graph, question.s, relation) >= 0):
                highest_left = int(index.best_below[node])
            continue
        if depth > 0 and walk.n_nodes[depth - 1] == 0:
            walk.next_child[depth] = walk.end_child[depth]
            continue
        is_leaf, is_compared = depth > 0 and n_children == 0, relation >= n_directed
        if n_undecided >= 0 and is_leaf and not is_compared and n_links(walk.undecided, inverse(graph, relation)) == 0:
            continue
        score, rule = -1, int(trie.rows[node])
        if trie.codes[node] >= 0:
            # Without children, it is known already: the score of a code is somewhere in a large table.
            score = int(index.best_below[node] if n_children == 0 else index.scores[trie.codes[node]])
            if score < floor:
                highest_left = max(highest_left, score)
        fires = score >= max(floor, 0) and score < question.below
        if is_leaf:
            if not fires:
                continue
            if walk.n_nodes[depth - 1] < 0:
                open_levels(graph, question, depth - 1, walk)
            if walk.n_nodes[depth - 1] == 0:
                continue
            walk.clock[0] += 1
            leaf, n_before = Leaf(relation, depth - 1, score, rule), n
            backward, work = False, 0
            if not is_compared:
                backward, work = leaf_work(graph, edges, relation, int(walk.n_nodes[depth - 1]))
            if is_compared:
                n = fire_compared(index.values, relation - n_directed, leaf, question, space, n)
            elif n_undecided >= 0 and UNDECIDED_WORK * n_links(walk.undecided, inverse(graph, relation)) < work:
                n = fire_undecided(graph, leaf, question, space, n)
            elif backward:
                n = pull_leaf(graph, edges, leaf, question, space, n)
            else:
                n = push_leaf(graph, leaf, question, space, n)
            if prune != 0 and score > floor:
                floor = max(floor, raise_floor(queries, question, prune, score, space, n_before, n))
            continue
        if depth == 0 and find_segment(graph, question.s, relation) < 0:
            continue
        walk.steps[depth], walk.n_nodes[depth] = relation, -1
        if fires:
            open_levels(graph, question, depth, walk)
            n_before = n
            n = fire_level(depth, score, rule, n_undecided, question, space, n)
            if prune != 0 and score > floor:
                floor = max(floor, raise_floor(queries, question, prune, score, space, n_before, n))
        if n_children > 0 and walk.n_nodes[depth] != 0:
            depth += 1
            walk.next_child[depth] = trie.first_children[node]
            walk.end_child[depth] = trie.first_children[node] + n_children
    return n, floor if floor > max(question.least, 0) else -1, highest_left
