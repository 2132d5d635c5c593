"""Completion by a model: what asking every question gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl import Dataset, Reasoner
from anyburl.models.tuned import fallback, listing
from anyburl.models.tuned.kernel import ForestArrays
from anyburl.models.tuned.model import TunedModel
from anyburl.models.tuned.observations import rule_groups
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.models.tuned.train import Tuning
from anyburl.ranking.kernel_order import n_columns
from anyburl.reasoning.completion import search
from anyburl.reasoning.opening import Opened
from anyburl.rules.types import RuleType
from reasoning.runs import people

N_CONTEXT = 12  # columns beside the evidence


def some_model(n_columns: int) -> TunedModel:
    """Thirty trees of one question each."""
    rng = np.random.default_rng(1)
    columns, thresholds = np.arange(30) % n_columns, rng.random(30) ** 2 * 3
    children = -1 - np.arange(60, dtype=np.int32)
    forest = ForestArrays(
        np.arange(30, dtype=np.int32),
        columns.astype(np.int32),
        thresholds,
        children,
        rng.normal(0.1, 0.3, 60),
    )
    return TunedModel(forest, 1)


@pytest.fixture(scope="module", params=["open", "blocked", "without weak rules"])
def tuned(request: pytest.FixtureRequest) -> Iterator[Reasoner]:
    """A model that orders the five best candidates; those after them may be facts, too."""
    triples = people()
    data = Dataset.from_triples(triples[::2] + triples[1::4], triples[3::8], triples[7::8])
    rules = anyburl.learn(data, paths=2000, max_cyclic=2, seed=1, threads=1)
    groups, blocked = rule_groups(rules), "on" if request.param == "blocked" else "off"
    plain = Reasoner(rules, data, aggregation="noisy-or-top:5", block_connected=blocked, threads=2)
    tuning = Tuning(
        some_model(n_columns(groups) + N_CONTEXT + fallback.N_FALLBACK_COLUMNS), "noisy-or-top:5", {}, 0, 0.0
    )
    if request.param == "without weak rules":
        tuning = replace(tuning, least_binary=0.3)
        assert (plain.ranker.confidences(np.flatnonzero(rules.type == RuleType.BINARY.code)) < 0.3).any()
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((listing, "TOP_K"), (search, "TOP_K"), (listing, "SHORT")):
            patch.setattr(module, name, 5)
        ranker = replace(plain.ranker, reranker=TunedReranker(tuning, groups))
        yield Reasoner.of(Opened(ranker, data, {}))


@pytest.mark.parametrize("least", [0.0, 0.3, 0.4, 0.6])
def test_every_question_asked(tuned: Reasoner, least: float) -> None:
    """A fact has the score that it has as an answer to (subject, relation, ?), by models that have not seen it."""
    entities, relations = tuned.vocabulary.entities.to_list(), tuned.vocabulary.relations.to_list()
    questions = [(e, r, None) for e in entities for r in relations]
    asked = Reasoner.of(Opened(tuned.judge.ranker, tuned.dataset, {}))
    answers = asked.predict(questions, top=len(entities)).filter(
        (pl.col("known") == "") & (pl.col("score") >= least) & pl.col("rule").is_not_null()
    )
    expected = answers.group_by("subject", "relation", "object").agg(pl.max("score"))
    found = pl.concat(list(tuned.complete(min_score=least, conflicts=True)))
    keys = ["subject", "relation", "object"]
    both = found.select(*keys, "score").join(expected, on=keys, how="full", suffix="_asked")
    assert len(both) == len(found) == len(expected)
    assert len(found) > 10 or least > 0.3
    assert both.filter((pl.col("score") - pl.col("score_asked")).abs() > 1e-9).is_empty()


def test_likely_facts_by_model_and_best_rule(tuned: Reasoner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities are those that `verdict` gives, and no likely fact is left out; the score of the best rule counts
    beside that of the model.
    """
    monkeypatch.setattr("anyburl.reasoning.completion.promises.FEWEST_BACK", 5)
    report = tuned.calibrate()
    monkeypatch.setattr(
        tuned, "calibration", replace(report.calibration, floors=np.zeros_like(report.calibration.floors))
    )
    every = pl.concat(list(tuned.complete(min_score=0.0)))
    assert len(every) >= 10
    for *fact, probability in every.select("subject", "relation", "object", "probability").head(40).rows():
        assert tuned.verdict(tuple(fact)) == (pytest.approx(probability), None)
    for least in every["probability"].quantile(0.5), every["probability"].quantile(0.9):
        found = pl.concat(list(tuned.complete(min_probability=least)))
        assert set(found.rows()) == set(every.filter(pl.col("probability") >= least).rows())
    told = report.promises["0.5"]
    assert told.facts == (every["probability"] >= 0.5).sum()
    blend = report.calibration.blend
    assert blend is not None
    assert len(blend.starts) > 1
    assert len(blend.rule_starts) > 1
