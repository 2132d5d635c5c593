"""Beyond the paper, fifth part: rules alone and with an embedding, beside models of graph neural networks."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

from page.cells import table
from page.stats import over_seeds

HEADER = ["", "seeds", "hits@1", "hits@10", "MRR", "trained in (s)", "ranked in (s)"]
ROWS = ("max", "noisy-or-top:5", "tuned", "tuned, blocked", "embedding", "hybrid")
NAMES = {"embedding": "the embedding alone (ComplEx)", "hybrid": "hybrid: tuned with the embedding"}
PUBLISHED = {"FB15k-237": {"NBFNet": 0.415, "AdaProp": 0.417}, "WN18RR": {"NBFNet": 0.551, "AdaProp": 0.562}}


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return MRR and hits of every way to rank, over seeds."""
    path = results.parents[1] / "results" / "tuned.json"
    if not path.is_file():
        return ""
    stored: dict[str, Any] = json.loads(path.read_text("utf-8"))
    found, machine = stored["results"], stored["machine"]
    parts = [
        "## Beyond the paper: rules alone, and with an embedding\n",
        "The test split, filtered, realistic ties, connected pairs not blocked unless said. Rules are learned for 100 "
        "s or less on 2 cores, with a seed each; the mean over seeds with its standard deviation. Models learn from "
        "valid, and no test triple is read before ranking. Published figures are quoted from memory and still to be "
        "checked. Times were taken while other work shared the cores.\n",
    ]
    for name, runs in found.items():
        parts += [
            f"### {name}\n",
            table(["", "seeds", "hits@1", "hits@10", "MRR", "trained in (s)", "ranked in (s)"], rows(runs)),
        ]
        parts += ["", *(f"- {model}, published: {mrr:.3f}" for model, mrr in PUBLISHED.get(name, {}).items()), ""]
    parts.append(
        f"Measured until {machine['date']} (UTC), commit {machine['commit']}; embeddings trained on one NVIDIA H200. "
        "To measure again: `python benchmarks/bench_tuned.py --again`."
    )
    return "\n".join(parts) + "\n"


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
            told.append([NAMES.get(way, way), str(len(own)), *figures, *times])
    return told
