"""Signals at random moments."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

from faults.jobs import Job
from faults.trial import (
    SAID,
    Place,
    Trial,
    check_files,
    check_learned,
    check_words,
    do_again,
    ended,
    is_before_us,
    parts_of,
    run_folder_of,
    wait_for_work,
)

MOST_TRIES = 6


def kill(job: Job, bases: list[Path], folder: Path, number: int, length: float) -> Trial:
    """Send a signal at a random moment; `length` is how many seconds of a processor the command takes undisturbed."""
    rng = random.Random(f"{job.name} {number}")
    sent = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGINT)[number % 4]
    twice, writing = number % 4 == 3, number % 2 == number // 4 % 2
    name = f"{sent.name}{' twice' if twice else ''}{' while writing' if writing else ''}"
    trial = Trial(job.name, name)
    for attempt in range(MOST_TRIES):
        place = Place(bases[number // 2 % len(bases)], folder / f"{number}-{attempt}")
        process = place.start(job.command())
        started = time.monotonic()
        if writing:
            _wait_for_file(process, place, rng)
        else:
            wait_for_work(process, rng.uniform(0.02, 0.98) * length * 0.8**attempt)
        run = run_folder_of(job, place)
        before = parts_of(run) if run else set()
        if process.poll() is None or attempt == MOST_TRIES - 1:
            break
        place.remove()
        writing = False  # it was over too soon
    trial.fault = name if writing else name.removesuffix(" while writing")
    trial.moment = round(time.monotonic() - started, 2)
    process.send_signal(sent)
    if twice:
        time.sleep(rng.uniform(0.02, 0.3))
        if process.poll() is None:
            process.send_signal(sent)
    look(trial, job, place, process, sent, run, before)
    place.remove()
    return trial


def look(
    trial: Trial,
    job: Job,
    place: Place,
    process: subprocess.Popen[bytes],
    sent: signal.Signals,
    run: Path | None,
    before: set[str],
    *,
    again: bool = True,
) -> None:
    """Look at what is there after a signal, and go on."""
    if not ended(trial, process):
        return
    trial.code, said = process.returncode, place.said()
    trial.said = said[-300:]
    check_words(trial, said)
    early = trial.code == -sent and (not said or is_before_us(said))
    if trial.code not in SAID[sent] and not early:
        trial.problems.append(f"exit code {trial.code}: {said[-600:]}")
    check_files(trial, job, place)
    if run:
        check_learned(trial, run, before, said)
    if again:
        do_again(trial, job, place)


def _wait_for_file(process: subprocess.Popen[bytes], place: Place, rng: random.Random) -> None:
    """Wait until something unfinished is there, and a moment more."""
    known = set(place.leftovers())
    while process.poll() is None and not set(place.leftovers()) - known:
        time.sleep(0.002)
    time.sleep(rng.choice((0.0, 0.001, 0.005, 0.02, 0.1)))
