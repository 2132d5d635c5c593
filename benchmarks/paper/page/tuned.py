"""Beyond the paper, fifth part: rules alone and with an embedding, beside models of graph neural networks."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

from page.cells import load_stored, table
from page.stats import over_seeds

HEADER = ["", "seeds", "blocked", "hits@1", "hits@10", "MRR", "95 % interval", "trained in (s)", "ranked in (s)"]
ROWS = (
    "max",
    "noisy-or-top:5",
    "tuned",
    "tuned, blocked",
    "tuned, no valid",
    "tuned, no valid, blocked",
    "embedding",
    "hybrid",
)
NAMES = {
    "tuned, blocked": "tuned",
    "tuned, no valid": "tuned on facts of train, no valid split",
    "tuned, no valid, blocked": "the same, connected pairs blocked",
    "embedding": "the embedding alone (ComplEx)",
    "hybrid": "hybrid: tuned with the embedding",
}
RED_GNN = "[README of RED-GNN](https://github.com/LARS-research/RED-GNN)"
NBFNET = "[README of NBFNet](https://github.com/DeepGraphLearning/NBFNet)"
ADAPROP = "[README of AdaProp](https://github.com/LARS-research/AdaProp)"
PUBLISHED = {
    "FB15k-237": {"RED-GNN": (0.374, RED_GNN), "NBFNet": (0.415, NBFNET), "AdaProp": (0.417, ADAPROP)},
    "WN18RR": {"RED-GNN": (0.533, RED_GNN), "NBFNet": (0.551, NBFNET), "AdaProp": (0.562, ADAPROP)},
    "umls": {"RED-GNN": (0.964, RED_GNN), "AdaProp": (0.970, ADAPROP)},
}
"""MRR by graph neural networks, as their authors give it."""


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return MRR and hits of every way to rank, over seeds."""
    if not (stored := load_stored(results, "tuned")):
        return ""
    found, machine = stored["results"], stored["machine"]
    parts = [
        "## Beyond the paper: rules alone, and with an embedding\n",
        "Test split, filtered, realistic ties, connected pairs blocked only where noted. Rules are learned for 60 s or "
        "less on 2 cores, one run per seed. Values are means over seeds with their standard deviation; the interval is "
        "that of the first seed, over test triples. Models learn from valid unless noted, and no test triple is read "
        "before ranking. Times were taken at high priority while other work ran on the same cores. Published work may "
        "split UMLS differently.\n",
    ]
    for name, runs in found.items():
        parts += [f"### {name}\n", *sample_note(runs), table(HEADER, rows(runs)), ""]
        parts += [
            f"- {model}, published: {mrr:.3f} ({source})" for model, (mrr, source) in PUBLISHED.get(name, {}).items()
        ]
        parts.append("")
    parts.append(
        f"Measured until {machine['date']} (UTC), commit {machine['commit']}; embeddings trained on one NVIDIA H200. "
        "To repeat: `python benchmarks/bench_tuned.py --again`."
    )
    return "\n".join(parts) + "\n\n" + ablation(results.parents[1] / "results" / "ablation.json")


def sample_note(runs: dict[str, Any]) -> list[str]:
    """Say where not all of the test split was ranked."""
    samples = sorted({run["sample"] for run in runs.values() if "sample" in run})
    return [
        f"Every row ranks the same {sample:,} test triples, drawn at random, since the whole split takes too long. "
        "Times were taken at low priority on a busy machine.\n"
        for sample in samples
    ]


def ablation(path: Path) -> str:
    """Return what each part of the model is worth."""
    if not path.is_file():
        return ""
    stored: dict[str, Any] = json.loads(path.read_text("utf-8"))
    found, machine = stored["results"], stored["machine"]
    ways = dict.fromkeys(way for of_data in found.values() for way in of_data)
    lines = [[way, *(f"{found[name][way]['mrr']:.4f}" if way in found[name] else "" for name in found)] for way in ways]
    return (
        "### What each part of the model is worth\n\n"
        "MRR on valid questions, each ranked by a model that has not seen it, for the first seed unless noted; test is "
        "not used. Where features are removed, the model is trained again without them.\n\n"
        + table(["", *found], lines)
        + f"\n\nMeasured until {machine['date']} (UTC), commit {machine['commit']}, by `{stored['command']}`.\n"
    )


def rows(runs: dict[str, Any]) -> list[list[str]]:
    """Return a row for each way to rank that was measured."""
    told = []
    for way in ROWS:
        own = [run[way] for run in runs.values() if way in run]
        if own:
            figures = [over_seeds([run[metric] for run in own]) for metric in ("hits@1", "hits@10", "mrr")]
            trained = [run["tuned"]["seconds"] for run in own if "tuned" in run]
            ranked = [run["ranked_in"] for run in own if "ranked_in" in run]
            times = [f"{mean(seconds):.0f}" if seconds else "" for seconds in (trained, ranked)]
            blocked = "yes" if own[0].get("block_connected") else "no"
            interval = " to ".join(f"{end:.3f}" for end in own[0].get("mrr_interval", ()))
            told.append([NAMES.get(way, way), str(len(own)), blocked, *figures, interval, *times])
    return told
