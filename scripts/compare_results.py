"""Compare the results of two source trees byte for byte.

    python scripts/compare_results.py OLD/src src geo umls WN18RR --data ../shared/data --work build/compared

With each tree in turn, every command below is run on every data set, by `python -m anyburl`, with the same budget of
paths and the same seed. The files that it writes and its JSON are then compared; times, which differ from run to run,
are left out. The exit code is 1 if anything differs. A name that `--data` has no folder for is a built-in data set.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

AGGREGATIONS = ("max", "noisy-or", "noisy-or-top:5", "tuned")
VARIABLE = ("second", "elapsed", "started", "finished", "created", "memory")
"""What is in the names of figures that differ from run to run."""
N_QUERIES = 5
EXCLUDED = ("prepared", "prepared.zip", ".lock", "trace.jsonl")  # the trace says which thread did what


def commands(data: str, run: Path, n_paths: int, queries: list[list[str]]) -> Iterator[tuple[str, list[str]]]:
    """List the commands to compare, each with a name; `queries` are facts of the test split."""
    yield "learn", ["learn", data, "--paths", str(n_paths), "--seed", "1", "--keep", "all", "--out", str(run)]
    yield "rules", ["convert", str(run), str(run.with_suffix(".txt"))]
    for aggregation in AGGREGATIONS:
        for blocked in ("off", "on"):
            name = f"evaluate-{aggregation.replace(':', '-')}-{blocked}"
            rankings = str(run.with_name(f"{run.name}-{name}.txt"))
            options = ["--aggregation", aggregation, "--block-connected", blocked, "--rankings", rankings]
            yield name, ["evaluate", str(run), *options]
    for number, fact in enumerate(queries):
        yield f"explain-{number}", ["explain", str(run), *fact]
        yield f"predict-{number}", ["predict", str(run), fact[0], fact[1], "?", "--explain", "--include-known"]
    best = str(run.with_name(f"{run.name}-complete.tsv"))
    yield "complete", ["complete", str(run), "--out", best, "--min-score", "0.5", "--reasons"]
    yield "calibrate", ["calibrate", str(run)]
    probable = str(run.with_name(f"{run.name}-probable.tsv"))
    yield "complete-probable", ["complete", str(run), "--out", probable, "--min-probability", "0.5"]
    yield "distil", ["distil", str(run), "--rules", "100", "--out", str(run.with_name(f"{run.name}-distilled.txt"))]


def without_times(value: Any) -> Any:
    """Leave the times and the paths of files out of a JSON value."""
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if not any(word in key for word in VARIABLE)}
    if isinstance(value, list):
        return [without_times(part) for part in value]
    return round(value, 12) if isinstance(value, float) else value


def run_command(source: Path, arguments: list[str], folder: Path) -> str:
    """Run a command with the package in `source`; return its JSON without times, with `folder` written as FOLDER."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "anyburl", *arguments, "--json", "--quiet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr}"
    try:
        output = json.dumps(without_times(json.loads(done.stdout)), sort_keys=True)
    except ValueError:
        output = done.stdout
    return output.replace(str(folder), "FOLDER")


def test_facts(data: Path | str) -> list[list[str]]:
    """Return some facts of the test split, spread over it."""
    from anyburl import load_dataset

    test = load_dataset(data).test
    rows = test.to_polars().rows() if test is not None else []
    return [list(map(str, row)) for row in rows[:: max(1, len(rows) // N_QUERIES)][:N_QUERIES]]


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that was written, except those in `EXCLUDED`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part in EXCLUDED for part in path.parts):
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            if path.suffix == ".npz":  # an archive, with times
                with np.load(path) as arrays:
                    content = b"".join(name.encode() + arrays[name].tobytes() for name in sorted(arrays.files))
            if path.suffix in (".json", ".jsonl"):
                lines = content.decode().splitlines() if path.suffix == ".jsonl" else [content.decode()]
                content = json.dumps([without_times(json.loads(line)) for line in lines], sort_keys=True).encode()
            found[name] = hashlib.sha256(content.replace(str(folder).encode(), b"FOLDER")).hexdigest()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("names", nargs="+", metavar="DATA")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder with data sets")
    parser.add_argument("--work", type=Path, default=Path("build/compared"), help="where results are written")
    parser.add_argument("--paths", type=int, default=200_000, help="paths to sample")
    parser.add_argument("--skip", default="", help="leave out commands whose names begin with one of these: A,B")
    chosen = parser.parse_args()
    skipped = tuple(filter(None, chosen.skip.split(",")))
    differences = 0
    for name in chosen.names:
        data = (chosen.data / name).resolve() if (chosen.data / name).is_dir() else name
        queries = test_facts(data)
        outputs: dict[str, dict[str, str]] = {}
        for side, source in (("old", chosen.old.resolve()), ("new", chosen.new.resolve())):
            folder = (chosen.work / side / name).resolve()
            folder.mkdir(parents=True)
            results = {}
            for command, arguments in commands(str(data), folder / "run", chosen.paths, queries):
                if not command.startswith(skipped or "-"):
                    results[f"{command} prints"] = run_command(source, arguments, folder)
            outputs[side] = {**results, **digests(folder)}
        everything = outputs["old"].keys() | outputs["new"].keys()
        different = sorted(key for key in everything if outputs["old"].get(key) != outputs["new"].get(key))
        failed = sorted(key for key, text in outputs["new"].items() if text.startswith("exit code"))
        print(f"{name}: {len(everything)} results, {len(different)} differ, {len(failed)} commands failed", flush=True)
        for key in different:
            old, new = (outputs[side].get(key, "") for side in ("old", "new"))
            first = max(0, next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0) - 100)
            print(f"  {key}\n    old {old[first : first + 300]}\n    new {new[first : first + 300]}")
        for key in failed:
            print(f"  {key}: {outputs['new'][key][:300]}")
        differences += len(different)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
