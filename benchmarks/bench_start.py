"""How long commands take to start: the demo with an empty kernel cache, and one question to a prepared run.

python benchmarks/bench_start.py [--rounds 3] [--only demo|predict]

The demo runs as a newcomer's first command does, with a kernel cache of its own that is empty. `predict` asks a
prepared run of the built-in data set with compiled kernels. Wall-clock seconds, and processor seconds of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import HERE, save

QUESTION = ("France", "official_language", "?")


def main() -> None:
    """Measure what is chosen; keep what was measured before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("demo", "predict"))
    chosen = parser.parse_args()
    path = HERE / "results" / "start.json"
    results = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else {}
    if chosen.only != "predict":
        results["demo, empty kernel cache"] = [cold_demo() for _ in range(chosen.rounds)]
    if chosen.only != "demo":
        results["predict, prepared run of geo"] = warm_predict(chosen.rounds)
    save("start", results, "python benchmarks/bench_start.py")


def cold_demo() -> dict[str, float]:
    """Run the demo with an empty kernel cache."""
    with tempfile.TemporaryDirectory() as folder:
        return run(["demo"], Path(folder), {"ANYBURL_CACHE": folder})


def warm_predict(rounds: int) -> list[dict[str, float]]:
    """Ask a prepared run one question, in a process of its own each time."""
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        for command in (["learn", "geo", "--paths", "20000", "--seed", "1", "--out", "run"], ["prepare", "run"]):
            run(command, there, {})
        run(["predict", "run", *QUESTION], there, {})  # compiles what is not compiled yet
        return [run(["predict", "run", *QUESTION], there, {}) for _ in range(rounds)]


def run(arguments: list[str], folder: Path, variables: dict[str, str]) -> dict[str, float]:
    """Run a command to its end; return the seconds it took."""
    environment = {**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": ""}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "anyburl", *arguments, "--quiet"]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(wall, 2), "processor_seconds": round(processor, 2)}


if __name__ == "__main__":
    main()
