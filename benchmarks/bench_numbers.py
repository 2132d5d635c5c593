"""Conditions on numbers: are planted ones found, do shuffled values give any, and do rankings gain?

python benchmarks/bench_numbers.py planted [TRIPLES]   20 thresholds in a generated graph; the same with shuffled values
python benchmarks/bench_numbers.py ranks DATA ...      MRR with conditions and without, three seeds; the best conditions
python benchmarks/bench_numbers.py plain TREE DATA ... learning without attributes, here and in another checkout: CPU
                                                       time, and whether the rules are the same, byte for byte;
                                                       with attributes, if there are any: rules a second, memory

DATA is LitWD1K, FB15k-237 (with the literals of the shared folder), debian (made anew by the shared tool), or anything
that anyburl reads. Figures are stored as soon as they are known; what is stored already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import anyburl
from anyburl import Dataset, RuleSet, TripleTable
from anyburl.bodies.comparisons import learn_comparisons
from anyburl.bodies.thresholds import Thresholds, learn_conditional
from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.data.options import ReadOptions
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.stored import graph_of
from anyburl.ranking.queries import make_queries, target_ranks
from anyburl.reasoning.evaluation import choose_triples
from common import HERE, peak_memory_mb, save, shared, timed

N_PLANTED = 20
N_ATTRIBUTES = 5
SEEDS = (1, 2, 3)
WAYS = ("max", "tuned")


def planted(n_triples: int, seed: int) -> tuple[Dataset, list[tuple[str, str, float, float]]]:
    """Return a graph with thresholds in it, and these: head, attribute, the rank of the cut, and the confidence.

    Half of the heads hold for X by a value of X, half by a value of what `part_of` leads to. A tenth of the entities
    have no value, every head also holds for some at random, and most triples are noise.
    """
    rng = np.random.default_rng(seed)
    n_entities = n_triples // 5
    labels = [f"e{i:07d}" for i in range(n_entities)] + [f"class{i:02d}" for i in range(N_PLANTED)]
    relations = [f"kind{i:02d}" for i in range(N_PLANTED)] + [f"noise{i}" for i in range(8)] + ["part_of"]
    vocabulary = Vocabulary.from_labels(labels, relations)
    first_class, wholes = vocabulary.entity_id("class00"), rng.integers(0, n_entities // 20, n_entities)
    entity = vocabulary.encode_entities(labels[:n_entities])
    triples = [np.column_stack([entity, np.full(n_entities, vocabulary.relation_id("part_of")), entity[wholes]])]
    attributes, truths = [], []
    for number in range(N_ATTRIBUTES):
        values = np.round(np.exp(rng.normal(8, 2, n_entities)), 1)
        values[rng.random(n_entities) < 0.1] = np.nan
        has = np.flatnonzero(~np.isnan(values))
        attributes.append(Attribute.of(f"size{number}", AttributeKind.NUMBER, entity[has], values[has]))
        for i in range(number, N_PLANTED, N_ATTRIBUTES):
            near = i < N_PLANTED // 2
            seen = values if near else values[wholes]
            known = np.flatnonzero(~np.isnan(seen))
            rank, confidence = 0.3 + 0.6 * rng.random(), 0.3 + 0.65 * i / (N_PLANTED - 1)
            cut = np.quantile(seen[known], rank)
            holds = np.where(seen[known] >= cut, rng.random(len(known)) < confidence, rng.random(len(known)) < 0.02)
            members = known[holds & (rng.random(len(known)) < 0.3)] if n_triples > 10**7 else known[holds]
            column = np.full(len(members), vocabulary.relation_id(f"kind{i:02d}"))
            triples.append(np.column_stack([entity[members], column, np.full(len(members), first_class + i)]))
            truths.append((f"kind{i:02d}", f"size{number}", rank, confidence))
    n_noise = max(n_triples - sum(map(len, triples)), n_triples // 5)
    noise = np.column_stack([rng.choice(entity, n_noise), rng.integers(0, 8, n_noise), rng.choice(entity, n_noise)])
    noise[:, 1] = vocabulary.encode_relations([f"noise{i}" for i in range(8)])[noise[:, 1]]
    table = TripleTable.from_ids(np.concatenate([*triples, noise]).astype(np.int32), vocabulary)
    nothing = TripleTable.from_ids(np.empty((0, 3), np.int32), vocabulary)
    return Dataset("planted", table, nothing, nothing, attributes=Attributes.of(attributes)), truths


def shuffled(dataset: Dataset, seed: int) -> Dataset:
    """Return the data with the values of each attribute dealt out anew to the entities that have one."""
    rng = np.random.default_rng(seed)
    moved = []
    for attribute in dataset.attributes.values():
        owners, places = np.unique(attribute.entities, return_inverse=True)
        moved.append(Attribute.of(attribute.name, attribute.kind, rng.permutation(owners)[places], attribute.values))
    return replace(dataset, attributes=Attributes.of(moved), stored_fingerprint=None)


def conditions(dataset: Dataset, seconds: float = math.inf, binary: RuleSet | None = None) -> tuple[float, RuleSet]:
    """Return how long learning conditions took, and the rules; with `binary`, comparisons of the ends of these."""
    graph, vocabulary = graph_of(dataset.train), dataset.vocabulary
    thresholds = Thresholds(2, 0.0001, True, np.ones(2 * graph.n_relations, np.bool_))
    end = time.monotonic() + seconds

    def is_over() -> bool:
        return time.monotonic() > end

    if binary is None:
        return timed(lambda: learn_conditional(graph, vocabulary, thresholds, is_over))
    rules = binary.with_vocabulary(vocabulary)
    return timed(lambda: learn_comparisons(graph, vocabulary, rules, thresholds, is_over))


def rank_of(dataset: Dataset, rules: RuleSet, row: int) -> float:
    """Return the share of members whose value is below the cut of a rule h(X,c) <= ... >= low."""
    body = rules.bodies[rules.body[row]]
    attribute = dataset.attributes[dataset.vocabulary.relation_label(int(body[body >= 0][-1]))]
    values: NDArray[np.float64] = attribute.values
    assert rules.low is not None
    if (body >= 0).sum() == 2:
        by_entity = np.full(dataset.vocabulary.n_entities, np.nan)
        by_entity[attribute.entities] = attribute.values
        part = dataset.train.triples[dataset.train.triples[:, 1] == body[0]]
        values = by_entity[part[:, 2]]
        values = values[~np.isnan(values)]
    return float((values < rules.low[row]).mean())


def measure_planted(n_triples: int) -> dict[str, Any]:
    """Return which of the planted thresholds were found, how far off, and what shuffled values give."""
    dataset, truths = planted(n_triples, 1)
    conditions(planted(20_000, 2)[0])  # compile
    seconds, rules = conditions(dataset)
    texts, off = rules.texts().to_list(), {}
    for head, attribute, rank, confidence in truths:
        places = [row for row, text in enumerate(texts) if text.startswith(f"{head}(X,") and f"{attribute}(" in text]
        near = [abs(rank_of(dataset, rules, row) - rank) for row in places if rules.low is not None]
        off[head] = {"confidence": round(confidence, 3), "off": round(min(near), 4) if near else None}
    found = [one["off"] for one in off.values() if one["off"] is not None]
    _, by_chance = conditions(shuffled(dataset, 1))
    return {
        "triples": len(dataset.train),
        "values": dataset.attributes.n_values,
        "seconds": round(seconds, 2),
        "rules": len(rules),
        "found": f"{len(found)} of {len(truths)}",
        "within_2_percent": sum(distance <= 0.02 for distance in found),
        "farthest": max(found, default=None),
        "shuffled_rules": len(by_chance),
        "peak_memory_mb": peak_memory_mb(),
        "by_head": off,
    }


def opened(name: str, scratch: Path, folder: Path | None = None) -> Dataset:
    """Return a data set with its attributes: one of `shared`, Debian's packages, or whatever `anyburl learn` reads.

    Of Debian, the facts that were hidden are the test split; `folder` is what the shared tool has made before.
    """
    literals = shared() / "data" / "literals"
    if name == "LitWD1K":
        return anyburl.load_dataset(literals / name)
    if name == "FB15k-237":
        return anyburl.load_dataset(shared() / "data" / name, ReadOptions(attribute_file=str(literals / name)))
    if name == "debian":
        made = scratch if folder is None else folder
        if folder is None:
            subprocess.run([sys.executable, shared() / "tools" / "debian.py", made, "--attributes"], check=True)
        splits = {
            "train": made / "data" / "train.txt",
            "valid": made / "data" / "valid.txt",
            "test": made / "hidden.txt",
        }
        (scratch / "whole").mkdir()
        for split, file in splits.items():
            (scratch / "whole" / f"{split}.txt").symlink_to(file.resolve())
        return anyburl.load_dataset(scratch / "whole", ReadOptions(attribute_file=str(made / "attributes.csv")))
    return anyburl.load_dataset(name)


def measure_ranks(name: str, chosen: argparse.Namespace) -> None:
    """Measure MRR with conditions and without, by seed and aggregation; what is stored already is left as it is."""
    path = HERE / "results" / f"numbers-{Path(name).name}.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else {}
    of = {"rule_seconds": chosen.seconds, "split": chosen.split, "sample": chosen.sample}
    least = {"min_support": chosen.min_support, "min_confidence": chosen.min_confidence}
    least = {name: value for name, value in least.items() if value is not None}
    if results.get("of") != of | least:
        results = {"of": of | least}
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    command = " ".join(["python benchmarks/bench_numbers.py", *words])
    known = results.get("mrr", {})
    missing = [(seed, way) for seed in SEEDS for way in chosen.ways if way not in known.get(str(seed), {})]
    if not missing and "best" in results:
        print(f"{path.name} has all seeds already; delete it to measure again")
        return
    with tempfile.TemporaryDirectory() as scratch:
        dataset = opened(name, Path(scratch), chosen.folder)
        took, found = conditions(dataset, chosen.most_seconds)
        if "best" not in results:
            _, by_chance = conditions(shuffled(dataset, 1), chosen.most_seconds)
            results |= {
                "seconds": round(took, 1),
                "attributes": len(dataset.attributes),
                "values": dataset.attributes.n_values,
                "conditions": len(found),
                "shuffled": len(by_chance),
                "best": best_of(found),
            }
            save(path.stem, results, command, quiet=True)
        for seed in dict.fromkeys(seed for seed, _ in missing):
            rules = anyburl.learn(dataset, seconds=chosen.seconds, seed=seed, keep="all", conditions=False, **least)
            binary = rules.take(rules.is_binary)
            took, compared_ends = conditions(dataset, chosen.most_seconds, binary)
            if "best_comparisons" not in results:
                _, by_chance = conditions(shuffled(dataset, 1), chosen.most_seconds, binary)
                results |= {
                    "seconds_of_comparisons": round(took, 1),
                    "comparisons": len(compared_ends),
                    "shuffled_comparisons": len(by_chance),
                    "best_comparisons": best_of(compared_ends),
                }
            whole = RuleSet.concat([rules, found, compared_ends])
            for way in (way for one, way in missing if one == seed):
                figures = compared(dataset, rules, whole, chosen, aggregation=way, seed=seed)
                results.setdefault("mrr", {}).setdefault(str(seed), {})[way] = {"rules": len(rules), **figures}
                results["peak_memory_mb"] = peak_memory_mb()
                save(path.stem, results, command, quiet=True)
                print(name, seed, way, figures, flush=True)


def compared(
    dataset: Dataset, rules: RuleSet, whole: RuleSet, chosen: argparse.Namespace, **options: Any
) -> dict[str, float]:
    """Return MRR without conditions and with them, their difference, and its standard error over questions.

    The ranks are paired. Answers to the same question, such as who has a section, depend on each other: their
    differences are summed first, and the sums taken as independent.
    """
    triples, _ = choose_triples(dataset, chosen.split, sample=chosen.sample)
    known = [dataset.split(split).triples for split in ("train", "valid", "test")]
    queries, places = make_queries(triples, known, dataset.vocabulary.n_relations)
    questions = np.repeat(np.arange(len(queries.entities)), np.diff(queries.target_offsets))[places]
    ranked = []
    for one in (rules, whole):
        with anyburl.Reasoner(one, dataset, **options) as reasoner:
            ranks = target_ranks(queries, reasoner.ranker.answer(queries), dataset.vocabulary.n_entities)
        ranked.append(1 / ranks.at(places).realistic)
    gains = ranked[1] - ranked[0]
    sums = np.bincount(questions, gains - gains.mean())
    error = math.sqrt(float((sums**2).sum())) / len(gains)
    named = {"without": ranked[0].mean(), "with": ranked[1].mean(), "gain": gains.mean(), "standard_error": error}
    changed = int(np.count_nonzero(np.bincount(questions, gains != 0)))
    return {key: round(float(value), 5) for key, value in named.items()} | {
        "questions": len(queries.entities),
        "questions_changed": changed,
    }


LEARNING = """
import hashlib, json, resource, sys, anyburl
from anyburl.data.options import ReadOptions
name, n_paths, values, n_times = sys.argv[1:]
data = anyburl.load_dataset(name, ReadOptions(attribute_file=values) if values else None)
anyburl.learn(data, paths=1, seed=2, max_acyclic=0)  # compile
before = resource.getrusage(resource.RUSAGE_SELF)
for _ in range(int(n_times)):
    rules = anyburl.learn(data, paths=int(n_paths), seed=1, keep="all")
