"""Stored cells, and how their figures are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

METRICS = ("hits@1", "hits@10", "mrr")
TITLES = {"hits@1": "hits@1", "hits@10": "hits@10", "mrr": "MRR"}
Cell = dict[str, Any]


def load_cells(results: Path, experiment: str) -> list[Cell]:
    """Return the cells of an experiment, each with its name, in the order of their names."""
    files = sorted((results / experiment).glob("*.json"))
    return [{"name": file.stem, **json.loads(file.read_text("utf-8"))} for file in files]


def load_stored(results: Path, name: str) -> dict[str, Any] | None:
    """Return a file of `benchmarks/results`, or None where it is not there."""
    path = results.parents[1] / "results" / f"{name}.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else None


def of_largest_scale(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells with the longest learning times: where several scales were run, the page shows one."""
    largest = max((cell["scale"] for cell in cells), default=0)
    return [cell for cell in cells if cell["scale"] == largest]


def percent(value: float | None) -> str:
    """Write a share in percent, as the paper's Table 4 does."""
    return "" if value is None else f"{100 * value:.2f}"


def figure(metric: str, value: float | None) -> str:
    """Write hits in percent and MRR as it is; a blank for nothing."""
    if value is None:
        return ""
    return f"{value:.3f}" if metric == "mrr" else percent(value)


def with_interval(metric: str, metrics: dict[str, Any]) -> str:
    """Write a figure with its 95 % interval over test triples."""
    low, high = metrics["interval"][metric]
    return f"{figure(metric, metrics[metric])} ({figure(metric, low)} to {figure(metric, high)})"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; the first column is text, the others are figures."""
    marks = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [header, marks, *rows])


def sampled_note(cells: Iterable[Cell]) -> str:
    """Say on how many test triples sampled cells were measured, or nothing."""
    sizes = sorted({cell["results"].get("sampled") for cell in cells} - {None})
    if not sizes:
        return "All test queries were ranked."
    listed = " or ".join(f"{size:,}" for size in sizes).replace(",", " ")
    return (
        f"Where only a sample was ranked, it is the same {listed} test triples throughout; ranks are filtered with "
        "all triples."
    )


def lateness_note(cells: Iterable[Cell]) -> str:
    """Say how late the states of curves were taken: at the first end of a span after their moment."""
    points = [point for cell in cells for point in cell["results"]["points"] if point["elapsed"] > point["at"]]
    latest = max((point["elapsed"] - point["at"] for point in points), default=0.0)
    return f"Each state is taken at the end of the span in progress, at most {latest:.2f} s late."


def seconds(value: float) -> str:
    """Write a time."""
    return f"{value:g} s"


def gigabytes(mebibytes: float) -> float:
    """Return in units of 10 ** 9 bytes what the system tells in units of 2 ** 20."""
    return mebibytes * 1024**2 / 1e9


def thousands(value: float) -> str:
    """Write a count with blanks between thousands."""
    return f"{value:,.0f}".replace(",", " ")


def listed(words: Sequence[str]) -> str:
    """Join words with commas and a last `and`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
