"""Reliability: probabilities and observed shares, before and after calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyburl.calibration.report import CalibrationReport
from anyburl.plotting.style import COLOURS, ready_axes, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_reliability(report: CalibrationReport, *, axes: Axes | None = None) -> Axes:
    """Draw the bins of a calibration report: on the dashed line, probability and share would be the same."""
    axes = ready_axes(
        axes,
        f"{report.protocol['data']}, {report.protocol['aggregation']}: before and after calibration",
        "score or probability, with how many answers there are",
        f"share stated by {report.checked_on['split']}",
    )
    axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1)
    drawn = (
        ("score", report.before, report.uncalibrated_error, COLOURS[1], -11),
        ("probability", report.after, report.expected_calibration_error, COLOURS[0], 7),
    )
    for name, bins, error, colour, shift in drawn:
        label = name if error is None else f"{name}: expected calibration error {error:.4f}"
        places, shares = [found.probability for found in bins], [found.share_stated for found in bins]
        axes.plot(places, shares, color=colour, marker="o", markersize=5, label=label)
        for found in bins:
            place = found.probability, found.share_stated
            axes.annotate(
                short(found.answers),
                place,
                (0, shift),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color=colour,
            )
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.05, 1.08)
    axes.legend(loc="upper left", fontsize=8, frameon=False)
    return axes
