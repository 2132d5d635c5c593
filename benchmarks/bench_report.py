"""Reading rules: how long `anyburl rules` and `anyburl report` take on large runs, and the memory that they hold.

python benchmarks/bench_report.py [--data geo WN18RR FB15k-237] [--seconds 30] [--runs FOLDER] [--flags=--keep,all]

Learns a run for each data set (in FOLDER, where earlier ones are used again), then times the commands, each in a
process of its own: the best rules (in the default order, of one relation, sorted by confidence, not folded), and the
report as a page. `first` is the first command on a new run, which may compile kernels and keep the best rules.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from common import save, shared

NAMES = {"FB15k-237": "FB15k_entities.tsv.gz", "WN18RR": "WN18_entities.tsv.gz"}
REPEATS = 3


def call(*arguments: object) -> tuple[float, float, str]:
    """Return the seconds and the peak memory (MB) of a command, and what it printed."""
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "anyburl", *map(str, arguments), "--quiet"], stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{' '.join(map(str, arguments))} failed")
        out.seek(0)
        return seconds, used.ru_maxrss / 1024, out.read().decode()


def timed_call(*arguments: object) -> dict[str, float]:
    """Return the best time of several calls, and the most memory of one."""
    calls = [call(*arguments)[:2] for _ in range(REPEATS)]
    return {"seconds": round(min(one[0] for one in calls), 2), "memory_mb": round(max(one[1] for one in calls), 1)}


def measure_run(name: str, run: Path) -> dict[str, Any]:
    """Return the figures of one run."""
    file = shared() / "data" / "names" / NAMES.get(name, "-")
    names = ["--names", file] if file.is_file() else []
    first = call("rules", run)
    head = pl.scan_parquet(run / "rules.parquet", glob=False).select(pl.col("head").cast(pl.String).mode().first())
    relation = head.collect().item()
    told = json.loads(call("report", run, "--json", *names)[2])
    page = run / "theory.html"
    return {
        "rules": json.loads(call("rules", run, "--top", 1, "--json")[2])["total"],
        "first": {"seconds": round(first[0], 2), "memory_mb": round(first[1], 1)},
        "rules RUN": timed_call("rules", run),
        "rules RUN --relation R": timed_call("rules", run, "--relation", relation),
        "rules RUN --sort confidence": timed_call("rules", run, "--sort", "confidence"),
        "rules RUN --no-fold": timed_call("rules", run, "--no-fold"),
        "report RUN --html": timed_call("report", run, "--html", page, *names),
        "page_kb": round(page.stat().st_size / 1024),
        "laws": told["laws"],
        "seconds_choosing": told["seconds"],
    }


def main() -> None:
    """Measure every data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["geo", "WN18RR", "FB15k-237"])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--flags", default="", help="further flags of learn, separated by commas")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.runs or Path(scratch)
        results = {}
        for name in chosen.data:
            run, data = folder / name, name if name == "geo" else shared() / "data" / name
            if not run.is_dir():
                flags = [flag for flag in chosen.flags.split(",") if flag]
                call("learn", data, "--seconds", chosen.seconds, "--seed", 1, "--out", run, *flags)
            results[name] = measure_run(name, run)
    save("report", results)


if __name__ == "__main__":
    main()
