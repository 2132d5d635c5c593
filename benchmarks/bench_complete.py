"""All missing facts: time, memory and number, and that they are what `predict` says.

python benchmarks/bench_complete.py RUN AGGREGATION MIN_SCORE [ROUNDS]    complete a run folder, prepared and tuned
python benchmarks/bench_complete.py check RUN AGGREGATION MIN_SCORE    compare with 1000 questions asked by `predict`
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

import anyburl
from common import save

QUESTIONS = 1000
KEYS = ["subject", "relation", "object"]


def complete(run: str, aggregation: str, least: str, out: Path) -> dict[str, Any]:
    """Run the command as a user would; return what it says, with the whole time and the peak of memory."""
    command = [sys.executable, "-m", "anyburl", "complete", run, "--out", str(out), "--min-score", least]
    command += ["--aggregation", aggregation, "--json", "--quiet"]
    started = time.monotonic()
    with subprocess.Popen(["/usr/bin/time", "-f", "%M", *command], stdout=-1, stderr=-1, text=True) as process:
        told, notes = process.communicate()
    if process.returncode:
        raise SystemExit(notes)
    found = json.loads(told)
    seconds = round(time.monotonic() - started, 2)
    return {"facts": found["facts"], "seconds": seconds, "finding": found["seconds"], "peak_mb": int(notes) // 1000}


def check(run: str, aggregation: str, least: float) -> dict[str, Any]:
    """Ask questions at random, both ways, and look whether `complete` has their answers, and no others."""
    reasoner, rng = anyburl.Reasoner.open(run, aggregation=aggregation), random.Random(1)
    entities, relations = reasoner.vocabulary.entities.to_list(), reasoner.vocabulary.relations.to_list()
    train = reasoner.dataset.train.to_polars().rows()
    asked = [(rng.choice(entities), rng.choice(relations), None) for _ in range(QUESTIONS // 2)]
    asked += [(s, r, None) for s, r, _ in rng.sample(train, QUESTIONS // 4)]
    asked += [(None, r, o) for _, r, o in rng.sample(train, QUESTIONS // 4)]
    answers = reasoner.predict(asked, top=len(entities)).filter((pl.col("known") == "") & (pl.col("score") >= least))
    answers = answers.select(*KEYS, "score").group_by(KEYS).agg(pl.max("score"))
    found = pl.concat(list(reasoner.complete(min_score=least, conflicts=True))).select(*KEYS, "score")
    joined = answers.join(found, on=KEYS, how="left", suffix="_found")
    by_question = [
        found.join(pl.DataFrame(some, schema=names, orient="row").unique(), on=names, how="semi")
        for names, some in (
            (["subject", "relation"], [(s, r) for s, r, o in asked if s is not None]),
            (["relation", "object"], [(r, o) for s, r, o in asked if s is None]),
        )
    ]
    return {
        "questions": len(asked),
        "answers": len(answers),
        "found": len(pl.concat(by_question).unique()),
        "missed": joined["score_found"].null_count(),
        "other_scores": len(joined.filter((pl.col("score") - pl.col("score_found")).abs() > 1e-9)),
    }


def main() -> None:
    if sys.argv[1] == "check":
        _, _, run, aggregation, least = sys.argv
        result = check(run, aggregation, float(least))
        name, words = f"complete-check-{Path(run).name}-{aggregation.replace(':', '')}", ["check", Path(run).name]
        save(name, result, " ".join(["python benchmarks/bench_complete.py", *words, aggregation, least]))
        return
    run, aggregation, least, *rounds = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "missing.parquet"
        found = [complete(run, aggregation, least, out) for _ in range(int(rounds[0]) if rounds else 3)]
    name, command = f"complete-{Path(run).name}-{aggregation.replace(':', '')}", "python benchmarks/bench_complete.py"
    save(name, {"min_score": float(least), "rounds": found}, f"{command} {Path(run).name} {aggregation} {least}")


if __name__ == "__main__":
    main()
