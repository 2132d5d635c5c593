"""What is measured at one size, step by step; each step in a process of its own, so that its peak memory is its own.

A step takes the folder of the size and returns figures; later steps find there what earlier ones made:

    graph/          what `generate_graph` wrote
    index/          what `anyburl index` wrote; where that has failed, the text is read each time
    rules.parquet   what was learned
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_RULES = 20_000_000
SEED = 1
RECOUNTED, RECOUNTED_AT_A_TIME, RECOUNT_SECONDS = 1_000, 8, 600.0
CONFIDENT = 0.05
Figures = dict[str, Any]


class PrivateMemory(threading.Thread):
    """Watches the memory that is the process's own: mapped files, which can be read again, are not in it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0
        self.start()

    def run(self) -> None:
        while True:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    self.peak_mb = max(self.peak_mb, round(int(line.split()[1]) / 1024, 1))
            time.sleep(0.1)


def run_step(name: str, folder: Path, asked: Figures) -> Figures:
    """Run one step in this process; return its figures and its memory."""
    memory = PrivateMemory()
    figures = STEPS[name](folder, asked, memory)
    return {"peak_memory_mb": peak_mb(), "peak_private_mb": memory.peak_mb, **figures}


def peak_mb(who: int = resource.RUSAGE_SELF) -> float:
    """Return the most memory that this process, or the largest of its children, has held."""
    return round(resource.getrusage(who).ru_maxrss / 1024, 1)


def generate(folder: Path, asked: Figures, memory: PrivateMemory) -> Figures:
    """Write the graph as text."""
    from synthetic import generate_graph

    graph_folder = folder / "graph"
    shutil.rmtree(graph_folder, ignore_errors=True)  # of a run that was broken off
    start_mb, started = peak_mb(), time.perf_counter()
    graph = generate_graph(graph_folder, asked["triples"], seed=SEED)
    return {
        "seconds": time.perf_counter() - started,
        "start_mb": start_mb,
        **graph.n_triples,
        "entities": graph.n_entities,
        "relations": graph.n_relations,
        "text_mb": size_mb(graph_folder),
    }


def index(folder: Path, asked: Figures, memory: PrivateMemory) -> Figures:
    """Have the command make an index."""
    target = folder / "index"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "anyburl", "index", str(folder / "graph"), "--out", str(target), "--json"]
    started = time.perf_counter()
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds = time.perf_counter() - started
    numbers = {name: value for name, value in json.loads(said).items() if isinstance(value, int | float)}
    peak = peak_mb(resource.RUSAGE_CHILDREN)
    return {
        "seconds": seconds,
        "peak_memory_mb": peak,
        "peak_private_mb": None,
        "disk_mb": size_mb(target),
        "said": numbers,
    }


def open_data(folder: Path, asked: Figures, memory: PrivateMemory) -> Figures:
    """Open the index, or read the text, as every later step does."""
    from anyburl.graph.stored import graph_of

    start_mb, started = peak_mb(), time.perf_counter()
    data = load(folder)
    loaded = time.perf_counter()
    graph_of(data.train)
    ready = time.perf_counter()
    return {
        "seconds": ready - started,
        "data_seconds": loaded - started,
        "graph_seconds": ready - loaded,
        "start_mb": start_mb,
    }


def learn(folder: Path, asked: Figures, memory: PrivateMemory) -> Figures:
    """Learn with default options for some time; compare the planted rules with the truth."""
    import anyburl
    from anyburl.rules.types import RuleType

    warm_up()
    start_mb = peak_mb()
    data = load(folder)
    options = anyburl.LearnOptions(seconds=asked["seconds"], max_rules=MAX_RULES, snapshots=(), seed=SEED)
    learner = anyburl.Learner(data.train, options)
    ready_mb = peak_mb()
    stalls = [span.seconds for span in learner.spans()]
    rules = learner.rules()
    rates = {"paths": learner.n_paths, "bodies": learner.n_bodies, "rules": len(rules) + learner.store.n_dropped}
    core_seconds = learner.elapsed * learner.threads
    figures = {
        "seconds": learner.elapsed,
        "threads": learner.threads,
        "start_mb": start_mb,
        "ready_mb": ready_mb,
        "peak_memory_mb": peak_mb(),
        "peak_private_mb": memory.peak_mb,
        **rates,
        "kept_rules": len(rules),
        "binary_rules": int((rules.type == RuleType.BINARY.code).sum()),
        "exact": float(rules.exact.mean()) if len(rules) else None,
        "per_core_second": {name: n / core_seconds for name, n in rates.items()},
        "profiles": profiles_of(learner.history),
        "longest_span": max(stalls),
        "stopped_by": learner.stopped_by,
        "planted": compare_planted(rules, folder / "graph" / "planted.json"),
    }
    rules.save(folder / "rules.parquet")
    return figures


