"""Temporal rules: quality by protocol, seconds, memory, calibration, and how cost grows with facts.

    python benchmarks/bench_temporal.py quality ICEWS14     # learns with all models; looks at test once
    python benchmarks/bench_temporal.py speed ICEWS18       # learning and ranking, with and without the model
    python benchmarks/bench_temporal.py calibration ICEWS14
    python benchmarks/bench_temporal.py explanations ICEWS14
    python benchmarks/bench_temporal.py ranks ICEWS14         # 150 ranks by plain Python
    python benchmarks/bench_temporal.py three-hops YAGO     # with and without them, measured on valid
    python benchmarks/bench_temporal.py growth 1 3 10       # millions of generated facts

Results are kept in benchmarks/results/temporal-*.json. Options are the defaults, chosen on the valid splits.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from anyburl.data.clock import Clock
from anyburl.data.vocabulary import Vocabulary
from anyburl.temporal.facts import TemporalDataset, TemporalFacts, load_temporal_dataset
from anyburl.temporal.kernel_bodies import N_FREQUENCY
from anyburl.temporal.learner import TemporalLearner
from anyburl.temporal.reasoner import TemporalReasoner, warm_up_temporal
from anyburl.temporal.run import calibration_error, scored_candidates
from common import HERE, peak_memory_mb, save, shared, timed

TOLERANCE = 1e-9  # of scores: sums in another order differ by less
GOALS = {
    "ICEWS14": {"model": 46.8, "sum": 44.5, "multi": 38.5},
    "ICEWS18": {"model": 35.3, "sum": 33.0},
    "YAGO": {"model": 92.0, "sum": 91.5},
}


def load(name: str) -> TemporalDataset:
    """Return one of the benchmark data sets."""
    return load_temporal_dataset(shared() / "data" / "temporal" / name)


def quality(name: str, threads: int, seeds: int, *, quick: bool = False) -> dict[str, Any]:
    """Evaluate the test split: rules alone, with the logit and with the forest, single-step and multi-step.

    If `quick`, only the forest and the rules alone, single-step. Only models depend on the seed: those after the first
    are tried on the forest, single-step.
    """
    dataset = load(name)
    results: dict[str, Any] = {"data": name, "goals": GOALS.get(name, {}), "runs": []}
    plans = [("forest", "single", ("model", "sum"))]
    if not quick:
        plans = [
            ("logit", "single", ("model",)),
            ("forest", "single", ("model", "sum", "max", "noisy-or")),
            ("forest", "multi", ("model", "sum")),
        ]
    for seed in range(seeds):
        for model, steps, aggregations in plans if seed == 0 else [("forest", "single", ("model",))]:
            rules = TemporalLearner(dataset, model=model, fit_for=steps, seed=seed, threads=threads).learn()
            for aggregation in aggregations:
                reasoner = TemporalReasoner(rules, dataset, aggregation=aggregation, threads_used=threads)
                measured = reasoner.evaluate("test", steps=steps).to_json()
                print(name, model, aggregation, steps, f"{100 * measured['metrics']['mrr']:.2f}", flush=True)
                results["runs"].append({"model": model, "seed": seed, **measured, "by_relation": []})
    return results


def three_hops(name: str, threads: int, n: int = 6) -> dict[str, Any]:
    """Measure rules of three hops on valid: everything is learned on train, whose last part is held out to fit on."""
    dataset = load(name)
    times = dataset.train.times
    first, cut, last = (int(times[row]) for row in (0, len(times) - len(dataset.valid), -1))
    earlier, later = dataset.train.between(first, cut), dataset.train.between(cut, last + 1)
    dataset = replace(dataset, train=earlier, valid=later, test=dataset.valid)
    rows = []
    for length in (0, n):
        learner = TemporalLearner(dataset, three_hops=length, threads=threads)
        rules = learner.learn()
        figures = {
            aggregation: TemporalReasoner(rules, dataset, aggregation=aggregation, threads_used=threads).evaluate().mrr
            for aggregation in ("sum", "model")
        }
        rows.append({"three_hops": length, "mrr": figures, "rules": rules.sizes, "seconds": learner.seconds})
        print(name, rows[-1], flush=True)
    return {"data": name, "measured_on": "valid", "runs": rows}


def speed(name: str, threads: int) -> dict[str, Any]:
    """Time learning and ranking, compiled beforehand."""
    dataset = load(name)
    warm_up_temporal()
    results: dict[str, Any] = {"data": name, "threads": threads}
    for model in ("none", "forest"):
        learner = TemporalLearner(dataset, model=model, threads=threads)
        seconds, rules = timed(learner.learn)
        reasoner = TemporalReasoner(rules, dataset, threads_used=threads)
        indexing, _ = timed(lambda reasoner=reasoner: reasoner.answerer)
        ranking, measured = timed(lambda reasoner=reasoner: reasoner.evaluate("test"))
        results[model] = {
            "learn_seconds": round(seconds, 2),
            "parts": learner.seconds,
            "index_seconds": round(indexing, 2),
            "rank_seconds": round(ranking, 2),
            "queries": measured.protocol["queries"],
            "mrr": measured.mrr,
            "rules": rules.sizes,
            "peak_memory_mb": peak_memory_mb(),
        }
    return results


def calibration(name: str, threads: int) -> dict[str, Any]:
    """Calibrate on valid, and measure the expected error on test."""
    dataset = load(name)
    reasoner = TemporalReasoner(TemporalLearner(dataset, threads=threads).learn(), dataset, threads_used=threads)
    seconds, report = timed(reasoner.calibrate)
    told, right, places = scored_candidates(reasoner, "test")
    made = report.calibration
    chances = made.shares[np.searchsorted(made.edges, told, "right")]
    error, bins = calibration_error(chances, right)
    first = places == 0
    top_error, top_bins = calibration_error(chances[first], right[first])
    return {
        "data": name,
        "calibrate_seconds": round(seconds, 2),
        "valid": report.to_json(),
        "test_error_all_candidates": error,
        "test_bins": bins,
        "test_error_best_candidates": top_error,
        "best_bins": top_bins,
    }


def explanations(name: str, threads: int, n: int = 100) -> dict[str, Any]:
    """Check the explanations of random answers: facts are stated, before the moment, and add up to the score."""
    dataset = load(name)
    rules = TemporalLearner(dataset, model="none", threads=threads).learn()
    reasoner = TemporalReasoner(rules, dataset, threads_used=threads)
    words, clock = dataset.vocabulary, dataset.clock
    stated = set()
    for split in (dataset.train, dataset.valid, dataset.test):
        stated |= set(zip(*(column.tolist() for column in (*split.triples.T, split.times)), strict=True))
    rows = np.random.default_rng(0).choice(len(dataset.test), n, replace=False)
    faults = []
    for row in rows.tolist():
        subject, relation, object = words.triple_labels(*dataset.test.triples[row].tolist())
        step = int(dataset.test.times[row])
        explained = reasoner.explain(subject, relation, object, step, top=1000)
        for reason in explained.reasons:
            for s, r, o, t in reason.facts:
                fact = (words.entity_id(s), words.relation_id(r), words.entity_id(o), clock.step(t))
                if fact not in stated or fact[3] >= step:
                    faults.append([subject, relation, object, step, list(fact)])
        if explained.rank is not None and explained.score and abs(explained.rules_score - explained.score) > 1e-6:
            faults.append([subject, relation, object, step, explained.rules_score, explained.score])
    return {"data": name, "answers": n, "faults": faults}


def ranks(name: str, threads: int, n: int = 150) -> dict[str, Any]:
    """Compare ranks of random questions of test with those that plain Python finds, candidate by candidate."""
    sys.path[:0] = [str(HERE.parent / "tests")]
    from reference import temporal as plain

    dataset = load(name)
    rules = TemporalLearner(dataset, model="none", threads=threads).learn()
    reasoner = TemporalReasoner(rules, dataset, threads_used=threads)
    measured = reasoner.evaluate("test").ranks
    facts, width, n_relations = reasoner.facts, dataset.vocabulary.n_entities + 1, dataset.vocabulary.n_relations
    every = list(zip(*(c.tolist() for c in (facts.entities, facts.relations, facts.answers, facts.times)), strict=True))
    by_entity: dict[int, list[Any]] = {}
    by_relation: dict[int, list[Any]] = {}
    for fact in every:
        by_entity.setdefault(fact[0], []).append(fact)
        by_relation.setdefault(fact[1], []).append(fact)

    def of_cell(table: Any) -> Any:
        def value(h: int, b: int, cell: tuple[int, int]) -> float:
            slot = rules.slots[h, b]
            return float(table[slot, cell[0] * N_FREQUENCY + cell[1]]) if slot >= 0 else 0.0

        return value

    def constant(h: int, body: tuple[int, int]) -> dict[int, float]:
        key, tables = (body[0] + 1) * width + (width - 1 if body[1] < 0 else body[1]), rules.constants
        first, last = tables.head_offsets[h], tables.head_offsets[h + 1]
        row = first + int(np.searchsorted(tables.bodies[first:last], key))
        if row == last or tables.bodies[row] != key:
            return {}
        own = slice(tables.rule_offsets[row], tables.rule_offsets[row + 1])
        return dict(zip(tables.constants[own].tolist(), tables.confidences[own].tolist(), strict=True))

    def hop(h: int, relations: tuple[int, ...]) -> float:
        first, last = rules.hops.offsets[h], rules.hops.offsets[h + 1]
        body = relations[0] * 2 * n_relations + relations[1]  # of two hops: by default there are no others
        row = first + int(np.searchsorted(rules.hops.bodies[first:last], body))
        return float(rules.hops.confidences[row]) if row < last and rules.hops.bodies[row] == body else 0.0

    options, test, differ = rules.options, dataset.test, []
    limits = (options.n_last, options.oldest, options.n_first, options.n_second, options.three_hops)
    for row in np.random.default_rng(0).choice(2 * len(test), n, replace=False).tolist():
        s, r, o = test.triples[row % len(test)].tolist()
        x, h, y = (s, r, o) if row < len(test) else (o, r + n_relations, s)
        t = int(test.times[row % len(test)])
        near = [by_entity[x], by_relation.get(h, [])]
        near += [by_entity[fact[2]] for fact in plain.latest(set(by_entity[x]), x, t, options.n_first)]
        tables = plain.Tables(
            of_cell(rules.pairs.values), of_cell(rules.pairs.alone), constant, hop, rules.favour[h].tolist(),
            rules.weights[h].tolist(), limits,
        )  # fmt: skip
        scores = plain.scores({fact for part in near for fact in part}, x, h, t, t, n_relations, tables)
        own = scores.get(y, 0.0)
        out = plain.excluded(set(by_entity[x]), x, h, t, "time") | {y}
        rivals = [scores.get(entity, 0.0) for entity in set(range(width - 1)) - out]
        low = 1 + sum(score > own + TOLERANCE for score in rivals)
        high = 1 + sum(score >= own - TOLERANCE for score in rivals)
        if not low <= measured.optimistic[row] <= measured.pessimistic[row] <= high:
            differ.append([x, h, y, t, low, high, int(measured.optimistic[row]), int(measured.pessimistic[row])])
    return {"data": name, "questions": n, "differ": differ}


def generate(millions: float, seed: int = 1) -> TemporalDataset:
    """Return a history in which entities meet few others again and again, most of them the popular ones."""
    n = int(millions * 1e6)
    rng = np.random.default_rng(seed)
    n_entities, n_relations, n_steps = max(n // 40, 100), 50, max(n // 2000, 50)
    subjects = (n_entities * rng.random(n) ** 2).astype(np.int64)
    friends = (subjects * 7 + rng.integers(0, 8, n) ** 2) % n_entities
    anyone = (n_entities * rng.random(n) ** 3).astype(np.int64)
    objects = np.where(rng.random(n) < 0.7, friends, anyone)
    relations = (subjects + rng.integers(0, 6, n)) % n_relations
    times = np.sort(rng.integers(0, n_steps, n))
    columns = [column.astype(np.int32) for column in (subjects, relations, objects)]
    facts = TemporalFacts.of(columns, times)
    words = Vocabulary.from_labels([f"e{i:08}" for i in range(n_entities)], [f"r{i:03}" for i in range(n_relations)])
    cut, last = int(facts.times[int(len(facts) * 0.98)]), int(facts.times[-1]) + 1
    return TemporalDataset(
        words, Clock(unit="day"), facts.between(0, cut), facts.between(cut, last), TemporalFacts.none(), "generated"
    )


def growth(millions: list[float], threads: int) -> dict[str, Any]:
    """Time learning on more and more facts, each size in a process of its own."""
    rows = []
    for size in millions:
        command = [sys.executable, __file__, "one-size", str(size), "--threads", str(threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.strip().splitlines()[-1]))
        print(rows[-1], flush=True)
    return {"sizes": rows, "threads": threads}


def one_size(millions: float, threads: int) -> None:
    """Print how long learning takes on one generated history."""
    dataset = generate(millions)
    warm_up_temporal()
    learner = TemporalLearner(dataset, model="none", recount=False, threads=threads)
    seconds, rules = timed(learner.learn)
    told = {"millions": millions, "facts": len(dataset.train) + len(dataset.valid), "seconds": round(seconds, 1)}
    more = {"rules": rules.sizes, "parts": learner.seconds, "peak_memory_mb": peak_memory_mb()}
    print(json.dumps({**told, **more}))


WHAT: dict[str, Any] = {
    "quality": quality,
    "speed": speed,
    "calibration": calibration,
    "explanations": explanations,
    "ranks": ranks,
    "three-hops": three_hops,
}


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*WHAT, "growth", "one-size"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="quality: only the forest and rules alone, single-step")
    given = parser.parse_args()
    if given.what == "one-size":
        one_size(float(given.names[0]), given.threads)
    elif given.what == "growth":
        sizes = [float(size) for size in given.names or ("1", "3", "10")]
        save("temporal-growth", growth(sizes, given.threads))
    else:
        for name in given.names or ("ICEWS14", "ICEWS18", "YAGO"):
            extra = {"seeds": given.seeds, "quick": given.quick} if given.what == "quality" else {}
            results = WHAT[given.what](name, given.threads, **extra)
            save(f"temporal-{given.what}-{name}", results, quiet=True)
            print(name, given.what, "done", flush=True)


if __name__ == "__main__":
    main()
