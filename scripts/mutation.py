"""Mutation testing by cosmic-ray, kernels interpreted: which changes of a module does no test notice?

    python scripts/mutation.py rewards metrics      all modules if none is named
    python scripts/mutation.py --most 100 ranks     a hundred mutants at most, drawn at random

Each module is mutated in a copy of the tree, build/mutation/NAME. Counts and survivors are kept in
benchmarks/results/mutation.json; `benchmarks/results/mutation-survivors.json` says why those that stay do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK, RESULTS = ROOT / "build" / "mutation", ROOT / "benchmarks" / "results" / "mutation.json"
SECONDS = 300  # for the tests of one mutant

MODULES = {
    "measures": ("ruleset/measures.py", ["tests/ruleset/test_measures.py"]),
    "rewards": ("learning/reward.py", ["tests/learning/test_rewards.py"]),
    "policies": ("learning/policy.py", ["tests/learning/test_policies.py"]),
    "aggregation": ("ranking/aggregation.py", ["tests/ranking/test_aggregations.py"]),
    "ranks": ("ranking/ranks.py", ["tests/ranking/test_answers.py", "tests/evaluation/test_metrics.py"]),
    "metrics": (
        "evaluation/metrics.py",
        ["tests/evaluation/test_metrics.py", "tests/evaluation/test_metrics_shown.py"],
    ),
    "fit": ("calibration/fit.py", ["tests/calibration/test_fit.py"]),
    "thresholds": ("calibration/thresholds.py", ["tests/calibration/test_thresholds.py"]),
}


def main() -> None:
    """Mutate the modules that were named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="NAME")
    parser.add_argument("--most", type=int, default=None, help="mutants of a module")
    arguments = parser.parse_args()
    for name in arguments.modules or MODULES:
        if name not in MODULES:
            sys.exit(f"there is no module {name!r}: expected one of {', '.join(MODULES)}")
        print(json.dumps({name: keep(name, mutate(name, arguments.most))}), flush=True)


def mutate(name: str, most: int | None) -> dict[str, Any]:
    """Run the tests of a module on its mutants; return what became of them."""
    module, tests = MODULES[name]
    tree = WORK / name
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("src", "tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        (tree / part).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, tree / part)
    (tree / "config.toml").write_text(_config(module, tests), "utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def cosmic_ray(*words: str) -> str:
        command = [sys.executable, "-m", "cosmic_ray.cli", *words]
        return subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True).stdout

    cosmic_ray("init", "config.toml", "session.sqlite")
    n_mutants = _draw(tree / "session.sqlite", most)
    cosmic_ray("exec", "config.toml", "session.sqlite")
    outcomes = [json.loads(line) for line in cosmic_ray("dump", "session.sqlite").splitlines()]
    tested = [(work["mutations"][0], result) for work, result in outcomes if result is not None]
    survivors = [_described(mutation, result) for mutation, result in tested if result["test_outcome"] == "survived"]
    return {"module": module, "tests": tests, "mutants": n_mutants, "tested": len(tested), "survivors": survivors}


def _config(module: str, tests: list[str]) -> str:
    command = f"{sys.executable} -m pytest -x -q -p no:xdist -p no:cacheprovider -o addopts= {' '.join(tests)}"
    described = {"module-path": f"src/anyburl/{module}", "timeout": float(SECONDS), "test-command": command}
    values = "\n".join(f"{key} = {json.dumps(value)}" for key, value in described.items())
    return f'[cosmic-ray]\n{values}\nexcluded-modules = []\n[cosmic-ray.distributor]\nname = "local"\n'


def _draw(session: Path, most: int | None) -> int:
    """Leave `most` mutants, drawn with a fixed seed; return how many there were."""
    with sqlite3.connect(session) as connection:
        jobs = [row[0] for row in connection.execute("SELECT job_id FROM work_items ORDER BY job_id")]
        drawn = jobs if most is None else random.Random(1).sample(jobs, min(most, len(jobs)))
        left = [(job,) for job in jobs if job not in set(drawn)]
        for table in ("mutation_specs", "work_items"):
            connection.executemany(f"DELETE FROM {table} WHERE job_id = ?", left)
    return len(jobs)


def _described(mutation: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    changed = [
        line for line in (result["diff"] or "").splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    return {"line": mutation["start_pos"][0], "operator": mutation["operator_name"], "change": changed}


def keep(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Store what was found of one module."""
    killed = found["tested"] - len(found["survivors"])
    found["score"] = round(killed / found["tested"], 4) if found["tested"] else None
    found["date"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    stored = json.loads(RESULTS.read_text("utf-8"))["results"] if RESULTS.is_file() else {}
    stored[name] = found
    told = {"command": "python scripts/mutation.py", "results": dict(sorted(stored.items()))}
    RESULTS.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return {key: found[key] for key in ("mutants", "tested", "score")}


if __name__ == "__main__":
    main()
