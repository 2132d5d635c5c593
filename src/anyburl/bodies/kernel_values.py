"""Find conditions on values: every head is counted for all cuts of an attribute in one pass.

The entities that a condition may hold for, the *members*, are sorted into bins by value. Members that take their value
from the same entity are a *cluster* and stand side by side. Counts per head and bin are added up from either end, which
gives the counts of every cut. A cut is judged by how likely values dealt out to clusters at random would do as well: as
many of the clusters in which a head is more frequent than overall would have to lie beyond the cut. Chernoff's bound of
that chance holds for any number of clusters.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.bodies.arrays import NO_LIMIT, LevelArrays
from anyburl.bodies.kernel_ends import reach
from anyburl.graph.kernel import GraphArrays, entity_rows, has_edge, inverse, lower_bound
from anyburl.rules.types import SMOOTHING

CHAIN = 2  # cuts kept in one direction: a finer one only if it is better than the coarser beyond chance
BETTER = -7.0  # log of the chance that a finer cut, or an interval, is no better than what contains it


class MemberArrays(NamedTuple):
    """The entities that a condition may hold for, those of a cluster side by side."""

    entities: NDArray[np.int32]
    bins: NDArray[np.int32]
    clusters: NDArray[np.int32]  # a number for each


class BinArrays(NamedTuple):
    """What the bins hold, and the heads in them: `slots` number the heads that are looked at."""

    sizes: NDArray[np.int64]  # bin -> members
    n_clusters: NDArray[np.int64]  # bin -> clusters
    hits: NDArray[np.int32]  # (slot, bin) -> members that have the head
    frequent: NDArray[np.int32]  # (slot, bin) -> clusters in which the head is more frequent than overall
    having: NDArray[np.int32]  # (directed relation, bin) -> members that have the relation


class IntervalArrays(NamedTuple):
    """Conditions worth keeping: of a head, the first and last bin, and the log of the chance that it is by chance."""

    slots: NDArray[np.int32]
    firsts: NDArray[np.int32]
    lasts: NDArray[np.int32]
    log_chances: NDArray[np.float64]


@kernel
def total_heads(
    graph: GraphArrays, members: NDArray[np.int32], totals: NDArray[np.int32], touched: NDArray[np.int32]
) -> int:
    """Count for each head, by its segment, the members that have it; return how many heads are `touched`.

    `totals` is zero on entry.
    """
    n_touched = 0
    for i in range(len(members)):
        start, end = entity_rows(graph, int(members[i]))
        for row in range(start, end):
            head = int(graph.partners[row])
            if totals[head] == 0:
                touched[n_touched] = head
                n_touched += 1
            totals[head] += 1
    return n_touched


@kernel
def surest_confidences(
    graph: GraphArrays,
    members: NDArray[np.int32],
    own: int,
    totals: NDArray[np.int32],
    having: NDArray[np.int64],
    enough: float,
    out: NDArray[np.float64],
) -> None:
    """Write for each member how sure the surest rule of length 1 is that it has a head, which is the segment `own`; if
    one is at least as sure as `enough`, any of these.

    `totals` has the entities with the head that have each body b(X, c'), by its segment, `having` those that have each
    directed relation, for bodies b(X, A). The relation of the head is no such body: whoever has the head has it.
    """
    head = inverse(graph, int(graph.segment_relations[own]))
    for i in range(len(members)):
        entity, best = int(members[i]), 0.0
        # Relations first: an entity has fewer of them than edges, and one of them is often enough.
        for segment in range(graph.segment_offsets[entity], graph.segment_offsets[entity + 1]):
            relation = int(graph.segment_relations[segment])
            if relation != head:
                size = graph.domain_offsets[relation + 1] - graph.domain_offsets[relation]
                best = max(best, having[relation] / (size + SMOOTHING))
        start, end = entity_rows(graph, entity)
        for row in range(start, end):
            if best >= enough:
                break
            body = int(graph.partners[row])
            if body != own and totals[body] > 1:
                size = graph.segment_starts[body + 1] - graph.segment_starts[body]
                best = max(best, totals[body] / (size + SMOOTHING))
        out[i] = best


@kernel
def fill_bins(
    graph: GraphArrays,
    members: MemberArrays,
    slots: NDArray[np.int32],
    rates: NDArray[np.float64],
    current: NDArray[np.int64],
    bins: BinArrays,
) -> None:
    """Count members, clusters and heads by bin. `slots` has the slot of each head, by its segment, or -1; `rates` which
    share of the members has the head, by slot.

    All of `bins` is zero on entry; `current` (slot -> hits in the cluster under way) is zero on entry and on exit.
    """
    start, n = 0, len(members.entities)
    while start < n:
        stop = start
        cluster, position = members.clusters[start], members.bins[start]
        while stop < n and members.clusters[stop] == cluster:
            stop += 1
        size = stop - start
        bins.sizes[position] += size
        bins.n_clusters[position] += 1
        for i in range(start, stop):
            entity = int(members.entities[i])
            for segment in range(graph.segment_offsets[entity], graph.segment_offsets[entity + 1]):
                bins.having[graph.segment_relations[segment], position] += 1
            first, last = entity_rows(graph, entity)
            for row in range(first, last):
                slot = slots[graph.partners[row]]
                if slot >= 0:
                    current[slot] += 1
        for i in range(start, stop):
            first, last = entity_rows(graph, int(members.entities[i]))
            for row in range(first, last):
                slot = slots[graph.partners[row]]
                if slot >= 0 and current[slot] > 0:
                    hits = current[slot]
                    bins.hits[slot, position] += hits
                    bins.frequent[slot, position] += hits > rates[slot] * size
                    current[slot] = 0
        start = stop


@inlined
def divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of a coin p from a coin q."""
    d = 0.0
    if p > 0.0:
        d += p * log(p / q)
    if p < 1.0:
        d += (1.0 - p) * log((1.0 - p) / (1.0 - q))
    return d


@inlined
def likelihood_gain(k: float, n: float, all_k: float, all_n: float) -> float:
    """Return how much likelier the hits are with a rate of their own for k of n than with one rate for all."""
    rate, rest = all_k / all_n, all_n - n
    return n * divergence(k / n, rate) + rest * divergence((all_k - k) / rest, rate)


@inlined
def lower_limit(k: float, n: float) -> float:
    """Return Wilson's lower confidence limit (95 %) of a rate."""
    z2 = 3.8416
    p = k / n
    return (p + z2 / (2 * n) - 1.96 * sqrt((p * (1 - p) + z2 / (4 * n)) / n)) / (1 + z2 / n)


@part
def log_chance(bins: BinArrays, slot: int, first: int, last: int, low: int, high: int) -> float:
    """Bound the log of the chance that the bins `first` to `last` have as many clusters with the head as they do, among
    those from `low` to `high`, if values were dealt out to clusters at random; 0 if hits are not more frequent there.
    """
    k, n, hits, size = 0.0, 0.0, 0.0, 0.0
    all_k, all_n, all_hits, all_size = 0.0, 0.0, 0.0, 0.0
    for b in range(low, high + 1):
        all_k += bins.frequent[slot, b]
        all_n += bins.n_clusters[b]
        all_hits += bins.hits[slot, b]
        all_size += bins.sizes[b]
        if first <= b <= last:
            k += bins.frequent[slot, b]
            n += bins.n_clusters[b]
            hits += bins.hits[slot, b]
            size += bins.sizes[b]
    if n == 0 or n == all_n or all_k == 0 or all_k == all_n or k * all_n <= all_k * n:
        return 0.0
    if hits * all_size <= all_hits * size:
        return 0.0
    rate = all_k / all_n
    return -max(n * divergence(k / n, rate), (all_n - n) * divergence((all_k - k) / (all_n - n), rate))


@part
def best_cut(bins: BinArrays, slot: int, low: int, high: int, upward: bool) -> int:
    """Return the bin that the best half of the bins from `low` to `high` begins (`upward`) or ends with, -1 for none.

    That is the cut with the likeliest change of rate: that is estimated sharply, the best confidence is not.
    """
    all_k, all_n = 0.0, 0.0
    for b in range(low, high + 1):
        all_k += bins.hits[slot, b]
        all_n += bins.sizes[b]
    best, best_gain, k, n = -1, 0.0, 0.0, 0.0
    for i in range(high - low):
        b = high - i if upward else low + i
        k += bins.hits[slot, b]
        n += bins.sizes[b]
        if n == 0 or n == all_n or k * all_n <= all_k * n:
            continue
        gain = likelihood_gain(k, n, all_k, all_n)
        if gain > best_gain:
            best, best_gain = b, gain
    return best


@inlined
def limit_of(bins: BinArrays, slot: int, first: int, last: int) -> float:
    """Return the lower confidence limit of the rate in some bins."""
    k, n = 0.0, 0.0
    for b in range(first, last + 1):
        k += bins.hits[slot, b]
        n += bins.sizes[b]
    return lower_limit(k, n) if n > 0 else 0.0


@part
def best_interval(bins: BinArrays, slot: int, last_bin: int) -> tuple[int, int]:
    """Return the bins between which hits exceed the overall rate by most."""
    all_k, all_n = 0.0, 0.0
    for b in range(last_bin + 1):
        all_k += bins.hits[slot, b]
        all_n += bins.sizes[b]
    rate = all_k / all_n
    most, first, last, excess, start = 0.0, 0, last_bin, 0.0, 0
    for b in range(last_bin + 1):
        if excess <= 0.0:
            excess, start = 0.0, b
        excess += bins.hits[slot, b] - rate * bins.sizes[b]
        if excess > most:
            most, first, last = excess, start, b
    return first, last


@kernel
def find_conditions(bins: BinArrays, upward: bool, downward: bool, least: float, intervals: IntervalArrays) -> int:
    """Write the conditions of all slots that are due to chance with a log of at most `least`; return how many.

    `intervals` has room for `2 * CHAIN + 1` of each slot.
    """
    n_found, last_bin = 0, len(bins.sizes) - 1
    n_cuts = log(max(last_bin, 1) * 2.0)
    for slot in range(len(bins.hits)):
        best_limit = 0.0
        for turn in range(2):
            up = turn == 0
            if (up and not upward) or (not up and not downward):
                continue
            low, high = 0, last_bin
            for level in range(CHAIN):
                cut = best_cut(bins, slot, low, high, up)
                if cut < 0:
                    break
                first, last = (cut, last_bin) if up else (0, cut)
                within = log_chance(bins, slot, first, last, low, high) + n_cuts
                overall = log_chance(bins, slot, first, last, 0, last_bin) + n_cuts
                if overall > least or (level > 0 and within > BETTER):
                    break
                intervals.slots[n_found], intervals.log_chances[n_found] = slot, overall
                intervals.firsts[n_found], intervals.lasts[n_found] = first, last
                n_found += 1
                best_limit = max(best_limit, limit_of(bins, slot, first, last))
                low, high = first, last
        if not upward or not downward:
            continue
        first, last = best_interval(bins, slot, last_bin)
        if first == 0 or last == last_bin or limit_of(bins, slot, first, last) <= best_limit:
            continue
        overall = log_chance(bins, slot, first, last, 0, last_bin) + 2 * n_cuts
        above = log_chance(bins, slot, first, last, first, last_bin) + n_cuts
        below = log_chance(bins, slot, first, last, 0, last) + n_cuts
        if overall <= least and max(above, below) <= BETTER:
            intervals.slots[n_found], intervals.log_chances[n_found] = slot, overall
            intervals.firsts[n_found], intervals.lasts[n_found] = first, last
            n_found += 1
    return n_found


@inlined
def compares(
    entities: NDArray[np.int32], values: NDArray[np.float64], start: int, end: int, x: int, y: int, order: int
) -> bool:
    """Whether x has a value and y one that is larger (`order` 1), the same (0) or smaller (-1).

    The values of one attribute stand in the rows from `start` to `end`, sorted by entity.
    """
    first = lower_bound(entities, start, end, x)
    second = lower_bound(entities, start, end, y)
    while first < end and entities[first] == x:
        row = second
        while row < end and entities[row] == y:
            if int(values[row] > values[first]) - int(values[row] < values[first]) == order:
                return True
            row += 1
        first += 1
    return False


@kernel
def compare_pairs(
    entities: NDArray[np.int32],
    values: NDArray[np.float64],
    xs: NDArray[np.int32],
    ys: NDArray[np.int32],
    order: int,
    out: NDArray[np.bool_],
) -> None:
    """Write which pairs of entities compare so, see `compares`."""
    for i in range(len(xs)):
        out[i] = compares(entities, values, 0, len(entities), int(xs[i]), int(ys[i]), order)


@kernel
def find_stated(
    graph: GraphArrays, relation: int, xs: NDArray[np.int32], ys: NDArray[np.int32], out: NDArray[np.bool_]
) -> None:
    """Write between which pairs of entities a directed relation holds."""
    for i in range(len(xs)):
        out[i] = has_edge(graph, int(xs[i]), relation, int(ys[i]))


@kernel
def list_pairs(
    graph: GraphArrays,
    body: NDArray[np.int32],
    starts: NDArray[np.int32],
    object_identity: bool,
    levels: LevelArrays,
    clock: NDArray[np.int64],
    xs: NDArray[np.int32],
    ys: NDArray[np.int32],
) -> tuple[int, int]:
    """Write the pairs of entities that a body joins, start by start; return how many, and how many starts there was
    room for. Those of one start always fit: there is room for every entity.
    """
    n, length = 0, len(body)
    for position in range(len(starts)):
        start = int(starts[position])
        side, n_ends, _ = reach(graph, body, length, start, 0, object_identity, levels, clock, NO_LIMIT)
        if n + n_ends > len(xs):
            return n, position
        for slot in range(n_ends):
            end = levels.nodes[side, slot]
            if not object_identity or end != start:
                xs[n], ys[n] = start, end
                n += 1
    return n, len(starts)
