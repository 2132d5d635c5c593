"""B rules: the bodies of one head relation form a trie, walked from the query's entity with shared beginnings."""

from __future__ import annotations

from anyburl._jit import inlined, kernel
from anyburl.bodies.arrays import LevelArrays
from anyburl.bodies.kernel_reach import extend_level, is_open, new_node
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import steps
from anyburl.ranking.arrays import CandidateArrays, FiringArrays, TrieIndex, TrieWalk
from anyburl.ranking.kernel_fire import fire


@inlined
def first_level(graph: GraphArrays, s: int, relation: int, levels: LevelArrays, clock: int) -> int:
    """Enter the entities that `relation` leads to from s as level 0; return how many."""
    start, end = steps(graph, s, relation)
    for row in range(start, end):
        new_node(levels, 0, row - start, int(graph.targets[row]), clock)
        levels.n_witnesses[0, row - start] = 1
        levels.full[0, row - start] = True
    return end - start


@inlined
def fire_leaf(
    graph: GraphArrays,
    relation: int,
    s: int,
    size: int,
    object_identity: bool,
    query: int,
    score: int,
    rule: int,
    walk: TrieWalk,
    side: int,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """Take the last step of a body from the nodes of level `side` and fire for each end: no level needs to be kept."""
    levels, n_nodes = walk.levels, int(walk.n_nodes[side])
    offset = graph.domain_offsets[relation]
    n_domain = int(graph.domain_offsets[relation + 1] - offset)
    by_domain = 2 * n_domain < n_nodes
    clock = walk.clock[0]
    for turn in range(n_domain if by_domain else n_nodes):
        slot = turn
        if by_domain:
            if levels.stamps[side, graph.domains[offset + turn]] != walk.clocks[side]:
                continue
            slot = int(levels.slots[side, graph.domains[offset + turn]])
        start, end = steps(graph, int(levels.nodes[side, slot]), relation)
        all_open = levels.full[side, slot] or not object_identity
        for row in range(start, end):
            entity = int(graph.targets[row])
            if walk.ends[entity] == clock or (entity == s and object_identity):
                continue
            if all_open or is_open(levels, side, slot, size, entity):
                walk.ends[entity] = clock
                n = fire(candidates, firings, n, query, entity, score, rule)
    return n


@kernel
def fire_trie(
    graph: GraphArrays,
    index: TrieIndex,
    s: int,
    d: int,
    longest: int,
    object_identity: bool,
    query: int,
    walk: TrieWalk,
    candidates: CandidateArrays,
    firings: FiringArrays,
    n: int,
) -> int:
    """Fire the B rules with head d from s, depth first: level i of `walk` holds where the first i + 1 steps lead."""
    depth = 0
    walk.next_child[0], walk.end_child[0] = index.roots[d], index.roots[d + 1]
    while depth >= 0:
        if walk.next_child[depth] == walk.end_child[depth]:
            depth -= 1
            continue
        node = walk.next_child[depth]
        walk.next_child[depth] += 1
        walk.clock[0] += 1
        walk.clocks[depth] = walk.clock[0]
        relation = int(index.relations[node])
        if depth > 0 and index.n_children[node] == 0:
            score, rule = int(index.scores[node]), int(index.rules[node])
            side = depth - 1
            n = fire_leaf(
                graph, relation, s, side, object_identity, query, score, rule, walk, side, candidates, firings, n
            )
            continue
        if depth == 0:
            n_reached = first_level(graph, s, relation, walk.levels, walk.clock[0])
        else:
            q = longest - depth - 1
            n_reached, _ = extend_level(
                graph,
                relation,
                s,
                depth - 1,
                q,
                object_identity,
                walk.levels,
                depth - 1,
                depth,
                int(walk.n_nodes[depth - 1]),
                (walk.clocks[depth - 1], walk.clocks[depth]),
            )
        if index.scores[node] >= 0:
            score, rule = int(index.scores[node]), int(index.rules[node])
            for slot in range(n_reached):
                entity = int(walk.levels.nodes[depth, slot])
                n = fire(candidates, firings, n, query, entity, score, rule)
        if index.n_children[node] > 0 and n_reached > 0:
            walk.n_nodes[depth] = n_reached
            depth += 1
            walk.next_child[depth] = index.first_children[node]
            walk.end_child[depth] = index.first_children[node] + index.n_children[node]
    return n
