"""Calibrates a ranker: asks, fits, checks, and counts the facts it would add."""

from __future__ import annotations

from dataclasses import replace

from anyburl.calibration.calibrate import Fitted, fit_and_check
from anyburl.calibration.facts import FactCounts, count_facts, fit_closed_world, least_counted
from anyburl.calibration.observations import TOP_K, hold_out, observe_test
from anyburl.calibration.report import CalibrationReport, make_report
from anyburl.calibration.thresholds import PROMISES
from anyburl.completion.missing import missing_facts
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.opening import Front, answering_options
from anyburl.triples.dataset import Dataset


def calibrate_ranker(ranker: Ranker, dataset: Dataset, seed: int, front: Front) -> CalibrationReport:
    """Calibrate on the valid split, or on facts held out of train, and check on test, or by cross-fitting."""
    ranker.check_data(dataset)
    split = "valid" if len(dataset.valid) else "train"
    with front.watch(f"asking about the {split} split", f"asked about the {split} split"):
        held_out = hold_out(ranker, dataset, seed)
    with front.watch("asking about the test split", "asked about the test split"):
        test = observe_test(ranker, dataset)
    fitted = fit_and_check(held_out, test, dataset.vocabulary.n_relations)
    with front.watch("counting missing facts", "counted missing facts"):
        facts = _count(ranker, dataset, fitted)
    if len(dataset.valid):
        closed = fit_closed_world(facts, fitted.calibration)
        fitted = replace(fitted, calibration=replace(fitted.calibration, closed=closed))
    protocol = {"data": dataset.name, "rules": len(ranker.rules), "top_k": TOP_K, **answering_options(ranker, seed)}
    return make_report(fitted, facts, dataset.vocabulary, protocol)


def _count(ranker: Ranker, dataset: Dataset, fitted: Fitted) -> FactCounts:
    scores = [found.score for found in fitted.thresholds.values() if found.score is not None]
    least = least_counted(fitted.calibration, fitted.thresholds[str(PROMISES[0])].score)
    return count_facts(
        missing_facts(ranker, dataset, least, stated=("train",)), dataset, fitted.calibration, scores, least
    )
