"""Rules by type and confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anyburl.plotting.style import TYPE_COLOURS, ready_axes, say_nothing
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_BINS = 25


def plot_rules(rules: RuleSet, *, axes: Axes | None = None) -> Axes:
    """Draw how many rules there are of each type and confidence; the count is on a logarithmic scale."""
    axes = ready_axes(axes, f"{len(rules):,} rules by type and confidence", "confidence", "rules")
    if not len(rules):
        say_nothing(axes, "no rules")
        return axes
    confidence, edges = rules.confidence(), np.linspace(0, 1, N_BINS + 1)
    for name in RuleType:
        of_type = confidence[rules.type == name.code]
        if not len(of_type):
            continue
        colour = TYPE_COLOURS[str(name)]
        counts = np.histogram(of_type, edges)[0]
        axes.stairs(counts, edges, color=colour, linewidth=1.8, label=f"{name}: {len(of_type):,}", baseline=None)
        axes.stairs(counts, edges, color=colour, alpha=0.08, fill=True)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.set_xlim(0, 1)
    axes.legend(frameon=False, fontsize=9)
    return axes
