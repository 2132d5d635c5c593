"""Faults other than signals: a full disk, a read-only folder, vanished and changing files, too little of everything."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from faults.jobs import Job
from faults.trial import Place, Trial, check_files, check_words, do_again, ended, wait_for_work

Started = subprocess.Popen[bytes]
CODES = (0, 1, 2)
OF_MEMORY = (*CODES, -signal.SIGABRT)  # what Polars and LLVM do when an allocation fails
SPARE = 64 << 20  # bytes for what a command writes when it is done again
ROOMS = (0, 4_000, 150_000)  # bytes left on a disk that is about to be full, at most
JUMPING = """
import random, time
first, really = time.time(), time.time
time.time = lambda: really() + random.choice((0, 0, 0, -86400, 86400, 3.2e7))
"""


def full_disk(job: Job, place: Place, rng: random.Random) -> Started:
    """Leave next to no room, on a file system of its own."""
    _fill(place.folder, rng.randint(0, rng.choice(ROOMS)))
    return place.start(job.command())


def read_only(job: Job, place: Place, rng: random.Random) -> Started:
    """Let nothing be written at all."""
    subprocess.run(["mount", "-o", "remount,ro", str(place.folder.parent)], check=True)
    return place.start(job.command())


def vanished(job: Job, place: Place, rng: random.Random) -> Started:
    """Remove one of the files it reads, at some moment of its work."""
    victim = rng.choice(_inputs(job, place))
    process = place.start(job.command())
    wait_for_work(process, rng.uniform(0.1, 2))
    (place.folder / "away").mkdir()
    victim.rename(place.folder / "away" / victim.name)
    place.undo = lambda: (place.folder / "away" / victim.name).rename(victim)
    return process


def changing(job: Job, place: Place, rng: random.Random) -> Started:
    """Cut one of the files it reads, and put other bytes there, at some moment of its work."""
    victim = rng.choice(_inputs(job, place))
    content = victim.read_bytes()
    victim.unlink()  # which it shares with the base
    victim.write_bytes(content)
    process = place.start(job.command())
    wait_for_work(process, rng.uniform(0.1, 2))
    victim.write_bytes(content[: rng.randrange(len(content))] + rng.randbytes(rng.randrange(100)))
    place.undo = lambda: victim.write_bytes(content)
    return process


def little_memory(job: Job, place: Place, rng: random.Random) -> Started:
    """Limit the address space."""
    limit = rng.randrange(300, 2500) << 20
    return place.start(job.command(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


def few_files(job: Job, place: Place, rng: random.Random) -> Started:
    """Limit the number of open files."""
    limit = rng.randrange(5, 20)
    return place.start(job.command(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))


def clock_jumps(job: Job, place: Place, rng: random.Random) -> Started:
    """Let the clock jump by a day or a year, there and back."""
    (place.said_in / "sitecustomize.py").write_text(JUMPING)
    return place.start(job.command(), also_from=place.said_in)


def two_at_once(job: Job, place: Place, rng: random.Random) -> Started:
    """Start the same command twice."""
    other = place.start(job.command(), name="other")
    time.sleep(rng.choice((0, 0.02, 0.3)))
    process = place.start(job.command())
    place.others.append(other)
    return process


FAULTS: dict[str, Callable[[Job, Place, random.Random], Started]] = {
    "full disk": full_disk,
    "read-only folder": read_only,
    "input vanishes": vanished,
    "input changes while it is read": changing,
    "too little memory": little_memory,
    "too few file descriptors": few_files,
    "clock jumps": clock_jumps,
    "two processes at once": two_at_once,
}
INPUTS = (
    "data/train.txt.gz",
    "changed/train.txt.gz",
    "run/rules.parquet",
    "run/train.parquet",
    "run/vocabulary.parquet",
    "graph/train.tsv",
    "facts.tsv",
    "rules.txt",
    "queries.tsv",
)
MOUNTED = ("full disk", "read-only folder")


def inject(fault: str, job: Job, bases: list[Path], folder: Path, number: int) -> Trial:
    """Disturb a command in one way, look at everything, and let it run undisturbed."""
    rng = random.Random(f"{fault} {job.name} {number}")
    trial, base = Trial(job.name, fault), bases[number % len(bases)]
    folder.mkdir(parents=True)
    if fault in MOUNTED:
        size = sum(file.stat().st_size for file in base.rglob("*") if file.is_file()) + SPARE
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        place = Place(base, folder / "place", said_in=folder.with_name(f"{folder.name}.said"))
        _look(trial, job, place, FAULTS[fault](job, place, rng))
    finally:
        if fault in MOUNTED:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)
    return trial


def _look(trial: Trial, job: Job, place: Place, process: Started) -> None:
    allowed = OF_MEMORY if trial.fault == "too little memory" else CODES
    for started in (process, *place.others):
        if ended(trial, started) and started.returncode not in allowed:
            trial.problems.append(f"exit code {started.returncode}: {place.said()[-600:]}")
    trial.code, trial.said = process.returncode, place.said()[-300:]
    check_words(trial, place.said())
    if trial.fault == "read-only folder":
        subprocess.run(["mount", "-o", "remount,rw", str(place.folder.parent)], check=True)
    (place.folder / "filling").unlink(missing_ok=True)
    if place.undo:
        place.undo()
    check_files(trial, job, place)
    do_again(trial, job, place)


def _inputs(job: Job, place: Place) -> list[Path]:
    """Return the files that a command is given to read, or that lie in a folder it is given."""
    read = [name for name in INPUTS if name.partition("/")[0] in job.arguments]
    return [place.folder / name for name in read or INPUTS[:1]]  # `generate` reads nothing


def _fill(folder: Path, room: int) -> None:
    free = shutil.disk_usage(folder).free
    with open(folder / "filling", "wb") as file:
        file.write(bytes(max(free - room, 0)))
