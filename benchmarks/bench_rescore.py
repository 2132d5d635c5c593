"""Exact statistics of given rules: how many a second, against PyClause's times on the same kind of sample.

python benchmarks/bench_rescore.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import anyburl
from common import save, shared, timed

# Seconds that PyClause took with 2 threads for samples of this kind (see the README of the shared folder).
PYCLAUSE = {
    "FB15k-237 Uc 1": (20000, 0.46),
    "FB15k-237 Ud 1": (20000, 13.9),
    "FB15k-237 B 1": (400, 0.36),
    "FB15k-237 B 2": (400, 27.8),
    "FB15k-237 B 3": (150, 69.6),
    "WN18RR B": (783, 38.8),
}


def measure(rules: anyburl.RuleSet, data: anyburl.Dataset, n: int, peer: tuple[int, float]) -> dict[str, Any]:
    """Score `n` rules drawn at random, three times; the index is built each time and counts."""
    rng = np.random.default_rng(1)
    chosen = rules.take(np.sort(rng.choice(len(rules), min(n, len(rules)), replace=False)))
    seconds = [timed(lambda: anyburl.rescore(chosen, data.train, threads=2))[0] for _ in range(3)]
    rate, peer_rate = len(chosen) / float(np.median(seconds)), peer[0] / peer[1]
    return {
        "rules": len(chosen),
        "seconds": [round(value, 3) for value in seconds],
        "rules_per_second": round(rate),
        "pyclause_rules_per_second": round(peer_rate, 1),
        "ratio": round(rate / peer_rate, 1),
    }


def main() -> None:
    """Measure every sample."""
    results = {}
    for name in ("FB15k-237", "WN18RR"):
        data = anyburl.load_dataset(shared() / "data" / name)
        rules = anyburl.RuleSet.load(shared() / "peers" / f"{name}-anyburl23-100s.txt.gz")
        rules = rules.with_vocabulary(data.vocabulary)
        anyburl.rescore(rules.filter(type="B").take(np.arange(20)), data.train)
        for label, peer in PYCLAUSE.items():
            if label.startswith(name):
                kind, *length = label.removeprefix(name).split()
                wanted = rules.filter(type=kind, length=int(length[0]) if length else None)
                results[label] = measure(wanted, data, peer[0], peer)
    save("rescore", results)


if __name__ == "__main__":
    main()
