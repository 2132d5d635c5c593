"""What every benchmark needs: where the data is, what machine this is, and a JSON file for the results."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
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


def timed(work: Any) -> tuple[float, Any]:
    """Return how long `work()` took, and what it gave."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
