"""What every benchmark needs: where the data is, what machine this is, and a JSON file for the results."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def shared() -> Path:
    """Return the folder with `data/` and `peers/` (environment variable ANYBURL_SHARED, or beside the repository)."""
    folder = Path(os.environ.get("ANYBURL_SHARED", HERE.parents[1] / "shared"))
    if not folder.is_dir():
        sys.exit("no benchmark data: set ANYBURL_SHARED to a folder with data/NAME/train.txt.gz and peers/")
    return folder


def machine() -> dict[str, Any]:
    """Describe where the figures come from."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numba", "numpy", "polars")},
        "load": [round(load, 2) for load in os.getloadavg()],
        "commit": _commit(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _commit() -> str:
    done = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


def peak_memory_mb() -> float:
    """Return the most memory this process has held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def save(name: str, results: Any, command: str | None = None, *, quiet: bool = False) -> None:
    """Print the results, unless `quiet`, and keep them in benchmarks/results/NAME.json; `command` is what to write
    down as such; folders are named without where they are.
    """
    command = command or " ".join(Path(word).name if Path(word).is_absolute() else word for word in sys.argv)
    text = json.dumps({"command": command, "machine": machine(), "results": results}, indent=2)
    if not quiet:
        print(text)
    (HERE / "results" / f"{name}.json").write_text(text + "\n", "utf-8")


def run_script(python: str, script: str, *arguments: Any) -> dict[str, Any]:
    """Run a measurement in a process of its own, which prints JSON."""
    done = subprocess.run([python, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def in_turns(before: str | None, script: str, *rounds: Sequence[Any]) -> dict[str, list[Any]]:
    """Run a measurement once a round, with the arguments of that round: by the Python of an older version, if there is
    one, then by this.
    """
    results: dict[str, list[Any]] = {"now": [], "before": []}
    for arguments in rounds:
        for label, python in (("before", before), ("now", sys.executable)):
            if python:
                results[label].append(run_script(python, script, *arguments))
    return results


def timed(work: Any) -> tuple[float, Any]:
    """Return how long `work()` took, and what it gave."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
