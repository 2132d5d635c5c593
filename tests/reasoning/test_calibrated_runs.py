"""Calibrating a reasoner: what it is calibrated on, what is kept in the run folder, and when that is used."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from runs import open_run

import anyburl
from anyburl import DataError, Dataset, Reasoner, RuleSet
from anyburl.graph.lookup import all_known_answers
from anyburl.models.calibration.observations import TOP_K, hold_out, observe_test
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.index import shown_scores
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.opening import Front
from anyburl.reasoning.reasoner import calibrate_ranker
from anyburl.rules.files.run_folder import RULES


class Facts(NamedTuple):
    triples: NDArray[np.int32]
    scores: NDArray[np.float64]


def ask_everything(ranker: Ranker, dataset: Dataset, least: NDArray[np.float64]) -> Iterable[Facts]:
    """Find the facts outside train by asking (s, r, ?) of all s and r."""
    n_entities, nothing = dataset.vocabulary.n_entities, np.empty(0, np.int32)
    for relation in np.flatnonzero(np.isfinite(least)).tolist():
        entities = np.arange(n_entities, dtype=np.int32)
        relations = np.full(n_entities, relation, np.int32)
        known = all_known_answers(ranker.graph, entities, relations)
        offsets = np.zeros(n_entities + 1, np.int64)
        answers = ranker.answer(QueryArrays(entities, relations, offsets, nothing, *known), top_k=n_entities)
        kept = np.arange(n_entities)[None, :] < answers.n_best[:, None]
        subjects, scores = np.repeat(entities, answers.n_best), shown_scores(answers.best_keys[kept])
        triples = np.column_stack([subjects, np.full(len(subjects), relation, np.int32), answers.best[kept]])
        yield Facts(triples[scores >= least[relation]], scores[scores >= least[relation]])


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


def test_scores_become_probabilities_that_hold_on_test(run: Path) -> None:
    reasoner, _ = open_run(run)
    assert reasoner.calibration is None
    report = reasoner.calibrate()
    assert report.calibration is reasoner.calibration
    assert report.calibrated_on["split"] == "valid"
    assert report.checked_on["split"] == "test"
    assert report.expected_calibration_error is not None
    assert report.uncalibrated_error is not None
    assert report.expected_calibration_error < 0.01 < report.uncalibrated_error
    threshold = report.thresholds["0.5"]
    assert threshold.precision == pytest.approx(0.5, abs=3 * (threshold.sampling_error or 0))


def test_the_population_is_that_of_the_questions_of_the_split(reasoner: Reasoner) -> None:
    """Both questions of each valid triple, asked once; the best answers that train does not state."""
    found = hold_out(reasoner.ranker, reasoner.dataset, 0).observations
    triples, known = reasoner.dataset.valid.to_polars().rows(), set(reasoner.dataset.train.to_polars().rows())
    asked = {(s, r, None) for s, r, _ in triples} | {(None, r, o) for _, r, o in triples}
    answers = reasoner.predict(sorted(asked, key=str), top=TOP_K)
    assert len(found) == len(answers)
    assert not known & set(answers.select("subject", "relation", "object").rows())
    assert sorted(found.scores) == sorted(answers["score"])
    stated = answers["known"].str.contains("valid").sum()
    assert found.is_stated.sum() == stated


def test_the_check_leaves_out_what_valid_states(reasoner: Reasoner) -> None:
    found = observe_test(reasoner.ranker, reasoner.dataset)
    assert found is not None
    triples = reasoner.dataset.test.to_polars().rows()
    asked = {(s, r, None) for s, r, _ in triples} | {(None, r, o) for _, r, o in triples}
    answers = reasoner.predict(sorted(asked, key=str), top=TOP_K)
    most = answers.filter(~answers["known"].str.contains("valid"))
    assert found.observations.is_stated.sum() >= most["known"].str.contains("test").sum()
    assert len(found.observations) >= len(most)


def test_test_is_not_looked_at_when_fitting(reasoner: Reasoner) -> None:
    """Only how many facts it has: with others in their place, the calibration is the same."""
    data = reasoner.dataset
    other = Dataset(data.name, data.train, data.valid, type(data.test)(data.vocabulary, data.train.triples[:1117]))
    assert len(other.test) == len(data.test)
    first, second = (calibrate_ranker(reasoner.ranker, used, 0, Front()).calibration for used in (data, other))
    assert np.array_equal(first.edges, second.edges)
    assert np.array_equal(first.probability, second.probability)


def test_missing_facts_and_the_closed_world_are_counted(reasoner: Reasoner) -> None:
    report = reasoner.calibrate()
    calibration = report.calibration
    known = ~np.isnan(calibration.closed)
    assert known.any()
    assert np.all(calibration.closed[known] <= 1)
    threshold = report.thresholds["0.5"]
    assert threshold.facts
    assert threshold.score is not None
    rows = {row["relation"]: row for row in report.by_relation}
    labels = reasoner.vocabulary.relations.to_list()
    facts = np.concatenate(
        [
            part.triples[part.scores >= threshold.score]
            for part in ask_everything(reasoner.ranker, reasoner.dataset, np.full(len(labels), threshold.score))
        ]
    )
    stated = {tuple(row) for split in ("valid", "test") for row in reasoner.dataset.split(split).triples.tolist()}
    assert threshold.facts == sum(tuple(fact) not in stated for fact in facts.tolist())
    valid = {tuple(row) for row in reasoner.dataset.valid.triples.tolist()}
    n_valid = sum(tuple(fact) in valid for fact in facts.tolist())
    assert threshold.closed_world == pytest.approx(n_valid / len(facts))
    numbers = [row["thresholds"]["0.5"]["facts"] or 0 for row in report.by_relation]
    assert numbers == sorted(numbers, reverse=True)
    assert set(rows) <= set(labels)


def test_a_calibration_is_kept_and_used_while_it_fits(run: Path) -> None:
    first, _ = open_run(run)
    report = first.calibrate()
    again, _ = open_run(run, threads=2)
    assert again.calibration is not None
    for name in ("edges", "probability", "closed"):
        kept, made = getattr(again.calibration, name), getattr(report.calibration, name)
        assert np.array_equal(kept, made, equal_nan=True), name
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


def test_without_a_valid_split_facts_are_held_out_of_train(reasoner: Reasoner) -> None:
    data = reasoner.dataset
    alone = Dataset.from_triples(data.train.to_polars(), name="alone")
    made = Reasoner(reasoner.rules, alone, threads=1)
    report = made.calibrate()
    assert report.calibrated_on["split"] == "train"
    assert report.calibrated_on["facts"] == round(len(alone.train) / 10)
    assert report.checked_on["cross_fitted"]
    assert report.expected_calibration_error is not None
    assert report.expected_calibration_error < 0.02
    assert np.isnan(report.calibration.closed).all()


def test_with_too_few_facts_there_is_nothing_to_calibrate_on(reasoner: Reasoner) -> None:
    few = Dataset.from_triples([("a", "likes", "b"), ("b", "likes", "c")], name="few")
    with pytest.warns(UserWarning, match="left out"):
        made = Reasoner(reasoner.rules, few, threads=1)
    with pytest.raises(DataError, match="few has too few facts to calibrate on"):
        made.calibrate()


def test_a_tuned_model_is_calibrated_on_questions_that_it_has_not_seen(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 800)
    monkeypatch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 800)
    reasoner, _ = open_run(run, aggregation="tuned", threads=2)
    report = reasoner.calibrate()
    assert report.expected_calibration_error is not None
    assert report.expected_calibration_error < 0.01
    stored, _ = open_run(run, aggregation="tuned", threads=2)
    assert stored.calibration is not None
    assert np.array_equal(stored.calibration.probability, report.calibration.probability)
