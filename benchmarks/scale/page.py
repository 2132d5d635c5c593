"""docs/scale.md and its picture, made from the stored JSON and from nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "paper"))

from page.cells import gigabytes, listed, table, thousands
from page.pictures import COLOURS, MARKERS, panels, save, share_legend

from scale.fit import Size, costs_of, load_sizes, n_triples


def render(results: Path, docs: Path) -> Path:
    """Write the page and return where it is."""
    sizes = load_sizes(results)
    projected = json.loads((results / "scale-fit.json").read_text("utf-8"))["results"]
    parts = [
        introduction(sizes, projected.get("note", "")),
        measured_section(sizes, projected, docs / "results"),
        rates_section(sizes),
        profiles_section(sizes[-1]),
        planted_section(sizes),
        recount_section(sizes),
        growth_section(sizes, projected),
        projection_section(sizes, projected),
    ]
    page = docs / "scale.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(part.rstrip() + "\n" for part in parts), "utf-8")
    return page


def introduction(sizes: list[Size], note: str) -> str:
    """Say what was measured, where and how."""
    machines = [size["machine"] for size in sizes]
    processors = sorted({f"{machine['cores']} cores of an {machine['processor']}" for machine in machines})
    dates = sorted(machine["date"] for machine in machines)
    commits = sorted({machine["commit"] for machine in machines})
    first = machines[0]
    commands = "\n".join(size["command"] for size in sizes)
    return (
        "# Scale: how time and memory grow with the graph\n\n"
        "The graphs are made up by `python benchmarks/generate.py`: typed relations, "
        "power-law degrees, planted rules whose true confidence is known. Every step ran in a process of its own, so "
        "that its peak memory is its own. Memory counts mapped files as far as they were read; what a process holds of "
        "its own, without them, is told beside it.\n\n"
        f"Measured from {dates[0]} to {dates[-1]} (UTC) on {listed(processors)}, Python {first['python']}, Numba "
        f"{first['numba']}, NumPy {first['numpy']}, Polars {first['polars']}; commit {listed(commits)}, by\n\n"
        f"```text\n{commands}\n```\n\n"
        + (f"{note}\n\n" if note else "")
        + "This page is made by `python benchmarks/bench_scale.py --fit` from `benchmarks/results/scale-*.json`."
    )


def measured_section(sizes: list[Size], projected: dict[str, Any], pictures: Path) -> str:
    """Return what each step cost at each size."""
    learned, ranked = sizes[-1]["learn"], sizes[-1]["rank"]
    budgets = sorted({size["asked"]["seconds"] for size in sizes})
    has_index = all(size["index"].get("seconds") for size in sizes)
    header = ["train triples", "entities", "relations", "generate (s)", "index (s)", "index on disk (GB)", "open (s)"]
    rows = [making_row(size) for size in sizes]
    costs = [
        "train triples",
        "paths/s",
        "bodies/s",
        "rules/s",
        "binary rules",
        "longest span (s)",
        "prepare ranking (s)",
        "queries/s",
        "MRR",
    ]
    memory = [
        "train triples",
        "generate (GB)",
        "index (GB)",
        "open (GB)",
        "learn (GB)",
        "its own",
        "rank (GB)",
        "its own",
    ]
    return "\n".join(
        [
            "## Measured\n",
            table(header, rows) + "\n",
            *(
                []
                if has_index
                else ["Where no index was made, every step reads the text: that is what opening takes.\n"]
            ),
            f"Learning had {listed([f'{seconds:g}' for seconds in budgets])} s and default options on "
            f"{learned['threads']} threads; paths, bodies and rules are per second and core. "
            f"Then {thousands(ranked['queries'])} queries (a sample of the test triples, both directions) were ranked "
            f"by max with the rules found, on {ranked['threads']} threads. A time span is meant to take 1 s: the "
            "longest one tells of stalls.\n",
            table(costs, [work_row(size) for size in sizes]) + "\n",
            "Peak memory of each step:\n",
            table(memory, [memory_row(size) for size in sizes]) + "\n",
            draw(sizes, projected, pictures),
        ]
    )


def making_row(size: Size) -> list[str]:
    """Return what it takes to have a graph ready."""
    made, indexed = size["generate"], size["index"]
    index = [figure(indexed.get("seconds")), figure(indexed["disk_mb"] / 1e3 if "disk_mb" in indexed else None)]
    counts = [thousands(made[name]) for name in ("train", "entities", "relations")]
    return [*counts, figure(made["seconds"]), *index, figure(size["open"]["seconds"])]


def work_row(size: Size) -> list[str]:
    """Return what learning and ranking gave."""
    learned, ranked = size["learn"], size["rank"]
    rates = [thousands(learned["per_core_second"][name]) for name in ("paths", "bodies", "rules")]
    ranking = [figure(ranked["index_seconds"]), thousands(ranked["queries_per_second"]), f"{ranked['mrr']:.3f}"]
    binary = thousands(learned["binary_rules"])
    return [thousands(n_triples(size)), *rates, binary, figure(learned["longest_span"]), *ranking]


def memory_row(size: Size) -> list[str]:
    """Return the peak memory of every step."""
    has_index = size["index"].get("seconds") is not None
    steps = [step for step in ("generate", "index", "open", "learn", "rank") if has_index or step != "index"]
    shown = {"generate": "", "index": figure(None)}
    shown |= {step: figure(gigabytes(size[step]["peak_memory_mb"])) for step in steps}
    for step in ("learn", "rank"):
        shown[step] += f" | {figure(gigabytes(size[step]['peak_private_mb']))}"
    return [thousands(n_triples(size)), *shown.values()]


def rates_section(sizes: list[Size]) -> str:
    """Return what one core does a second at each size, and how much of the smallest graph's rate is left."""
    parts = [
        "## What one core does a second\n",
        "Each profile for itself, on one thread: paths sampled, and bodies (of sampled paths, in random order) "
        "harvested with a budget of 10 000 edges a body, at which a body costs about the same on every graph, and "
        "in the way that `learn` harvests on large graphs: until every confidence is known. `left` is the share of the "
        "smallest graph's rate.\n",
    ]
    for profile in sizes[0]["rates"]["profiles"]:
        rows = [rates_row(size, sizes[0], profile) for size in sizes]
        header = ["train triples", "attempts", "left", "paths", "left"]
        header += ["bodies, small budget", "left", "bodies", "left", "edges", "left", "longest call (s)"]
        parts += [f"{profile}:\n", table(header, rows) + "\n"]
    parts.append(
        "An attempt touches a few places far apart in memory: what it loses are misses of caches and page tables. "
        "Fewer paths are left than attempts where fewer of them close. Fewer bodies are left than edges where bodies "
        "have grown: on a larger graph a relation has more starts, and a hub, which paths come across often, more "
        "members, up to the budget. What is lost in edges is memory again.\n"
    )
    return "\n".join(parts)