after = resource.getrusage(resource.RUSAGE_SELF)
digest = hashlib.sha256(rules.bodies.tobytes())
for column in rules.columns.values():
    digest.update(column.tobytes())
taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps({"rules": len(rules), "cpu": taken, "digest": digest.hexdigest(), "memory": after.ru_maxrss}))
"""


def learned(root: Path, name: str, n_paths: int, n_times: int = 1, values: str = "") -> dict[str, Any]:
    """Return what learning takes and gives in a checkout, `n_times` with a path budget; with `values` of entities."""
    command = [sys.executable, "-c", LEARNING, str(shared() / "data" / name), str(n_paths), values, str(n_times)]
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure_plain(tree: Path, name: str, n_paths: int, n_rounds: int, n_times: int) -> dict[str, Any]:
    """Return CPU seconds of learning, `n_times` with a path budget, here and in another checkout in turn; where
    there are literals, also what learning with these takes.
    """
    runs: dict[str, list[dict[str, Any]]] = {"there": [], "here": [], "with_attributes": []}
    literals = shared() / "data" / "literals" / name
    for _ in range(n_rounds):
        runs["there"].append(learned(tree, name, n_paths, n_times))
        runs["here"].append(learned(HERE.parent, name, n_paths, n_times))
        if literals.is_dir():
            runs["with_attributes"].append(learned(HERE.parent, name, n_paths, n_times, str(literals)))
    seconds = {place: [round(run["cpu"], 2) for run in made] for place, made in runs.items() if made}
    digests = [{run["digest"] for run in runs[place]} for place in ("here", "there")]
    return {
        "rules": {place: made[0]["rules"] for place, made in runs.items() if made},
        "paths": n_paths,
        "times": n_times,
        "cpu_seconds": seconds,
        "ratio": round(float(np.median(seconds["here"]) / np.median(seconds["there"])), 3),
        "same_bytes": digests[0] == digests[1] and len(digests[0]) == 1,
        "rules_a_cpu_second": {
            place: round(made[0]["rules"] * n_times / float(np.median(seconds[place])))
            for place, made in runs.items()
            if made
        },
        "peak_memory_mb": {
            place: round(max(run["memory"] for run in made) / 1024, 1) for place, made in runs.items() if made
        },
    }


def best_of(rules: RuleSet) -> list[str]:
    """Return the ten rules with the most support times confidence, with their counts, of different heads."""
    best: dict[tuple[int, int], str] = {}
    ordered = rules.top(len(rules), "value")
    for row, text in enumerate(ordered.texts()):
        head = int(ordered.head[row]), int(ordered.head_constant[row])  # for comparisons, the relation
        best.setdefault(head, f"{ordered.support[row]} of {ordered.predictions[row]}: {text}")
    return list(best.values())[:10]


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("planted", "ranks", "plain"))
    parser.add_argument("data", nargs="*")
    parser.add_argument("--seconds", type=float, default=20, help="for learning rules without conditions, each seed")
    parser.add_argument("--most-seconds", type=float, default=120, help="for the conditions, and for the comparisons")
    parser.add_argument("--min-support", type=int, help="of rules without conditions, as in anyburl learn")
    parser.add_argument("--min-confidence", type=float, help="likewise")
    parser.add_argument("--split", default="test")
    parser.add_argument("--sample", type=int, help="rank this many triples of the split, drawn at random")
    parser.add_argument("--paths", type=int, default=20_000, help="of learning without attributes")
    parser.add_argument("--rounds", type=int, default=3, help="likewise")
    parser.add_argument("--times", type=int, default=1, help="that it is repeated in a process; likewise")
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS, help="aggregations; none for conditions only")
    parser.add_argument("--folder", type=Path, help="of debian, if the shared tool has written it already")
    chosen = parser.parse_args()
    if chosen.what == "ranks":
        for name in chosen.data:
            measure_ranks(name, chosen)
        return
    if chosen.what == "plain":
        tree, *names = chosen.data
        path = HERE / "results" / "numbers-plain.json"
        figures: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else {}
        for name in names:
            figures[name] = measure_plain(Path(tree).resolve(), name, chosen.paths, chosen.rounds, chosen.times)
            budget = f"--paths {chosen.paths} --rounds {chosen.rounds} --times {chosen.times}"
            save(path.stem, figures, f"python benchmarks/bench_numbers.py plain TREE {name} {budget}")
        return
    n_triples = int(chosen.data[0]) if chosen.data else 1_000_000
    save("numbers-planted", measure_planted(n_triples), f"python benchmarks/bench_numbers.py planted {n_triples}")


if __name__ == "__main__":
    main()
