"""Table 4 on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page.cells import (
    METRICS,
    TITLES,
    Cell,
    gigabytes,
    load_cells,
    of_largest_scale,
    seconds,
    table,
    thousands,
    with_interval,
)
from page.pictures import COLOURS, panels, save, share_legend

NAMES = ("WN18", "WN18RR", "FB15k", "FB15k-237", "YAGO3-10")


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return the main results, a table for each data set, with the rank in the paper's table."""
    every = of_largest_scale(load_cells(results, "table4"))
    cells = [cell for cell in every if cell["asked"]["part"] != "why"]
    why = [cell for cell in every if cell["asked"]["part"] == "why"]
    by_data = {
        name: [cell for cell in cells if cell["name"].startswith(f"{name}-") and is_of(cell, name)] for name in NAMES
    }
    by_data = {name: chosen for name, chosen in by_data.items() if chosen}
    if not by_data:
        return ""
    threads = published["paper_machine"]["threads"]
    ours = cells[0]["results"]["run"]["threads"]
    parts = [
        "## Table 4: the main results\n",
        f"Hits in percent, with 95 % intervals over test triples. The paper used {threads} threads, we used {ours} "
        "cores. Our MRR covers the whole ranking; the paper's is a lower bound. `max` uses the paper's settings; the "
        "other aggregations use the same rules. The last column is the rank that a row would have among the "
        f"{len(published['table4']['models'])} models of the paper's table in hits@1, hits@10 and MRR, without "
        "AnyBURL's own rows, as in the paper.\n",
        *([draw(by_data, published["table4"], pictures), ""] if any(map(is_whole, by_data.values())) else []),
    ]
    for name, chosen in by_data.items():
        parts += data_section(name, chosen, published["table4"], [cell for cell in why if is_of(cell, name)])
    return "\n".join(parts)


def summary(results: Path, published: dict[str, Any]) -> str:
    """Return the main results in short: MRR at the end of the run, beside the paper's and the best model's."""
    rows = [summary_row(name, chosen, published["table4"]) for name, chosen in whole_data(results).items()]
    header = [
        "MRR",
        "max",
        "noisy-or-top:5",
        "tuned",
        "the paper, max, 1000 s",
        "best embedding model",
        "our best rank",
    ]
    return f"## In short\n\n{table(header, rows)}\n" if rows else ""


def whole_data(results: Path) -> dict[str, list[Cell]]:
    """Return the cells of the main table by data set, of those that are there as a whole."""
    cells = [cell for cell in of_largest_scale(load_cells(results, "table4")) if cell["asked"]["part"] != "why"]
    by_data = {name: [cell for cell in cells if cell["asked"]["data"] == name] for name in NAMES}
    return {name: chosen for name, chosen in by_data.items() if chosen}


def summary_row(name: str, cells: list[Cell], published: dict[str, Any]) -> list[str]:
    """Return a data set's row of the summary."""
    last = max(cell["asked"]["at"] for cell in cells)
    found = [find(cells, last, aggregation) for aggregation in ("max", "noisy-or-top:5", "tuned")]
    ours = [cell["results"]["metrics"]["mrr"] if cell else None for cell in found]
    paper = next(row["figures"][name]["mrr"] for row in published["anyburl"] if row["seconds"] == 1000)
    who, best = best_models(name, published)["mrr"]
    rank = rank_of("mrr", name, max((value for value in ours if value is not None), default=0.0), published)
    figures = ["" if value is None else f"{value:.3f}" for value in ours]
    return [f"{name}, {seconds(last)}", *figures, f"{paper:.3f}", f"{best:.3f} ({who})", str(rank)]


def is_of(cell: Cell, name: str) -> bool:
    """Whether a cell belongs to a data set: WN18 is also how WN18RR begins."""
    return bool(cell["asked"]["data"].removesuffix("-partial") == name)


def is_whole(cells: list[Cell]) -> bool:
    """Whether a data set is there as a whole, so that published figures can stand beside ours."""
    return not cells[0]["asked"]["data"].endswith("-partial")


