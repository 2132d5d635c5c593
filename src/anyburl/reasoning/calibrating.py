"""Calibrate a ranker: ask, fit, check, and count the facts that it would add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.calibration.calibrate import Fitted, fit_and_check
from anyburl.calibration.facts import FactCounts, Facts, count_facts, fit_closed_world, least_counted
from anyburl.calibration.observations import TOP_K, hold_out, observe_test
from anyburl.calibration.report import CalibrationReport, make_report
from anyburl.calibration.thresholds import PROMISES
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.opening import Front, answering_options
from anyburl.triples.dataset import Dataset

FindFacts = Callable[[Ranker, Dataset, NDArray[np.float64]], Iterable[Facts]]
"""Called with the lowest score of each relation; yields the facts outside train with at least that."""


def calibrate_ranker(
    ranker: Ranker, dataset: Dataset, seed: int, front: Front, find_facts: FindFacts | None = None
) -> CalibrationReport:
    """Calibrate on the valid split, or on facts held out of train, and check on test, or by cross-fitting."""
    split = "valid" if len(dataset.valid) else "train"
    with front.watch(f"asking about the {split} split", f"asked about the {split} split"):
        held_out = hold_out(ranker, dataset, seed)
    with front.watch("asking about the test split", "asked about the test split"):
        test = observe_test(ranker, dataset)
    fitted = fit_and_check(held_out, test, dataset.vocabulary.n_relations)
    facts, find = None, find_facts or _completion()
    if find is not None:
        with front.watch("counting the facts that are missing", "counted the facts that are missing"):
            facts = _count(find, ranker, dataset, fitted)
    if facts is not None and len(dataset.valid):
        closed = fit_closed_world(facts, fitted.calibration)
        fitted = replace(fitted, calibration=replace(fitted.calibration, closed=closed))
    protocol = {"data": dataset.name, "rules": len(ranker.rules), "top_k": TOP_K, **answering_options(ranker, seed)}
    return make_report(fitted, facts, dataset.vocabulary, protocol)


def _count(find: FindFacts, ranker: Ranker, dataset: Dataset, fitted: Fitted) -> FactCounts:
    scores = [found.score for found in fitted.thresholds.values() if found.score is not None]
    least = least_counted(fitted.calibration, fitted.thresholds[str(PROMISES[0])].score)
    return count_facts(find(ranker, dataset, least), dataset, fitted.calibration, scores, least)


def _completion() -> FindFacts | None:
    """Return what finds missing facts, None if this installation cannot."""
    if find_spec("anyburl.completion") is None:
        return None
    missing_facts: Any = import_module("anyburl.completion.missing").missing_facts

    def find(ranker: Ranker, dataset: Dataset, least: NDArray[np.float64]) -> Iterable[Facts]:
        found: Iterable[Facts] = missing_facts(ranker, dataset, least, stated=("train",))
        return found

    return find
