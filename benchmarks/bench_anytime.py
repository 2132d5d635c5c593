"""Anytime: what a run loses when it is killed, and what writing it down costs.

python benchmarks/bench_anytime.py
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyburl
from anyburl.learning.options import LearnOptions
from anyburl.learning.recorder import Recorder, run_learner
from common import save, shared


def kill_after(seconds: float) -> dict[str, Any]:
    """Kill a run of FB15k-237 some seconds after its first span, and count what its folder holds."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        data = shared() / "data" / "FB15k-237"
        command = [
            sys.executable,
            "-m",
            "anyburl",
            "learn",
            str(data),
            "--out",
            str(run),
            "--seconds",
            "100",
            "--quiet",
        ]
        process = subprocess.Popen(command)
        while not (run / "trace.jsonl").exists():
            time.sleep(0.05)
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        opened = anyburl.RunDirectory.open(run)
        trace = list(opened.trace())
        due = max((line["rules"] for line in trace if line["elapsed"] <= trace[-1]["elapsed"] - 10), default=0)
        held = len(opened.load_rules())
        return {"killed_at": trace[-1]["elapsed"], "found": trace[-1]["rules"], "ten_seconds_before": due, "held": held}


def cost_of_writing() -> dict[str, float]:
    """Learn for 30 s and tell how much of the cores' time went into writing."""
    data = anyburl.load_dataset(shared() / "data" / "FB15k-237")
    options = LearnOptions(seconds=30, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(anyburl.RunDirectory.create(Path(folder) / "run", data, options))
        learner = anyburl.Learner(data.train, options)
        run_learner(learner, recorder)
        share = recorder.seconds_writing / (learner.elapsed * learner.threads)
        return {
            "seconds": round(learner.elapsed, 2),
            "writing": round(recorder.seconds_writing, 3),
            "share": round(share, 4),
        }


def main() -> None:
    """Kill three runs at random moments, then time the writing."""
    moments = [round(random.Random(seed).uniform(11, 20), 1) for seed in range(3)]
    save("anytime", {"kills": [kill_after(moment) for moment in moments], "writing": cost_of_writing()})


if __name__ == "__main__":
    main()
