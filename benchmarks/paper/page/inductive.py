"""Beyond the paper, fourth part: rules of one graph on another, whose entities are all new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page.cells import load_stored, table
from page.stats import over_seeds


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return MRR by max and tuned, with what is published beside it."""
    if not (stored := load_stored(results, "inductive")):
        return ""
    pairs, machine = stored["results"], stored["machine"]
    models = published["inductive"]
    sources = "; ".join(f"{model}: {figures['from']}" for model, figures in models.items())
    header = ["pair", "seeds", "max", "tuned", "tuned, hits@10", "hits@10 among 50", *models]
    parts = [
        "## Beyond the paper: new entities\n",
        "MRR on the second graph of a pair. Rules are learned on the first graph for 15 s or less, and the tuned model "
        "is trained on it; the second graph is used for questions only. Ranks are filtered, against all entities, with "
        "realistic ties and connected pairs not blocked. Values are means over seeds with their standard deviation. "
        "*hits@10 among 50* is the average result of GraIL's protocol with 49 sampled negatives. Published figures: "
        f"{sources}.\n",
        table(header, [row_of(name, found, models) for name, found in pairs.items()]),
        "",
        f"Measured until {machine['date']} (UTC), commit {machine['commit']}. To repeat: "
        "`python benchmarks/bench_inductive.py --again`.",
    ]
    return "\n".join(parts) + "\n"


def row_of(name: str, found: dict[str, Any], models: dict[str, Any]) -> list[str]:
    """Return the figures of a pair, ours and those published."""
    runs = list(found["runs"].values())

    def figure(aggregation: str, metric: str) -> str:
        return over_seeds([run[aggregation][metric] for run in runs])

    ours = [figure("max", "mrr"), figure("tuned", "mrr"), figure("tuned", "hits@10"), figure("tuned", "hits@10_of_50")]
    theirs = [figures["mrr"].get(name) for figures in models.values()]
    return [name, str(len(runs)), *ours, *("" if mrr is None else f"{mrr:.3f}" for mrr in theirs)]
