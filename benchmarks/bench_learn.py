"""Learning: how many rules of which kind in how much time and memory.

python benchmarks/bench_learn.py fb237      FB15k-237, 30 s, the paper's settings
python benchmarks/bench_learn.py wn18rr     WN18RR, 30 s, cyclic up to 5
python benchmarks/bench_learn.py fb15k      FB15k, only rules of length 1; Parquet out and in
python benchmarks/bench_learn.py threads    FB15k-237, the same work by one thread and by two
python benchmarks/bench_learn.py turns BEFORE    WN18RR for 8 s and FB15k-237 for 20 s, in turns with an older version

BEFORE is the Python of another environment with an older anyburl.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyburl
from anyburl.learning.options import LearnOptions
from common import in_turns, peak_memory_mb, save, shared, timed


def run(name: str, **options: Any) -> tuple[dict[str, Any], anyburl.RuleSet]:
    """Learn, span by span; say when the rules of length 1 were complete."""
    data = anyburl.load_dataset(shared() / "data" / name)
    chosen = LearnOptions(**options)
    learner = anyburl.Learner(data.train, chosen)
    short_complete, done = None, set()
    for span in learner.spans():
        done |= {entry.profile for entry in span.profiles if entry.exhausted}
        if short_complete is None and {p for p in chosen.profiles if p.rule_length == 1} <= done:
            short_complete = round(span.elapsed, 2)
    rules = learner.rules()
    result = {
        "data": name,
        "options": options,
        "seconds": round(learner.elapsed, 2),
        "rules": len(rules),
        "by_length": rules.counts_by_length(),
        "exact": round(float(rules.exact.mean()), 4),
        "length_1_complete_after": short_complete,
        "complete_profiles": sorted(map(str, done)),
        "bodies": learner.n_bodies,
        "paths": learner.n_paths,
        "bodies_per_second": round(learner.n_bodies / learner.elapsed),
        "rules_per_second": round(len(rules) / learner.elapsed),
        "stopped_by": learner.stopped_by,
        "peak_memory_mb": peak_memory_mb(),
    }
    return result, rules


def parquet(rules: anyburl.RuleSet) -> dict[str, float]:
    """Time writing and reading."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.parquet"
        out, _ = timed(lambda: rules.save(path))
        size = path.stat().st_size / 1e6
        back, again = timed(lambda: anyburl.RuleSet.load(path))
        assert len(again) == len(rules)
        assert (again.support == rules.support).all()
        return {"out_seconds": round(out, 2), "in_seconds": round(back, 2), "mb": round(size, 1)}


def threads() -> dict[str, Any]:
    """The same work (a path budget and a seed) by one thread and by two, in turns: seconds of learning."""
    seconds: dict[str, list[float]] = {"1": [], "2": []}
    for _ in range(3):
        for count in (1, 2):
            result, _ = run("FB15k-237", paths=60_000, threads=count, seed=1)
            seconds[str(count)].append(result["seconds"])
    ratios = [round(one / two, 2) for one, two in zip(seconds["1"], seconds["2"], strict=True)]
    return {"seconds": seconds, "one_over_two": ratios, "rules": result["by_length"], "bodies": result["bodies"]}


LEARN = """
import json, sys
import anyburl
data, seconds, options = anyburl.load_dataset(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3])
for budget in ({"paths": 2000}, {"seconds": seconds}):  # the first compiles
    learner = anyburl.Learner(data.train, anyburl.learning.options.LearnOptions(**budget, **options, seed=1))
    for _ in learner.spans():
        pass
by_length = learner.rules().counts_by_length()
binary = sum(n for kind, n in by_length.items() if kind.startswith("B "))
print(json.dumps({"binary": binary, "by_length": by_length, "bodies": learner.n_bodies}))
"""


def turns(before: str) -> dict[str, Any]:
    """Learn in turns with an older version, three times each, in processes of their own."""
    results: dict[str, Any] = {}
    for name, seconds, options in (("WN18RR", 8, {"max_cyclic": 5}), ("FB15k-237", 20, {})):
        rounds = [(shared() / "data" / name, seconds, json.dumps(options))] * 3
        results[name] = {"seconds": seconds, **in_turns(before, LEARN, *rounds)}
    return results


def main() -> None:
    """Run the benchmark named on the command line."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "fb237":
        save("learn-fb237", run("FB15k-237", seconds=30, seed=1)[0])
    elif name == "wn18rr":
        save("learn-wn18rr", run("WN18RR", seconds=30, max_cyclic=5, seed=1)[0])
    elif name == "fb15k":
        result, rules = run("FB15k", seconds=60, max_cyclic=1, max_acyclic=1, seed=1)
        save("learn-fb15k", {**result, "parquet": parquet(rules), "peak_memory_mb": peak_memory_mb()})
    elif name == "threads":
        save("learn-threads", threads())
    elif name == "turns" and len(sys.argv) == 3:
        save("learn-turns", turns(sys.argv[2]), "python benchmarks/bench_learn.py turns BEFORE")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
