"""An hour of learning, looked at every minute from outside."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from soak.processes import cpu_seconds, open_files, own_mb


def learn(data: Path, folder: Path, seconds: float, max_rules: int, every: float) -> dict[str, Any]:
    """Learn on one thread for `seconds`; return what was seen `every` so many of them, and what was saved."""
    run, options = folder / "run", ["--threads", "1", "--max-rules", str(max_rules), "--seed", "1"]
    moments = ",".join(f"{seconds * part / 6:g}" for part in range(1, 7))
    command = [sys.executable, "-m", "anyburl", "learn", str(data), "--out", str(run), "--seconds", f"{seconds:g}"]
    process = subprocess.Popen(
        [*command, *options, "--snapshots", moments, "--json", "--quiet"], stdout=subprocess.PIPE, text=True
    )
    samples, moment = list[dict[str, Any]](), float("-inf")
    while process.poll() is None:
        if (run / "trace.jsonl").exists() and time.monotonic() - moment >= every:
            moment = time.monotonic()
            samples.append(sample(process.pid, run))
            print(samples[-1], file=sys.stderr, flush=True)
        time.sleep(0.5)
    said = json.loads(process.communicate()[0])
    saved = sorted(file.name for file in run.glob("rules*.parquet"))
    return {"data": data.name, "max_rules": max_rules, "every": every, "samples": samples, "said": said, "saved": saved}


def sample(pid: int, run: Path) -> dict[str, Any]:
    """Return the state of a run: what its trace says, and what the system does."""
    lines = (run / "trace.jsonl").read_text("utf-8").splitlines()
    last = json.loads(lines[-1])
    on_disk = sum(file.stat().st_size for file in (run / "parts").iterdir())
    return {
        **{name: last[name] for name in ("elapsed", "rules", "paths", "bodies", "dropped")},
        "cpu_seconds": cpu_seconds(pid),
        "memory_mb": round(own_mb(pid), 1),
        "open_files": open_files(pid),
        "parts_mb": round(on_disk / 1e6, 1),
    }
