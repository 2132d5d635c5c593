"""What benchmarks of ranking write down."""

from __future__ import annotations

from typing import Any

from anyburl import Metrics, Reasoner
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.models.tuned.train import Tuning


def told(metrics: Metrics, opened_in: float, ranked_in: float, tuning: Tuning | None) -> dict[str, Any]:
    """Return what was found, how long it took, and what tuning chose."""
    figures: dict[str, Any] = {name: round(metrics.metrics[name], 4) for name in ("hits@1", "hits@10", "mrr")}
    figures["mrr_interval"] = [round(end, 4) for end in metrics.metrics["interval"]["mrr"]]
    figures["block_connected"] = metrics.protocol["block_connected"]
    figures |= {"opened_in": round(opened_in, 1), "ranked_in": round(ranked_in, 1)}
    if tuning is not None:
        figures["tuned"] = {**tuning.described(), "seconds": round(tuning.seconds, 1)}
    return figures


def tuning_of(reasoner: Reasoner) -> Tuning | None:
    """Return how a reasoner was tuned, if it was."""
    reranker = reasoner.ranker.reranker
    return reranker.tuning if isinstance(reranker, TunedReranker) else None
