"""Plots of runs and rules (extra `plot`): each function draws on the Matplotlib axes it is given, or creates them.

from anyburl.plotting import plot_rules

plot_rules(rules).figure.savefig("rules.png")
"""

from __future__ import annotations

from anyburl.learning.progress import trace_table
from anyburl.plotting.anytime import AnytimePoint, anytime_points, plot_anytime
from anyburl.plotting.calibration import calibration_table, plot_calibration
from anyburl.plotting.reliability import plot_reliability
from anyburl.plotting.rules import plot_rules
from anyburl.plotting.trace import plot_cores, plot_rewards

__all__ = [
    "AnytimePoint",
    "anytime_points",
    "calibration_table",
    "plot_anytime",
    "plot_calibration",
    "plot_cores",
    "plot_reliability",
    "plot_rewards",
    "plot_rules",
    "trace_table",
]
