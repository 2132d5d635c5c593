"""Reading triples and indexing them: triples a second, bytes a triple; cold start of the command line.

python benchmarks/bench_io.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np

from anyburl.data.dataset import load_dataset
from anyburl.graph.build import build_graph
from common import save, shared, timed


def read_and_index(name: str) -> dict[str, Any]:
    """Read all splits and index train, five times."""
    seconds = []
    for _ in range(5):
        reading, data = timed(lambda: load_dataset(shared() / "data" / name))
        indexing, graph = timed(lambda: build_graph(data.train))  # noqa: B023
        seconds.append((reading, indexing))
    triples = len(data.train) + len(data.valid) + len(data.test)
    total = [sum(pair) for pair in seconds]
    return {
        "triples": triples,
        "read_seconds": [round(pair[0], 3) for pair in seconds],
        "index_seconds": [round(pair[1], 3) for pair in seconds],
        "triples_per_second": round(triples / float(np.median(total))),
        "bytes_a_triple": round(sum(np.asarray(field).nbytes for field in graph) / len(data.train), 1),
    }


def command_seconds(*arguments: str) -> list[float]:
    """Time a command five times."""
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "anyburl", *arguments], capture_output=True, check=True)
        seconds.append(round(time.perf_counter() - started, 3))
    return seconds


def main() -> None:
    """Measure the data sets of the paper and the cold start."""
    names = ("WN18", "WN18RR", "FB15k", "FB15k-237", "YAGO3-10-partial")
    results: dict[str, Any] = {name: read_and_index(name) for name in names}
    results["anyburl --help"] = command_seconds("--help")
    results["import anyburl"] = [
        timed(lambda: subprocess.run([sys.executable, "-c", "import anyburl"], check=True))[0] for _ in range(5)
    ]
    save("io", results)


if __name__ == "__main__":
    main()
