"""The bandit's view: reward and cores of each path profile over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from anyburl.learning.progress import trace_table
from anyburl.plotting.style import COLOURS, ready_axes, say_nothing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHADES = {
    "cyclic": ("#b3d7ee", "#62a9d8", "#1f6fb4", "#0b3c6f", "#041c38"),
    "acyclic": ("#fdae6b", "#f16913", "#a63603", "#7f2704"),
}


def plot_rewards(trace: Iterable[Mapping[str, Any]], *, axes: Axes | None = None) -> Axes:
    """Draw the reward per second of each profile, span by span, on a logarithmic scale."""
    axes = ready_axes(axes, "reward per profile", "seconds", "reward a second")
    table = trace_table(trace).filter(pl.col("reward") > 0)
    if not len(table):
        say_nothing(axes, "no profile earned a reward")
        return axes
    for profile, rows in _by_profile(table):
        rewards = rows["reward"] / rows["seconds"]
        axes.plot(rows["elapsed"], rewards, color=_colour(profile), marker="o", markersize=3, label=profile)
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    axes.legend(frameon=False, fontsize=9)
    return axes


def plot_cores(trace: Iterable[Mapping[str, Any]], *, axes: Axes | None = None) -> Axes:
    """Draw how the cores were divided between profiles, one bar for each span; sweeps come on top of that."""
    axes = ready_axes(axes, "cores per profile", "seconds", "cores")
    table = trace_table(trace)
    if not table["cores"].sum():
        say_nothing(axes, "no cores were given to a profile")
        return axes
    spans = table.select("elapsed", "seconds").unique(maintain_order=True)
    below = pl.Series([0.0] * len(spans))
    for profile, rows in _by_profile(table):
        cores = spans.join(rows, on="elapsed", how="left", maintain_order="left")["cores"].fill_null(0)
        if not cores.sum():
            continue
        starts = spans["elapsed"] - spans["seconds"]
        style = {"color": _colour(profile), "label": profile, "edgecolor": "white", "linewidth": 0.4}
        axes.bar(starts, cores, spans["seconds"], below, align="edge", **style)
        below = below + cores
    axes.set_xlim(0, float(spans["elapsed"].max()))  # type: ignore[arg-type]
    axes.set_ylim(0, float(below.max()) * 1.25)  # type: ignore[arg-type]
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="upper center")
    return axes


def _by_profile(table: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the rows of each profile: cyclic ones first, short ones first."""
    parts = {str(key[0]): rows for key, rows in table.group_by("profile", maintain_order=True)}
    return sorted(parts.items(), key=lambda part: (part[0].startswith("acyclic"), part[0]))


def _colour(profile: str) -> str:
    kind, _, length = profile.partition(" ")
    shades = SHADES.get(kind, COLOURS)
    return shades[min(int(length or 1), len(shades)) - 1]
