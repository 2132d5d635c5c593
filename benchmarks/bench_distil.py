"""The rules that matter: how well few rules rank, beside thresholds; what `learn` keeps; what a distilled run saves.

python benchmarks/bench_distil.py curve WN18RR CoDEx-S FB15k-237 --seeds 1 2 3   MRR on test by size, and by thresholds
python benchmarks/bench_distil.py keep WN18RR CoDEx-S FB15k-237 FB15k --seeds 1 2 3   default options against --keep all
python benchmarks/bench_distil.py keep FOLDER --seconds 30 --split valid         the same on other data, such as Debian
python benchmarks/bench_distil.py tuned FB15k-237 --rules 200000                 tuned on few rules against all
                                             (and hybrid, with --embeddings FOLDER/FB15k-237-SEED/embedding.safetensors)
python benchmarks/bench_distil.py large 10000000 --rules 10000                   time and memory on a generated graph

All rules of a data set are learned once for each seed and kept in `--scratch`, as are the results of each seed: a
command that was stopped goes on where it was. After a change of the code, give another `--scratch`. Each command runs
in a process of its own, whose peak memory is measured. Results are in benchmarks/results/distil-PART-NAME.json, curves
beside as plots.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import anyburl
from anyburl.models.distilling.keeping import rules_to_keep
from anyburl.models.embedding import FILE as EMBEDDING
from anyburl.rules import columns as measures
from anyburl.tools.plotting import COLOURS, new_figure, ready_axes
from anyburl.tools.plotting import save as save_figure
from common import HERE, save, shared, timed
from synthetic import generate_graph

SIZES = {
    "WN18RR": (100, 1_000, 5_000),
    "FB15k-237": (5_000, 50_000, 200_000),
    "CoDEx-S": (100, 500, 5_000),
}
OTHER_SIZES = (100, 1_000, 10_000)
BARS = {
    ("WN18RR", 100): 0.91,
    ("WN18RR", 1_000): 0.96,
    ("WN18RR", 5_000): 0.98,
    ("FB15k-237", 5_000): 0.82,
    ("FB15k-237", 50_000): 0.97,
    ("FB15k-237", 200_000): 0.995,
    ("CoDEx-S", 500): 0.95,
}
SECONDS = {"WN18RR": 60.0, "CoDEx-S": 30.0, "FB15k-237": 100.0, "FB15k": 100.0}

Rows = NDArray[np.int64]


def main() -> None:
    """Measure one part on each of the data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["curve", "keep", "tuned", "large"])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--rules", type=int, default=200_000)
    parser.add_argument("--split", default="test")
    parser.add_argument("--embeddings", type=Path, help="for hybrid, as bench_tuned.py takes them")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "bench-distil")
    asked = parser.parse_args()
    asked.scratch.mkdir(parents=True, exist_ok=True)
    measure = {"curve": curve, "keep": keep, "tuned": tuned, "large": large}[asked.part]
    for data in asked.data:
        results = [resumed(measure, data, seed, asked) for seed in asked.seeds]
        if asked.part == "curve":
            draw(data, results)
        save(f"distil-{asked.part}-{Path(data).name}", results)


def resumed(
    measure: Callable[[str, int, argparse.Namespace], dict[str, Any]], data: str, seed: int, asked: argparse.Namespace
) -> dict[str, Any]:
    """Return what was measured already and kept in `--scratch`, or measure it."""
    asked_for = f"{asked.part}-{Path(data).name}-{seed}-{asked.rules}-{asked.seconds}-{asked.split}"
    file: Path = asked.scratch / f"{asked_for}.json"
    if not file.is_file():
        file.write_text(json.dumps(measure(data, seed, asked)), "utf-8")
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def source_of(data: str, asked: argparse.Namespace) -> str:
    """Return a folder as it is, a name as the folder of that data set, and a number as a graph of so many triples."""
    if data.isdigit():
        folder: Path = asked.scratch / f"graph-{data}"
        if not (folder / "planted.json").is_file():
            generate_graph(folder, int(data))
        return str(folder)
    return data if Path(data).exists() else str(shared() / "data" / data)


