"""Rules of one graph on another whose entities are all new: MRR with max and tuned, for several seeds.

python benchmarks/bench_inductive.py [--pairs fb237_v1,nell_v1] [--seeds 1,2,3] [--seconds 15] [--split test]

Rules, and the tuned model, are learned on the first graph of a pair; its second graph is only asked about. What is
stored already is measured again only with --again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import anyburl
from common import HERE, save, shared, timed
from figures import told, tuning_of

LENGTHS = {"WN18RR": 5, "fb237": 4, "nell": 4, "ILPC22": 4}
"""The longest rules; those with constants do not carry over, and are not learned."""
PAIRS = ("WN18RR_v1", "WN18RR_v3", "fb237_v1", "fb237_v3", "nell_v1", "nell_v3", "ILPC22-small")


def main() -> None:
    """Measure what is asked for; every figure is stored as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", default=",".join(PAIRS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--split", default="test", choices=("valid", "test"))
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    name = "inductive" if chosen.split == "test" else f"inductive-{chosen.split}"
    results = stored(name)
    for seed in chosen.seeds.split(","):
        for pair in chosen.pairs.split(","):
            found = results.setdefault(pair, {"runs": {}})
            if seed not in found["runs"] or chosen.again:
                found["runs"][seed] = measure(pair, int(seed), chosen.seconds, chosen.split)
                save(name, results, f"python benchmarks/bench_inductive.py --split {chosen.split}")


def stored(name: str) -> dict[str, Any]:
    path = HERE / "results" / f"{name}.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else {}
    return results


def measure(pair: str, seed: int, seconds: float, split: str) -> dict[str, Any]:
    """Learn on the first graph, and ask about the second."""
    folder, length = shared() / "data" / "inductive", LENGTHS[pair.split("_")[0].split("-")[0]]
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        first = anyburl.load_dataset(folder / pair)
        options = {"max_cyclic": length, "max_acyclic": 0, "max_grounded": 0}
        took, rules = timed(lambda: anyburl.learn(first, seconds=seconds, seed=seed, out=run, keep="all", **options))
        found: dict[str, Any] = {"options": options, "rules": len(rules), "learned_in": round(took, 1)}
        for aggregation in ("max", "tuned"):
            found[aggregation] = asked(run, folder / f"{pair}_ind", aggregation, split, seed)
    return found


def asked(run: Path, second: Path, aggregation: str, split: str, seed: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rules that do not carry over
        opened_in, reasoner = timed(lambda: anyburl.Reasoner(run, second, aggregation=aggregation, seed=seed))
    ranked_in, metrics = timed(lambda: reasoner.evaluate(split, protocol="estimated"))
    sampled = round(metrics.metrics["estimated"]["hits@10"], 4)
    return {
        **told(metrics, opened_in, ranked_in, tuning_of(reasoner)),
        "hits@10_of_50": sampled,
        "queries": metrics.protocol["queries"],
    }


if __name__ == "__main__":
    main()
