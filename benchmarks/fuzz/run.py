"""Fuzz parsers by atheris, and keep the counts.

    python benchmarks/fuzz/run.py rules rdf --seconds 1200       seconds of a processor, or a million executions
    python benchmarks/fuzz/run.py --all

A finding ends the run of its target: the input is kept in build/fuzz/TARGET/found, and the log beside it says what was
raised. What was executed before is counted all the same: benchmarks/results/fuzz.json adds up all runs.
`--missing` fuzzes what has had neither the time nor the executions yet, and only as much as it lacks.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from fuzz.all import NAMES, find_target  # noqa: E402
from soak.processes import cpu_seconds  # noqa: E402

ROOT = HERE.parents[1]
RESULTS = HERE.parent / "results" / "fuzz.json"
WORK = ROOT / "build" / "fuzz"
COMMAND = "python benchmarks/fuzz/run.py --all"
SECONDS, RUNS = 1200, 1_000_000
HANG = 3600  # seconds for one input: measurements of others may stop us for a while
MEMORY = 3000  # megabytes
SHORTEST, LONGEST = 512, 8192  # bytes of the longest input: four times the longest seed, within these
STATUS = re.compile(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)", re.MULTILINE)
DONE = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)
RAISED = re.compile(r"^(?: === Uncaught Python exception: ===\n(.*)|==\d+== ?ERROR: libFuzzer: (.*))$", re.MULTILINE)


def main() -> None:
    """Fuzz the targets that were asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--all", action="store_true", help="all targets")
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--missing", action="store_true", help="of these targets, what is still short")
    parser.add_argument("--recheck", action="store_true", help="parse again what libFuzzer called a timeout")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        fuzz(arguments.targets[0], arguments.runs)
        return
    for name in NAMES if arguments.all else arguments.targets:
        if name not in NAMES:
            sys.exit(f"there is no target {name!r}: expected one of {', '.join(NAMES)}")
        if arguments.recheck:
            print(json.dumps({name: recheck(name)}), flush=True)
            continue
        had = stored_results().get(name, {}) if arguments.missing else {}
        seconds = arguments.seconds - had.get("processor_seconds", 0.0)
        runs = arguments.runs - had.get("executions", 0)
        if seconds > 0 and runs > 0:
            print(json.dumps({name: watch(name, seconds, runs)}), flush=True)


def fuzz(name: str, runs: int) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["anyburl"], exclude=_compiled_modules()):
        target = find_target(name)
        from fuzz.trials import shared_trials

    shared_trials()
    work = WORK / name
    (work / "seeds").mkdir(parents=True, exist_ok=True)
    (work / "corpus").mkdir(exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (work / "seeds" / str(number)).write_bytes(seed)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        scratch = Path(folder)
        options = [f"-runs={runs}", f"-timeout={HANG}", f"-rss_limit_mb={MEMORY}"]
        longest = min(LONGEST, max(SHORTEST, 4 * max(map(len, target.seeds))))
        kept = [f"-max_len={longest}", f"-artifact_prefix={work / 'found'}/", "-print_final_stats=1", "-reload=0"]
        atheris.Setup(
            [sys.argv[0], *options, *kept, str(work / "corpus"), str(work / "seeds")],
            lambda data: target.check(scratch, data),
        )
        atheris.Fuzz()


def _compiled_modules() -> list[str]:
    """Return the modules that Numba compiles: it cannot read instrumented functions."""
    package = ROOT / "src" / "anyburl"
    sources = [
        *package.rglob("kernel*.py"),
        *package.rglob("arrays.py"),
        package / "rng.py",
        package / "rules" / "types.py",
    ]
    names = [".".join(path.relative_to(package.parent).with_suffix("").parts) for path in sources]
    return [*names, "anyburl.base.jit", "anyburl.base.errors"]


def watch(name: str, seconds: float, runs: int) -> dict[str, Any]:
    """Fuzz one target in a process of its own; return and keep what came of it."""
    (WORK / name / "found").mkdir(parents=True, exist_ok=True)
    log = WORK / name / "log.txt"
    command = [sys.executable, __file__, name, "--child", "--runs", str(runs)]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    started, before = datetime.now(UTC), resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
        _end_after(process, seconds)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = {
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 1),
        "processor_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
    }
    return keep(name, {**counts(log.read_text("utf-8", "replace")), **took})


def _end_after(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Let libFuzzer finish after so many seconds of a processor: on a busy machine, the clock says little."""
    while process.poll() is None and cpu_seconds(process.pid) < seconds:
        time.sleep(0.5)
    while process.poll() is None:
        process.send_signal(signal.SIGUSR1)
        time.sleep(5)


def counts(log: str) -> dict[str, Any]:
    """Return what libFuzzer says of a run."""
    statuses = STATUS.findall(log)
    executions, edges, features, corpus = map(int, statuses[-1]) if statuses else (0, 0, 0, 0)
    if done := DONE.search(log):
        executions = int(done[1])
    raised = RAISED.search(log)
    return {
        "executions": executions,
        "edges": edges,
        "features": features,
        "corpus": corpus,
        "found": (raised[1] or raised[2]) if raised else None,
    }


def recheck(name: str) -> list[str]:
    """Forget timeouts of inputs that take little of a processor: the process was stopped. Return those that stay."""
    from anyburl.base.files import alone

    inputs = sorted((WORK / name / "found").glob("timeout-*"))
    with tempfile.TemporaryDirectory() as folder:
        for path in inputs:
            find_target(name).check(Path(folder), path.read_bytes())  # raises if it takes long
    with alone(WORK / ".lock"):
        stored = stored_results()
        findings = stored.get(name, {}).get("findings", [])
        timeouts = [found for found in findings if found.startswith("timeout after")]
        if not timeouts or len(timeouts) > len(inputs):
            return timeouts
        stored[name]["findings"] = [found for found in findings if found not in timeouts]
        stored[name]["stopped"] = stored[name].get("stopped", 0) + len(timeouts)
        _store(stored)
    return []


def stored_results() -> dict[str, dict[str, Any]]:
    """Return what is known of each target."""
    return dict(json.loads(RESULTS.read_text("utf-8"))["results"]) if RESULTS.is_file() else {}


def _store(stored: dict[str, dict[str, Any]]) -> None:
    described = {"command": COMMAND, "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "results": stored}
    RESULTS.write_text(json.dumps(described, indent=1) + "\n", "utf-8")


def keep(name: str, run: dict[str, Any]) -> dict[str, Any]:
    """Add a run to the results of its target; return all of them."""
    from anyburl.base.files import alone

    with alone(WORK / ".lock"):
        stored = stored_results()
        before = stored.get(name, {"executions": 0, "seconds": 0.0, "edges": 0, "findings": []})
        stored[name] = {
            "executions": before["executions"] + run["executions"],
            "seconds": round(before["seconds"] + run["seconds"], 1),
            "processor_seconds": round(before.get("processor_seconds", 0.0) + run["processor_seconds"], 1),
            "edges": max(before["edges"], run["edges"]),
            **({"stopped": before["stopped"]} if "stopped" in before else {}),
            "findings": [*before["findings"], *([run["found"]] if run["found"] else [])],
            "last": run,
        }
        _store(stored)
    return dict(stored[name])


if __name__ == "__main__":
    main()
