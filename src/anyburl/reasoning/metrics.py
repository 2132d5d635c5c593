"""`Metrics`: what ranks amount to, shown in notebooks, and kept with a run as lines of `metrics.jsonl`.

A run has a line for each evaluation of its rules or of a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.files import open_to_read
from anyburl.base.writing import append_line
from anyburl.ranking.options import DIRECTIONS, FIGURES
from anyburl.ranking.queries import Ranks

N_RELATIONS = 5


def metrics_html(
    overall: Mapping[str, Any],
    by_direction: Mapping[str, Mapping[str, float]],
    by_relation: Sequence[Mapping[str, Any]],
    n_queries: int,
    protocol: str,
) -> str:
    """Return the figures, by ties, direction and relation, with the protocol below."""
    rows = [_row("all", overall, n_queries)]
    rows += [_row(f"{ties} ties", overall[ties]) for ties in ("optimistic", "pessimistic", "random")]
    rows += [_row(DIRECTIONS[name], figures, n_queries // 2) for name, figures in by_direction.items()]
    rows += [_row(question_text(row), row, row["queries"]) for row in by_relation[: len(DIRECTIONS) * N_RELATIONS]]
    headings = "".join(f"<th>{name}</th>" for name in ("", "queries", *FIGURES))
    return f"<table><thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table>{escape(protocol)}"


def question_text(row: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """Return the kind of question of a row of `Metrics.by_relation`: (subject, capital, ?)."""
    relation = (names or {}).get(row["relation"]) or row["relation"]
    return DIRECTIONS[row["direction"]].replace("relation", relation)


def _row(name: str, figures: Mapping[str, float], n_queries: int = 0) -> str:
    cells = (f"<td>{figures[key]:.4f}</td>" for key in FIGURES)
    return f"<tr><th>{escape(name)}</th><td>{f'{n_queries:,}' if n_queries else ''}</td>{''.join(cells)}</tr>"


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


def mrr_lower_bound(ranks: NDArray[np.float64], k: int) -> float:
    """Return the paper's MRR: what ranks beyond k counts as nothing (section 4.1)."""
    return float(np.where(ranks <= k, 1 / ranks, 0.0).mean()) if len(ranks) else 0.0


def bootstrap_interval(ranks: NDArray[np.float64], seed: int = 0) -> dict[str, tuple[float, float]]:
    """Return 95 % intervals of hits@k and MRR, by resampling test triples (both queries of a triple stay together).

    How often each triple is drawn, times its values: to gather the drawn values takes six times as long.
    """
    n_triples = len(ranks) // 2
    if not n_triples:
        return {}
    values = {**{f"hits@{k}": (ranks <= k).astype(np.float64) for k in HITS}, "mrr": 1 / ranks}
    per_triple = np.column_stack([(value[:n_triples] + value[n_triples:]) / 2 for value in values.values()])
    rng = np.random.default_rng(seed)
    draws = (rng.integers(n_triples, size=n_triples) for _ in range(BOOTSTRAP_ROUNDS))
    totals = np.array([np.bincount(drawn, minlength=n_triples).astype(np.float64) @ per_triple for drawn in draws])
    bounds = np.percentile(totals / n_triples, [2.5, 97.5], axis=0)
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
        return f"{figures}  [{self.protocol_text}]"

    @property
    def protocol_text(self) -> str:
        """How the figures were measured, in words."""
        protocol = self.protocol
        return (
            f"{protocol['data']} {protocol['split']}{restriction_text(protocol)}, {protocol['queries']} queries, "
            f"filtered, {protocol['ties']} ties, {protocol['aggregation']}, smoothing {protocol['smoothing']:g}, "
            f"connected pairs {'blocked' if protocol['block_connected'] else 'not blocked'}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def _repr_html_(self) -> str:
        queries = self.protocol["queries"]
        return metrics_html(self.metrics, self.by_direction, self.by_relation, queries, self.protocol_text)


def restriction_text(protocol: Mapping[str, Any]) -> str:
    """Return which triples of a split were ranked, nothing if all were."""
    relations = protocol.get("relations", ())
    named = f", {', '.join(relations)} only" if 0 < len(relations) <= N_RELATIONS else ""
    named = f", {len(relations)} relations only" if len(relations) > N_RELATIONS else named
    drawn = f", {protocol['sample']:,} of {protocol['sampled_from']:,} triples" if "sample" in protocol else ""
    return named + drawn


METRICS = "metrics.jsonl"
MOST_RELATIONS_KEPT = 50
DESCRIPTIVE = ("data", "fingerprint", "queries", "rules", "block_connected_choice", "tuned", "anyburl")
"""What a protocol tells besides how figures were measured: later figures replace those that differ only in this."""
UNMENTIONED = {
    "filtered": True,
    "ties": "realistic",
    "weights": {},
    "object_identity": True,
    "fallback": False,
    "ranked_against": "all",
}
"""What lines of earlier versions leave out."""


def keep_metrics(run: Path, metrics: Metrics, at: float | None) -> None:
    """Append what was measured; `at` is the snapshot's second, None for all rules."""
    result = metrics.to_json()
    how = {name: value for name, value in result["protocol"].items() if name not in DESCRIPTIVE}
    how["weights"] = {name: factor for name, factor in sorted(how["weights"].items()) if factor != 1}
    figures = {name: result["metrics"][name] for name in FIGURES}
    rows = result["by_relation"][: len(DIRECTIONS) * MOST_RELATIONS_KEPT]
    line = {"at": at, **how, "rules": result["protocol"]["rules"], **figures, "by_relation": rows}
    append_line(run / METRICS, json.dumps(line).encode())


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the latest figures for each snapshot and protocol, in the order of snapshots; all rules come last.

    Lines that are not whole, after a crash, are left out.
    """
    try:
        with open_to_read(run / METRICS) as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    latest: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        try:
            entry = {**UNMENTIONED, **json.loads(line)}
            key = _how_measured(entry)
            order = float("inf") if entry["at"] is None else float(entry["at"])
            figures = {name: float(entry[name]) for name in (*FIGURES, "rules")}
            latest[key] = {"by_relation": [], **entry, **figures, "order": order}
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return sorted(latest.values(), key=lambda line: (line["order"], str(line["split"]), str(line["aggregation"])))


def _how_measured(line: dict[str, Any]) -> str:
    """Return the snapshot and the protocol of a line, without its figures."""
    if not isinstance(line["weights"], dict) or not {"at", "split", "aggregation", "smoothing"} <= line.keys():
        raise ValueError("the line does not say how its figures were measured")
    how = {name: value for name, value in line.items() if name not in (*FIGURES, "rules", "by_relation")}
    return json.dumps(how, sort_keys=True)
