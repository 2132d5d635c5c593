"""Learning over and over in one process: nothing is held on to."""

from __future__ import annotations

import gc

from anyburl import Dataset, learn


def test_short_runs_leave_no_objects_behind() -> None:
    data = Dataset.from_triples([(f"e{n % 20}", f"r{n % 3}", f"e{(n * 7 + n // 3) % 20}") for n in range(100)])

    def objects_after(n_runs: int) -> int:
        for seed in range(n_runs):
            learn(data, paths=100, threads=2, seed=seed)
        gc.collect()
        return len(gc.get_objects())

    before = objects_after(10)
    assert objects_after(30) - before < 30
