"""A prepared run: how soon it answers, how many answers a second, how large it is.

python benchmarks/bench_reason.py prepare RUN [BEFORE]    learn nothing: prepare a run folder, then measure
python benchmarks/bench_reason.py rank NAME RULES [BEFORE]    rank NAME's test split with a file or folder of rules
python benchmarks/bench_reason.py many RUN [BEFORE]    the best answers to 2,000 questions of the test split at a time

BEFORE is the Python of another environment with an older anyburl: what it can do as well is measured in turns with this
one, so that both have the same machine. Each measurement is repeated; all values are kept.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import in_turns, run_script, save, shared, timed

ROUNDS = 5
FIRST_ANSWER = ["predict", "{run}", "{subject}", "{relation}", "?", "--top", "3", "--quiet"]

RANK = """
import json, sys, time
import anyburl
data = anyburl.load_dataset(sys.argv[1])
rules = anyburl.RuleSet.load(sys.argv[2] + ("/rules.parquet" if __import__("os").path.isdir(sys.argv[2]) else ""))
rules = rules.with_vocabulary(data.vocabulary)
rules = rules[0] if isinstance(rules, tuple) else rules  # older versions returned a report as well
options = anyburl.RankOptions(block_connected="off", weights=json.loads(sys.argv[3]))
if hasattr(anyburl, "Reasoner"):
    anyburl.evaluate(rules.slice(0, 10), data, split="valid", options=options)
    evaluate = anyburl.Reasoner(rules, data, options).evaluate
else:
    few = anyburl.make_ranker(rules.slice(0, 10), data, options)
    anyburl.evaluate(few.rules, data, split="valid", ranker=few)
    ranker = anyburl.make_ranker(rules, data, options)
    evaluate = lambda: anyburl.evaluate(rules, data, ranker=ranker)
found = [evaluate() for _ in range(2)]
ranked = [m.seconds["rank"] for m in found]
print(json.dumps({"index": found[0].seconds["index"], "rank": ranked, "mrr": found[0].mrr, "rules": len(rules)}))
"""

OPEN = """
import json, sys, time, statistics
import anyburl
Reasoner = anyburl.Reasoner
started = time.perf_counter()
reasoner = Reasoner.open(sys.argv[1])
opened = time.perf_counter() - started
entities, relation = reasoner.vocabulary.entities.to_list()[::37], sys.argv[2]
reasoner.predict(entities[0], relation, None)
took = []
for entity in entities[1:201]:
    started = time.perf_counter()
    reasoner.predict(entity, relation, None)
    took.append(time.perf_counter() - started)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
own, mapped = (int(status[name].split()[0]) / 1000 for name in ("RssAnon", "RssFile"))
print(json.dumps({"open_seconds": opened, "question_ms": 1000 * statistics.median(took),
    "own_memory_mb": own, "mapped_memory_mb": mapped}))
"""

MANY = """
import hashlib, json, sys, time
import anyburl, polars as pl
reasoner, top = anyburl.Reasoner.open(sys.argv[1]), int(sys.argv[2])
test = reasoner.dataset.test.to_polars()
nothing = pl.lit(None, pl.String)
queries = pl.concat([test.select("subject", "relation", object=nothing), test.select(nothing.alias("subject"),
    "relation", "object")]).unique(maintain_order=True).sample(int(sys.argv[3]), seed=1, shuffle=True)
reasoner.predict(queries.head(64), top=top)
found, spent = [], []
for _ in range(3):
    started, used = time.perf_counter(), time.process_time()
    frames = list(reasoner.predict_frames(queries, top=top))
    found.append(time.perf_counter() - started)
    spent.append(time.process_time() - used)
answers = pl.concat(frames)
print(json.dumps({"queries": queries.height, "top": top, "answers": answers.height, "seconds": found,
    "processor_seconds": spent, "questions_per_second": [round(queries.height / seconds) for seconds in found],
    "answers_per_second": [round(answers.height / seconds) for seconds in found],
    "digest": hashlib.blake2b(answers.write_csv().encode(), digest_size=8).hexdigest()}))
"""


def first_answers(python: str, run: Path, query: tuple[str, str], *more: str, rounds: int = ROUNDS) -> list[float]:
    """Return the seconds from starting the command to its end, with files in the page cache."""
    words = [word.format(run=run, subject=query[0], relation=query[1]) for word in FIRST_ANSWER]
    command = [str(Path(python).parent / "anyburl"), *words, *more]

    def work() -> None:
        subprocess.run(command, capture_output=True, check=True)

    work()
    return [timed(work)[0] for _ in range(rounds)]


def prepared(run: Path, before: str | None) -> dict[str, Any]:
    """Prepare a copy of a run and measure it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / run.name
        shutil.copytree(run, copy, ignore=shutil.ignore_patterns("prepared", "tuned"))
        command = [str(Path(sys.executable).parent / "anyburl"), "prepare", str(copy), "--json"]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        del told["run"]
        test = _first_test_triple(copy)
        query = test[0], test[1]
        result = {
            "prepare": told,
            "first_answer_seconds": first_answers(sys.executable, copy, query),
            "open": [run_script(sys.executable, OPEN, copy, query[1]) for _ in range(3)],
            "many": [run_script(sys.executable, MANY, copy, top, 2000) for top in (100, 300)],
        }
        if before:
            result["before_first_answer_seconds"] = first_answers(before, copy, query, rounds=2)
        command = [str(Path(sys.executable).parent / "anyburl"), "tune", str(copy), "--json", "--quiet"]
        result["tune"] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        del result["tune"]["run"]
        result["first_answer_tuned_seconds"] = first_answers(sys.executable, copy, query, "--aggregation", "tuned")
        return result


def _first_test_triple(run: Path) -> tuple[str, str, str]:
    import anyburl

    source = json.loads((run / "options.json").read_text())["data"]["source"]
    first = anyburl.load_dataset(source).test.to_polars().row(0)
    return first[0], first[1], first[2]


def ranked(name: str, rules: str, before: str | None) -> dict[str, Any]:
    """Rank a test split, not blocked, in turns with an older version."""
    data, is_peer = shared() / "data" / name, rules == "peers"
    path = shared() / "peers" / f"{name}-anyburl23-100s.txt.gz" if is_peer else Path(rules)
    weights = json.dumps({"Ud": 0.1, "Z": 0.01} if is_peer else {})
    return in_turns(before, RANK, *[(data, path, weights)] * 2)


def many(run: Path, before: str | None) -> dict[str, list[Any]]:
    """Ask 2,000 questions for their best 10 and 100 answers, in turns with an older version."""
    return in_turns(before, MANY, *[(run, top, 2000) for top in (10, 100)])


def main() -> None:
    """Run what the command line asks for."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kind, *words = sys.argv[1:]
    if kind == "prepare":
        run, before = Path(words[0]), words[1] if len(words) > 1 else None
        save(f"reason-{run.name}", prepared(run, before), f"python benchmarks/bench_reason.py prepare {run.name}")
    elif kind == "many":
        run, before = Path(words[0]), words[1] if len(words) > 1 else None
        save(f"reason-many-{run.name}", many(run, before), f"python benchmarks/bench_reason.py many {run.name}")
    else:
        name, rules, before = words[0], words[1], words[2] if len(words) > 2 else None
        kept = "peers" if rules == "peers" else Path(rules).name
        command = f"python benchmarks/bench_reason.py rank {name} {kept}"
        save(f"reason-rank-{name}-{kept}", ranked(name, rules, before), command)


if __name__ == "__main__":
    main()