def anyburl_json(*arguments: object) -> dict[str, Any]:
    """Run a command with --json; return what it prints, and its seconds and peak memory."""
    command = [sys.executable, "-m", "anyburl", *map(str, arguments), "--json", "--quiet"]
    seconds, done = timed(lambda: subprocess.run(command, capture_output=True, text=True, check=True))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {**json.loads(done.stdout), "wall_seconds": round(seconds, 1), "peak_mb_so_far": round(peak)}


def all_rules(data: str, seed: int, asked: argparse.Namespace) -> Path:
    """Return a run with all rules."""
    run: Path = asked.scratch / f"all-{Path(data).name}-{seed}"
    if not (run / "rules.parquet").is_file():
        seconds = asked.seconds or SECONDS.get(data, 30.0)
        anyburl_json(
            "learn", source_of(data, asked), "--out", run, "--seconds", seconds, "--seed", seed, "--preset", "paper"
        )
    return run


def folder_mb(run: Path) -> float:
    """Return the size of a folder and of all that is in it."""
    return round(sum(file.stat().st_size for file in run.rglob("*") if file.is_file()) / 1e6, 1)


def mrr_of(rules: anyburl.RuleSet, data: anyburl.Dataset, split: str) -> float:
    """Return the MRR by max."""
    return float(anyburl.evaluate(rules, data, split=split).metrics["mrr"])


