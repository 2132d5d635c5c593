"""Count a binary body until it is known: which starts are visited, what is sampled, how sure the estimate is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from .graph import Body, Graph, inverse
from .scoring import walks

CLUSTER = 2
FIRST_STARTS = 16
SAMPLED_ENDS = 8
SAMPLED_EDGES = 64
HUBS = 4
HUB_FACTOR = 2
MISSES = 0.05


@dataclass(frozen=True)
class Visit:
    """What was counted of some starts; of one that was sampled, how many each end and each edge stands for."""

    pairs: int
    counts: Counter[int]
    weight: int = 1
    share: int = 1


@dataclass
class Estimate:
    """Sums over the starts visited so far: each hub, and each cluster of other starts, for itself."""

    n_starts: int
    precision: float
    visited: int = 0
    sampled: int = 0
    hubs_sampled: int = 0
    looks: int = 0
    hubs: list[Visit] = field(default_factory=list)
    clusters: list[Visit] = field(default_factory=list)

    @property
    def pairs(self) -> int:
        return sum(visit.pairs for visit in (*self.hubs, *self.clusters))

    @property
    def supports(self) -> Counter[int]:
        return sum((visit.counts for visit in (*self.hubs, *self.clusters)), Counter[int]())

    @property
    def hub_weight(self) -> float:
        """What a hub counts, where another start counts 1."""
        return (self.visited - len(self.hubs)) / max(self.n_starts - len(self.hubs), 1)

    def margin(self, head: int, widest: float) -> tuple[float, float]:
        """The confidence of a head, and how far the truth may be from it: by Bernstein's inequality."""
        weight = self.hub_weight
        others = sum(visit.counts[head] for visit in self.clusters)
        other_pairs = sum(visit.pairs for visit in self.clusters)
        support = others + weight * sum(visit.counts[head] for visit in self.hubs)
        pairs = max(other_pairs + weight * sum(visit.pairs for visit in self.hubs), support)
        confidence = support / pairs if pairs else 0.0
        if self.visited == self.n_starts and not self.sampled and not self.hubs_sampled:
            return confidence, 0.0
        if not support:
            return 0.0, 1.0
        residuals = [visit.counts[head] - confidence * visit.pairs for visit in self.clusters]
        spread = sum(residual**2 for residual in residuals) - sum(residuals) ** 2 / max(len(residuals), 1)
        most_pairs = max((visit.pairs for visit in self.clusters), default=0)
        most = max((visit.counts[head] for visit in (*self.hubs[-1:], *self.clusters)), default=0)
        left = 1.0 if self.sampled else 1 - self.visited / self.n_starts
        unseen = max(confidence * max(widest, most_pairs), most) * left
        within = sum(
            visit.counts[head] * (visit.share - 1) + confidence**2 * visit.pairs * (visit.weight - 1)
            for visit in self.hubs
        )
        looks = max(self.looks, 1)
        bits = log(2 * looks * (looks + 1) / MISSES)
        spread = max(spread, 0.0) * left + weight**2 * within
        margin = (sqrt(2 * bits * spread) + unseen * bits / 3) / pairs
        return confidence, min(max(margin, self.precision / 4), 1.0)


def estimate(
    graph: Graph,
    body: Body,
    starts: Sequence[int],
    limit: int,
    precision: float,
    widest: float,
    draw: Callable[[int], int],
) -> Estimate:
    """Visit the hubs, then the other `starts` in their order until the confidence of every head is known; `draw` gives
    each start 64 random bits.
    """
    found = Estimate(len(starts), precision)
    hubs = sorted(starts, key=lambda x: (-degree(graph, x), x))[:HUBS]
    for x in hubs:
        found.visited += 1
        costly = work_of(graph, body, x) > limit
        found.hubs_sampled += costly
        found.hubs.append(visit(graph, body, x, costly, draw(x), HUB_FACTOR))
    cluster: list[Visit] = []
    next_look = FIRST_STARTS + len(hubs)
    for x in (x for x in starts if x not in hubs):
        found.visited += 1
        costly = work_of(graph, body, x) > limit
        found.sampled += costly
        cluster.append(visit(graph, body, x, costly, draw(x), 1))
        if len(cluster) == CLUSTER or found.visited == len(starts):
            counts = sum((one.counts for one in cluster), Counter[int]())
            found.clusters.append(Visit(sum(one.pairs for one in cluster), counts))
            cluster = []
            if found.visited >= next_look and (found.visited - len(hubs)) % CLUSTER == 0:
                found.looks += 1
                next_look = found.visited + found.visited // 2
                if all(_is_known(*found.margin(head, widest), precision) for head in found.supports):
                    break
    return found


def _is_known(confidence: float, margin: float, precision: float) -> bool:
    return margin <= precision * max(1.0, 5 * confidence)


def work_of(graph: Graph, body: Body, x: int) -> int:
    """The edges that walking `body` of length 2 or 3 from x touches: those of each entity on the way once."""
    level, work = [x], 0
    for place, d in enumerate(body):
        reached = [y for entity in level for y in graph.steps.get((entity, d), ()) if y != graph.self_id]
        work += len(reached)
        level = sorted({y for y in reached if place == 0 or y != x})
    return work


def edges_of(graph: Graph, x: int) -> list[tuple[int, int]]:
    """The other end and the directed relation of each edge of x."""
    return sorted((y, d) for (e, y), joining in graph.joins.items() if e == x for d in joining)


def degree(graph: Graph, x: int) -> int:
    """How many edges x has."""
    return len(edges_of(graph, x))


def visit(graph: Graph, body: Body, x: int, costly: bool, draw: int, factor: int) -> Visit:
    """How many pairs start at x, and how many of them each relation joins. Of a costly start they are estimated: from
    every so manieth entity that has the last relation, and every so manieth edge of x, for some `factor` more of them.
    """
    ends = {walk[-1] for walk in walks(graph, body, x, True)}
    if not costly:
        return Visit(len(ends), Counter(d for y in ends for d in graph.joins.get((x, y), ())))
    back = inverse(body[-1], graph.n_relations)
    possible = [e for e in range(graph.n_entities) if graph.steps.get((e, back), set()) - {graph.self_id}]
    weight = max(len(possible) // (SAMPLED_ENDS * factor), 1)
    n_ends = weight * sum(y in ends for y in possible[(draw >> 33) % weight :: weight])
    edges = edges_of(graph, x)
    share = max(len(edges) // (SAMPLED_EDGES * factor), 1)
    counts = Counter(d for y, d in edges[(draw & 0x7FFFFFFF) % share :: share] if y in ends)
    return Visit(n_ends, Counter({d: share * n for d, n in counts.items()}), weight, share)
