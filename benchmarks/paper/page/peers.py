"""Beyond the paper, first part: quality per core-second beside AnyBURL-23-1, and its confidences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page.cells import METRICS, Cell, figure, load_cells, of_largest_scale, seconds, table, thousands
from page.pictures import COLOURS, MARKERS, panels, save, share_legend

NAMES = ("WN18RR", "FB15k-237")


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return our curve and the peers' figures."""
    ours = {name: own_cells(of_largest_scale(load_cells(results, "table4")), name) for name in NAMES}
    peers = [cell for cell in load_cells(results, "beyond") if cell["name"].startswith("peers-")]
    names = [name for name in NAMES if ours[name]]
    if not names:
        return ""
    parts = [
        "## Beyond the paper: quality per core-second\n",
        f"`max` aggregation, connected pairs not blocked. The peers' figures were {published['peers']['from']}. "
        "*Exact counts* are AnyBURL's rules recounted with `rescore` and ranked by anyburl.\n",
        draw({name: ours[name] for name in names}, published["peers"], pictures),
        "",
    ]
    for name in names:
        of_peer = [cell for cell in peers if cell["asked"]["data"] == name]
        parts += [data_table(name, ours[name], of_peer, published["peers"]), ""]
        parts += [*sentences(name, ours[name], of_peer, published["peers"]), ""]
    return "\n".join(parts) + "\n"


def own_cells(cells: list[Cell], name: str) -> list[Cell]:
    """Return our evaluations by max without blocking, by time."""
    chosen = [
        cell
        for cell in cells
        if cell["asked"]["data"] == name
        and cell["asked"]["rank"]["aggregation"] == "max"
        and not cell["results"]["protocol"]["block_connected"]
    ]
    by_time = {cell["asked"]["at"]: cell for cell in chosen}
    return [by_time[at] for at in sorted(by_time)]


def peer_cost(published: dict[str, Any], name: str) -> int:
    """Return the core-seconds in which AnyBURL-23-1 learned its rules."""
    return int(published["threads"] * published["learn"][name]["seconds"][-1])


def data_table(name: str, ours: list[Cell], peers: list[Cell], published: dict[str, Any]) -> str:
    """Return rows of ours, of AnyBURL's rules ranked by us, and of the peers."""
    rows = []
    for cell in ours:
        results = cell["results"]
        core_seconds = results["elapsed"] * results["run"]["threads"]
        rows.append([f"anyburl, {seconds(cell['asked']['at'])}", f"{core_seconds:.0f}", *ranked(results)])
    for cell in peers:
        words = f"AnyBURL-23-1's rules, {cell['asked']['counts']} counts, ranked by anyburl"
        rows.append([words, peer_cost(published, name), *ranked(cell["results"])])
    for row in published["rank"]:
        if row["data"] == name and row["aggregation"] == "max":
            words = f"AnyBURL-23-1's rules, ranked by {row['tool']}" + (f" ({row['note']})" if "note" in row else "")
            figures = [figure(metric, row[metric]) for metric in METRICS]
            rows.append([words, peer_cost(published, name), thousands(row["rules"]), *figures, row["seconds"]])
    return table([name, "core-seconds of learning", "rules", "hits@1", "hits@10", "MRR", "ranking (s)"], rows)


def ranked(results: dict[str, Any]) -> list[str]:
    """Return rules, figures and ranking time."""
    figures = [figure(metric, results["metrics"][metric]) for metric in METRICS]
    return [thousands(results["protocol"]["rules"]), *figures, f"{results['seconds']['rank']:.1f}"]


def sentences(name: str, ours: list[Cell], peers: list[Cell], published: dict[str, Any]) -> list[str]:
    """Say when we pass the best peer, and how far AnyBURL's confidences are off."""
    rows = [row for row in published["rank"] if row["data"] == name and row["aggregation"] == "max"]
    best = max(rows, key=lambda row: row["mrr"])
    passed = [cell for cell in ours if cell["results"]["metrics"]["mrr"] >= best["mrr"]]
    told = [
        f"- {name}: the best peer ({best['tool']}) has an MRR of {best['mrr']:.4f} after "
        f"{peer_cost(published, name)} core-seconds; "
        + (
            f"anyburl reaches it after {passed[0]['results']['elapsed']:.3g} s."
            if passed
            else "anyburl stays below it."
        )
    ]
    for cell in peers:
        ratios = cell["results"]["run"].get("confidence_ratio")
        if ratios:
            words = ", ".join(f"{kind} {ratio:.2f}" for kind, ratio in ratios.items())
            told.append(f"- Median ratio of AnyBURL's confidences to the exact ones, by type and length: {words}.")
    return told


def draw(ours: dict[str, list[Cell]], published: dict[str, Any], pictures: Path) -> str:
    """Draw MRR over core-seconds of learning."""
    drawing, axes = panels(len(ours), 5.0, 4.0)
    for axis, (name, cells) in zip(axes, ours.items(), strict=True):
        x = [cell["results"]["elapsed"] * cell["results"]["run"]["threads"] for cell in cells]
        axis.plot(x, [cell["results"]["metrics"]["mrr"] for cell in cells], "o-", color=COLOURS[0], label="anyburl")
        rows = [row for row in published["rank"] if row["data"] == name and row["aggregation"] == "max"]
        for place, row in enumerate(rows, 1):
            look = {"color": COLOURS[place], "marker": MARKERS[place], "s": 40}
            axis.scatter([peer_cost(published, name)], [row["mrr"]], label=f"AnyBURL-23-1, {row['tool']}", **look)
        axis.set(title=name, xlabel="core-seconds of learning", ylabel="MRR", xscale="log")
    share_legend(drawing, axes, 4)
    return save(drawing, pictures, "quality", "MRR over core-seconds of learning, beside AnyBURL-23-1")
