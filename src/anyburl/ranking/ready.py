"""What answering a query takes: the graph, the rule index, and how rules apply."""

from __future__ import annotations

from typing import NamedTuple

from anyburl.graph.arrays import GraphArrays
from anyburl.ranking.aggregation import Aggregation
from anyburl.ranking.arrays import Protocol, RuleIndex
from anyburl.ranking.kernel_order import ALL_COUNT


class ReadyRules(NamedTuple):
    """Arrays that threads, memory maps and object stores share; no labels, and no rules as such."""

    graph: GraphArrays
    index: RuleIndex
    longest: int
    object_identity: bool
    block_connected: bool

    def protocol(self, aggregation: Aggregation, top_k: int) -> Protocol:
        """Return what kernels are told."""
        n_counted = ALL_COUNT if aggregation.n_counted is None else min(aggregation.n_counted, ALL_COUNT)
        return Protocol(
            n_counted, aggregation.breaks_ties, self.object_identity, self.block_connected, top_k, self.longest
        )
