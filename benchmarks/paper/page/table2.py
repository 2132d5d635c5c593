"""Table 2 on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page.cells import Cell, load_cells, of_largest_scale, percent, table, thousands, with_interval

METRICS = ("hits@1", "hits@10")


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return what object identity does, beside the paper's figures."""
    cells = {cell["name"]: cell for cell in of_largest_scale(load_cells(results, "table2"))}
    names = [name for name in ("strict", "relaxed") if name in cells]
    if not names:
        return ""
    rows = [row for name in names for row in rows_of(cells[name], published["table2"][name])]
    header = ["thresholds", "object identity", "rules", "remaining", "hits@1", "hits@10"]
    run = cells[names[0]]["results"]["off"]["run"]
    paper_seconds = published["table2"]["seconds"]
    parts = [
        "## Table 2: object identity on WN18\n",
        f"Binary rules of length 1 to 5, learned without object identity in {run['seconds']:.3g} s on "
        f"{run['threads']} cores (the paper: {paper_seconds} s on {published['paper_machine']['threads']} threads), "
        "then recounted exactly with it. Rules below half of a threshold are dropped. Intervals are 95 % intervals "
        "over test triples.\n",
        table(header, rows),
        "",
        *(sentence(name, cells[name], published["table2"][name]) for name in names),
        *reading({name: cells[f"{name}-sampled"] for name in names if f"{name}-sampled" in cells}),
    ]
    return "\n".join(parts) + "\n"


def reading(sampled: dict[str, Cell]) -> list[str]:
    """Say what the effect is with confidences from sampled groundings, as the paper's are."""
    words = []
    for name, cell in sampled.items():
        off, on = (cell["results"][state]["metrics"] for state in ("off", "on"))
        changes = [f"{metric} {percent(off[metric])} -> {percent(on[metric])}" for metric in METRICS]
        words.append(f"{name} {', '.join(changes)}")
    if not words:
        return []
    asked = next(iter(sampled.values()))["results"]
    return [
        "- Why is the effect on the ranking larger in the paper? Its confidences are estimated from sampled "
        "groundings; ours are exact shares of distinct pairs, with and without object identity. With the same "
        f"rules and confidences from {thousands(asked['attempts'])} random walks per rule (at most "
        f"{thousands(asked['most_pairs'])} distinct pairs), off -> on: {'; '.join(words)}. A walk that may "
        "return the way it came often does, so sampling overrates rules that merely return far more than exact "
        "counts do."
    ]


def rows_of(cell: Cell, paper: dict[str, Any]) -> list[list[str]]:
    """Return four rows: off and on, ours and the paper's."""
    results = cell["results"]
    limits = f"s >= {results['thresholds']['support']}, c >= {results['thresholds']['confidence']}"
    rows = []
    for state in ("off", "on"):
        ours, theirs = results[state], paper[state]
        left, paper_left = (share(part) if state == "on" else "" for part in (results, paper))
        metrics = [with_interval(metric, ours["metrics"]) for metric in METRICS]
        rows.append([limits, state, thousands(ours["rules"]), left, *metrics])
        paper_metrics = [percent(theirs[metric]) for metric in METRICS]
        rows.append([f"{limits}, the paper", state, thousands(theirs["rules"]), paper_left, *paper_metrics])
    return rows


def share(figures: dict[str, Any]) -> str:
    """Return how much of the rules remains."""
    return f"{100 * figures['on']['rules'] / max(figures['off']['rules'], 1):.1f} %"


def sentence(name: str, cell: Cell, paper: dict[str, Any]) -> str:
    """Say how large the effect is, here and there."""
    results = cell["results"]
    words = []
    for metric in METRICS:
        off, on = (results[state]["metrics"] for state in ("off", "on"))
        clear = (
            "beyond both intervals"
            if apart(off["interval"][metric], on["interval"][metric])
            else "within the intervals"
        )
        words.append(
            f"{metric} {change(on[metric] - off[metric])} ({clear}; the paper "
            f"{change(paper['on'][metric] - paper['off'][metric])})"
        )
    plain = results["rescored_not_filtered"]["metrics"]
    medians = results["median_confidence"]
    return (
        f"- {name.capitalize()}: {share(results)} of the rules remain (the paper: {share(paper)}); "
        f"{' and '.join(words)}. With all rules kept and only their counts corrected, hits@1 is "
        f"{percent(plain['hits@1'])} and hits@10 {percent(plain['hits@10'])}. The median confidence "
        f"falls from {medians['off']:.2f} to {medians['on']:.2f}."
    )


def change(value: float) -> str:
    """Write a difference in points."""
    return f"{100 * value:+.1f} points"


def apart(one: list[float], other: list[float]) -> bool:
    """Whether two intervals do not meet."""
    return one[1] < other[0] or other[1] < one[0]
