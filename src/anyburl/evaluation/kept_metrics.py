"""Metrics kept with a run: one line of `metrics.jsonl` per evaluation of its rules or of a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anyburl.evaluation.metrics import Metrics
from anyburl.reading import open_to_read
from anyburl.writing import append_line

METRICS = "metrics.jsonl"
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
FIGURES = ("hits@1", "hits@3", "hits@10", "mrr")


def keep_metrics(run: Path, metrics: Metrics, at: float | None) -> None:
    """Append what was measured; `at` is the snapshot's second, None for all rules."""
    told = metrics.to_json()
    how = {name: value for name, value in told["protocol"].items() if name not in DESCRIPTIVE}
    how["weights"] = {name: factor for name, factor in sorted(how["weights"].items()) if factor != 1}
    figures = {name: told["metrics"][name] for name in FIGURES}
    line = {"at": at, **how, "rules": told["protocol"]["rules"], **figures}
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
            found = {**UNMENTIONED, **json.loads(line)}
            key = _how_measured(found)
            order = float("inf") if found["at"] is None else float(found["at"])
            figures = {name: float(found[name]) for name in (*FIGURES, "rules")}
            latest[key] = {**found, **figures, "order": order}
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return sorted(latest.values(), key=lambda line: (line["order"], str(line["split"]), str(line["aggregation"])))


def _how_measured(line: dict[str, Any]) -> str:
    """Return the snapshot and the protocol of a line, without its figures."""
    if not isinstance(line["weights"], dict) or not {"at", "split", "aggregation", "smoothing"} <= line.keys():
        raise ValueError("the line does not say how its figures were measured")
    how = {name: value for name, value in line.items() if name not in (*FIGURES, "rules")}
    return json.dumps(how, sort_keys=True)
