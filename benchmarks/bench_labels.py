"""An index of many labels: how much memory building and opening it takes, where no label occurs twice.

python benchmarks/bench_labels.py [MILLIONS] [--folder FOLDER]

The file has MILLIONS million distinct entities, 20 unless you say otherwise, two in each triple, in random order.
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
from common import peak_memory_mb, save, timed

LINES = 1_000_000  # written at a time
N_RELATIONS = 500
ENTITY, RELATION = "http://example.org/knowledge/entity/Q", "http://example.org/knowledge/property/P"


def write_triples(path: Path, n_labels: int) -> None:
    """Write the file; the same size gives the same file."""
    draw = np.random.default_rng(0)
    pairs = draw.permutation(n_labels).reshape(-1, 2)
    with path.open("wb") as out:
        for start in range(0, len(pairs), LINES):
            entities = pairs[start : start + LINES].T
            subjects, objects = (ENTITY + pl.Series(column).cast(pl.String) for column in entities)
            relations = RELATION + pl.Series(draw.integers(0, N_RELATIONS, len(subjects))).cast(pl.String)
            frame = pl.DataFrame({"subject": subjects, "relation": relations, "object": objects})
            frame.write_csv(out, separator="\t", include_header=False)


def build(path: Path, index: Path) -> dict[str, Any]:
    """Build the index in a new process."""
    asked = [sys.executable, "-m", "anyburl", "index", str(path), "--out", str(index), "--json", "--quiet"]
    told = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    return {
        "seconds": told["seconds"],
        "peak_memory_mb": round(told["peak_bytes"] / 1e6),
        "index_mb": round(told["bytes"] / 1e6),
        "fingerprint": told["fingerprint"],
    }


def open_index(index: str) -> dict[str, Any]:
    """Open the index, in a process that does nothing else."""
    before = peak_memory_mb()
    seconds, data = timed(lambda: load_dataset(index))
    return {
        "seconds": round(seconds, 3),
        "entities": data.vocabulary.n_entities,
        "memory_mb": round(peak_memory_mb() - before),
    }


def main() -> None:
    """Generate the file, index it and open the index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", type=float, nargs="?", default=20)
    parser.add_argument("--folder", type=Path, help="where the files go, by default a temporary folder")
    parser.add_argument("--open", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.open:
        print(json.dumps(open_index(given.open)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path, index = Path(folder) / "labels.tsv", Path(folder) / "labels.index"
        write_triples(path, int(given.millions * 500_000) * 2)
        built = build(path, index)
        asked = [sys.executable, __file__, "--open", str(index)]
        opened = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        save("labels", {"file_mb": round(path.stat().st_size / 1e6), "build": built, "open": opened})


if __name__ == "__main__":
    main()
