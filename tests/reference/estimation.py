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
MISSES = 0.05


@dataclass
class Estimate:
    """Sums over the starts visited so far, each cluster of starts for itself."""

    n_starts: int
    precision: float
    visited: int = 0
    sampled: int = 0
    looks: int = 0
    clusters: list[tuple[int, Counter[int]]] = field(default_factory=list)

    @property
    def pairs(self) -> int:
        return sum(n_pairs for n_pairs, _ in self.clusters)

    @property
    def supports(self) -> Counter[int]:
        return sum((counts for _, counts in self.clusters), Counter[int]())

    def margin(self, head: int, widest: float) -> tuple[float, float]:
        """The confidence of a head, and how far the truth may be from it: by Bernstein's inequality."""
        support = self.supports[head]
        pairs = max(self.pairs, support)
        if self.visited == self.n_starts and not self.sampled:
            return support / pairs, 0.0
        confidence = support / pairs
        spread = sum((counts[head] - confidence * n_pairs) ** 2 for n_pairs, counts in self.clusters)
        most_pairs = max(n_pairs for n_pairs, _ in self.clusters)
        unseen = max(confidence * max(widest, most_pairs), max(counts[head] for _, counts in self.clusters))
        left = 1.0 if self.sampled else 1 - self.visited / self.n_starts
        looks = max(self.looks, 1)
        bits = log(2 * looks * (looks + 1) / MISSES)
        margin = (sqrt(2 * bits * spread * left) + unseen * left * bits / 3) / pairs
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
    """Visit `starts` in their order until the confidence of every head is known; `draw` gives each start 64 random
    bits.
    """
    found = Estimate(len(starts), precision)
    cluster: list[tuple[int, Counter[int]]] = []
    next_look = FIRST_STARTS
    for x in starts:
        found.visited += 1
        costly = work_of(graph, body, x) > limit
        found.sampled += costly
        cluster.append(sampled_start(graph, body, x, draw(x)) if costly else whole_start(graph, body, x))
        if len(cluster) == CLUSTER or found.visited == len(starts):
            found.clusters.append((sum(n for n, _ in cluster), sum((counts for _, counts in cluster), Counter[int]())))
            cluster = []
            if found.visited >= next_look and found.visited % CLUSTER == 0:
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


def whole_start(graph: Graph, body: Body, x: int) -> tuple[int, Counter[int]]:
    """How many pairs start at x, and how many of them each relation joins."""
    ends = {walk[-1] for walk in walks(graph, body, x, True)}
    return len(ends), Counter(d for y in ends for d in graph.joins.get((x, y), ()))


def sampled_start(graph: Graph, body: Body, x: int, draw: int) -> tuple[int, Counter[int]]:
    """The same, estimated from every so manieth entity that has the last relation, and every so manieth edge of x."""
    ends = {walk[-1] for walk in walks(graph, body, x, True)}
    back = inverse(body[-1], graph.n_relations)
    possible = [e for e in range(graph.n_entities) if graph.steps.get((e, back), set()) - {graph.self_id}]
    weight = max(len(possible) // SAMPLED_ENDS, 1)
    n_ends = weight * sum(y in ends for y in possible[(draw >> 33) % weight :: weight])
    edges = sorted((y, d) for (e, y), joining in graph.joins.items() if e == x for d in joining)
    share = max(len(edges) // SAMPLED_EDGES, 1)
    counts = Counter(d for y, d in edges[(draw & 0x7FFFFFFF) % share :: share] if y in ends)
    return n_ends, Counter({d: share * n for d, n in counts.items()})
