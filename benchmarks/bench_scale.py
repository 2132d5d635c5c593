"""Growth: time and memory of every step on generated graphs of some sizes, and what follows for larger ones.

python benchmarks/bench_scale.py 1 3 10 30 100 --folder FOLDER     measure graphs of so many million triples
python benchmarks/bench_scale.py --fit                             fit, project, write docs/scale.md

Each size is one file in benchmarks/results; what is there is skipped, and so are the steps of a size that were done
before it was broken off (FOLDER/SIZE/*.json). A step that fails is written down as failed, and tried again the next
time. Every step runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import HERE, save
from scale.steps import STEPS, run_step

RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
QUERIES = 1_000


def measure(size: float, chosen: argparse.Namespace) -> None:
    """Run the steps of one size and save what they say."""
    name = f"scale-{size:g}"
    if is_complete(RESULTS / f"{name}.json"):
        print(f"{name} is there already", file=sys.stderr)
        return
    folder = chosen.folder / f"{size:g}"
    folder.mkdir(parents=True, exist_ok=True)
    asked = {"triples": round(size * 1_000_000), "seconds": chosen.seconds, "queries": QUERIES}
    results: dict[str, Any] = {"asked": asked}
    for step in STEPS:
        results[step] = done_step(step, folder, asked, chosen.limit)
        if "failed" in results[step]:
            if step != "index":
                break
            shutil.rmtree(folder / "index", ignore_errors=True)  # the text will do
    save(name, results, f"python benchmarks/bench_scale.py {size:g} --seconds {chosen.seconds:g}")


def is_complete(file: Path) -> bool:
    """Tell whether a size was measured to its end."""
    if not file.is_file():
        return False
    results = json.loads(file.read_text("utf-8"))["results"]
    return all(step in results and "failed" not in results[step] for step in STEPS)


def done_step(step: str, folder: Path, asked: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return the figures of a step, which is run in a child unless that was done before."""
    file = folder / f"{step}.json"
    if not file.is_file():
        print(f"{folder.name} million triples: {step} ...", file=sys.stderr, flush=True)
        started = time.perf_counter()
        command = [sys.executable, __file__, "--step", step, "--folder", str(folder), "--asked", json.dumps(asked)]
        try:
            code = subprocess.run(command, timeout=limit, stdout=sys.stderr).returncode
        except subprocess.TimeoutExpired:
            return {"failed": f"not done after {limit:g} s"}
        if code:
            return {"failed": f"exit code {code}"}
        print(f"{folder.name} million triples: {step} took {time.perf_counter() - started:.1f} s", file=sys.stderr)
    return dict(json.loads(file.read_text("utf-8")))


def child(step: str, folder: Path, asked: dict[str, Any]) -> None:
    """Run a step in this process and leave its figures in a file, complete or not at all."""
    figures = run_step(step, folder, asked)
    unfinished = folder / f"{step}.json.part"
    unfinished.write_text(json.dumps(figures), "utf-8")
    os.replace(unfinished, folder / f"{step}.json")


def fit_and_render(note: str) -> None:
    """Fit what was measured, save the projection and write the page, with a note on how it was measured."""
    from scale.fit import load_sizes, project
    from scale.page import render

    sizes = load_sizes(RESULTS)
    if len(sizes) < 2:
        sys.exit("a fit needs at least two sizes that were measured to their end")
    save("scale-fit", {**project(sizes), "note": note}, "python benchmarks/bench_scale.py --fit")
    print(render(RESULTS, DOCS), file=sys.stderr)


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=float, nargs="*", metavar="MILLIONS", help="millions of triples")
    parser.add_argument("--folder", type=Path, default=Path("scale-data"), help="where graphs, indexes and rules go")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to learn (60)")
    parser.add_argument("--limit", type=float, default=7_200.0, help="seconds after which a step has failed (7200)")
    parser.add_argument("--fit", action="store_true", help="fit, project and write docs/scale.md")
    parser.add_argument("--note", default="", help="with --fit: what else to know of how it was measured")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--asked", type=json.loads, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        child(chosen.step, chosen.folder, chosen.asked)
        return
    if not chosen.sizes and not chosen.fit:
        parser.error("give sizes in million triples, or --fit")
    for size in chosen.sizes:
        measure(size, chosen)
    if chosen.fit:
        fit_and_render(chosen.note)


if __name__ == "__main__":
    main()
