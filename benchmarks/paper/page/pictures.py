"""How pictures look: a solid light ground, so that they are legible on a white and on a dark page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

GROUND = "#fbfaf7"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#4d4d4d", "#56b4e9")  # told apart by all eyes
MARKERS = "osD^vPX"
STYLE = {
    "figure.facecolor": GROUND,
    "axes.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 10,
    "axes.titlesize": 11,
    "legend.frameon": False,
    "svg.hashsalt": "anyburl",  # the same figures give the same file
    "svg.fonttype": "path",
}


def panels(n: int, width: float = 4.6, height: float = 3.6, **options: Any) -> tuple[Figure, list[Any]]:
    """Return a figure with `n` panels side by side."""
    plt.rcParams.update(STYLE)
    drawing, axes = plt.subplots(1, n, figsize=(width * n, height), squeeze=False, layout="constrained", **options)
    return drawing, list(axes[0])


def share_legend(drawing: Figure, axes: Iterable[Any], columns: int = 4) -> None:
    """Put one legend for all panels below them."""
    entries = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    drawing.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def save(drawing: Figure, folder: Path, name: str, words: str) -> str:
    """Write the picture as SVG and return the Markdown that shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    drawing.savefig(
        folder / f"{name}.svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.1
    )
    plt.close(drawing)
    return f"![{words}]({folder.name}/{name}.svg)"
