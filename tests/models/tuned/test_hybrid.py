"""Rules and another model, decided on together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import anyburl
from anyburl import Dataset, OptionError, Reasoner, RuleSet


class Knowing:
    """Knows most facts of all splits, with some noise: what no rule could tell."""

    digest = "knowing"

    def __init__(self, data: Dataset) -> None:
        words = data.vocabulary
        self._n_entities = words.n_entities
        self._answers: dict[tuple[int, int], list[int]] = {}
        for table in (data.train, data.valid, data.test):
            for s, r, o in table.triples[::2].tolist():
                self._answers.setdefault((s, r), []).append(o)
                self._answers.setdefault((o, r + words.n_relations), []).append(s)

    def scores(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> NDArray[np.float32]:
        return np.stack([self._of(*asked) for asked in zip(entities.tolist(), relations.tolist(), strict=True)])

    def _of(self, entity: int, relation: int) -> NDArray[np.float32]:
        scores = np.random.default_rng([entity, relation]).standard_normal(self._n_entities, np.float32)
        scores[self._answers.get((entity, relation), [])] += 6
        return scores


@pytest.fixture(scope="module")
def data() -> Dataset:
    return anyburl.load_dataset("geo")


@pytest.fixture(scope="module", autouse=True)
def few_questions() -> Iterator[None]:
    """Train on a few questions: that is enough to tell the models apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 500)
        patch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 500)
        patch.setattr("anyburl.models.tuned.train.FEW_QUESTIONS", 100)
        yield


@pytest.fixture(scope="module")
def rules(data: Dataset) -> RuleSet:
    return anyburl.learn(data, paths=5_000, seed=1)


@pytest.fixture(scope="module")
def hybrid(rules: RuleSet, data: Dataset, few_questions: None) -> Reasoner:
    return Reasoner(rules, data, aggregation="hybrid", other=Knowing(data), threads=2)


def test_a_model_that_knows_more_ranks_better(hybrid: Reasoner, rules: RuleSet, data: Dataset) -> None:
    found = hybrid.evaluate()
    alone = Reasoner(rules, data, aggregation="tuned", threads=2).evaluate()
    assert found.metrics["mrr"] > alone.metrics["mrr"] + 0.02
    assert found.protocol["aggregation"] == "hybrid"
    assert found.protocol["tuned"]["chosen"] == "model"


def test_batches_do_not_matter(hybrid: Reasoner, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hybrid.evaluate("valid").metrics
    monkeypatch.setattr("anyburl.models.tuned.listing.QUESTIONS_AT_A_TIME", 7)
    assert hybrid.evaluate("valid").metrics == whole


def test_answers_that_no_rule_predicts_have_none_and_say_so(hybrid: Reasoner, data: Dataset) -> None:
    questions = [(s, r, None) for s, r, _ in data.test.to_polars().unique(["subject", "relation"]).rows()]
    answers = hybrid.predict(questions, top=150)
    unexplained = answers.filter(answers["rule"].is_null())
    assert len(unexplained)
    assert (unexplained["rules"] == 0).all()
    assert (answers.filter(answers["rule"].is_not_null())["rules"] > 0).all()
    subject, relation, object = unexplained.select("subject", "relation", "object").row(0)
    assert not any(
        hybrid.explain(triple).reasons for triple in unexplained.select("subject", "relation", "object").rows()[:20]
    )
    one = next(answer for answer in hybrid.predict(subject, relation, None, top=150) if answer.entity == object)
    assert one.rule is None
    assert not one.reasons
    explanation = hybrid.explain((subject, relation, object))
    assert explanation.rank_embedding is not None
    assert explanation.to_json()["embedding"]["rank"] == explanation.rank_embedding


def test_explanations_agree_with_predictions(hybrid: Reasoner) -> None:
    for answer in hybrid.predict("France", "official_language", None, top=3):
        explanation = hybrid.explain(answer.triple)
        assert explanation.score == pytest.approx(answer.score)
        assert explanation.aggregation == "hybrid"
        assert explanation.share_embedding is not None


def test_all_missing_facts_are_for_rules_alone(hybrid: Reasoner) -> None:
    with pytest.raises(OptionError, match="hybrid"):
        next(hybrid.complete())
