"""Figure 3 on the page."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from page.cells import (
    Cell,
    lateness_note,
    load_cells,
    of_largest_scale,
    percent,
    sampled_note,
    seconds,
    table,
    thousands,
)
from page.pictures import COLOURS, MARKERS, panels, save, share_legend
from page.stats import ALPHA, spread, welch

POLICIES = ("saturation-0.9", "saturation-0.99", "saturation-0.999", "random", "weighted")
MODES = {"literal": "the paper's literal mode", "harvest": "with the harvest"}
Curves = dict[str, dict[float, list[float]]]  # policy, moment, hits@10 of each run


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return the anytime curves, as a picture, a table and sentences."""
    cells = of_largest_scale(load_cells(results, "figure3"))
    by_mode = {mode: [cell for cell in cells if cell["name"].startswith(mode)] for mode in MODES}
    by_mode = {mode: chosen for mode, chosen in by_mode.items() if chosen}
    if not by_mode:
        return ""
    data, span = cells[0]["asked"]["data"], cells[0]["asked"]["learn"]["span"]
    run = cells[0]["results"]["run"]
    paper = published["figure3"]
    parts = [
        f"## Figure 3: anytime behaviour on {data}\n",
        f"Hits@10 over learning time on {run['threads']} cores, spans of {seconds(span)}, `max` aggregation. "
        f"{sampled_note(cells)} {lateness_note(cells)} In the paper (YAGO3-10, "
        f"{published['paper_machine']['threads']} threads) {paper['order']}; weighted reaches "
        f"{paper['weighted']['200']} % after 200 s and {paper['weighted']['1000']} % after 1000 s.\n",
        draw({mode: curves_of(chosen) for mode, chosen in by_mode.items()}, data, pictures),
        "",
    ]
    for mode, chosen in by_mode.items():
        parts += [mode_table(mode, chosen), "", *sentences(mode, curves_of(chosen)), ""]
    return "\n".join(parts)


def curves_of(cells: list[Cell]) -> Curves:
    """Gather hits@10 by policy and moment."""
    curves: Curves = {}
    for cell in cells:
        policy = cell["name"].split("-", 1)[1].rsplit("-", 1)[0]
        for point in cell["results"]["points"]:
            curves.setdefault(policy, {}).setdefault(point["at"], []).append(point["hits@10"])
    return {policy: curves[policy] for policy in POLICIES if policy in curves}


def draw(by_mode: dict[str, Curves], data: str, pictures: Path) -> str:
    """Draw a panel for each mode; a band shows the standard deviation over runs."""
    drawing, axes = panels(len(by_mode), 5.2, 4.2, sharey=True)
    for axis, (mode, curves) in zip(axes, by_mode.items(), strict=True):
        for policy, colour, marker in zip(POLICIES, COLOURS, MARKERS, strict=False):
            if policy not in curves:
                continue
            moments = sorted(curves[policy])
            means = [100 * fmean(curves[policy][at]) for at in moments]
            widths = [100 * spread(curves[policy][at]) for at in moments]
            axis.plot(moments, means, color=colour, marker=marker, markersize=4, label=policy.replace("-", " "))
            low, high = ([m + sign * w for m, w in zip(means, widths, strict=True)] for sign in (-1, 1))
            axis.fill_between(moments, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.set(title=f"{data}, {MODES[mode]}", xlabel="learning time (s)")
    axes[0].set_ylabel("hits@10 (%)")
    share_legend(drawing, axes, 5)
    return save(drawing, pictures, "figure3", "Hits@10 over learning time for five policies")


def mode_table(mode: str, cells: list[Cell]) -> str:
    """Return hits@10 of each policy at each moment, with the standard deviation where there are several runs."""
    curves = curves_of(cells)
    moments = sorted({at for curve in curves.values() for at in curve})
    rules = {cell["name"].split("-", 1)[1].rsplit("-", 1)[0]: cell["results"]["run"]["rules"] for cell in cells}
    rows = []
    for policy, curve in curves.items():
        figures = [written(curve[at]) if at in curve else "" for at in moments]
        rows.append([policy.replace("-", " "), *figures, thousands(rules[policy])])
    heading = f"Hits@10 in percent, {MODES[mode]}"
    return table([heading, *map(seconds, moments), "rules at the end"], rows)


def written(values: list[float]) -> str:
    """Write a mean, with the standard deviation of several runs."""
    mean = percent(fmean(values))
    return f"{mean} ± {100 * spread(values):.2f}" if len(values) > 1 else mean


def sentences(mode: str, curves: Curves) -> list[str]:
    """Say who leads early and at the end, and whether that is more than the spread."""
    if len(curves) < 2:
        return []
    moments = sorted(set.intersection(*(set(curve) for curve in curves.values())))
    told = []
    for at in dict.fromkeys((moments[0], moments[len(moments) // 3], moments[-1])):
        order = sorted(curves, key=lambda policy: -fmean(curves[policy][at]))
        words = " > ".join(policy.replace("-", " ") for policy in order)
        told.append(f"- After {seconds(at)}: {words}. {lead(curves, order, at)}")
    return told


def lead(curves: Curves, order: list[str], at: float) -> str:
    """Say which policies the first one beats by more than the spread."""
    values = {policy: curves[policy][at] for policy in order}
    tests = {policy: welch(values[order[0]], values[policy]) for policy in order[1:]}
    if all(p is None for p in tests.values()):
        return "One run each: no spread to compare with."
    beaten = [policy.replace("-", " ") for policy, p in tests.items() if p is not None and p < ALPHA]
    first = order[0].replace("-", " ")
    return f"The lead of {first} is significant (p < {ALPHA}) over {', '.join(beaten) if beaten else 'none of them'}."