def rates_row(size: Size, first: Size, profile: str) -> list[str]:
    """Return the rates of one profile at one size."""
    here, there = (one["rates"]["profiles"][profile] for one in (size, first))
    budgets = [name for name in here if name.isdecimal()]
    row = [thousands(n_triples(size))]
    for name in ("attempts_per_second", "paths_per_second"):
        row += rate(here[name], there[name])
    for budget in budgets:
        row += rate(here[budget]["bodies_per_second"], there[budget]["bodies_per_second"])
    row += rate(here[budgets[-1]]["edges_per_second"], there[budgets[-1]]["edges_per_second"])
    return [*row, figure(max(here[budget]["longest_call"] for budget in budgets))]


def rate(here: float, there: float) -> list[str]:
    """Write a rate, and what it is of another."""
    return [thousands(here), f"{100 * here / there:.0f} %" if there else ""]


def profiles_section(size: Size) -> str:
    """Return what each path profile gave on the largest graph."""
    rows = [
        [name, *(thousands(entry[key]) for key in ("core_seconds", "attempts", "paths", "new_bodies", "new_rules"))]
        for name, entry in size["learn"]["profiles"].items()
    ]
    header = ["profile", "core-seconds", "attempts", "paths", "new bodies", "new rules"]
    return (
        f"## Where the time went\n\nBy path profile, on the largest graph ({thousands(n_triples(size))} triples):\n\n"
        + table(header, rows)
    )


