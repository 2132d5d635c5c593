"""Beyond the paper: other tools' rules, what our design adds, and how cost grows with the graph.

python benchmarks/paper/beyond.py [--only peers,ablations,growth] [--data WN18RR]

peers      AnyBURL-23-1's own rules (100 s, 2 threads) ranked here: with its confidences and with exact ones. Our side
           of that comparison, at 10, 50 and 100 s, is measured by table4.py.
ablations  on WN18RR and FB15k-237, runs of the paper's 1000 s scaled; each changes one thing of the paper's settings.
           Runs that differ in learning are learned anew; min-support, smoothing and aggregation are varied on one
           run. FB15k-237 is ranked on a sample of 5000 test triples, the same one for all (--full asks all).
growth     all rules of length 1 of random fractions of FB15k-237's train split, and ranking 1000 test triples with
           them: seconds and memory, each in a process of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lab import Cell, Lab, arguments, in_child, load, peak_memory_mb, shared, timed
from work import Evaluation, Run, evaluate_all, experiment, facts_of, warm_up

import anyburl

NAMES = ("WN18RR", "FB15k-237")
PAPER_SECONDS = 1000
MAX_CYCLIC = {"WN18RR": 5, "FB15k-237": 3}
SAMPLES = {"FB15k-237": 5000}
PEER_RANK = {"block_connected": "off", "weights": {"Ud": 0.1, "Z": 0.01}}  # as AnyBURL-23 and PyClause rank
LEARNING = {
    "heads sampled": {"heads": "sampled"},
    **{f"budget {budget:.0e}": {"budget": budget} for budget in (10**4, 10**5, 10**7)},
}
RANKING: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    **{f"aggregation {name}": {"aggregation": name} for name in ("noisy-or", "noisy-or-top:5", "tuned")},
    "smoothing 0": {"smoothing": 0},
    "smoothing 10": {"smoothing": 10},
}
MIN_SUPPORTS = (5, 10)
FRACTIONS = (0.125, 0.25, 0.5, 1.0)
GROWTH_QUERIES = 1000


def peers(name: str, lab: Lab) -> None:
    """Rank with AnyBURL's rules, as they come and counted again."""
    asked = {"data": name, "rules": f"{name}-anyburl23-100s", "rank": PEER_RANK, "seed": 0}
    cells = {kind: Cell("beyond", f"peers-{name}-{kind}", {**asked, "counts": kind}) for kind in ("own", "exact")}
    due = {kind: cell for kind, cell in cells.items() if cell.is_due(lab)}
    if not due:
        return
    data = load(name)
    rules = anyburl.RuleSet.load(shared() / "peers" / f"{name}-anyburl23-100s.txt.gz", data.vocabulary)
    for kind, cell in due.items():
        seconds, chosen = 0.0, rules
        if kind == "exact":
            seconds, chosen = timed(lambda: anyburl.rescore(rules, data.train))
        facts = {"rules": len(rules), "seconds": 100.0, "spans": [], "rescore_seconds": round(seconds, 2)}
        if kind == "exact":
            facts["confidence_ratio"] = confidence_ratios(rules, chosen)
        evaluate_all(chosen, data, facts, [Evaluation(cell, rank=PEER_RANK)], lab)


def confidence_ratios(own: anyburl.RuleSet, exact: anyburl.RuleSet) -> dict[str, float]:
    """Return by type and length how many times the exact confidence a rule's own one is, in the median."""
    ratios = {}
    for kind in own.counts_by_length():
        rule_type, length = kind.split()
        rows = np.flatnonzero(own.lengths == int(length))
        mine, true = own.take(rows).filter(type=rule_type), exact.take(rows).filter(type=rule_type)
        is_some = true.support > 0
        if is_some.any():
            ratios[kind] = round(float(np.median(mine.confidence()[is_some] / true.confidence()[is_some])), 3)
    return ratios


def ablations(name: str, lab: Lab) -> None:
    """Vary learning, then ranking."""
    seconds = lab.seconds(PAPER_SECONDS)
    base = {"seconds": seconds, "snapshots": [seconds], "max_cyclic": MAX_CYCLIC[name], "seed": 1}
    sample = None if lab.full else SAMPLES.get(name)

    def cell(run: Run, what: str, rank: dict[str, Any], min_support: int | None = None) -> Evaluation:
        asked = {**run.asked, "rank": rank, "sample": sample, "min_support": min_support, "what": what}
        slug = what.replace(" ", "-").replace(":", "")
        return Evaluation(Cell("beyond", f"ablation-{name}-{slug}", asked), None, rank, sample, min_support)

    run = Run(name, base)
    variants = [cell(run, what, rank) for what, rank in RANKING.items()]
    variants += [cell(run, f"min-support {least}", {}, least) for least in MIN_SUPPORTS]
    experiment(run, variants, lab)
    for what, change in LEARNING.items():
        changed = Run(name, {**base, **change})
        experiment(changed, [cell(changed, what, {})], lab)


def grow(cell: Cell, fraction: float, lab: Lab) -> None:
    """Learn all rules of length 1 of a fraction of the train split, and rank some test triples."""
    whole = load("FB15k-237")
    rng = np.random.default_rng(1)
    rows = np.sort(rng.permutation(len(whole.train))[: round(fraction * len(whole.train))])
    train = anyburl.TripleTable(whole.vocabulary, whole.train.triples[rows])
    data = anyburl.Dataset(f"FB15k-237 x {fraction:g}", train, whole.valid, whole.test)
    learner = anyburl.Learner(train, anyburl.LearnOptions(seconds=3600, max_cyclic=1, max_acyclic=1, seed=1))
    for _ in learner.spans():
        pass
    rules = learner.rules()
    learned = {"triples": len(train), "entities": len(np.unique(train.triples[:, [0, 2]])), **facts_of(learner, rules)}
    del learner
    warm_up(rules, data)
    figures = anyburl.Reasoner(rules, data).evaluate(sample=GROWTH_QUERIES).to_json()
    ranked = {name: figures[name] for name in ("seconds", "queries_per_second", "metrics")}
    cell.save(lab, {"learn": learned, "rank": {**ranked, "peak_memory_mb": peak_memory_mb()}})


def growth(lab: Lab) -> None:
    """Measure every fraction, the smallest first."""
    for fraction in FRACTIONS:
        asked = {"data": "FB15k-237", "fraction": fraction, "queries": 2 * GROWTH_QUERIES, "seed": 1}
        cell = Cell("beyond", f"growth-{fraction:g}", asked)
        if cell.is_due(lab):
            in_child(grow, cell, fraction, lab)


def main(lab: Lab) -> None:
    """Measure the parts that are wanted."""
    for name in filter(lab.wants_data, NAMES):
        if lab.wants("peers"):
            in_child(peers, name, lab)
        if lab.wants("ablations"):
            ablations(name, lab)
    if lab.wants("growth") and lab.wants_data("FB15k-237"):
        growth(lab)


if __name__ == "__main__":
    main(arguments(__doc__, "peers, ablations, growth"))
