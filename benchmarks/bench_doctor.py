"""The doctor: how long it takes, and how well it finds facts that were made wrong on purpose.

python benchmarks/bench_doctor.py              every data set as a user would examine it, with the time it takes
python benchmarks/bench_doctor.py wrong NAME   200 facts of train get a random object: the area under the curve
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import anyburl
from anyburl import Dataset, TripleTable
from common import save, shared

NAMES = ("nations", "umls", "CoDEx-S", "WN18", "WN18RR", "FB15k", "FB15k-237", "YAGO3-10-partial")
N_WRONG = 200
SEEDS = (1, 2, 3)


def examine(name: str) -> dict[str, Any]:
    """Run the command; return the findings as sentences, and the whole time."""
    command = [sys.executable, "-m", "anyburl", "doctor", str(shared() / "data" / name), "--json", "--quiet"]
    started = time.monotonic()
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    seconds = round(time.monotonic() - started, 1)
    return {
        "seconds": seconds,
        "rules": told["rules"],
        "findings": [f"{finding['check']}: {finding['sentence']}" for finding in told["findings"]],
    }


def make_wrong(dataset: Dataset, seed: int) -> tuple[Dataset, NDArray[np.bool_]]:
    """Give facts of train a random object; also return which rows of the new train they are."""
    rng, triples = np.random.default_rng(seed), dataset.train.triples.copy()
    rows = rng.choice(len(triples), N_WRONG, replace=False)
    triples[rows, 2] = rng.choice(np.unique(triples[:, [0, 2]]), N_WRONG)
    train = TripleTable.from_ids(triples, dataset.vocabulary)
    wrong = {tuple(triple) for triple in triples[rows].tolist()} - {tuple(t) for t in dataset.train.triples.tolist()}
    is_wrong = np.array([tuple(triple) in wrong for triple in train.triples.tolist()])
    return Dataset(dataset.name, train, dataset.valid, dataset.test), is_wrong


def measure(name: str, seed: int, **options: Any) -> dict[str, Any]:
    """Return the area under the curve, and how many wrong facts are among the first."""
    dataset, is_wrong = make_wrong(anyburl.load_dataset(shared() / "data" / name), seed)
    report = anyburl.examine(dataset, seed=seed, **options)
    _, places, counts = np.unique(report.suspicion, return_inverse=True, return_counts=True)
    ranks, n = (np.cumsum(counts) - (counts - 1) / 2)[places], int(is_wrong.sum())
    area = (ranks[is_wrong].sum() - n * (n + 1) / 2) / n / (len(ranks) - n)
    order = np.argsort(-report.suspicion, kind="stable")
    found = {f"among the first {k}": int(is_wrong[order[:k]].sum()) for k in (100, 200, 1000)}
    return {"seed": seed, "wrong": n, "area_under_curve": round(float(area), 4), **found, "rules": report.n_rules}


def main() -> None:
    if sys.argv[1:2] == ["wrong"]:
        name = sys.argv[2]
        results = {
            "with rules": [measure(name, seed) for seed in SEEDS],
            "without rules": [measure(name, seed, seconds=0) for seed in SEEDS],
        }
        save(f"doctor-wrong-{name}", results, f"python benchmarks/bench_doctor.py wrong {name}")
        return
    save("doctor", {name: examine(name) for name in NAMES}, "python benchmarks/bench_doctor.py")


if __name__ == "__main__":
    main()