def planted_section(sizes: list[Size]) -> str:
    """Return how many planted rules were found, and how true their confidences are."""
    rows = []
    for size in sizes:
        planted = size["learn"]["planted"]
        found = [entry for entry in planted if entry["found"]]
        exact = sum(entry["exact"] for entry in found)
        furthest = max((abs(entry["difference"]) for entry in found), default=None)
        lengths = [f"{sum(e['found'] for e in of)} of {len(of)}" for of in by_shape(planted).values()]
        rows.append([thousands(n_triples(size)), *lengths, exact, "" if furthest is None else f"{furthest:.4f}"])
    header = [
        "train triples",
        *by_shape(sizes[0]["learn"]["planted"]),
        "with exact counts",
        "largest error of confidence",
    ]
    return (
        "## Planted rules\n\nThe generator counts predictions and support of the rules that it plants. Found in the "
        "learning time, by type and length:\n\n" + table(header, rows)
    )


def recount_section(sizes: list[Size]) -> str:
    """Return how many estimates keep their promise."""
    rows = []
    for size in sizes:
        for which, words in (("all", "all"), ("confident", "above 0.05")):
            found = size["recount"].get(which)
            if found and found["rules"]:
                shares = [f"{100 * found[name]:.1f} %" for name in ("inside", "within_0.02", "within_0.02_or_a_tenth")]
                margin = f"{found['median_margin']:.4f}"
                rows.append([thousands(n_triples(size)), words, thousands(found["rules"]), *shares, margin])
    header = ["train triples", "true confidence", "rules recounted", "inside their interval", "within 0.02"]
    header += ["within 0.02 or a tenth", "median margin"]
    return (
        "## Estimates, recounted\n\nOn graphs of more than 5 million triples, binary bodies are counted until the "
        "confidences of their rules are known, each within its margin (column `margin`) with 95 % certainty. Of the "
        "estimated binary rules that were learned, up to 1 000 drawn at random were counted to the end, as far as "
        "ten minutes went.\n\n" + table(header, rows)
    )


