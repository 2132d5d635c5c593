"""Reading tables: how long generated triples take to be read and to become a split data set, and how much memory.

python benchmarks/bench_tables.py [MILLIONS] [--folder FOLDER]

The files have MILLIONS million rows, 10 unless you say otherwise, with labels that CSV has to quote.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anyburl.data.dataset import load_dataset
from anyburl.data.files import read_batches, write_triples
from anyburl.data.options import ReadOptions
from common import peak_memory_mb, save, timed

N_RELATIONS = 300
SPLIT = ReadOptions(split=(0.8, 0.1, 0.1))


def generate(n_rows: int) -> pl.DataFrame:
    """Return the rows; the same number gives the same rows."""
    draw = np.random.default_rng(0)
    entities = max(1, n_rows // 5)
    columns = {name: draw.integers(0, entities, n_rows) for name in ("subject", "object")}
    return pl.DataFrame({**columns, "relation": draw.integers(0, N_RELATIONS, n_rows)}).select(
        pl.format("entity {}", "subject").alias("subject"),
        pl.format("relation {}", "relation").alias("relation"),
        pl.format("entity, {}", "object").alias("object"),
    )


def run(path: str, how: str, n_rows: int) -> dict[str, Any]:
    """Write a file, read it, or load and split it, in a process that does nothing else."""
    steps = {
        "write": lambda: write_triples(generate(n_rows), path),
        "read": lambda: sum(batch.height for batch in read_batches(path)),
        "split": lambda: len(load_dataset(path, SPLIT).train),
    }
    seconds, rows = timed(steps[how])
    return {"seconds": round(seconds, 2), "rows": rows, "peak_memory_mb": peak_memory_mb()}


def measure(path: Path, how: str, millions: float) -> dict[str, Any]:
    """Do it in a new process."""
    asked = [sys.executable, __file__, str(millions), "--run", how, "--file", str(path)]
    return dict(json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout))


def main() -> None:
    """Generate the files and read them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", type=float, nargs="?", default=10)
    parser.add_argument("--folder", type=Path, help="where generated files go, by default a temporary folder")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(given.file, given.run, int(given.millions * 1_000_000))))
        return
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for suffix in (".tsv", ".csv", ".parquet"):
            path = Path(folder) / f"generated{suffix}"
            measure(path, "write", given.millions)
            read = measure(path, "read", given.millions)
            results[suffix] = {"file_mb": round(path.stat().st_size / 1e6, 1), "read": read}
        results[suffix]["split"] = measure(path, "split", given.millions)
    save("tables", results)


if __name__ == "__main__":
    main()
