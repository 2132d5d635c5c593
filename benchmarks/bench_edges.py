"""Graphs at the edge, at full size: a star with a million leaves, a hundred thousand relations.

    python benchmarks/bench_edges.py

Each is learned from, asked, explained and completed in a process of its own; the suite has smaller ones
(tests/test_edge_graphs.py). Results go to benchmarks/results/edges.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

import anyburl
from anyburl import Dataset, Reasoner, TripleTable, Vocabulary, load_dataset
from common import peak_memory_mb, save, timed

LEAVES, RELATIONS = 1_000_000, 100_000


def star() -> Dataset:
    """Return a hub with a million leaves."""
    words = Vocabulary.from_labels(["hub", *(f"leaf{i}" for i in range(LEAVES))], ["r"])
    hub = words.entity_id("hub")
    leaves = np.delete(np.arange(LEAVES + 1, dtype=np.int32), hub)
    ids = np.column_stack([np.full(LEAVES, hub, np.int32), np.zeros(LEAVES, np.int32), leaves])
    return load_dataset(TripleTable.from_ids(ids, words))


def relations() -> Dataset:
    """Return a ring of a hundred thousand edges, each of a relation of its own."""
    numbers = np.arange(RELATIONS, dtype=np.int32)
    words = Vocabulary.from_labels([f"e{i}" for i in range(RELATIONS)], [f"r{i}" for i in range(RELATIONS)])
    return load_dataset(TripleTable.from_ids(np.column_stack([numbers, numbers, (numbers + 1) % RELATIONS]), words))


GRAPHS = {"star": star, "relations": relations}


def measure(name: str) -> dict[str, Any]:
    """Do everything with one graph; return how long it took."""
    data = GRAPHS[name]()
    subject, relation, object = data.train.to_polars().row(0)
    learn_s, rules = timed(lambda: anyburl.learn(data, paths=200, min_support=1, seed=1, max_rules=100_000))
    open_s, reasoner = timed(lambda: Reasoner(rules, data))
    predict_s, answers = timed(lambda: reasoner.predict(subject, relation, None, top=10, include_known=True))
    explain_s, _ = timed(lambda: reasoner.explain((subject, relation, object)))
    complete_s, facts = timed(lambda: sum(frame.height for frame in reasoner.complete(min_score=0.5, top=1000)))
    seconds = dict(zip(STEPS, (learn_s, open_s, predict_s, explain_s, complete_s), strict=True))
    return {
        "triples": len(data.train),
        "rules": len(rules),
        "answers": len(answers),
        "facts": facts,
        "seconds": {step: round(took, 3) for step, took in seconds.items()},
        "peak_memory_mb": peak_memory_mb(),
    }


STEPS = ("learn", "open", "predict", "explain", "complete")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        found = {}
        for name in GRAPHS:
            done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
            found[name] = json.loads(done.stdout)
        save("edges", found, "python benchmarks/bench_edges.py")
