"""Metrics for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyburl.evaluation.metrics import Metrics

FIGURES = ("hits@1", "hits@3", "hits@10", "mrr")
N_RELATIONS = 5
DIRECTIONS = {"object": "(subject, relation, ?)", "subject": "(?, relation, object)"}


def html_table(metrics: Metrics) -> str:
    """Return the metrics by ties, direction and relation, with the protocol below."""
    found, n = metrics.metrics, metrics.protocol["queries"]
    rows = [_row("all", found, n)]
    rows += [_row(f"{ties} ties", found[ties]) for ties in ("optimistic", "pessimistic", "random")]
    rows += [_row(DIRECTIONS[name], figures, n // 2) for name, figures in metrics.by_direction.items()]
    rows += [_row(row["relation"], row, row["queries"]) for row in metrics.by_relation[:N_RELATIONS]]
    headings = "".join(f"<th>{name}</th>" for name in ("", "queries", *FIGURES))
    protocol = str(metrics).partition("[")[2].rstrip("]")
    return f"<table><thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table>{escape(protocol)}"


def _row(name: str, figures: Mapping[str, float], n_queries: int = 0) -> str:
    cells = (f"<td>{figures[key]:.4f}</td>" for key in FIGURES)
    return f"<tr><th>{escape(name)}</th><td>{f'{n_queries:,}' if n_queries else ''}</td>{''.join(cells)}</tr>"
