"""Confidences from sampled groundings, as AnyBURL estimates them: what Table 2 is about when counts are not exact.

A grounding is a random walk along the body from a random start; the distinct pairs that the walks join are counted.
Pairs with many ways between them are found more often, those without object identity most of all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import anyburl
from anyburl.base.jit import kernel
from anyburl.base.rng import batch_state, randint
from anyburl.graph.build import build_graph
from anyburl.graph.kernel import GraphArrays, has_edge, steps

MOST_PAIRS = 1000
ATTEMPTS = 10_000
PLACES = 4096  # of the set of pairs: a power of two


@kernel
def walk(
    graph: GraphArrays,
    body: NDArray[np.int32],
    length: int,
    object_identity: bool,
    state: NDArray[np.uint64],
    visited: NDArray[np.int64],
) -> bool:
    """Walk a body once, from a random start; False where that ends too early. `visited` holds the way."""
    first = graph.domain_offsets[body[0]]
    visited[0] = graph.domains[first + randint(state, int(graph.domain_offsets[body[0] + 1] - first))]
    for step in range(length):
        start, end = steps(graph, int(visited[step]), int(body[step]))
        if end <= start:
            return False
        here = graph.targets[start + randint(state, end - start)]
        for before in range(step + 1):
            if object_identity and visited[before] == here:
                return False
        visited[step + 1] = here
    return True


@kernel
def count_pairs(
    graph: GraphArrays,
    body: NDArray[np.int32],
    length: int,
    head: int,
    object_identity: bool,
    attempts: int,
    state: NDArray[np.uint64],
    visited: NDArray[np.int64],
    pairs: NDArray[np.int64],
) -> tuple[int, int]:
    """Return how many distinct pairs were sampled, and how many of them the head joins; `pairs` is scratch."""
    n_pairs, support = 0, 0
    pairs[:] = -1
    for _ in range(attempts):
        if not walk(graph, body, length, object_identity, state, visited):
            continue
        pair = visited[0] * (graph.n_entities + 1) + visited[length]
        place = (pair * 7919) & (PLACES - 1)
        while pairs[place] != -1 and pairs[place] != pair:
            place = (place + 1) & (PLACES - 1)
        if pairs[place] == pair:
            continue
        pairs[place] = pair
        n_pairs += 1
        support += has_edge(graph, int(visited[0]), head, int(visited[length]))
        if n_pairs == MOST_PAIRS:
            break
    return n_pairs, support


def sample_counts(rules: anyburl.RuleSet, train: anyburl.TripleTable, *, object_identity: bool) -> anyburl.RuleSet:
    """Return binary rules with counts of sampled pairs."""
    graph = build_graph(train)
    predictions, support = np.zeros(len(rules), np.int64), np.zeros(len(rules), np.int32)
    visited, pairs = np.zeros(8, np.int64), np.zeros(PLACES, np.int64)
    for row, length in enumerate(rules.lengths.tolist()):
        predictions[row], support[row] = count_pairs(
            graph,
            rules.bodies[rules.body[row]],
            length,
            int(rules.head[row]),
            object_identity,
            ATTEMPTS,
            batch_state(1, row),
            visited,
            pairs,
        )
    return rules.replace(predictions=predictions, support=support)
