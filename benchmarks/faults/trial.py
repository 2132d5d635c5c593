"""One trial: a command is started, something is done to it, and then everything is looked at."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyburl.rules.run_folder import read_run, read_trace
from faults.jobs import Job, copy_base
from soak.processes import cpu_seconds

LEFTOVER = re.compile(r"\..*\.(part|old)[0-9a-f]+")
AGE = 120  # seconds: what is older than a minute is nobody's
PATIENCE = 900  # seconds for a command, counted while the harness itself is running
TICK = 0.25
WRONG_WORDS = ("Traceback", "bug in anyburl", "Exception ignored", "Fatal Python error")
AFTER_PANIC = (
    "error: Polars cannot",
    "error: not enough memory",
    "error: too many open files",
    "memory allocation of",
)  # Polars prints its own lines
SAID = {signal.SIGINT: (130, 0, -signal.SIGINT), signal.SIGTERM: (130, 0), signal.SIGKILL: (-9, 0)}


@dataclass
class Trial:
    """What happened; `problems` should stay empty."""

    command: str
    fault: str
    moment: float = 0.0  # seconds after the start
    code: int = 0
    found: str = ""  # what was there afterwards
    leftovers: int = 0
    lost_seconds: float | None = None  # of learning
    said: str = ""
    problems: list[str] = field(default_factory=list)


class Place:
    """A folder with a copy of the base, in which one command runs at a time."""

    def __init__(self, base: Path, folder: Path, said_in: Path | None = None) -> None:
        copy_base(base, folder)
        self.folder, self.said_in = folder, said_in or folder
        self.undo: Callable[[], object] | None = None
        self.others: list[subprocess.Popen[bytes]] = []
        for path in (self.said_in, self.said_in / "tmp"):
            path.mkdir(parents=True, exist_ok=True)

    def start(
        self, command: list[str], name: str = "said", also_from: Path | None = None, **more: Any
    ) -> subprocess.Popen[bytes]:
        """Start a command; what it says goes to a file. Python looks for modules in `also_from`, too."""
        paths = [os.environ.get("PYTHONPATH", ""), *([str(also_from)] if also_from else [])]
        environment = {**os.environ, "TMPDIR": str(self.said_in / "tmp"), "PYTHONPATH": os.pathsep.join(paths)}
        with open(self.said_in / f"{name}.txt", "wb") as out:
            return subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out, env=environment, **more)

    def said(self) -> str:
        """Return what the last commands said."""
        files = (self.said_in / name for name in ("said.txt", "other.txt"))
        return "".join(file.read_text("utf-8", "replace") for file in files if file.exists())

    def leftovers(self) -> list[Path]:
        """Return unfinished files and folders."""
        return [path for path in self.folder.rglob(".*") if LEFTOVER.fullmatch(path.name)]

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.said_in, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def ended(trial: Trial, process: subprocess.Popen[bytes]) -> bool:
    """Wait for a process to end; note it and end it if it does not.

    Time is counted in short waits, so that a machine that suspends both processes for a while is not mistaken for a
    command that hangs.
    """
    for _ in range(int(PATIENCE / TICK)):
        with suppress(subprocess.TimeoutExpired):
            process.wait(TICK)
            return True
    process.kill()
    process.wait()
    trial.problems.append(f"still running after {PATIENCE} s")
    return False


def wait_for_work(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a process has used that many seconds of a processor: on a busy machine, the clock says little."""
    with suppress(OSError):
        while process.poll() is None and cpu_seconds(process.pid) < seconds:
            time.sleep(0.01)


def check_words(trial: Trial, said: str) -> None:
    """Note what no command should ever say."""
    words = WRONG_WORDS if any(words in said for words in AFTER_PANIC) else (*WRONG_WORDS, "panicked")
    wrong = [line for line in said.splitlines() if any(word in line for word in words)]
    if wrong and not is_before_us(said):
        trial.problems.append(f"said: {wrong[0]} ... {said.strip()[-1500:]}")


def is_before_us(said: str) -> bool:
    """Tell whether an interrupt came before anyburl could take care of it: while its first modules are imported."""
    files = set(re.findall(r"anyburl/([\w/]+\.py)", said))
    return "KeyboardInterrupt" in said and files <= {"__init__.py", "__main__.py", "cli/start.py"}


def check_files(trial: Trial, job: Job, place: Place, *, all_there: bool = False) -> None:
    """Open what the command writes: it is missing or whole."""
    states = []
    for name, opens in job.writes.items():
        path = place.folder / name
        if not path.exists() or (name == "new" and not (path / "options.json").exists()):
            states.append("missing")
            if all_there:
                trial.problems.append(f"{name} is missing after the next command")
            continue
        try:
            opens(path)
            states.append("whole")
        except Exception as error:
            states.append("damaged")
            trial.problems.append(f"{name}: {type(error).__name__}: {error}")
    if not all_there:
        trial.found = " ".join(sorted(set(states)))


def check_learned(trial: Trial, run: Path, before: set[str], said: str) -> None:
    """Look for parts that were there before, for rules that were announced, and how much learning was lost."""
    if not (run / "options.json").is_file():
        return
    has_file = (run / "rules.parquet").is_file()
    gone = [name for name in before if not (run / "parts" / name).exists()]
    if gone and not has_file:
        trial.problems.append(f"parts are gone: {gone}")
    n_rules = len(read_run(run)[0])
    told = re.search(r'"rules": (\d+)', said)
    if told and int(told[1]) != n_rules:
        trial.problems.append(f"{told[1]} rules were announced, {n_rules} are there")
    spans = [(line["elapsed"], line["rules"] + line["dropped"]) for line in read_trace(run) if "rules" in line]
    kept = max((elapsed for elapsed, n in spans if n <= n_rules), default=0.0)
    trial.lost_seconds = round(spans[-1][0] - kept, 2) if spans else 0.0


def do_again(trial: Trial, job: Job, place: Place, *, swept: bool = True) -> None:
    """Run the next command: it succeeds, its files are whole, and nothing unfinished is left."""
    found = place.leftovers()
    trial.leftovers = len(found)
    then = time.time() - AGE
    for path in found:
        os.utime(path, (then, then))
    process = place.start(job.command(again=True, folder=place.folder))
    if not ended(trial, process):
        return
    code, said = process.returncode, place.said()
    check_words(trial, said)
    is_there = "already contains" in said  # a new folder that was finished after all
    if code != 0 and not is_there:
        trial.problems.append(f"the next command ended with {code}: {said[-600:]}")
    check_files(trial, job, place, all_there=True)
    if swept and not is_there and (left := place.leftovers()):
        trial.problems.append(f"not swept: {[str(path.relative_to(place.folder)) for path in left]}")


def parts_of(run: Path) -> set[str]:
    """Return the names of the parts of a run."""
    return {file.name for file in (run / "parts").glob("*.columns")}


def run_folder_of(job: Job, place: Place) -> Path | None:
    """Return the run folder that a command learns into, if it does."""
    return place.folder / next(iter(job.writes)) if job.name.startswith("learn") else None


def keep(trial: Trial, log: Path, done: Callable[[], None] = lambda: None) -> Trial:
    """Append a trial to a log, so that a benchmark that is broken off can go on."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps(trial.__dict__) + "\n")
    done()
    return trial
