"""Table 3 on the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from page.cells import Cell, lateness_note, load_cells, of_largest_scale, sampled_note, seconds, table
from page.pictures import COLOURS, MARKERS, panels, save, share_legend
from page.stats import ALPHA, spread, welch

REWARDS = {"support": "s", "support-confidence": "s x c", "length-discounted": "s x c / 2^l"}
SETTINGS = {
    f"{policy}-{reward}": f"{policy}, {REWARDS[reward]}" for policy in ("greedy", "weighted") for reward in REWARDS
}
BASE = "random-support-confidence"
Runs = dict[str, dict[float, list[float]]]  # setting, moment, hits@10 of each run in percent


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return policies and rewards against random, for each data set."""
    paper = published["table3"]["rows"]
    by_data = cells_by_data(results, paper)
    if not by_data:
        return ""
    cells = [cell for chosen in by_data.values() for cell in chosen]
    first = cells[0]
    parts = [
        "## Table 3: policies and rewards against the random policy\n",
        "Hits@10 in percent, as differences from the random policy, in the paper's literal mode, on "
        f"{first['results']['run']['threads']} cores, spans of {seconds(first['asked']['learn']['span'])}, `max` "
        f"aggregation. {sampled_note(cells)} {lateness_note(cells)} "
        f"± is the standard deviation over runs; * marks p < {ALPHA} in Welch's t-test against random. "
        "The paper's times are scaled; its differences are in the rows below ours.\n",
    ]
    tests: list[float] = []
    for name, chosen in by_data.items():
        runs = runs_of(chosen, name)
        parts += [data_table(chosen[0]["asked"]["data"], runs, paper[name], tests), "", sentence(name, runs, paper), ""]
    parts += [draw({chosen[0]["asked"]["data"]: runs_of(chosen, name) for name, chosen in by_data.items()}, pictures)]
    return "\n".join([*parts, "", verdict(tests), ""])


def cells_by_data(results: Path, names: Iterable[str]) -> dict[str, list[Cell]]:
    """Return the cells of the longest learning times by data set, where there are runs with the random policy."""
    cells = of_largest_scale(load_cells(results, "table3"))
    by_data = {name: [cell for cell in cells if is_of(cell, name)] for name in names}
    return {name: chosen for name, chosen in by_data.items() if BASE in runs_of(chosen, name)}


def is_of(cell: Cell, name: str) -> bool:
    """Whether a cell belongs to a data set (or to the part of it that was there)."""
    return bool(cell["asked"]["data"].removesuffix("-partial") == name)


def runs_of(cells: list[Cell], name: str) -> Runs:
    """Gather hits@10 by setting and moment."""
    runs: Runs = {}
    for cell in cells:
        setting = cell["name"].removeprefix(f"{name}-").rsplit("-", 1)[0]
        for point in cell["results"]["points"]:
            runs.setdefault(setting, {}).setdefault(point["at"], []).append(100 * point["hits@10"])
    return runs


def data_table(data: str, runs: Runs, paper: dict[str, dict[str, float]], tests: list[float]) -> str:
    """Return our differences and the paper's, row by row; p-values are appended to `tests`."""
    there = [setting for setting in SETTINGS if setting in runs]
    rows = []
    for at, paper_time in zip(sorted(runs[BASE]), paper, strict=True):
        base = runs[BASE][at]
        cells = [difference(runs[setting].get(at, []), base, tests) for setting in there]
        rows.append([seconds(at), f"{fmean(base):.1f} ± {spread(base):.2f}", *cells])
        published = paper[paper_time]
        theirs = [f"{published[setting]:+.1f}" for setting in there]
        rows.append([f"the paper, {paper_time} s", f"{published['random']:.1f}", *theirs])
    n_runs = len(next(iter(runs[BASE].values())))
    return table(
        [f"{data}, {n_runs} run{'s' * (n_runs > 1)}", "random", *(SETTINGS[setting] for setting in there)], rows
    )


def difference(values: list[float], base: list[float], tests: list[float]) -> str:
    """Write the difference of the means, with a star where it is significant."""
    if not values:
        return ""
    p = welch(values, base)
    if p is not None:
        tests.append(p)
    star = "*" if p is not None and p < ALPHA else ""
    return f"{fmean(values) - fmean(base):+.1f} ± {spread(values):.2f}{star}"


def sentence(name: str, runs: Runs, paper: dict[str, Any]) -> str:
    """Say for one data set who is best on average, and how often the sign is the paper's."""
    moments = sorted(runs[BASE])
    gains = {
        setting: [fmean(runs[setting][at]) - fmean(runs[BASE][at]) for at in moments if at in runs[setting]]
        for setting in SETTINGS
        if setting in runs
    }
    if not gains:
        return ""
    best = max(gains, key=lambda setting: fmean(gains[setting]))
    worst = min(gains, key=lambda setting: fmean(gains[setting]))
    signs = [
        gain * paper[name][time][setting] > 0
        for setting, values in gains.items()
        for gain, time in zip(values, paper[name], strict=False)
        if paper[name][time][setting]
    ]
    return (
        f"On average over the four times, {SETTINGS[best]} is best ({fmean(gains[best]):+.1f} points) and "
        f"{SETTINGS[worst]} worst ({fmean(gains[worst]):+.1f}). {sum(signs)} of {len(signs)} differences have the "
        "same sign as in the paper."
    )


def verdict(tests: list[float]) -> str:
    """Say how many differences are significant, against how many would be by chance."""
    if not tests:
        return "With one run each, significance cannot be judged."
    found = sum(p < ALPHA for p in tests)
    return (
        f"Of {len(tests)} comparisons, {found} are significant at {ALPHA}; chance alone would give "
        f"{ALPHA * len(tests):.1f}."
    )


def draw(by_data: dict[str, Runs], pictures: Path) -> str:
    """Draw the differences over time, a panel for each data set."""
    drawing, axes = panels(len(by_data), 4.4, 4.0)
    for axis, (data, runs) in zip(axes, by_data.items(), strict=True):
        moments = sorted(runs[BASE])
        for place, (setting, label) in enumerate(SETTINGS.items()):
            if setting not in runs:
                continue
            gains = [fmean(runs[setting][at]) - fmean(runs[BASE][at]) for at in moments]
            widths = [spread(runs[setting][at]) for at in moments]
            x = [row + 0.09 * (place - 2.5) for row in range(len(moments))]
            look = {"color": COLOURS[place], "marker": MARKERS[place], "markersize": 5, "linestyle": "none"}
            axis.errorbar(x, gains, yerr=widths, capsize=2, label=label, **look)
        axis.axhline(0, color="#555555", linewidth=1)
        axis.set_xticks(range(len(moments)), [f"{at:g}" for at in moments])
        axis.set(title=data, xlabel="learning time (s)")
    axes[0].set_ylabel("hits@10 minus random (points)")
    share_legend(drawing, axes, 6)
    words = "Difference from the random policy in hits@10, by policy, reward and time; bars are standard deviations"
    return save(drawing, pictures, "table3", words)