def recount(folder: Path, asked: Figures, memory: PrivateMemory) -> Figures:
    """Count estimated binary rules to the end, in random order until there are enough or time is up; tell how far the
    estimates were off.
    """
    import numpy as np

    import anyburl
    from anyburl.rules.types import RuleType

    warm_up()
    data = load(folder)
    rules = anyburl.RuleSet.load(folder / "rules.parquet", data.vocabulary)
    estimated = np.flatnonzero((rules.type == RuleType.BINARY.code) & ~rules.exact)
    rows = np.random.default_rng(SEED).permutation(estimated)[:RECOUNTED]
    errors, margins, confidences, n_rules = [], [], [], 0
    started = time.perf_counter()
    while n_rules < len(rows) and time.perf_counter() - started < RECOUNT_SECONDS:
        some = rules.take(rows[n_rules : n_rules + RECOUNTED_AT_A_TIME])
        exact = anyburl.rescore(some, data.train, budget=None)
        errors += np.abs(some.support / some.predictions - exact.support / exact.predictions).tolist()
        margins += [] if some.margin is None else some.margin.tolist()
        confidences += (exact.support / exact.predictions).tolist()
        n_rules += len(some)
    off, margin, truth = np.array(errors), np.array(margins), np.array(confidences)
    confident = truth > CONFIDENT

    def shares(which: Any) -> Figures:
        if not which.any():
            return {"rules": 0}
        return {
            "rules": int(which.sum()),
            "inside": float((off <= margin)[which].mean()),
            "within_0.02": float((off <= 0.02)[which].mean()),
            "within_0.02_or_a_tenth": float((off <= np.maximum(0.02, 0.1 * truth))[which].mean()),
            "median_margin": float(np.median(margin[which])),
        }

    return {
        "seconds": time.perf_counter() - started,
        "estimated": len(estimated),
        "all": shares(np.ones(len(off), bool)),
        "confident": shares(confident),
    }


def profiles_of(history: list[Any]) -> Figures:
    """Return what each profile gave in all spans."""
    totals: dict[str, Counter[str]] = {}
    before = 0.0
    for span in history:
        seconds, before = span.elapsed - before, span.elapsed
        for entry in span.profiles:
            total = totals.setdefault(str(entry.profile), Counter())
            for name in ("attempts", "paths", "new_bodies", "new_rules"):
                total[name] += getattr(entry, name)
            total["core_seconds"] += entry.cores * seconds
    return {name: dict(total) for name, total in totals.items()}


def compare_planted(rules: Any, file: Path) -> list[Figures]:
    """Return for each planted rule whether it was found, and how far its confidence is from the truth."""
    compared = []
    for planted in json.loads(file.read_text("utf-8"))["rules"]:
        relation = planted["rule"].partition("(")[0]
        alike = rules.filter(relation=relation, type=planted["type"], length=planted["length"])
        rows = (alike.texts() == planted["rule"]).arg_true()
        entry = {"rule": planted["rule"], "truth": planted["confidence"], "found": len(rows) > 0}
        if len(rows):
            confidence = float(alike.confidence()[rows[0]])
            entry |= {"exact": bool(alike.exact[rows[0]]), "difference": confidence - planted["confidence"]}
        compared.append(entry)
    return compared


def rates(folder: Path, asked: Figures, memory: PrivateMemory) -> Figures:
    """Measure what one core does a second, like for like."""
    from scale.rates import rates_of

    warm_up()
    started = time.perf_counter()
    profiles = rates_of(load(folder).train)
    return {"seconds": time.perf_counter() - started, "profiles": profiles}


def rank(folder: Path, asked: Figures, memory: PrivateMemory) -> Figures:
    """Rank a sample of the test triples, both directions, with what was learned."""
    import anyburl
    from anyburl.ranking.queries import make_queries, target_ranks

    warm_up()
    start_mb = peak_mb()
    data = load(folder)
    rules = anyburl.RuleSet.load(folder / "rules.parquet", data.vocabulary)
    reasoner = anyburl.Reasoner(rules, data, block_connected="off")
    triples = sampled(data.test.triples, asked["queries"] // 2)
    n_relations = data.vocabulary.n_relations
    known = [table.triples for table in (data.train, data.valid, data.test)]
    queries, _ = make_queries(triples, known, n_relations)
    started = time.perf_counter()
    answers = reasoner.ranker.answer(queries)
    seconds = time.perf_counter() - started
    ranks = target_ranks(queries, answers, data.vocabulary.n_entities).realistic
    return {
        "seconds": seconds,
        "index_seconds": reasoner.seconds["index"],
        "threads": reasoner.ranker.backend.threads,
        "start_mb": start_mb,
        "queries": 2 * len(triples),
        "questions": len(queries.entities),
        "rules": len(rules),
        "queries_per_second": 2 * len(triples) / seconds,
        "mrr": float((1 / ranks).mean()),
        "hits@10": float((ranks <= 10).mean()),
    }


def sampled(triples: Any, n: int) -> Any:
    """Return n of the triples, the same ones every time."""
    import numpy as np

    rows = np.random.default_rng(SEED).choice(len(triples), min(n, len(triples)), replace=False)
    return triples[np.sort(rows)]


def warm_up() -> None:
    """Have the kernels compiled before anything is timed."""
    import anyburl

    geo = anyburl.load_dataset("geo")
    rules = anyburl.learn(geo, paths=2_000, seed=SEED)
    anyburl.evaluate(rules.slice(0, 1_000), geo, split="valid")


def load(folder: Path) -> Any:
    """Open the index if there is one, or else read the text."""
    import anyburl

    return anyburl.load_dataset(folder / ("index" if (folder / "index").is_dir() else "graph"))


def size_mb(folder: Path) -> float:
    """Return the size of the files below a folder."""
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


STEPS: dict[str, Callable[[Path, Figures, PrivateMemory], Figures]] = {
    "generate": generate,
    "index": index,
    "open": open_data,
    "rates": rates,
    "learn": learn,
    "rank": rank,
    "recount": recount,
}