def data_section(name: str, cells: list[Cell], published: dict[str, Any], why: list[Cell]) -> list[str]:
    """Return the table of a data set and what is to be said about it."""
    data = cells[0]["asked"]["data"]
    whole = is_whole(cells)
    rows = [our_row(cell, published if whole else None, name) for cell in in_order(cells)]
    if whole:
        best = best_models(name, published)
        rows += [paper_row(row, name) for row in published["anyburl"]]
        rows.append(["best embedding model", "", *(f"{figure_of(m, v)} ({who})" for m, (who, v) in best.items()), ""])
    header = ["", "rules", *(TITLES[metric] for metric in METRICS), "rank"]
    told = sentences(name, cells, published) if whole else ["- Only part of the data set: see Table 1."]
    told += reasons(why)
    run = cells[0]["results"]["run"]
    complete = " (complete: every body was harvested)" if run["stopped_by"] == "complete" else ""
    told.append(
        f"- The run: {thousands(run['rules'])} rules in {run['seconds']:.0f} s{complete}, {100 * run['exact']:.1f} % "
        f"of them with exact counts; {gigabytes(run['peak_memory_mb']):.1f} GB."
    )
    return [f"### {data}\n", table(header, rows), "", *told, ""]


def reasons(why: list[Cell]) -> list[str]:
    """Say what hits@1 of max becomes where one thing is changed."""
    changed = {cell["asked"]["what"]: cell["results"] for cell in why}
    if "nothing" not in changed:
        return []
    before = changed.pop("nothing")
    asked = f" ({thousands(before['sampled'])} test triples)" if before["sampled"] else ""
    words = [f"{what}: {100 * results['metrics']['hits@1']:.2f}" for what, results in changed.items()]
    return [
        f"- What costs hits? hits@1 of `max` is {100 * before['metrics']['hits@1']:.2f}{asked}. After one change each: "
        f"{'; '.join(words)}. Half of the 95 % interval is {100 * half_interval(before):.2f} points."
    ]


def half_interval(results: dict[str, Any]) -> float:
    """Return half the width of the interval of hits@1."""
    low, high = results["metrics"]["interval"]["hits@1"]
    return float(high - low) / 2


def in_order(cells: list[Cell]) -> list[Cell]:
    """Max by time first, then other aggregations, then what is not blocked."""
    order = {"paper": 0, "best": 1, "unblocked": 2}
    return sorted(cells, key=lambda cell: (order[cell["asked"]["part"]], cell["asked"]["at"]))


def our_row(cell: Cell, published: dict[str, Any] | None, name: str) -> list[str]:
    """Return a row of ours."""
    results = cell["results"]
    metrics, protocol = results["metrics"], results["protocol"]
    notes = [seconds(cell["asked"]["at"]), protocol["aggregation"]]
    notes += ["not blocked"] if cell["asked"]["part"] == "unblocked" else []
    notes += [f"{thousands(results['sampled'])} test triples"] if results["sampled"] else []
    ranks = ", ".join(str(rank_of(metric, name, metrics[metric], published)) for metric in METRICS) if published else ""
    figures = [with_interval(metric, metrics) for metric in METRICS]
    return [f"**anyburl**, {', '.join(notes)}", thousands(protocol["rules"]), *figures, ranks]


def paper_row(row: dict[str, Any], name: str) -> list[str]:
    """Return a row of the paper's AnyBURL."""
    return [
        f"the paper's {row['row']}",
        "",
        *(figure_of(metric, row["figures"][name][metric]) for metric in METRICS),
        "",
    ]


def figure_of(metric: str, printed: float) -> str:
    """Write a figure as the paper prints it."""
    return f"{printed:.3f}" if metric == "mrr" else f"{printed:.2f}"


def share_of(metric: str, printed: float) -> float:
    """Return a printed figure as a share: the paper's hits are percentages."""
    return printed if metric == "mrr" else printed / 100


