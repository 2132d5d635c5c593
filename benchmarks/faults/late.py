"""Signals long after the start: learners that are killed, resumed, and killed again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from anyburl.rules.run_folder import read_trace
from faults import opening
from faults.jobs import Job
from faults.kills import look
from faults.trial import Place, Trial, parts_of

LEARN = "--threads 1 --max-cyclic 5 --min-support 20 --snapshots 5,10,15,20,25,30,35,40,45,50,55,60 --json"
GIVE_UP = 900  # seconds
TICK = 0.2


def kill_late(data: Path, relations: str, folder: Path, number: int) -> list[Trial]:
    """Learn; send a signal more than 15 s into the run; resume; send one again; resume to the end."""
    rng = random.Random(number)
    folder.mkdir(parents=True)
    place = Place(folder, folder / "place")
    trials, begun, options = list[Trial](), 0.0, f"{LEARN} --relations {relations}"
    for resumed in (False, True):
        how = "--resume" if resumed else str(data)
        text = f"learn {how} --out run --seconds 600 {options}"
        name = f"learn{' --resume' if resumed else ''} ({data.name})"
        job = Job(name, tuple(text.split()), {"run": opening.run})
        sent = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
        trial = Trial(name, sent.name)
        process = place.start(job.command())
        wait_until(place.folder / "run", begun, rng.uniform(15.2, 26), process)
        trial.moment = round(elapsed(place.folder / "run") - begun, 2)
        before = parts_of(place.folder / "run")
        process.send_signal(sent)
        again = () if not resumed else ("learn", "--out", "run", "--resume", "--seconds", "1", "--json")
        look(trial, Job(name, again, job.writes), place, process, sent, place.folder / "run", before, again=bool(again))
        trials.append(trial)
        begun = elapsed(place.folder / "run")
    place.remove()
    return trials


def elapsed(run: Path) -> float:
    """Return how long a run has been learning, as its trace tells."""
    return float(max((line.get("elapsed", 0.0) for line in read_trace(run)), default=0.0))


def wait_until(run: Path, begun: float, seconds: float, process: subprocess.Popen[bytes]) -> None:
    """Wait until a run has been learning for that many seconds since `begun`.

    By its trace, and by what is counted here: time during which the machine suspends both does not count.
    """
    awake = 0.0
    for _ in range(int(GIVE_UP / TICK)):
        if min(elapsed(run) - begun, awake) >= seconds:
            return
        time.sleep(TICK)
        awake += TICK if elapsed(run) > begun else 0.0
        if process.poll() is not None:
            print(json.dumps({"ended": process.poll()}), file=sys.stderr)
            return
