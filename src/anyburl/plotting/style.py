"""The style of plots: colours that most people can tell apart, few lines, page-sized figures."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyburl.errors import DataError, MissingExtraError
from anyburl.writing import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (6.4, 4.0)
DOTS_PER_INCH = 150
SUFFIXES = (".png", ".svg", ".pdf")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
TYPE_COLOURS = {"B": "#0072b2", "Uc": "#009e73", "Ud": "#cc79a7", "Z": "#777777"}
TEXT, FAINT = "#333333", "#dddddd"


def new_figure(width: float = SIZE[0], height: float = SIZE[1]) -> Figure:
    """Return an empty figure; nothing is shown, and no state is shared."""
    try:
        figure: Figure = import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    except ImportError as error:
        raise MissingExtraError("plotting", "plot") from error
    return figure


def ready_axes(axes: Axes | None, title: str, x: str, y: str) -> Axes:
    """Return axes with their words; without `axes`, those of a new figure."""
    ready: Any = new_figure().add_subplot() if axes is None else axes
    ready.set_title(title, loc="left", fontsize=11, color=TEXT)
    ready.set_xlabel(x, color=TEXT)
    ready.set_ylabel(y, color=TEXT)
    for side in ("top", "right"):
        ready.spines[side].set_visible(False)
    ready.grid(axis="y", color=FAINT, linewidth=0.7)
    ready.set_axisbelow(True)
    ready.tick_params(colors=TEXT, labelsize=9)
    return ready


def say_nothing(axes: Axes, why: str) -> None:
    """Say in the plot why there is nothing to see."""
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=TEXT)
    axes.set_xticks([])
    axes.set_yticks([])


def short(n: int) -> str:
    """Return a count as it fits into a picture: 930, 16k, 2.3M."""
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if n >= unit:
            return f"{n / unit:.{0 if n >= 10 * unit else 1}f}{name}"
    return str(n)


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file whose suffix says how."""
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: expected a file that ends in one of {', '.join(SUFFIXES)}")
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=DOTS_PER_INCH, format=path.suffix[1:].lower())
