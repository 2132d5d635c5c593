"""What one core does a second: paths sampled, bodies harvested, edges touched; the same work at every size.

Bodies are harvested with a small budget of edges as well as in the way that `learn` does on large graphs, whatever the
size: with the small budget a body costs about as much on any graph, so that what is left of a difference between sizes
is the cost of an edge.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import anyburl
from anyburl.base.rng import batch_state
from anyburl.bodies.arrays import NO_LIMIT, Limits, empty_harvest, empty_scratch, head_arrays
from anyburl.bodies.kernel import harvest
from anyburl.bodies.paths import generalise, listed_heads, sample_paths
from anyburl.learning.engine import search_arrays
from anyburl.learning.threads import harvest_limits
from anyburl.rules.types import PathProfile

PROFILES = [PathProfile(cyclic, length) for cyclic, length in ((True, 1), (False, 1), (True, 2), (True, 3))]
BUDGETS = (10_000, 1_000_000)
ATTEMPTS = 50_000
SECONDS = 3.0  # of sampling, and of harvesting with each budget


def rates_of(train: anyburl.TripleTable) -> dict[str, Any]:
    """Return for each profile what one core does a second."""
    graph = search_arrays(train, anyburl.LearnOptions()).graph  # read or mapped, as it is for learning
    scratch = empty_scratch(graph, 3, witnessed=False)
    out = empty_harvest(1_000_000 + len(graph.segment_relations) + 2 * graph.n_relations)
    buffers = (head_arrays(graph), scratch, out)
    found = {}
    for profile in PROFILES:
        sampled, bodies = sampling(graph, listed_heads(train.triples), profile)
        harvested = {str(b): harvesting(graph, bodies, limits_of(profile, b), *buffers) for b in BUDGETS}
        found[str(profile)] = {**sampled, **harvested}
    return found


def sampling(graph: Any, heads: Any, profile: PathProfile) -> tuple[dict[str, float], Any]:
    """Sample for some seconds; return attempts and paths a second, and the bodies of the last paths."""
    attempts, n_paths, number, parts = 0, 0, 0, []
    sample_paths(graph, heads, profile, ATTEMPTS, batch_state(0))
    started = time.perf_counter()
    while (seconds := time.perf_counter() - started) < SECONDS:
        number += 1
        paths = sample_paths(graph, heads, profile, ATTEMPTS, batch_state(1, number))
        attempts, n_paths = attempts + ATTEMPTS, n_paths + len(paths.ends)
        parts.append(paths)
    last = parts[-1]._make(np.concatenate(columns) for columns in zip(*parts[-20:], strict=True))
    bodies = generalise(graph, last, cyclic=profile.cyclic, grounded=profile.rule_length == 1)
    rows = np.sort(np.unique(bodies.keys, return_index=True)[1])
    figures = {"attempts_per_second": attempts / seconds, "paths_per_second": n_paths / seconds}
    return figures, bodies.take(np.random.default_rng(1).permutation(rows))


def limits_of(profile: PathProfile, budget: int) -> Limits:
    """Return the limits of a small budget, or those of a large graph, but for the work of one call."""
    if budget == BUDGETS[0]:
        return Limits(2, 0.0001, True, budget, 100_000, budget)
    return harvest_limits(anyburl.LearnOptions(budget=budget), profile, is_large=True)._replace(work=100_000)


def harvesting(graph: Any, bodies: Any, limits: Limits, heads: Any, scratch: Any, out: Any) -> dict[str, float]:
    """Harvest for some seconds, each body once; return bodies and edges a second."""
    harvest(graph, heads, bodies.take(np.array([0])), 0, limits._replace(work=NO_LIMIT), scratch, out)  # compiled now
    k, n_edges, longest = 0, 0, 0.0
    started = before = time.perf_counter()
    while k < len(bodies.kinds) and (before - started < SECONDS or scratch.grounding[0].under_way):
        one = bodies.take(np.array([k]))
        done, _ = harvest(graph, heads, one, 0, limits, scratch, out)
        if done:
            n_edges += int(scratch.grounding[0].work)
            k += 1
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    seconds = before - started
    return {
        "bodies": k,
        "bodies_per_second": k / seconds,
        "edges_per_second": n_edges / seconds,
        "longest_call": longest,
    }
