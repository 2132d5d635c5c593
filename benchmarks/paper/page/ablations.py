"""Beyond the paper, second part: what each choice adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page.cells import (
    METRICS,
    TITLES,
    Cell,
    figure,
    load_cells,
    of_largest_scale,
    sampled_note,
    table,
    thousands,
    with_interval,
)
from page.pictures import COLOURS, panels, save

NAMES = ("WN18RR", "FB15k-237")
BASE = "as in the paper"
ORDER = ("heads", "budget", "min-support", "smoothing", "aggregation")


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return one table for each data set and a picture of the differences."""
    cells = of_largest_scale([c for c in load_cells(results, "beyond") if c["name"].startswith("ablation-")])
    by_data = {name: in_order([cell for cell in cells if cell["asked"]["data"] == name]) for name in NAMES}
    by_data = {name: chosen for name, chosen in by_data.items() if chosen and chosen[0]["asked"]["what"] == BASE}
    if not by_data:
        return ""
    run = next(iter(by_data.values()))[0]["results"]["run"]
    parts = [
        "## Beyond the paper: what each choice adds\n",
        "Each row changes one of the paper's settings (all heads harvested, budget 1e+06, min-support 2, "
        f"smoothing 5, max), after {run['seconds']:.0f} s of learning on {run['threads']} cores. {sampled_note(cells)} "
        "One run each: small differences between separately learned runs may be chance.\n",
        draw(by_data, pictures),
        "",
    ]
    for name, chosen in by_data.items():
        parts += [
            table([name, "rules", "exact counts", *TITLES.values()], map(row_of, chosen)),
            "",
            sentence(chosen),
            "",
        ]
    return "\n".join(parts)


def in_order(cells: list[Cell]) -> list[Cell]:
    """The paper's settings first, then by what was changed."""

    def place(cell: Cell) -> tuple[int, float, str]:
        what, _, value = cell["asked"]["what"].partition(" ")
        number = float(value) if value.replace("e+", "").isdigit() else 0.0
        return (ORDER.index(what) if what in ORDER else -1, number, value)

    return sorted(cells, key=place)


def row_of(cell: Cell) -> list[str]:
    """Return the figures of a variant."""
    results = cell["results"]
    exact = f"{100 * results['run']['exact']:.1f} %"
    metrics = [with_interval(metric, results["metrics"]) for metric in METRICS]
    return [cell["asked"]["what"], thousands(results["protocol"]["rules"]), exact, *metrics]


def sentence(cells: list[Cell]) -> str:
    """Say which variants leave the interval of the paper's settings."""
    base = cells[0]["results"]["metrics"]
    low, high = base["interval"]["mrr"]
    words = []
    for cell in cells[1:]:
        value = cell["results"]["metrics"]["mrr"]
        if not low <= value <= high:
            gap = figure("mrr", abs(value - base["mrr"]))
            words.append(f"{cell['asked']['what']} is {gap} {'worse' if value < low else 'better'} in MRR")
    return (
        f"Outside the interval of the paper's settings: {'; '.join(words)}."
        if words
        else ("No variant is outside the interval of the paper's settings.")
    )


def draw(by_data: dict[str, list[Cell]], pictures: Path) -> str:
    """Draw the change in MRR of every variant."""
    drawing, axes = panels(len(by_data), 5.6, 4.4)
    for axis, (name, cells) in zip(axes, by_data.items(), strict=True):
        base = cells[0]["results"]["metrics"]["mrr"]
        changes = [cell["results"]["metrics"]["mrr"] - base for cell in cells[1:]]
        colours = [COLOURS[0] if change >= 0 else COLOURS[1] for change in changes]
        axis.barh(range(len(changes)), changes, color=colours)
        axis.set_yticks(range(len(changes)), [cell["asked"]["what"] for cell in cells[1:]])
        axis.invert_yaxis()
        axis.locator_params(axis="x", nbins=5)
        axis.axvline(0, color="#555555", linewidth=1)
        axis.set(title=f"{name} (the paper's settings: {base:.3f})", xlabel="change in MRR")
    return save(drawing, pictures, "ablations", "Change in MRR when one setting is changed")
