"""What it takes to answer a query: the graph, the rule index, and how rules apply."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.graph.arrays import GraphArrays
from anyburl.ranking.aggregation import Aggregation
from anyburl.ranking.arrays import Protocol, RuleIndex
from anyburl.ranking.kernel_order import ALL_COUNT
from anyburl.ranking.scores import to_scores


@dataclass(frozen=True)
class ReadyRules:
    """Arrays that threads, memory maps and object stores share; no labels, and no rules as such.

    `facts` is the graph to look facts up in; `graph` is what rules walk: the same under object identity, see
    `with_loops`.
    """

    facts: GraphArrays
    graph: GraphArrays
    index: RuleIndex
    longest: int
    object_identity: bool
    block_connected: bool

    def protocol(
        self, aggregation: Aggregation, top_k: int, *, keep_known: bool = False, only_fires: bool = False
    ) -> Protocol:
        """Return what kernels are told; where rules only fire, nothing is blocked."""
        return Protocol(
            n_counted=ALL_COUNT if aggregation.n_counted is None else min(aggregation.n_counted, ALL_COUNT),
            breaks_ties=aggregation.breaks_ties,
            object_identity=self.object_identity,
            block_connected=self.block_connected and not only_fires,
            keep_known=keep_known,
            only_fires=only_fires,
            top_k=top_k,
            longest=self.longest,
            least_binary=int(to_scores(aggregation.least_binary)) if aggregation.least_binary else -1,
        )
