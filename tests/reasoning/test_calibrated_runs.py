"""Calibrating a reasoner: what it is calibrated on, what is kept in the run folder, and when that is used."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from runs import open_run

import anyburl
from anyburl import DataError, Dataset, OptionError, Reasoner, RuleSet
from anyburl.data.table import TripleTable
from anyburl.models.calibration import Calibration
from anyburl.reasoning.completion.judging import known_properties
from anyburl.reasoning.completion.promises import calibrate_ranker
from anyburl.rules.run_folder import RULES

TABLES = [field.name for field in fields(Calibration)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run on geo, prepared."""
    run = tmp_path_factory.mktemp("calibrated") / "run"
    anyburl.learn("geo", paths=10_000, seed=1, out=run)
    open_run(run)
    return run


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def reasoner(original: Path) -> Reasoner:
    return open_run(original)[0]


def test_promises_hold_on_test(run: Path) -> None:
    reasoner, _ = open_run(run)
    assert reasoner.calibration is None
    report = reasoner.calibrate()
    assert report.calibration is reasoner.calibration
    valid, test = len(reasoner.dataset.valid), len(reasoner.dataset.test)
    assert (report.calibrated_on["split"], report.calibrated_on["facts"]) == ("valid", valid)
    assert report.checked_on == {"split": "test", "facts": test}
    stated = len(reasoner.dataset.train) + valid + test
    assert 0 < report.missing["share"] <= valid / (stated + valid)
    assert report.expected_calibration_error is not None
    assert report.uncalibrated_error is not None
    assert report.expected_calibration_error < min(0.1, report.uncalibrated_error)
    promise = report.promises["0.5"]
    assert promise.expected is not None
    assert promise.came_back == pytest.approx(promise.expected, abs=0.08)
    assert "proposed with a probability of at least 0.5: " in str(report)


def test_the_report_counts_what_is_proposed(reasoner: Reasoner) -> None:
    """Facts and their mean probability, together and by relation, as `complete` gives them: none is stated by the test
    split or contradicted by it.
    """
    report = reasoner.calibrate(missing={"located_in": 0.3})
    assert report.missing["because"] == "given"
    found = pl.concat(list(reasoner.complete(min_probability=0.5)))
    promise = report.promises["0.5"]
    assert promise.facts == len(found) > 10
    assert promise.promised == pytest.approx(found["probability"].mean())
    numbers = [row["promises"]["0.5"]["facts"] for row in report.by_relation]
    assert numbers == sorted(numbers, reverse=True)
    assert sum(numbers) == promise.facts
    assert {row["relation"]: row["missing"] for row in report.by_relation}["located_in"] == 0.3
    assert json.loads(json.dumps(report.to_json()))["promises"]["0.5"] == promise.to_json()


def test_test_is_not_looked_at_when_fitting(reasoner: Reasoner) -> None:
    """Only how many facts of each relation it has: with others in their place, the calibration is the same."""
    data = reasoner.dataset
    counts = np.bincount(data.test.triples[:, 1])
    others = [data.train.triples[data.train.triples[:, 1] == relation][:n] for relation, n in enumerate(counts)]
    other = Dataset(data.name, data.train, data.valid, TripleTable.from_ids(np.concatenate(others), data.vocabulary))
    assert np.array_equal(np.bincount(other.test.triples[:, 1]), counts)
    properties = known_properties(data)
    first, second = (
        calibrate_ranker(reasoner.ranker, used, 0, properties=properties).calibration for used in (data, other)
    )
    for name in TABLES:
        assert np.array_equal(getattr(first, name), getattr(second, name)), name


@pytest.mark.parametrize(
    "missing", [1, 1.0, -0.1, float("nan"), "much", {"located_in": 1}, {"located_in": float("nan")}, {3: 0.1}, [0.1]]
)
def test_what_cannot_be_missing_is_refused(reasoner: Reasoner, missing: Any) -> None:
    with pytest.raises(OptionError, match=r"^missing must be a share from 0 to 0\.9, or one for each of some rel"):
        reasoner.calibrate(missing=missing)


def test_what_is_missing_is_said_of_relations_that_are_there(reasoner: Reasoner) -> None:
    with pytest.raises(DataError, match="unknown relation"):
        reasoner.calibrate(missing={"located": 0.1})


def test_a_calibration_is_kept_and_used_while_it_fits(run: Path) -> None:
    first, _ = open_run(run)
    report = first.calibrate()
    again, _ = open_run(run, threads=2)
    assert again.calibration is not None
    for name in TABLES:
        assert np.array_equal(getattr(again.calibration, name), getattr(report.calibration, name)), name
    for options in ({"aggregation": "noisy-or"}, {"smoothing": 1.0}, {"seed": 1}):
        other, _ = open_run(run, **options)
        assert other.calibration is None, options
    RuleSet.load(run)[5:].save(run / RULES)
    stale, _ = open_run(run)
    assert stale.calibration is None


def test_a_run_that_is_not_prepared_keeps_its_calibration_too(run: Path) -> None:
    shutil.rmtree(run / "prepared")
    reasoner, _ = open_run(run, prepare=False)
    reasoner.calibrate()
    again, _ = open_run(run, prepare=False)
    assert again.calibration is not None
    assert not (run / "prepared").exists()


def test_a_damaged_file_is_as_good_as_none(run: Path) -> None:
    open_run(run)[0].calibrate()
    (file,) = (run / "calibration").iterdir()
    file.write_bytes(file.read_bytes()[:-30])
    assert open_run(run)[0].calibration is None


def test_without_a_valid_split_facts_of_train_are_hidden(reasoner: Reasoner) -> None:
    alone = Dataset.from_triples(reasoner.dataset.train.to_polars(), name="alone")
    made = Reasoner(reasoner.rules, alone, threads=1)
    report = made.calibrate()
    assert report.calibrated_on["split"] == "train"
    assert report.calibrated_on["facts"] == round(len(alone.train) / 10)
    assert report.checked_on["split"] == "train, each half of it by the other"
    assert report.expected_calibration_error is not None
    assert report.expected_calibration_error < 0.1


def test_with_too_few_facts_there_is_nothing_to_calibrate_on(reasoner: Reasoner) -> None:
    few = Dataset.from_triples([("a", "likes", "b"), ("b", "likes", "c")], name="few")
    with pytest.warns(UserWarning, match="left out"):
        made = Reasoner(reasoner.rules, few, threads=1)
    with pytest.raises(DataError, match="few has too few facts to calibrate on"):
        made.calibrate()


def test_a_tuned_model_is_calibrated_and_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 800)
    monkeypatch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 800)
    reasoner, _ = open_run(run, aggregation="tuned", threads=2)
    report = reasoner.calibrate()
    assert report.expected_calibration_error is not None
    assert report.expected_calibration_error < 0.1
    stored, _ = open_run(run, aggregation="tuned", threads=2)
    assert stored.calibration is not None
    assert np.array_equal(stored.calibration.shares, report.calibration.shares)
