"""Faults, done to every command that writes or runs long: signals, full disks, vanished files and more.

python benchmarks/bench_faults.py kills [--trials 12] [--only NAME]    signals at random moments of every command
python benchmarks/bench_faults.py late [--trials 32]                   signals more than 15 s into learning
python benchmarks/bench_faults.py others --trials 1 [--fault "full disk"] [--only NAME]  full disks and so on, as root
python benchmarks/bench_faults.py collect --logs WORK/*.jsonl [--add]  sum up: benchmarks/results/faults.json
python benchmarks/bench_faults.py page                                 write docs/reliability.md

With --first N, the first trial has that number: its signals come at other moments. --only and --fault may be repeated.
With --add, trials are added to those that were summed up before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from common import HERE, save, shared
from faults.jobs import JOBS, Job, copy_base, make_base, make_second
from faults.kills import kill
from faults.late import kill_late
from faults.others import FAULTS, inject
from faults.page import render
from faults.summary import added, read_trials, summarise
from faults.trial import Trial, keep

T = TypeVar("T")
LATE = (("nations", "tourism"), ("umls", "affects"), ("CoDEx-S", "P106"))  # data, and the relation to learn rules for


def kills(work: Path, numbers: range, workers: int, only: list[str]) -> list[Trial]:
    """Kill every command some times, several at a time."""
    bases, log = bases_in(work), work / "kills.jsonl"
    jobs = [job for job in JOBS if not only or job.name in only]
    with ThreadPoolExecutor(workers) as pool:
        lengths = list(pool.map(lambda job: length(job, bases[0], work / "timed"), jobs))
        tasks = [
            pool.submit(kill, job, bases, work / f"kill-{place}", number, lengths[place])
            for number in numbers
            for place, job in enumerate(jobs)
        ]
        return [say(keep(trial, log)) for trial in results(tasks)]


def late(work: Path, numbers: range, workers: int) -> list[Trial]:
    """Kill learners twice, more than 15 s into the run each time, many of them at a time."""
    data = [(shared() / "data" / name, relations) for name, relations in LATE]
    with ThreadPoolExecutor(workers) as pool:
        tasks = [pool.submit(kill_late, *data[n % len(data)], work / f"late-{n}", n) for n in numbers]
        return [say(keep(trial, work / "late.jsonl")) for pair in results(tasks) for trial in pair]


def others(work: Path, numbers: range, workers: int, only: list[str], faults: list[str]) -> list[Trial]:
    """Do everything else to every command, or the faults and commands that were chosen."""
    bases = bases_in(work)
    with ThreadPoolExecutor(workers) as pool:
        tasks = [
            pool.submit(inject, fault, job, bases, work / f"others-{place}-{number}-{kind}", number)
            for number in numbers
            for kind, fault in enumerate(FAULTS)
            for place, job in enumerate(JOBS)
            if (not only or job.name in only) and (not faults or fault in faults)
        ]
        return [say(keep(trial, work / "others.jsonl")) for trial in results(tasks)]


def results(tasks: list[Future[T]]) -> Iterator[T]:
    """Give what came of each task as soon as it is done; where the harness itself fails, print why and carry on."""
    for task in as_completed(tasks):
        if error := task.exception():
            traceback.print_exception(error)
        else:
            yield task.result()


def bases_in(work: Path) -> list[Path]:
    """Make the folders that commands work on, unless they are there."""
    bases = [work / "base", work / "second"]
    if not bases[1].is_dir():
        bases[0].mkdir(parents=True)
        make_base(bases[0], shared() / "data" / "nations")
        make_second(*bases)
    return bases


def length(job: Job, base: Path, timed: Path) -> float:
    """Return how many seconds of a processor a command takes undisturbed."""
    file = timed / f"{job.name}.json"
    if not file.exists():
        copy_base(base, timed / job.name)
        process = subprocess.Popen(job.command(), cwd=timed / job.name, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, f"{job.name} failed undisturbed"
        file.write_text(json.dumps(round(used.ru_utime + used.ru_stime, 2)), "utf-8")
    return float(json.loads(file.read_text("utf-8")))


def say(trial: Trial) -> Trial:
    """Tell how a trial went."""
    state = "PROBLEM" if trial.problems else "ok"
    print(f"{state:7} {trial.command:30} {trial.fault:26} {trial.moment:6.2f} s  {trial.code:4} {trial.found}")
    for problem in trial.problems:
        print("        ", problem)
    sys.stdout.flush()
    return trial


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["kills", "late", "others", "collect", "page"])
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial: others are other moments")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], choices=[job.name for job in JOBS])
    parser.add_argument("--fault", action="append", default=[], choices=list(FAULTS))
    parser.add_argument("--work", type=Path)
    parser.add_argument("--logs", type=Path, nargs="*", default=[])
    parser.add_argument("--add", action="store_true", help="add to what was summed up before")
    chosen = parser.parse_args()
    if chosen.part == "collect":
        found = summarise(read_trials(chosen.logs))
        if chosen.add:
            found = added(json.loads((HERE / "results" / "faults.json").read_text("utf-8"))["results"], found)
        save("faults", found, "python benchmarks/bench_faults.py kills, late and others")
        return
    if chosen.part == "page":
        print(render(HERE / "results", HERE.parent / "docs"))
        return
    with tempfile.TemporaryDirectory() as folder:
        work, numbers = chosen.work or Path(folder), range(chosen.first, chosen.first + chosen.trials)
        if chosen.part == "kills":
            trials = kills(work, numbers, chosen.workers, chosen.only)
        elif chosen.part == "others":
            trials = others(work, numbers, chosen.workers, chosen.only, chosen.fault)
        else:
            trials = late(work, numbers, chosen.workers)
    print(json.dumps({"trials": len(trials), "problems": sum(bool(trial.problems) for trial in trials)}))


if __name__ == "__main__":
    main()
