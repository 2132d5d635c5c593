"""Table 2: what object identity does to binary rules of length 1 to 5 on WN18.

python benchmarks/paper/table2.py [--scale 0.01]

Rules are learned without object identity (the paper: 1000 s) above strict or relaxed thresholds, counted again under
it, exactly, and those are dropped whose support or confidence is below half of its threshold ("significantly lower").
Both sets are evaluated: the first as it was learned, without object identity, the second under it. The same once more
with confidences estimated from sampled groundings (see sampling.py): parts `strict-sampled` and `relaxed-sampled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lab import Cell, Lab, arguments, in_child, timed
from sampling import ATTEMPTS, MOST_PAIRS, sample_counts
from work import Evaluation, Run, make_reasoner, measure, open_run, warm_up

import anyburl

PAPER_SECONDS = 1000
THRESHOLDS = {"strict": (100, 0.5), "relaxed": (10, 0.1)}


def run_of(lab: Lab, data: str, min_support: int, min_confidence: float) -> Run:
    """Return the run without object identity and without constants."""
    seconds = lab.seconds(PAPER_SECONDS)
    options = {
        "seconds": seconds,
        "snapshots": [seconds],
        "max_cyclic": 5,
        "max_acyclic": 0,
        "max_grounded": 0,
        "min_support": min_support,
        "min_confidence": min_confidence,
        "object_identity": False,
        "seed": 1,
    }
    return Run(data, options)


def measure_setting(cell: Cell, run: Run, lab: Lab) -> None:
    """Learn, count again, and evaluate both sets."""
    rules, data, facts = open_run(run, lab)
    warm_up(rules, data)
    support, confidence = run.options["min_support"], run.options["min_confidence"]
    seconds, again = timed(lambda: anyburl.rescore(rules, data.train, object_identity=True))
    is_kept = (again.support >= support / 2) & (again.confidence() >= confidence / 2)
    without = Evaluation(cell, rank={"object_identity": False})
    under = Evaluation(cell, rank={"object_identity": True})
    results = {
        "thresholds": {"support": support, "confidence": confidence},
        "off": {**count(rules), **evaluated(rules, data, facts, without)},
        "on": {**count(again.take(is_kept)), **evaluated(again.take(is_kept), data, facts, under)},
        "above_the_thresholds_themselves": int(((again.support >= support) & (again.confidence() >= confidence)).sum()),
        "rescored_not_filtered": evaluated(again, data, facts, under),
        "rescore_seconds": round(seconds, 2),
        "median_confidence": {"off": median(rules), "on": median(again)},
    }
    cell.save(lab, results)


def measure_sampled(cell: Cell, run: Run, lab: Lab) -> None:
    """Replace the counts of both sets by sampled ones, and evaluate. Dropped is what exact counts drop."""
    rules, data, facts = open_run(run, lab)
    warm_up(rules, data)
    support, confidence = run.options["min_support"], run.options["min_confidence"]
    again = anyburl.rescore(rules, data.train, object_identity=True)
    is_kept = (again.support >= support / 2) & (again.confidence() >= confidence / 2)
    off = sample_counts(rules, data.train, object_identity=False)
    on = sample_counts(rules.take(is_kept), data.train, object_identity=True)
    results = {
        "attempts": ATTEMPTS,
        "most_pairs": MOST_PAIRS,
        "off": evaluated(off, data, facts, Evaluation(cell, rank={"object_identity": False})),
        "on": evaluated(on, data, facts, Evaluation(cell, rank={"object_identity": True})),
        "median_confidence": {"off": median(off), "on": median(on)},
    }
    cell.save(lab, results)


def evaluated(
    rules: anyburl.RuleSet, data: anyburl.Dataset, facts: dict[str, Any], evaluation: Evaluation
) -> dict[str, Any]:
    """Evaluate a set of rules on the whole test split."""
    whole = {**facts, "rules": len(rules), "spans": []}
    return measure(make_reasoner(rules, data, whole, evaluation), data, whole, evaluation)


def count(rules: anyburl.RuleSet) -> dict[str, Any]:
    """Count rules by their length."""
    return {"rules": len(rules), "by_length": rules.counts_by_length()}


def median(rules: anyburl.RuleSet) -> float:
    """Return the median confidence, not smoothed."""
    return round(float(np.median(rules.confidence())), 4) if len(rules) else 0.0


def main(lab: Lab) -> None:
    """Measure both settings."""
    for name, (support, confidence) in THRESHOLDS.items():
        run = run_of(lab, "WN18", support, confidence)
        cell = Cell("table2", name, run.asked)
        if lab.wants(name) and lab.wants_data("WN18") and cell.is_due(lab):
            in_child(measure_setting, cell, run, lab)
        sampled = Cell("table2", f"{name}-sampled", {**run.asked, "counts": "sampled"})
        if lab.wants(f"{name}-sampled") and lab.wants_data("WN18") and sampled.is_due(lab):
            in_child(measure_sampled, sampled, run, lab)


if __name__ == "__main__":
    main(arguments(__doc__, "strict, relaxed, strict-sampled, relaxed-sampled"))
