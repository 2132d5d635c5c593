"""Metrics kept with a run: one line of `metrics.jsonl` per evaluation of its rules or of a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anyburl.evaluation.metrics import Metrics
from anyburl.reading import open_to_read
from anyburl.writing import append_line

METRICS = "metrics.jsonl"
PROTOCOL = ("split", "aggregation", "smoothing", "block_connected", "rules")
FIGURES = ("hits@1", "hits@3", "hits@10", "mrr")


def keep_metrics(run: Path, metrics: Metrics, at: float | None) -> None:
    """Append what was measured; `at` is the snapshot's second, None for all rules."""
    told = metrics.to_json()
    line = {
        "at": at,
        **{name: told["protocol"][name] for name in PROTOCOL},
        **{name: told["metrics"][name] for name in FIGURES},
    }
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
    latest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in text.splitlines():
        try:
            found = json.loads(line)
            key = tuple(found[name] for name in ("at", *PROTOCOL[:-1]))
            order = float("inf") if found["at"] is None else float(found["at"])
            figures = {name: float(found[name]) for name in (*FIGURES, "rules")}
            latest[key] = {**found, **figures, "order": order}
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return sorted(latest.values(), key=lambda line: (line["order"], str(line["split"]), str(line["aggregation"])))
