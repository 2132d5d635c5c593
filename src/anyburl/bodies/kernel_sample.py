"""Count a binary body until it is known: starts in random order, costly ones sampled within, looks in between.

The starts of a body are clusters of pairs. The confidence of a head is a ratio of two sums over them. How far that of
the visited starts may be from that of all follows from how much the clusters differ: by Bernstein's inequality with the
observed variance, shared out between all looks so that it holds at each of them.

The support of a rule is often concentrated on a hub or two, which a sample of starts misses. So the starts with most
edges are always visited, and the others sampled: hubs count once, the others for those that were not visited, too.

Whether a binary body joins two given entities, without walking everywhere that it leads.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.base.rng import mix
from anyburl.bodies.arrays import HeadArrays, Limits, Scratch, TallyArrays
from anyburl.graph.kernel import GraphArrays, entity_rows, expect, expect_steps, has_edge, inverse, lower_bound, steps


@inlined
def share_entity(graph: GraphArrays, start: int, end: int, far_start: int, far_end: int, barred: int) -> bool:
    """Whether two ranges of `targets` share an entity other than `barred`."""
    if end - start > far_end - far_start:
        start, end, far_start, far_end = far_start, far_end, start, end
    for row in range(start, end):
        entity = int(graph.targets[row])
        if entity == barred:
            continue
        far_start = lower_bound(graph.targets, far_start, far_end, entity)
        if far_start == far_end:
            return False
        if graph.targets[far_start] == entity:
            return True
    return False


@part
def joins_by_two(graph: GraphArrays, body: NDArray[np.int32], x: int, y: int) -> bool:
    """Whether x - a - y."""
    start, end = steps(graph, x, int(body[0]))
    far_start, far_end = steps(graph, y, inverse(graph, int(body[1])))
    return share_entity(graph, start, end, far_start, far_end, -1)


@part
def joins_by_three(graph: GraphArrays, body: NDArray[np.int32], x: int, y: int, object_identity: bool) -> bool:
    """Whether x - a - b - y, from the side with fewer steps."""
    second = int(body[1])
    start, end = steps(graph, x, int(body[0]))
    far_start, far_end = steps(graph, y, inverse(graph, int(body[2])))
    if end - start > far_end - far_start:
        start, end, far_start, far_end = far_start, far_end, start, end
        second, x, y = inverse(graph, second), y, x
    for row in range(start, end):
        a = int(graph.targets[row])
        if object_identity and a == y:
            continue
        first, last = steps(graph, a, second)
        if share_entity(graph, first, last, far_start, far_end, x if object_identity else -1):
            return True
    return False


@inlined
def joins_pair(graph: GraphArrays, body: NDArray[np.int32], length: int, x: int, y: int, object_identity: bool) -> bool:
    """Whether `body` leads from x to y."""
    if object_identity and x == y:
        return False
    if length == 1:
        return has_edge(graph, x, int(body[0]), y)
    if length == 2:
        return joins_by_two(graph, body, x, y)
    return joins_by_three(graph, body, x, y, object_identity)


CLUSTER = 2  # starts,
LARGE_CLUSTER = 16  # where no looks are taken
FIRST_STARTS = 16  # before the first look; then half as many more each time
SAMPLED_ENDS = 8  # of the entities that a costly start might lead to
SAMPLED_EDGES = 64  # of a costly start
HUB_FACTOR = 2  # times as many of a hub
MISSES = 0.05  # an interval may miss the truth so often
LEAST = 0.25  # of the precision: the least margin
ENOUGH = 0.25  # of the budget: then a body may be given up
ROUNDS = 4  # of shuffling
CHECK = 4  # edges that looking up an edge by binary search counts as


@kernel
def shuffled(position: int, n: int, key: np.uint64) -> int:
    """Return which of n comes at `position` in an order drawn by `key`: each one at one position.

    A Feistel network over the next power of four; what lands beyond n goes through it again.
    """
    half = np.uint64(1)
    while (np.uint64(1) << (half + half)) < np.uint64(n):
        half += np.uint64(1)
    mask, number = (np.uint64(1) << half) - np.uint64(1), np.uint64(position)
    while True:
        high, low = number >> half, number & mask
        for turn in range(ROUNDS):
            high, low = low, high ^ (mix(low + key * np.uint64(2 * turn + 1)) & mask)
        number = (high << half) | low
        if number < np.uint64(n):
            return int(np.int64(number))


@inlined
def add_to_cluster(relation: int, count: int, n_heads: int, scratch: Scratch) -> int:
    """Add to the support of a relation in the cluster under way; return the new number of relations with a count."""
    tally = scratch.tally
    if tally.counts[relation] == 0:
        tally.heads[n_heads] = relation
        n_heads += 1
    tally.counts[relation] += count
    return n_heads


@inlined
def take_count(relation: int, scratch: Scratch) -> int:
    """Move the support of a relation in the cluster under way to that of the body; return it."""
    tally = scratch.tally
    count = tally.counts[relation]
    tally.counts[relation] = 0
    if scratch.relation_counts[relation] == 0:
        clear_tally(relation, tally)
    scratch.relation_counts[relation] += count
    return int(count)


@part
def close_cluster(scratch: Scratch) -> None:
    """Add the cluster under way to the sums."""
    tally, state = scratch.tally, scratch.grounding[0]
    pairs = float(state.cluster_pairs)
    for i in range(state.cluster_heads):
        relation = tally.heads[i]
        count = take_count(relation, scratch)
        tally.squares[relation] += float(count) * count
        tally.products[relation] += count * pairs
        tally.most[relation] = max(tally.most[relation], count)
    state.clusters += 1
    state.pairs_squared += pairs * pairs
    state.most_pairs = max(state.most_pairs, state.cluster_pairs)
    state.cluster_starts, state.cluster_pairs, state.cluster_heads = 0, 0, 0


@part
def close_hub(is_last: bool, scratch: Scratch) -> None:
    """Add a hub, the cluster under way, to its sums. Starts that are not visited are smaller than the last hub, whose
    support tells what to expect of them at most.
    """
    tally, state = scratch.tally, scratch.grounding[0]
    for i in range(state.cluster_heads):
        relation = tally.heads[i]
        count = take_count(relation, scratch)
        tally.hub_counts[relation] += count
        tally.hub_spreads[relation] += float(count) * (state.share - 1)
        tally.most[relation] = count if is_last else 0
    state.hubs += 1
    state.hub_pairs += state.cluster_pairs
    state.hub_spread += float(state.cluster_pairs) * (state.weight - 1)
    state.cluster_starts, state.cluster_pairs, state.cluster_heads = 0, 0, 0


@inlined
def clear_tally(relation: int, tally: TallyArrays) -> None:
    """Start the sums of a relation."""
    tally.squares[relation], tally.products[relation], tally.most[relation] = 0.0, 0.0, 0
    tally.hub_counts[relation], tally.hub_spreads[relation] = 0, 0.0


@inlined
def hub_weight(scratch: Scratch) -> float:
    """Return what a hub counts, where any other start that was visited counts 1."""
    state = scratch.grounding[0]
    return float((state.counted - state.hubs) / max(state.starts - state.hubs, 1))


@inlined
def estimates(relation: int, scratch: Scratch) -> tuple[int, int]:
    """Return predictions and support of a head, estimated from what was visited."""
    state, weight = scratch.grounding[0], hub_weight(scratch)
    hub_support = int(scratch.tally.hub_counts[relation])
    support, pairs = int(scratch.relation_counts[relation]) - hub_support, int(state.groundings - state.hub_pairs)
    if weight > 0.0:
        support, pairs = int(round(support / weight)), int(round(pairs / weight))
    support += hub_support
    return max(pairs + int(state.hub_pairs), support), support


@part
def widest_reach(graph: GraphArrays, heads: HeadArrays, length: int, scratch: Scratch) -> float:
    """Estimate how many ends one start of `scratch.body` can have: one hub on the way, average fan-outs after it."""
    widest, fan = 0.0, 1.0
    for step in range(length - 1, -1, -1):
        relation = int(scratch.body[step])
        widest = max(widest, heads.widest[relation] * fan)
        sources = float(graph.domain_offsets[relation + 1] - graph.domain_offsets[relation])
        fan *= heads.edge_counts[relation] / max(sources, 1.0)
    back = inverse(graph, int(scratch.body[length - 1]))
    return min(widest, float(graph.domain_offsets[back + 1] - graph.domain_offsets[back]))


@part
def sample_start(
    graph: GraphArrays, length: int, x: int, object_identity: bool, factor: int, key: np.uint64, scratch: Scratch
) -> tuple[int, int]:
    """Estimate the ends and the supports of a start from some entities that the body may lead to and some edges of x,
    `factor` times as many as usual.

    Both are taken at equal distances from a random first one. Returns the ends and the work; those found are in
    `scratch.reached`, and how many each one stands for in `scratch.grounding`.
    """
    body, state, work = scratch.body, scratch.grounding[0], 0
    draw = mix(key ^ mix(np.uint64(x)))
    back = inverse(graph, int(body[length - 1]))
    offset, end = int(graph.domain_offsets[back]), int(graph.domain_offsets[back + 1])
    weight = max((end - offset) // (SAMPLED_ENDS * factor), 1)
    n_found = 0
    for position in range(offset + int(np.int64((draw >> np.uint64(33)) % np.uint64(weight))), end, weight):
        y = int(graph.domains[position])
        if position + 3 * weight < end:
            expect(graph, int(graph.domains[position + 3 * weight]))
            expect_steps(graph, int(graph.domains[position + weight]))
        work += CHECK * length
        if joins_pair(graph, body, length, x, y, object_identity):
            scratch.reached[n_found] = y
            n_found += 1
    first, last = entity_rows(graph, x)
    share = max((last - first) // (SAMPLED_EDGES * factor), 1)
    n_heads = state.cluster_heads
    for row in range(first + int(np.int64((draw & np.uint64(0x7FFFFFFF)) % np.uint64(share))), last, share):
        y = int(graph.neighbours[row])
        if row + 6 * share < last:
            expect(graph, int(graph.neighbours[row + 6 * share]))
            expect_steps(graph, int(graph.neighbours[row + 3 * share]))
        work += CHECK * length
        if y < graph.n_entities and joins_pair(graph, body, length, x, y, object_identity):
            n_heads = add_to_cluster(int(graph.neighbour_relations[row]), share, n_heads, scratch)
    state.cluster_heads, state.share, state.weight = n_heads, share, weight
    return n_found * weight, work


@inlined
def is_exact(scratch: Scratch) -> bool:
    """Whether the counts of the body that was grounded are exact."""
    state = scratch.grounding[0]
    return bool(state.counted == state.starts and state.sampled == 0 and state.hubs_sampled == 0)


@inlined
def certainty(looks: int) -> float:
    """Return log(2 / d), d being the part of `MISSES` that falls to the last of so many looks."""
    return log(2.0 * looks * (looks + 1) / MISSES)


@part
def margin_of(relation: int, precision: float, scratch: Scratch) -> tuple[float, float]:
    """Return the estimated confidence of a head, and within how much of it the true one is, with 95 % certainty at all
    looks together; 0 if it is exact.

    It is never less than a quarter of the precision: of a hub that was not visited the sample cannot know.
    """
    tally, state = scratch.tally, scratch.grounding[0]
    weight = hub_weight(scratch)
    hub_support = float(tally.hub_counts[relation]) if state.hubs > 0 else 0.0
    others = float(scratch.relation_counts[relation]) - hub_support
    support = others + weight * hub_support
    other_pairs = float(state.groundings - state.hub_pairs)
    pairs = max(other_pairs + weight * state.hub_pairs, support)
    confidence = support / pairs if pairs > 0.0 else 0.0
    if is_exact(scratch):
        return confidence, 0.0
    if support == 0.0:
        return 0.0, 1.0
    spread = tally.squares[relation] - 2.0 * confidence * tally.products[relation]
    spread = max(spread + confidence * confidence * state.pairs_squared, 0.0)
    if state.hubs > 0:  # the other starts have a confidence of their own
        spread = max(spread - (others - confidence * other_pairs) ** 2 / max(state.clusters, 1), 0.0)
    unseen = max(confidence * max(state.widest, float(state.most_pairs)), float(tally.most[relation]))
    if state.sampled == 0:
        left = 1.0 - state.counted / state.starts
        spread, unseen = spread * left, unseen * left
    if state.hubs > 0:
        within = tally.hub_spreads[relation] + confidence * confidence * state.hub_spread
        spread += weight * weight * within
    bits = certainty(max(state.looks, 1))
    margin = (sqrt(2.0 * bits * spread) + unseen * bits / 3.0) / pairs
    return confidence, min(max(margin, LEAST * precision), 1.0)


@inlined
def margin_of_members(support: int, predictions: int, scratch: Scratch) -> float:
    """Return the same for a head of a unary body, whose members are visited in random order until the budget ends."""
    state = scratch.grounding[0]
    if is_exact(scratch):
        return 0.0
    if predictions == 0:
        return 1.0
    confidence, left, bits = support / predictions, float(1.0 - state.counted / state.starts), certainty(1)
    spread = sqrt(2.0 * bits * left * predictions * confidence * (1.0 - confidence))
    return min((spread + bits * left / 3.0) / predictions, 1.0)


@part
def is_known(graph: GraphArrays, limits: Limits, scratch: Scratch) -> bool:
    """Take a look: whether the confidence of every head with enough support is known well enough, or one of them cannot
    be before the budget ends, since a margin falls no faster than the number of starts rises.
    """
    state = scratch.grounding[0]
    state.looks += 1
    state.next_look = state.visited + state.visited // 2
    worst = 0.0
    for relation in range(2 * graph.n_relations):
        if scratch.relation_counts[relation] < limits.min_support:
            continue
        confidence, margin = margin_of(relation, limits.precision, scratch)
        worst = max(worst, margin / (limits.precision * max(1.0, 5.0 * confidence)))
    return bool(worst <= 1.0 or (state.work > ENOUGH * limits.budget and worst * state.work > limits.budget))