def best_models(name: str, published: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Return the best embedding model of each column."""
    there = [model for model in published["models"] if name in model["figures"]]
    return {
        metric: max(((model["row"], model["figures"][name][metric]) for model in there), key=lambda pair: pair[1])
        for metric in METRICS
    }


def rank_of(metric: str, name: str, value: float, published: dict[str, Any]) -> int:
    """Return the place among the models: one more than there are better ones, at the digits that the paper prints."""
    digits = 3 if metric == "mrr" else 4
    others = [
        share_of(metric, model["figures"][name][metric]) for model in published["models"] if name in model["figures"]
    ]
    return 1 + sum(round(other, digits) > round(value, digits) for other in others)


def sentences(name: str, cells: list[Cell], published: dict[str, Any]) -> list[str]:
    """Say for the end of the run how max compares with the paper's 1000 s, and the best aggregation with all rows."""
    told = []
    last = max(cell["asked"]["at"] for cell in cells)
    at_end = {cell["results"]["protocol"]["aggregation"]: cell for cell in in_order(cells)[::-1] if is_main(cell, last)}
    rows = {row["seconds"]: row["figures"][name] for row in published["anyburl"] if row["version"] == "this paper"}
    if "max" in at_end:
        words = [compared(metric, at_end["max"], rows[1000][metric]) for metric in METRICS]
        told.append(f"- `max` after {seconds(last)}, compared with the paper's 1000 s row: {'; '.join(words)}.")
        told += at_random(at_end["max"], rows[1000])
        told += falling(cells, rows)
    others = {aggregation: cell for aggregation, cell in at_end.items() if aggregation != "max"}
    if others:
        aggregation = max(others, key=lambda key: others[key]["results"]["metrics"]["mrr"])
        highest = {metric: max(row["figures"][name][metric] for row in published["anyburl"]) for metric in METRICS}
        words = [compared(metric, others[aggregation], highest[metric]) for metric in METRICS]
        told.append(f"- Our best aggregation, `{aggregation}`, compared with the best AnyBURL row: {'; '.join(words)}.")
    return told


def falling(cells: list[Cell], rows: dict[int, dict[str, float]]) -> list[str]:
    """Say where more learning makes hits@1 of max lower, here and in the paper's own rows."""
    ours = {cell["asked"]["at"]: cell for cell in in_order(cells) if cell["asked"]["part"] == "paper"}
    hits = {at: 100 * cell["results"]["metrics"]["hits@1"] for at, cell in ours.items()}
    best, last = max(hits, key=lambda at: hits[at]), max(hits)
    if hits[best] - hits[last] < 0.05:
        return []
    theirs = {at: row["hits@1"] for at, row in rows.items()}
    best_there, last_there = max(theirs, key=lambda at: theirs[at]), max(theirs)
    also = ""
    if best_there != last_there:
        also = f"; so do the paper's rows, from {theirs[best_there]:.2f} after {best_there} s to "
        also += f"{theirs[last_there]:.2f} after {last_there} s"
    return [
        f"- With more rules, hits@1 of `max` falls, from {hits[best]:.2f} after {seconds(best)} to {hits[last]:.2f} "
        f"after {seconds(last)}{also}."
    ]


def at_random(cell: Cell, paper: dict[str, float]) -> list[str]:
    """Say what max would have if ties were broken at random, as by a tool that sorts."""
    found = cell["results"]["metrics"].get("random")
    if not found:
        return []
    words = []
    for metric in METRICS:
        gap = found[metric] - share_of(metric, paper[metric])
        shown = f"{found[metric]:.3f}" if metric == "mrr" else f"{100 * found[metric]:.2f}"
        words.append(f"{TITLES[metric]} {shown} ({f'{gap:+.3f}' if metric == 'mrr' else f'{100 * gap:+.2f} points'})")
    return [
        "- The same with ties broken at random, on average, as in a tool that simply sorts (with realistic ties, which "
        f"use the mean rank, an answer that ties for rank 1 is not a hit): {', '.join(words)}."
    ]


def is_main(cell: Cell, last: float) -> bool:
    """Whether a cell was measured at the end of the run with connected pairs treated as in the paper."""
    return bool(cell["asked"]["at"] == last and cell["asked"]["part"] != "unblocked")


def compared(metric: str, cell: Cell, printed: float) -> str:
    """Say whether a published figure lies below, within or above our interval."""
    metrics, theirs = cell["results"]["metrics"], share_of(metric, printed)
    low, high = metrics["interval"][metric]
    gap = metrics[metric] - theirs
    size = f"{gap:+.3f}" if metric == "mrr" else f"{100 * gap:+.2f} points"
    place = "better" if theirs < low else "worse" if theirs > high else "within the interval"
    return f"{TITLES[metric]} {size}, {place}"


def draw(by_data: dict[str, list[Cell]], published: dict[str, Any], pictures: Path) -> str:
    """Draw our rows at the end of the run, and the paper's others, as differences to the paper's 1000 s row."""
    drawing, axes = panels(len(METRICS), 4.4, 4.2)
    names = [name for name, cells in by_data.items() if is_whole(cells)]
    for axis, metric in zip(axes, METRICS, strict=True):
        series = series_of(metric, names, by_data, published)
        for place, (label, points) in enumerate(series.items()):
            x = [row + 0.13 * (place - (len(series) - 1) / 2) for row, point in enumerate(points) if point]
            middles, errors = [point[0] for point in points if point], [point[1] for point in points if point]
            bars = list(zip(*errors, strict=True)) if errors else None
            look = {"marker": "os^Dv"[place], "markersize": 6, "linestyle": "none", "color": COLOURS[place]}
            axis.errorbar(x, middles, yerr=bars, capsize=2, label=label, **look)
        axis.axhline(0, color="#555555", linewidth=1)
        axis.set_xticks(range(len(names)), names, rotation=15)
        unit = "" if metric == "mrr" else " (points)"
        axis.set(title=TITLES[metric], ylabel=f"{TITLES[metric]} minus the paper's 1000 s{unit}")
    share_legend(drawing, axes, 5)
    return save(
        drawing, pictures, "table4", "Differences from the paper's AnyBURL after 1000 s; bars are 95 % intervals"
    )


Point = tuple[float, tuple[float, float]]  # a difference, and how far its interval reaches down and up


def series_of(
    metric: str, names: list[str], by_data: dict[str, list[Cell]], published: dict[str, Any]
) -> dict[str, list[Point | None]]:
    """Return what is drawn: for each label a point for each data set, or None."""
    last = max(cell["asked"]["at"] for cells in by_data.values() for cell in cells)
    paper = {row["row"]: row["figures"] for row in published["anyburl"]}
    zero = {name: paper["AnyBURL 1000s"][name][metric] for name in names}
    series: dict[str, list[Point | None]] = {}
    for aggregation in ("max", "noisy-or-top:5", "tuned"):
        found = [find(by_data[name], last, aggregation) for name in names]
        points = [our_point(metric, cell, zero[name]) for name, cell in zip(names, found, strict=True)]
        series[f"anyburl, {aggregation}, {seconds(last)}"] = points
    others = {"the paper's AnyBURL 10000s": {name: paper["AnyBURL 10000s"][name][metric] for name in names}}
    others["best embedding model"] = {name: best_models(name, published)[metric][1] for name in names}
    for label, values in others.items():
        series[label] = [(values[name] - zero[name], (0.0, 0.0)) for name in names]
    return series


def our_point(metric: str, cell: Cell | None, zero: float) -> Point | None:
    """Return a figure of ours in the paper's unit, as a difference."""
    if cell is None:
        return None
    metrics, unit = cell["results"]["metrics"], 1 if metric == "mrr" else 100
    value, (low, high) = metrics[metric], metrics["interval"][metric]
    return unit * value - zero, (unit * (value - low), unit * (high - value))


def find(cells: list[Cell], last: float, aggregation: str) -> Cell | None:
    """Return the cell of an aggregation at the end of the run."""
    for cell in cells:
        if is_main(cell, last) and cell["results"]["protocol"]["aggregation"] == aggregation:
            return cell
    return None
