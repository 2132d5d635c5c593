"""Ranking: quality and speed, with rules of our own or of AnyBURL.

python benchmarks/bench_rank.py NAME SECONDS MAX_CYCLIC AGGREGATION...     learn, then rank the test split
python benchmarks/bench_rank.py peers NAME AGGREGATION...                  rank with AnyBURL-23's 100 s rules
python benchmarks/bench_rank.py single NAME SECONDS MAX_CYCLIC             learn, then predict and explain one by one

Where connected pairs are blocked (auto), the test split is also ranked without that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import anyburl
from common import peak_memory_mb, save, shared, timed


def rank(
    rules: anyburl.RuleSet, data: anyburl.Dataset, aggregations: list[str], options: anyburl.RankOptions
) -> list[dict[str, Any]]:
    """Evaluate every aggregation on one index; a first small evaluation compiles the kernels."""
    anyburl.evaluate(rules.slice(0, 10), data, split="valid", options=options)
    reasoner = anyburl.Reasoner(rules, data, options)
    results: list[dict[str, Any]] = []
    for aggregation in aggregations:
        if aggregation == "tuned":
            metrics = anyburl.evaluate(rules, data, options=replace(options, aggregation=aggregation))
        else:
            metrics = reasoner.with_aggregation(aggregation).evaluate()
        figures = metrics.to_json()
        kept = {name: figures[name] for name in ("protocol", "metrics", "seconds", "queries_per_second")}
        results.append({**kept, "peak_memory_mb": peak_memory_mb()})
    return results


def single(rules: anyburl.RuleSet, data: anyburl.Dataset) -> dict[str, Any]:
    """Predict and explain test triples one by one, with everything loaded; return milliseconds (median, 90 %)."""
    reasoner = anyburl.Reasoner(rules, data)
    rows = np.random.default_rng(1).choice(len(data.test), 220, replace=False)
    triples = [data.test.to_polars().row(int(row)) for row in rows]
    works: dict[str, Callable[[Any], Any]] = {
        "predict": lambda triple: reasoner.predict(triple[0], triple[1], None),
        "explain": lambda triple: reasoner.explain(triple),
    }
    figures = {}
    for name, work in works.items():
        took = [timed(lambda triple=triple, work=work: work(triple))[0] * 1000 for triple in triples][20:]
        figures[name] = {"median_ms": float(np.median(took)), "p90_ms": float(np.quantile(took, 0.9))}
    return {"rules": len(rules), "triples": 200, **figures}


def main() -> None:
    """Run what the command line asks for."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    if sys.argv[1] == "peers":
        name, aggregations = sys.argv[2], sys.argv[3:]
        data = anyburl.load_dataset(shared() / "data" / name)
        rules = anyburl.RuleSet.load(shared() / "peers" / f"{name}-anyburl23-100s.txt.gz")
        options = anyburl.RankOptions(weights={"Ud": 0.1, "Z": 0.01}, block_connected="off")
        rules = rules.with_vocabulary(data.vocabulary)
        save(f"rank-peers-{name}", rank(rules, data, aggregations, options))
        return
    if sys.argv[1] == "single":
        name, seconds, longest = sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
        data = anyburl.load_dataset(shared() / "data" / name)
        rules = anyburl.learn(data, seconds=seconds, max_cyclic=longest, seed=1, keep="all")
        save(f"single-{name}", single(rules, data))
        return
    name, seconds, longest, aggregations = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    data = anyburl.load_dataset(shared() / "data" / name)
    rules = anyburl.learn(data, seconds=seconds, max_cyclic=longest, seed=1, keep="all")
    results = []
    for block in ("auto", "off"):
        if block == "auto" or results[0]["protocol"]["block_connected"]:
            results += rank(rules, data, aggregations, anyburl.RankOptions(block_connected=block))
            save(f"rank-{name}", {"learning_seconds": seconds, "max_cyclic": longest, "rankings": results})


if __name__ == "__main__":
    main()
