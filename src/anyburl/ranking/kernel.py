"""Answer queries: fire the rules, order the candidates, rank the targets, keep the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import entity_rows, find_segment, inverse, lower_bound
from anyburl.ranking.arrays import (
    AnswerArrays,
    CandidateArrays,
    FiringArrays,
    Protocol,
    QueryArrays,
    RuleIndex,
    TrieWalk,
)
from anyburl.ranking.kernel_evidence import tell_evidence
from anyburl.ranking.kernel_fire import (
    fire_dangling,
    fire_dangling_of_constant,
    fire_pairs,
    fire_pairs_of_constant,
)
from anyburl.ranking.kernel_long import fire_long, fire_long_of_constant
from anyburl.ranking.kernel_order import best_rule, compare, count_better, link_firings, set_keys
from anyburl.ranking.kernel_trie import fire_trie


@inlined
def next_query(candidates: CandidateArrays) -> int:
    """Return a number that no query of this worker had before."""
    candidates.clock[0] += 1
    return int(candidates.clock[0])


@kernel
def exclude(
    graph: GraphArrays, queries: QueryArrays, q: int, query: int, block_connected: bool, candidates: CandidateArrays
) -> int:
    """Mark what is not to be ranked: known answers and, where asked for, whatever s is connected with. Count them.

    Targets are known answers of each other; they fire, and are left out one by one when ranks are counted.
    """
    n_excluded = 0
    for i in range(queries.excluded_offsets[q], queries.excluded_offsets[q + 1]):
        candidates.excluded[queries.excluded[i]] = query
        n_excluded += 1
    if block_connected:
        s = int(queries.entities[q])
        start, end = entity_rows(graph, s)
        for row in range(start, end):
            entity = int(graph.neighbours[row])
            if entity == graph.n_entities:  # a reflexive triple joins s with itself
                entity = s
            if candidates.excluded[entity] != query:
                candidates.excluded[entity] = query
                n_excluded += 1
    return n_excluded


@inlined
def find_head(graph: GraphArrays, index: RuleIndex, s: int, d: int) -> int:
    """Return the number of the head that s is the constant of and that answers (s, d, ?), or -1."""
    segment = find_segment(graph, s, d)
    if segment >= 0 or len(index.strange_heads) == 0:
        return segment
    wanted = s * (2 * graph.n_relations) + inverse(graph, d)
    place = lower_bound(index.strange_heads, 0, len(index.strange_heads), wanted)
    if place < len(index.strange_heads) and index.strange_heads[place] == wanted:
        return len(graph.segment_relations) + place
    return -1


@kernel
def fire_all(
    graph: GraphArrays,
    index: RuleIndex,
    s: int,
    d: int,
    protocol: Protocol,
    query: int,
    walk: TrieWalk,
    candidates: CandidateArrays,
    firings: FiringArrays,
) -> int:
    """Fire every rule that answers (s, d, ?); return the number of firings, past the room there is if that
    is too small.
    """
    identity = protocol.object_identity
    n = fire_pairs(graph, index.pairs, s, d, identity, query, candidates, firings, 0)
    n = fire_dangling(graph, index.dangling, s, d, identity, query, candidates, firings, n)
    n = fire_long(graph, index.long, s, d, d, identity, query, walk, candidates, firings, n)
    if d >= graph.n_relations:
        n = fire_long(graph, index.long, s, d, d - graph.n_relations, identity, query, walk, candidates, firings, n)
    head = find_head(graph, index, s, d)
    if head >= 0:
        n = fire_pairs_of_constant(graph, index.pairs, s, head, identity, query, candidates, firings, n)
        n = fire_dangling_of_constant(
            graph, index.dangling, index.edges, s, head, identity, query, candidates, firings, n
        )
        n = fire_long_of_constant(graph, index.long, s, head, identity, query, walk, candidates, firings, n)
    return fire_trie(
        graph, index.trie, index.edges, s, d, protocol.longest, identity, query, walk, candidates, firings, n
    )


@kernel
def keep_best(
    candidates: CandidateArrays,
    firings: FiringArrays,
    n_candidates: int,
    aggregation: int,
    top_k: int,
    best: NDArray[np.int32],
) -> int:
    """Write the `top_k` first candidates to `best`, in order; ties go to the smaller id. Return how many there are."""
    kept = 0
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        place = kept
        low, high = 0, kept
        while low < high:
            place = (low + high) >> 1
            order = compare(candidates, firings, entity, int(best[place]), aggregation)
            if order > 0 or (order == 0 and entity < best[place]):
                high = place
            else:
                low = place + 1
        if low < top_k:
            kept = min(kept + 1, top_k)
            for i in range(kept - 1, low, -1):
                best[i] = best[i - 1]
            best[low] = entity
    return kept


@kernel
def answer(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    first: int,
    last: int,
    protocol: Protocol,
    walk: TrieWalk,
    candidates: CandidateArrays,
    firings: FiringArrays,
    is_target: NDArray[np.int64],
    groups: NDArray[np.uint8],
    out: AnswerArrays,
) -> tuple[int, int]:
    """Answer the queries from `first` to before `last`; return the next one, and the room for firings that it would
    need.

    Stops early only where `firings` is too small for a query. `groups` of rules are what evidence is told by, where
    `out` has room for it.
    """
    for q in range(first, last):
        query = next_query(candidates)
        # Compiled, int() keeps 32 bits: without np.int64, `fire_all` would be compiled once more for `Ranker.fire`.
        s, d = int(np.int64(queries.entities[q])), int(np.int64(queries.relations[q]))
        n_excluded = exclude(graph, queries, q, query, protocol.block_connected, candidates)
        n = fire_all(graph, index, s, d, protocol, query, walk, candidates, firings)
        if n > len(firings.candidates):
            return q, n
        n_candidates = link_firings(candidates, firings, n, query)
        set_keys(candidates, firings, n_candidates, protocol.aggregation, protocol.n_best)
        out.n_candidates[q] = n_candidates
        out.n_excluded[q] = n_excluded
        out.n_firings[q] = n
        for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(np.int64(queries.targets[i]))
            if is_target[target] != query and candidates.excluded[target] == query:
                out.n_excluded[q] -= 1  # blocked, but ranked all the same: as one that no rule predicts
            is_target[target] = query
        for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(np.int64(queries.targets[i]))
            out.fired[i] = candidates.stamps[target] == query
            if out.fired[i]:
                better, equal = count_better(
                    candidates, firings, n_candidates, target, is_target, query, protocol.aggregation
                )
                out.better[i], out.equal[i] = better, equal
                out.best_rules[i] = best_rule(candidates, firings, target)
        if protocol.top_k > 0:
            best = out.best[q]
            out.n_best[q] = keep_best(candidates, firings, n_candidates, protocol.aggregation, protocol.top_k, best)
            for i in range(out.n_best[q]):
                out.best_keys[q, i] = candidates.keys[best[i]]
                if out.evidence.shape[2] > 0:
                    tell_evidence(candidates, firings, int(best[i]), groups, out.evidence[q, i])
    return last, 0
