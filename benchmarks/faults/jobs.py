"""The commands that are disturbed, and what they work on."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faults import opening
from synthetic import generate_graph

Opener = Callable[[Path], None]
TRAINING = ["--epochs", "4", "--rank", "8", "--batch-size", "200"]


@dataclass(frozen=True)
class Job:
    """A command in a folder that holds `data`, `changed`, `run`, `rules.txt` and `facts.tsv`.

    `writes` are the files and folders that it writes, each with what opens it. `again` is the command that must succeed
    afterwards, the same one if left out.
    """

    name: str
    arguments: tuple[str, ...]
    writes: dict[str, Opener]
    again: tuple[str, ...] = ()

    def command(self, *, again: bool = False, folder: Path | None = None) -> list[str]:
        """Return the command line; one that needs a new folder goes on with a run that is there already."""
        arguments = self.arguments
        if again and self.again and folder is not None and (folder / "new" / "options.json").is_file():
            arguments = self.again
        return [sys.executable, "-m", "anyburl", *arguments]


def _job(name: str, text: str, again: str = "", **writes: Opener) -> Job:
    places = {place.replace("__", "/").replace("_", "."): opener for place, opener in writes.items()}
    return Job(name, tuple(text.split()), places, tuple(again.split()))


FIRST = "--threads 1 --span 0.2 --max-cyclic 2 --min-support 30 --snapshots 1,2"
LEARN = (
    "--threads 1 --span 0.2 --max-cyclic 4 --min-support 20 --relations tourism --snapshots 0.5,1,1.5,4.5,5,5.5 --json"
)
JOBS = (
    _job(
        "learn",
        f"learn data --out new --seconds 2 {LEARN}",
        "learn --out new --resume --seconds 2 --json",
        new=opening.run,
    ),
    _job("learn --resume", f"learn --out run --resume --seconds 6 {LEARN}", run=opening.run),
    _job("learn --resume (data changed)", "learn changed --out run --resume --seconds 0.5 --json", run=opening.run),
    _job("rescore", "rescore run --out rescored.parquet --json", rescored_parquet=opening.rules),
    _job("convert", "convert run converted.parquet --json", converted_parquet=opening.rules),
    _job("convert (text)", "convert run converted.txt.gz --json", converted_txt_gz=opening.rules),
    _job("index", "index graph --out indexed --json", indexed=opening.index),
    _job("prepare", "prepare run --json", run__prepared=opening.prepared),
    _job(
        "evaluate",
        "evaluate run --rankings rankings.txt --json",
        rankings_txt=opening.text,
        run__metrics_jsonl=opening.metrics,
    ),
    _job("tune", "tune run --json", run__tuned=opening.arrays),
    _job(
        "calibrate",
        "calibrate run --plot plot.svg --json",
        run__calibration=opening.arrays,
        plot_svg=opening.page,
    ),
    _job("complete", "complete run --out found.parquet --min-score 0.4 --json", found_parquet=opening.table),
    _job("complete (text)", "complete run --out found.tsv --min-score 0.4 --reasons --json", found_tsv=opening.table),
    Job(
        "embed",
        ("embed", "--out", "run", *TRAINING, "--threads", "1", "--json"),
        {"run/embedding.safetensors": opening.embedding},
    ),
    _job("explain --html", "explain run china tourism usa --html why.html --json", why_html=opening.page),
    _job("predict --queries", "predict run --queries queries.tsv --json"),
    _job("export", "export run exported.sparql --json", exported_sparql=opening.text),
    _job("diff --out", "diff run rules.txt --out diff.tsv --json", diff_tsv=opening.text),
    _job("plot", "plot run --out plots --what rules --json", plots__rules_png=opening.picture),
    _job("doctor --html", "doctor data --no-rules --html doctor.html --json", doctor_html=opening.page),
    _job("publish", "publish facts.tsv sqlite:facts.db#facts --write --json", facts_db=opening.database),
)
NEEDS_NEW = {"new", "indexed"}  # folders that must not be there before
CHINA = "china\ttourism\t?\n"


def make_base(folder: Path, data: Path) -> None:
    """Make what the commands work on: small data, a run on it, rules as text, facts and questions."""
    shutil.copytree(data, folder / "data")
    shutil.copytree(data, folder / "changed")
    train = gzip.decompress((data / "train.txt.gz").read_bytes()).splitlines(keepends=True)
    random.Random(1).shuffle(train)
    (folder / "changed" / "train.txt.gz").write_bytes(gzip.compress(b"".join(train[20:])))
    (folder / "queries.tsv").write_text(CHINA * 200, "utf-8")
    for text in (
        f"learn data --out run --seconds 4 {FIRST}",
        "convert run rules.txt",
        "complete run --out facts.tsv --min-score 0.4 --no-prepare",
    ):
        subprocess.run([sys.executable, "-m", "anyburl", *text.split(), "--quiet"], cwd=folder, check=True)
    generate_graph(folder / "graph", 50_000)


def make_second(base: Path, folder: Path) -> None:
    """Make a copy of the base in which every command has been done before, so that its files are replaced."""
    copy_base(base, folder)
    for job in JOBS:
        if not NEEDS_NEW & set(job.writes):
            subprocess.run(job.command(), cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def copy_base(base: Path, folder: Path) -> None:
    """Make a copy that shares unchanged files: whoever replaces a file does not touch the other copy."""
    shutil.copytree(base, folder, copy_function=_copy)


def _copy(source: str, target: str) -> None:
    if source.endswith((".jsonl", ".lock")):  # which are appended to
        shutil.copy2(source, target)
        return
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copy2(source, target)
