"""What the experiments share: options of the command line, stored cells, data sets, children, samples of a test set.

A cell is one measurement. It is stored as JSON as soon as it is done, in RESULTS/EXPERIMENT/NAME.json, with what was
asked for. A rerun skips a cell that is there and was asked for in the same way.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import anyburl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from common import machine  # noqa: E402
from common import peak_memory_mb as peak_memory_mb  # noqa: E402
from common import shared as shared  # noqa: E402
from common import timed as timed  # noqa: E402

SCALE = 0.01
"""The default: the paper's 10000 s become 100 s, its 1000 s become 10 s."""


@dataclass(frozen=True)
class Lab:
    """Where results and runs go, and what of an experiment is wanted."""

    results: Path
    runs: Path
    scale: float = SCALE
    seeds: int = 3
    again: bool = False
    full: bool = False
    until: float = float("inf")  # on time.time(): no cell is begun after that
    since: str = ""  # what was measured before this date counts as not measured
    data: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    def wants_data(self, name: str) -> bool:
        """Whether a data set was asked for (all are, if none was named)."""
        return not self.data or name in self.data

    def wants(self, part: str) -> bool:
        """Whether a part of the experiment was asked for."""
        return not self.only or part in self.only

    def is_old(self, stored: dict[str, Any]) -> bool:
        """Whether stored results were measured before the date that was given."""
        return bool(stored["machine"]["date"] < self.since)

    def seconds(self, paper: float) -> float:
        """Return the learning time that stands for `paper` seconds of the paper."""
        return float(f"{paper * self.scale:.4g}")


@dataclass(frozen=True)
class Cell:
    """One measurement: the experiment it belongs to, its name, and all that was asked for."""

    experiment: str
    name: str
    asked: dict[str, Any]

    def file(self, lab: Lab) -> Path:
        """Return where its JSON is kept."""
        return lab.results / self.experiment / f"{self.name}.json"

    def is_due(self, lab: Lab) -> bool:
        """Whether it is still to be measured, and there is time to begin it."""
        if time.time() > lab.until:
            return False
        file = self.file(lab)
        if lab.again or not file.is_file():
            return True
        stored = json.loads(file.read_text("utf-8"))
        return lab.is_old(stored) or bool(stored["asked"] != json.loads(json.dumps(self.asked)))

    def save(self, lab: Lab, results: Any) -> None:
        """Write the results with everything needed to judge them."""
        stored = {
            "command": command(),
            "anyburl": anyburl.__version__,
            "machine": machine(),
            "scale": lab.scale,
            "asked": self.asked,
            "results": results,
        }
        file = self.file(lab)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
        os.replace(partial, file)
        print(f"  {self.experiment}/{self.name}", flush=True)


def command() -> str:
    """Return the command line without the folders, which say nothing to others."""
    words, kept = iter(sys.argv[1:]), []
    for word in words:
        if word in ("--runs", "--results"):
            next(words, None)
        elif not word.startswith(("--runs=", "--results=")):
            kept.append(word)
    return " ".join(["python", f"benchmarks/paper/{Path(sys.argv[0]).name}", *kept])


def arguments(description: str | None, parts: str = "", argv: list[str] | None = None) -> Lab:
    """Read the command line of an experiment; `parts` says what --only may name."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add_options(parser, parts)
    return make_lab(parser.parse_args(argv))


def add_options(parser: argparse.ArgumentParser, parts: str) -> None:
    """Add the options that all experiments have."""
    parser.add_argument("--scale", type=float, default=SCALE, help="factor on the paper's times (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="runs per setting where runs are compared (default 3)")
    parser.add_argument("--data", default="", help="only these data sets, as a,b")
    parser.add_argument("--only", default="", help=f"only these parts, as a,b: {parts}" if parts else "not used here")
    parser.add_argument("--again", action="store_true", help="measure again what is stored; run folders are kept")
    parser.add_argument("--since", default="", metavar="DATE", help="measure again what is older than DATE (UTC)")
    parser.add_argument("--full", action="store_true", help="ask all test queries where the default is a sample")
    parser.add_argument("--minutes", type=float, default=0, help="begin nothing after so many minutes (0: no bound)")
    parser.add_argument("--runs", type=Path, default=Path(tempfile.gettempdir()) / "anyburl-paper-runs")
    parser.add_argument("--results", type=Path, default=HERE / "results")


def make_lab(chosen: argparse.Namespace) -> Lab:
    """Turn parsed options into a Lab."""
    until = time.time() + 60 * chosen.minutes if chosen.minutes else float("inf")
    data, only = (tuple(filter(None, text.split(","))) for text in (chosen.data, chosen.only))
    places = chosen.results, chosen.runs
    return Lab(*places, chosen.scale, chosen.seeds, chosen.again, chosen.full, until, chosen.since, data, only)


def find_data(name: str) -> str:
    """Return the folder's name of a data set of the paper: of YAGO3-10 the whole where it is there, else the part."""
    if name == "YAGO3-10" and not (shared() / "data" / name).is_dir():
        return "YAGO3-10-partial"
    return name


def load(name: str) -> anyburl.Dataset:
    """Load a data set of the shared folder."""
    return anyburl.load_dataset(shared() / "data" / name)


def digest(value: Any) -> str:
    """Return a short name for plain values."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=4).hexdigest()


def in_child(work: Callable[..., Any], *given: Any) -> Any:
    """Run a function in a process of its own, so that its memory returns; None (and the reason told) if it fails."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(work, *given).result()
        except BrokenProcessPool:
            print(f"  {work.__name__} died (out of memory?): {given[0]}", file=sys.stderr, flush=True)
        except Exception:
            print(f"  {work.__name__} failed: {given[0]}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        return None