def by_shape(planted: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group planted rules by type and length."""
    shapes: dict[str, list[dict[str, Any]]] = {"B 1": [], "B 2": [], "B 3": [], "Uc 1": [], "Ud 1": []}
    for entry in planted:
        head, _, body = entry["rule"].partition(" <= ")
        kind = "B" if "(X,Y)" in head else "Ud" if "(X,A)" in body else "Uc"
        shapes[f"{kind} {body.count('(')}"].append(entry)
    return shapes


def growth_section(sizes: list[Size], projected: dict[str, Any]) -> str:
    """Return the fitted powers."""
    costs = costs_of(sizes)
    rows = [
        [
            f"{name} ({fitted['unit']})",
            *(figure(costs[name].value(size)) for size in sizes),
            f"{fitted['exponent']:.2f}",
            f"{fitted['off']:.2f}",
        ]
        for name, fitted in projected["fits"].items()
    ]
    header = ["cost", *(f"at {thousands(n_triples(size))}" for size in sizes), "power", "worst fit, factor"]
    shared = [
        [name, *(figure(fitted[key]) for key in ("per_triple", "per_rule")), f"{fitted['off']:.2f}"]
        for name, fitted in projected["shares"].items()
    ]
    return (
        "## Growth\n\nEach cost was fitted by a power of the number of triples (least squares of the logarithms). A "
        "power of 0 means that the cost does not depend on the size of the graph.\n\n"
        + table(header, rows)
        + "\n\nSome costs depend on the rules that were found, too, and are divided between triples and rules (least "
        "squares of relative errors). Memory is that above what the process held before it opened the data. Where the "
        "sizes cannot tell the two apart, all is put down to the triples.\n\n"
        + table(["cost", "per triple", "per rule", "worst fit, factor"], shared)
    )


def projection_section(sizes: list[Size], projected: dict[str, Any]) -> str:
    """Return what the powers say of graphs that were not measured."""
    targets, goal, peer = projected["targets"], projected["goal"], projected["peer"]
    cores = list(next(iter(targets.values()))["hours"])
    rows = [projection_row(name, target) for name, target in targets.items()]
    header = [
        "graph",
        "triples",
        "index (GB)",
        "learn (GB)",
        "rank (GB)",
        "index on disk (GB)",
        "index (h)",
        "prepare ranking (h)",
    ]
    header += [f"learn + rank (h), {n} cores" for n in cores] + ["dollars"]
    price = projected["price"]
    ours = targets[peer["target"]]["memory_gb"]["largest"]
    times = max(target["triples"] for target in targets.values()) / n_triples(sizes[-1])
    return (
        "## Projection\n\nThis was not measured: it is what the powers above give for "
        f"{listed(list(targets))}, up to {times:,.0f} times the largest graph measured. Hours are for the harvest of "
        f"{thousands(goal['bodies'])} bodies and for ranking {thousands(goal['queries'])} queries, those of several "
        f"cores as if the work were divided without loss; memory is that with {thousands(goal['rules'])} rules. "
        f"Dollars are those of the cores' hours at {price['dollars_per_core_hour']} an hour and core, "
        f"{price['source']}. Real graphs differ from generated ones.\n\n"
        + table(header, rows)
        + f"\n\n{peer['name']} {peer['said']} {peer['memory_gb']} GB for {peer['target']}. That is "
        f"{figure(peer['ratio'])} times the {figure(ours)} GB projected here."
    )


def projection_row(name: str, target: dict[str, Any]) -> list[str]:
    """Return the figures of one graph."""
    memory = [figure(target["memory_gb"].get(step)) for step in ("index", "learn", "rank")]
    hours = [figure(sum(steps.values())) for steps in target["hours"].values()]
    return [
        name,
        thousands(target["triples"]),
        *memory,
        figure(target["disk_gb"]),
        figure(target["index_hours"]),
        figure(target["preparation_hours"]),
        *hours,
        figure(target["dollars"]),
    ]


def draw(sizes: list[Size], projected: dict[str, Any], pictures: Path) -> str:
    """Draw time and memory over the number of triples, both on scales of powers of ten."""
    drawing, axes = panels(2, 4.8, 3.8)
    x = [n_triples(size) / 1e6 for size in sizes]
    for place, step in enumerate(("generate", "index", "open", "learn", "rank")):
        if step == "index" and not all(size["index"].get("seconds") for size in sizes):
            continue
        style = {"color": COLOURS[place], "marker": MARKERS[place], "label": step}
        if step != "learn":
            axes[0].plot(x, [size[step]["seconds"] for size in sizes], **style)
        axes[1].plot(x, [gigabytes(size[step]["peak_memory_mb"]) for size in sizes], **style)
    for axis, label in zip(axes, ("seconds", "peak memory (GB)"), strict=True):
        axis.set(xlabel="train triples (millions)", ylabel=label, xscale="log", yscale="log")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_formatter("{x:g}")
            side.set_minor_formatter("")
    share_legend(drawing, axes, 5)
    return save(drawing, pictures, "scale", "Seconds and peak memory of each step over the number of triples")


def figure(value: float | None) -> str:
    """Write a figure with three digits, or a dash for none."""
    if value is None:
        return "-"
    return thousands(value) if value >= 1000 else f"{value:.3g}"