def curve(data: str, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Return the share of the MRR by the number of rules, distilled and by thresholds."""
    run, dataset = all_rules(data, seed, asked), anyburl.load_dataset(source_of(data, asked))
    rules, sizes = anyburl.RuleSet.load(run), SIZES.get(data, OTHER_SIZES)
    full = mrr_of(rules, dataset, asked.split)
    orders: dict[str, NDArray[Any]] = {
        "confidence": -rules.confidence(5),
        "support": -rules.support,
        "support x confidence": -measures.value(rules.support, rules.predictions),
    }
    found: dict[str, Any] = {
        "seed": seed,
        "rules": len(rules),
        "mrr": round(full, 4),
        **{
            name: [[n, round(mrr_of(rules.take(first_rows(key, n)), dataset, asked.split) / full, 4)] for n in sizes]
            for name, key in orders.items()
        },
        "distilled": [],
    }
    for n in sizes:
        small = asked.scratch / f"small-{Path(data).name}-{seed}-{n}"
        told = anyburl_json("distil", run, "--out", small, "--rules", n) if not small.is_dir() else {}
        kept = anyburl.RuleSet.load(small)
        share, bar = mrr_of(kept, dataset, asked.split) / full, BARS.get((data, n))
        row = {"rules": n, "kept": len(kept), "share": round(share, 4), "bar": bar, "met": bar is None or share >= bar}
        found["distilled"].append({**row, **{name: told.get(name) for name in ("wall_seconds", "peak_mb_so_far")}})
        print(data, seed, row, flush=True)
    return found


def first_rows(key: NDArray[Any], n: int) -> Rows:
    """Return the rows with the lowest keys."""
    return np.sort(np.argsort(key, kind="stable")[:n])


def draw(data: str, results: list[dict[str, Any]]) -> None:
    """Draw the curves of the first seed."""
    figure = new_figure()
    axes = ready_axes(figure.add_subplot(), f"{Path(data).name}: max, test split", "rules", "share of the MRR of all")
    names = ("support x confidence", "confidence", "support")
    for colour, name in zip(COLOURS[1:], names, strict=False):
        axes.plot(*zip(*results[0][name], strict=True), color=colour, marker="o", markersize=3, label=name)
    points = [(row["rules"], row["share"]) for row in results[0]["distilled"]]
    axes.plot(*zip(*points, strict=True), color=COLOURS[0], marker="o", markersize=4, label="distilled")
    axes.set_xscale("log")
    axes.legend(frameon=False)
    save_figure(figure, HERE / "results" / f"distil-curve-{Path(data).name}.png")


def keep(data: str, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Compare what `learn` keeps by default with all rules of one run, and the work on both.

    `lost_mrr` and `lost_hits@1` are about one and the same run: what would be kept of it is chosen here. How large the
    folder is that a plain `learn` leaves, and how long commands take on it, is measured on another run.
    """
    every, dataset = all_rules(data, seed, asked), anyburl.load_dataset(source_of(data, asked))
    seconds = asked.seconds or SECONDS.get(data, 30.0)
    rules = anyburl.RuleSet.load(every)
    n_rules, (choosing, kept) = len(rules), timed(partial(kept_rules, rules, dataset, seconds))
    del rules
    found: dict[str, Any] = {"seed": seed, "choosing_s": round(choosing, 1)}
    found |= {"all": {"rules": n_rules}, "kept": {"rules": len(kept) if kept else n_rules}}
    chosen = anyburl.evaluate(kept, dataset, split=asked.split).metrics if kept else None
    run = asked.scratch / f"kept-{Path(data).name}-{seed}"
    told = anyburl_json("learn", source_of(data, asked), "--out", run, "--seconds", seconds, "--seed", seed)
    measured = {}
    for name, folder in (("all", every), ("kept", run)):
        measured[name] = anyburl_json("evaluate", folder, "--split", asked.split)
        found[name] |= {
            "folder_mb": folder_mb(folder),
            "evaluate_s": measured[name]["wall_seconds"],
            "rules_s": anyburl_json("rules", folder)["wall_seconds"],
        }
    full = measured["all"]["metrics"]
    for metric in ("mrr", "hits@1"):
        found["all"][metric] = round(full[metric], 4)
        found["kept"][metric] = round((chosen or full)[metric], 4)
        found[f"lost_{metric}"] = round(full[metric] - (chosen or full)[metric], 4)
    found["learn"] = {name: told[name] for name in ("rules", "found", "wall_seconds", "peak_memory_mb")}
    print(data, found, flush=True)
    return found


def kept_rules(rules: anyburl.RuleSet, dataset: anyburl.Dataset, seconds: float) -> anyburl.RuleSet | None:
    """Return what a plain `learn` keeps of rules; None if that is all of them."""
    choose = rules_to_keep(dataset, anyburl.LearnOptions(seconds=seconds))
    reduced = choose(rules) if choose else None
    return reduced.rules if reduced else None


def tuned(data: str, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Compare tuned, and hybrid where there is an embedding, on a distilled set with the same on all rules."""
    run = all_rules(data, seed, asked)
    small = asked.scratch / f"tuned-{Path(data).name}-{seed}-{asked.rules}"
    if not small.is_dir():
        anyburl_json("distil", run, "--out", small, "--rules", asked.rules, "--aggregation", "tuned")
    found: dict[str, Any] = {"seed": seed, "rules": asked.rules}
    embedding = asked.embeddings and asked.embeddings / f"{Path(data).name}-{seed}" / EMBEDDING
    for aggregation in ("tuned", "hybrid") if embedding else ("tuned",):
        for name, folder in (("all", run), ("distilled", small)):
            if embedding:
                shutil.copy(embedding, folder / EMBEDDING)
            measured = anyburl_json("evaluate", folder, "--aggregation", aggregation, "--split", asked.split)
            found[f"{name}, {aggregation}"] = {
                "mrr": round(measured["metrics"]["mrr"], 4),
                "wall_seconds": measured["wall_seconds"],
                **measured["seconds"],
            }
    print(data, found, flush=True)
    return found


def large(data: str, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """Return how long distilling takes on a large graph, and in how much memory."""
    run = all_rules(data, seed, asked)
    told = anyburl_json(
        "distil", run, "--out", asked.scratch / f"large-{Path(data).name}-{seed}-{asked.rules}", "--rules", asked.rules
    )
    print(data, told, flush=True)
    return told


if __name__ == "__main__":
    main()
