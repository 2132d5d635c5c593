"""Maps from scores to probabilities, compared by cross-validation on the valid split, and thresholds checked on test.

python benchmarks/bench_calibrate.py RUN... --aggregations max,noisy-or-top:5,tuned

The loss is the log loss on the left-out fifth of the facts, per stated answer; what the test split states is taken out
of it in the same way as when fitting, so that test is looked at for `test_error` and `precision` only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl import Reasoner
from anyburl.models.calibration.fit import (
    PRIOR,
    BinCounts,
    bins_of,
    count_answers,
    fit_lines,
    fit_relations,
    fit_whole,
    isotonic,
    make_edges,
)
from anyburl.models.calibration.observations import HeldOut, hold_out, observe_test
from anyburl.models.calibration.report import expected_calibration_error, fit_and_check, reliability
from common import save, timed

Floats = NDArray[np.float64]
Method = Callable[[BinCounts, Floats], Floats]
N_PARTS = 5
LEAST = 1e-6


def logistic_map(columns: Callable[[Floats], list[Floats]]) -> Method:
    """Return a map of the whole whose logit is a weighted sum of columns of the score."""

    def fit(counts: BinCounts, scores: Floats) -> Floats:
        stated = counts.stated.sum(axis=0)
        answers = np.maximum(counts.answers.sum(axis=0), stated)
        inputs = np.column_stack([np.ones_like(scores), *columns(np.clip(scores, LEAST, 1 - LEAST))])
        weights = np.zeros(inputs.shape[1])
        for _ in range(100):
            expected = 1 / (1 + np.exp(-inputs @ weights))
            curvature = (inputs.T * (answers * expected * (1 - expected))) @ inputs + 1e-6 * np.eye(len(weights))
            weights += np.clip(np.linalg.solve(curvature, inputs.T @ (stated - answers * expected)), -1, 1)
        return np.tile(1 / (1 + np.exp(-inputs @ weights)), (len(counts.stated), 1))

    return fit


def shrunk_to_whole(prior: float) -> Method:
    """Return isotonic maps of relations, shrunk to the whole without a line between them."""

    def fit(counts: BinCounts, scores: Floats) -> Floats:
        whole = fit_whole(counts)
        stated, answers = counts.stated + prior * whole, np.maximum(counts.answers, 0) + prior
        return np.stack([isotonic(*row) for row in zip(stated, answers, strict=True)])

    return fit


METHODS: dict[str, Method] = {
    "isotonic, the whole": lambda counts, scores: np.tile(fit_whole(counts), (len(counts.stated), 1)),
    "Platt, the whole": logistic_map(lambda scores: [np.log(scores / (1 - scores))]),
    "beta, the whole": logistic_map(lambda scores: [np.log(scores), -np.log(1 - scores)]),
    "lines": lambda counts, scores: fit_lines(counts, fit_whole(counts)),
    **{f"isotonic, shrunk to the whole by {prior:g}": shrunk_to_whole(prior) for prior in (1, 5, 20)},
    **{
        f"isotonic, shrunk to lines by {prior:g}": (
            lambda counts, scores, prior=prior: fit_relations(counts, fit_whole(counts), prior)
        )
        for prior in (1, 2, PRIOR, 10, 20)
    },
}


def loss(probability: Floats, counts: BinCounts) -> float:
    """Return the log loss per stated answer."""
    sure = np.clip(probability, LEAST, 1 - LEAST)
    others = counts.answers - counts.stated
    return float(-(counts.stated * np.log(sure) + others * np.log(1 - sure)).sum() / counts.stated.sum())


def compare(held_out: HeldOut, test: HeldOut, n_relations: int) -> dict[str, dict[str, float | None]]:
    """Return for each method its loss on valid, cross-validated, and its calibration error on test."""
    found, hidden = held_out.observations, test.n_facts / held_out.n_facts
    edges = make_edges(found.scores, found.is_stated)
    bins, sizes = bins_of(edges, found.scores), np.bincount(bins_of(edges, found.scores), minlength=len(edges) + 1)
    scores = np.bincount(bins, weights=found.scores, minlength=len(edges) + 1) / np.maximum(sizes, 1)
    whole = count_answers(found, edges, n_relations, hidden)
    parts = [
        count_answers(found.take(found.folds % N_PARTS == part), edges, n_relations, hidden) for part in range(N_PARTS)
    ]
    rests = [BinCounts(whole.answers - part.answers, whole.stated - part.stated) for part in parts]
    checked = test.observations
    results = {}
    for name, method in METHODS.items():
        losses = [loss(method(rest, scores), part) for rest, part in zip(rests, parts, strict=True)]
        probabilities = method(whole, scores)[checked.relations, bins_of(edges, checked.scores)]
        error = expected_calibration_error(reliability(probabilities, checked.is_stated))
        results[name] = {"loss": round(float(np.mean(losses)), 4), "test_error": error and round(error, 5)}
    return results


def measure(run: Path, aggregation: str) -> dict[str, Any]:
    """Calibrate a run and compare the methods."""
    with Reasoner.open(run, aggregation=aggregation) as reasoner:
        data, n_relations = reasoner.dataset, reasoner.vocabulary.n_relations
        seconds, held_out = timed(lambda: hold_out(reasoner.ranker, data, 0))
        test = observe_test(reasoner.ranker, data)
        assert test is not None
        fitting, fitted = timed(lambda: fit_and_check(held_out, test, n_relations))
    checked = test.observations
    errors = [
        expected_calibration_error(reliability(values, checked.is_stated))
        for values in (fitted.probabilities, checked.scores)
    ]
    return {
        "rules": len(reasoner.rules),
        "seconds": {"valid": round(seconds, 1), "fit": round(fitting, 2)},
        "expected_calibration_error": errors[0],
        "uncalibrated_error": errors[1],
        "thresholds": {name: found.to_json() for name, found in fitted.thresholds.items()},
        "methods": compare(held_out, test, n_relations),
    }


def main() -> None:
    """Measure every run with every aggregation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--aggregations", default="max,noisy-or-top:5,tuned")
    parser.add_argument("--name", default="calibrate", help="of the file in benchmarks/results")
    chosen = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    for run in chosen.runs:
        for aggregation in chosen.aggregations.split(","):
            results.setdefault(run.name, {})[aggregation] = measure(run, aggregation)
    names = " ".join(run.name for run in chosen.runs)
    save(chosen.name, results, f"python benchmarks/bench_calibrate.py {names} --aggregations {chosen.aggregations}")


if __name__ == "__main__":
    main()
