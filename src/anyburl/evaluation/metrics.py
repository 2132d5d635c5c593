"""Turns ranks into metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl import checking
from anyburl.evaluation.display import html_table
from anyburl.ranking.ranks import Ranks

HITS = (1, 3, 10)
BOOTSTRAP_ROUNDS = 1000


def summarise(ranks: NDArray[np.float64]) -> dict[str, float]:
    """Return hits@k and the mean reciprocal rank."""
    if not len(ranks):
        return {**{f"hits@{k}": 0.0 for k in HITS}, "mrr": 0.0}
    return {**{f"hits@{k}": float((ranks <= k).mean()) for k in HITS}, "mrr": float((1 / ranks).mean())}


def summarise_random(ranks: Ranks) -> dict[str, float]:
    """Return what hits@k and MRR would be on average if ties were broken at random, as tools that just sort do."""
    if not len(ranks.optimistic):
        return summarise(ranks.realistic)
    first, n_places = ranks.optimistic, ranks.pessimistic - ranks.optimistic + 1
    hits = {f"hits@{k}": float(np.clip((k + 1 - first) / n_places, 0, 1).mean()) for k in HITS}
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, ranks.pessimistic.max() + 1))])
    return {**hits, "mrr": float(((harmonic[ranks.pessimistic] - harmonic[first - 1]) / n_places).mean())}


def lower_bound(ranks: NDArray[np.float64], k: int) -> float:
    """Return the paper's MRR: what ranks beyond k counts as nothing (section 4.1)."""
    return float(np.where(ranks <= k, 1 / ranks, 0.0).mean()) if len(ranks) else 0.0


def bootstrap_interval(ranks: NDArray[np.float64], seed: int = 0) -> dict[str, tuple[float, float]]:
    """Return 95 % intervals of hits@k and MRR, by resampling test triples (both queries of a triple stay together)."""
    n_triples = len(ranks) // 2
    if not n_triples:
        return {}
    values = {**{f"hits@{k}": (ranks <= k).astype(np.float64) for k in HITS}, "mrr": 1 / ranks}
    per_triple = np.column_stack([(value[:n_triples] + value[n_triples:]) / 2 for value in values.values()])
    rng = np.random.default_rng(seed)
    means = np.array(
        [per_triple[rng.integers(n_triples, size=n_triples)].mean(axis=0) for _ in range(BOOTSTRAP_ROUNDS)]
    )
    bounds = np.percentile(means, [2.5, 97.5], axis=0)
    return {name: (float(low), float(high)) for name, (low, high) in zip(values, bounds.T, strict=True)}


def grouped(ranks: NDArray[np.float64], groups: Sequence[Any] | NDArray[Any]) -> dict[Any, dict[str, float]]:
    """Return the summary of each group, with its number of queries."""
    keys = np.asarray(groups)
    return {
        key.item() if isinstance(key, np.generic) else key: {
            "queries": int((keys == key).sum()),
            **summarise(ranks[keys == key]),
        }
        for key in np.unique(keys)
    }


@dataclass(frozen=True, repr=False)
class Metrics:
    """The metrics of one evaluation, with the protocol behind them."""

    protocol: dict[str, Any]
    metrics: dict[str, Any]
    by_direction: dict[str, dict[str, float]]
    by_relation: list[dict[str, Any]]
    by_rule_type: dict[str, dict[str, float]]
    seconds: dict[str, float]
    ranks: Ranks

    @property
    def mrr(self) -> float:
        """The mean reciprocal rank, with the protocol's treatment of ties."""
        return float(self.metrics["mrr"])

    def hits(self, k: int) -> float:
        """Return the share of queries whose answer ranks among the first `k`, with the protocol's treatment of ties."""
        checking.whole("k", k, 1, checking.MOST_KEPT)
        ranks = self.ranks.of(self.protocol["ties"])
        return float((ranks <= k).mean()) if len(ranks) else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return everything but the single ranks as plain values."""
        queries = self.protocol["queries"]
        return {
            "protocol": self.protocol,
            "metrics": self.metrics,
            "by_direction": self.by_direction,
            "by_relation": self.by_relation,
            "by_rule_type": self.by_rule_type,
            "seconds": self.seconds,
            "queries_per_second": round(queries / self.seconds["rank"], 1) if self.seconds["rank"] else None,
        }

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {self.metrics[name]:.4f}" for name in ("hits@1", "hits@3", "hits@10", "mrr"))
        return f"{figures}  [{self._protocol_text()}]"

    def _protocol_text(self) -> str:
        protocol = self.protocol
        return (
            f"{protocol['data']} {protocol['split']}, {protocol['queries']} queries, filtered, "
            f"{protocol['ties']} ties, {protocol['aggregation']}, smoothing {protocol['smoothing']:g}, "
            f"connected pairs {'blocked' if protocol['block_connected'] else 'not blocked'}"
        )

    def __repr__(self) -> str:
        return f"Metrics({self})"

    def _repr_html_(self) -> str:
        queries, protocol = self.protocol["queries"], self._protocol_text()
        return html_table(self.metrics, self.by_direction, self.by_relation, queries, protocol)
