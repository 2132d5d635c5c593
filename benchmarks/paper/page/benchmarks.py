"""Beyond the paper, last part: forecasts, promises and distilled rules, from `benchmarks/results`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from page.cells import listed, load_stored, table, thousands
from page.stats import over_seeds

HISTORIES = ("ICEWS14", "ICEWS18", "YAGO")
CURVES = ("WN18RR", "FB15k-237", "CoDEx-S")
PROBABILITIES = ("0.5", "0.8", "0.9")
WAYS = {
    "model, single": "model",
    "model, multi": "model, multi-step",
    "sum, single": "rules alone",
    "sum, multi": "rules alone, multi-step",
}


def repeated(stored: list[dict[str, Any]]) -> str:
    """Say when and on which commits files were measured, and by which commands."""
    commands = list(dict.fromkeys(f"`{file['command']}`" for file in stored))
    dates = sorted(file["machine"]["date"] for file in stored)
    commits = list(dict.fromkeys(commit for file in stored if (commit := file["machine"]["commit"])))
    when = dates[0] if dates[0] == dates[-1] else f"from {dates[0]} to {dates[-1]}"
    return f"Measured {when} (UTC), commit {listed(commits)}. To repeat: {listed(commands)}."


def forecasts(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return MRR of temporal rules, with what is published on the same splits and filter."""
    files = {name: stored for name in HISTORIES if (stored := load_stored(results, f"temporal-quality-{name}"))}
    if not files:
        return ""
    rows = []
    for name, stored in files.items():
        runs = stored["results"]["runs"]
        for kind in WAYS:
            chosen = [run for run in runs if kind == f"{run['protocol']['aggregation']}, {run['protocol']['steps']}"]
            if not chosen:
                continue
            [(best, _)] = Counter(run["model"] for run in chosen).most_common(1)
            same = [run for run in chosen if run["model"] == best]
            words = f"{WAYS[kind]} ({best})" if kind.startswith("model") else WAYS[kind]
            figures = (over_seeds([run["metrics"][metric] for run in same]) for metric in ("mrr", "hits@1", "hits@10"))
            rows.append([f"**{name}**, {words}", str(len(same)), *figures])
        rows += [
            [f"{name}, {model} ({source})", "", f"{mrr / 100:.3f}", "", ""]
            for model, (mrr, source) in published["temporal"].get(name, {}).items()
        ]
    return "\n".join(
        [
            "## Beyond the paper: forecasts\n",
            "Facts with times, test split, single-step unless noted, time-aware filter, realistic ties, both "
            "directions; means over seeds with their standard deviation. Published figures, with where they were read, "
            "are in `published.json`.\n",
            table(["", "seeds", "MRR", "hits@1", "hits@10"], rows),
            "",
            repeated(list(files.values())),
            "",
        ]
    )


def promises(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return how likely proposed facts were said to be, and how many of them are true."""
    if not (stored := load_stored(results, "promises")):
        return ""
    rows, machines = [], []
    for name, part in stored["results"].items():
        if "promises" not in part:
            continue
        machines.append({"command": stored["command"], "machine": part["machine"]})
        for least in PROBABILITIES:
            found = part["promises"].get(least)
            if found and found["facts"]:
                hidden = f"{100 * found['hidden_found_share']:.1f} %"
                shares = (f"{found['promised']:.3f}", f"{found['true']:.3f} ± {found['sampling_error']:.3f}")
                rows.append([name, least, thousands(found["facts"]), *shares, hidden])
    return "\n".join(
        [
            "## Beyond the paper: promises\n",
            "Facts are hidden as if the graph had lost them; of what is proposed with at least some probability, how "
            "much is true? ± is the standard error over subjects. Debian's packages are complete by nature; elsewhere "
            "the test split is hidden, and what it does not state counts as false.\n",
            table(["data, aggregation", "at least", "facts", "promised", "true", "hidden facts recovered"], rows),
            "",
            repeated(machines),
            "",
        ]
    )


def distilled(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return how much of the MRR few rules keep, chosen by distilling and by thresholds."""
    files = {name: stored for name in CURVES if (stored := load_stored(results, f"distil-curve-{name}"))}
    if not files:
        return ""
    rows = []
    for name, stored in files.items():
        runs = stored["results"]
        by_support = [dict(map(tuple, run["support x confidence"])) for run in runs]
        for row, first in enumerate(runs[0]["distilled"]):
            shares = [100 * run["distilled"][row]["share"] for run in runs]
            thresholds = [100 * shares_of[first["rules"]] for shares_of in by_support if first["rules"] in shares_of]
            ours, theirs = (over_seeds_of_percent(values) for values in (shares, thresholds))
            rows.append([name, thousands(runs[0]["rules"]), thousands(first["rules"]), str(len(runs)), ours, theirs])
    return "\n".join(
        [
            "## Beyond the paper: few rules\n",
            "The share of the MRR of all rules on the test split, in percent, `max`: of rules that `anyburl distil` "
            "chose, and of as many with the highest support times confidence.\n",
            table(["", "all rules", "kept", "seeds", "distilled", "by support x confidence"], rows),
            "",
            repeated(list(files.values())),
            "",
        ]
    )


def over_seeds_of_percent(values: list[float]) -> str:
    """Return a mean with one digit and, over several runs, how far they spread."""
    if not values:
        return ""
    mean = sum(values) / len(values)
    return f"{mean:.1f}" + (f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else "")
