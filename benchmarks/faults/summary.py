"""Many trials, told in a table: by command and by fault."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LATE = 15.0  # seconds
AFTER = re.compile("next command|not swept")  # what is said of a command that was to recover

Row = dict[str, Any]


def read_trials(logs: Iterable[Path]) -> list[Row]:
    """Read what was kept of trials: only `late.jsonl` has moments by the time that a run has learned."""
    rows = [(log, json.loads(line)) for log in logs for line in log.read_text("utf-8").splitlines()]
    return [{**trial, "late": log.stem == "late" and trial["moment"] > LATE} for log, trial in rows]


def summarise(trials: list[Row]) -> dict[str, Any]:
    """Return how often each fault was injected into each command, and what came of it."""
    return {
        "trials": len(trials),
        "signals": sum(is_signal(trial) for trial in trials),
        "late_signals": sum(is_signal(trial) and trial["late"] for trial in trials),
        "by_command": grouped(trials, "command"),
        "by_fault": grouped(trials, "fault"),
        "problems": [
            {name: trial[name] for name in ("command", "fault", "moment", "code")}
            | {"problems": [problem.splitlines()[0][:200] for problem in trial["problems"]]}
            for trial in trials
            if trial["problems"]
        ],
    }


def is_signal(trial: Row) -> bool:
    """Tell whether the fault was a signal."""
    return str(trial["fault"]).startswith("SIG")


def grouped(trials: list[Row], key: str) -> dict[str, Row]:
    """Return one row for each command or fault."""
    groups = dict[str, list[Row]]()
    for trial in trials:
        groups.setdefault(trial[key], []).append(trial)
    return {name: told(group) for name, group in sorted(groups.items())}


def told(group: list[Row]) -> Row:
    """Return what happened in some trials."""
    lost = [trial["lost_seconds"] for trial in group if trial["lost_seconds"] is not None]
    return {
        "trials": len(group),
        "signals": sum(map(is_signal, group)),
        "late_signals": sum(is_signal(trial) and trial["late"] for trial in group),
        "codes": dict(sorted(Counter(str(trial["code"]) for trial in group).items())),
        "found": dict(Counter(trial["found"] for trial in group if trial["found"])),
        "leftovers": sum(trial["leftovers"] for trial in group),
        "lost_seconds": max(lost, default=None),
        "recovered": sum(not any(AFTER.search(problem) for problem in trial["problems"]) for trial in group),
        "problems": sum(bool(trial["problems"]) for trial in group),
    }


def added(before: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return two summaries as one: the trials of the first are no longer there one by one."""
    numbers = {name: before[name] + more[name] for name in ("trials", "signals", "late_signals")}
    groups = {name: _added_groups(before[name], more[name]) for name in ("by_command", "by_fault")}
    return {**numbers, **groups, "problems": [*before["problems"], *more["problems"]]}


def _added_groups(before: dict[str, Row], more: dict[str, Row]) -> dict[str, Row]:
    names = sorted({*before, *more})
    return {name: _added_rows([groups[name] for groups in (before, more) if name in groups]) for name in names}


def _added_rows(rows: list[Row]) -> Row:
    lost = [row["lost_seconds"] for row in rows if row["lost_seconds"] is not None]
    counts = {name: sum((Counter(row[name]) for row in rows), Counter[str]()) for name in ("codes", "found")}
    sums = ("trials", "signals", "late_signals", "leftovers", "recovered", "problems")
    return {
        **rows[0],
        **{name: sum(row[name] for row in rows) for name in sums},
        "codes": dict(sorted(counts["codes"].items())),
        "found": dict(counts["found"]),
        "lost_seconds": max(lost, default=None),
    }
