"""Beyond the paper, third part: how cost grows with the graph."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from page.cells import Cell, gigabytes, load_cells, table, thousands
from page.pictures import COLOURS, panels, save


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return time and memory over the number of triples."""
    cells = [cell for cell in load_cells(results, "beyond") if cell["name"].startswith("growth-")]
    cells.sort(key=lambda cell: cell["asked"]["fraction"])
    if not cells:
        return ""
    queries = cells[0]["asked"]["queries"]
    header = [
        "triples",
        "rules",
        "learning (s)",
        "peak memory (GB)",
        f"ranking {queries} queries (s)",
        "with ranking (GB)",
    ]
    parts = [
        "## Beyond the paper: growth with the graph\n",
        f"All rules of length 1, counted exactly, from random fractions of {cells[0]['asked']['data']}'s train split, "
        f"on {cells[0]['results']['learn']['threads']} cores, and {queries} queries ranked by `max`.\n",
        draw(cells, pictures),
        "",
        table(header, map(row_of, cells)),
        "",
        sentence(cells),
    ]
    return "\n".join(parts) + "\n"


def row_of(cell: Cell) -> list[str]:
    """Return the figures of a fraction."""
    learn, rank = cell["results"]["learn"], cell["results"]["rank"]
    memory = [f"{gigabytes(part['peak_memory_mb']):.2f}" for part in (learn, rank)]
    figures = [f"{learn['seconds']:.2f}", memory[0], f"{rank['seconds']['rank']:.2f}", memory[1]]
    return [thousands(learn["triples"]), thousands(learn["rules"]), *figures]


def sentence(cells: list[Cell]) -> str:
    """Say with which power of the number of triples time grows, from the first fraction to the last."""
    first, last = cells[0]["results"], cells[-1]["results"]
    ratio = math.log(last["learn"]["triples"] / first["learn"]["triples"]) if len(cells) > 1 else 0
    if not ratio:
        return ""

    def power(name: str, start: float, end: float) -> str:
        return f"{name} with power {math.log(max(end, 1e-9) / max(start, 1e-9)) / ratio:.1f}"

    words = [
        power("rules grow", first["learn"]["rules"], last["learn"]["rules"]),
        power("learning time", first["learn"]["seconds"], last["learn"]["seconds"]),
        power("ranking time", first["rank"]["seconds"]["rank"], last["rank"]["seconds"]["rank"]),
    ]
    return f"From the smallest to the largest graph, {words[0]} of the number of triples, {words[1]}, and {words[2]}."


def draw(cells: list[Cell], pictures: Path) -> str:
    """Draw time and memory."""
    drawing, axes = panels(2, 4.6, 3.8)
    x = [cell["results"]["learn"]["triples"] / 1000 for cell in cells]
    learn, rank = ([cell["results"][part] for cell in cells] for part in ("learn", "rank"))
    axes[0].plot(x, [part["seconds"] for part in learn], "o-", color=COLOURS[0], label="learning")
    axes[0].plot(x, [part["seconds"]["rank"] for part in rank], "s--", color=COLOURS[1], label="ranking")
    axes[1].plot(x, [gigabytes(part["peak_memory_mb"]) for part in learn], "o-", color=COLOURS[0], label="learning")
    axes[1].plot(x, [gigabytes(part["peak_memory_mb"]) for part in rank], "s--", color=COLOURS[1], label="with ranking")
    for axis, label in zip(axes, ("seconds", "peak memory (GB)"), strict=True):
        axis.set(xlabel="train triples (thousands)", ylabel=label, ylim=(0, 1.15 * axis.get_ylim()[1]))
        axis.legend()
    return save(drawing, pictures, "growth", "Seconds and memory over the number of train triples")
