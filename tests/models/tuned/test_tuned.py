"""The tuned aggregation, from evidence to explanations, on `geo`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl import DataError, Dataset, RankOptions, Reasoner, RuleSet
from anyburl.graph.stored import graph_of
from anyburl.models.tuned import train
from anyburl.models.tuned.listing import TOP_K, held_out_questions
from anyburl.models.tuned.observations import (
    Lists,
    evidence_row,
    folds_of_other_questions,
    lists_of,
    question_folds,
    rule_groups,
)
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.models.tuned.train import Tuning, tune
from anyburl.ranking.queries import make_queries, target_ranks
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.reasoning.explanation.explain import explain_triple

TUNED = RankOptions(aggregation="tuned", threads=2)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return anyburl.load_dataset("geo")


@pytest.fixture(scope="module")
def rules(data: Dataset) -> RuleSet:
    return anyburl.learn(data, paths=30_000, seed=1)


@pytest.fixture(scope="module", autouse=True)
def few_questions() -> Iterator[None]:
    """Train on a few questions: that is enough to be better than any fixed aggregation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 800)
        patch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 800)
        patch.setattr("anyburl.models.tuned.train.FEW_QUESTIONS", 200)
        yield


@pytest.fixture(scope="module")
def reasoner(few_questions: None, rules: RuleSet, data: Dataset) -> Reasoner:
    return Reasoner(rules, data, TUNED)


@pytest.fixture(scope="module")
def ranker(reasoner: Reasoner) -> Ranker:
    return reasoner.ranker


def plain_ranker(rules: RuleSet, data: Dataset, options: RankOptions) -> Ranker:
    """A ranker without a re-ranker; nothing is blocked on geo."""
    return make_ranker(graph_of(data.train), rules, options, block_connected=False)


def tuning_of(ranker: Ranker) -> Tuning:
    assert isinstance(ranker.reranker, TunedReranker)
    return ranker.reranker.tuning


def test_the_kernel_tells_the_evidence_of_all_rules_that_fire(rules: RuleSet, data: Dataset) -> None:
    ranker = plain_ranker(rules, data, RankOptions(aggregation="noisy-or"))
    queries, _ = make_queries(data.test.triples[::40], [], data.vocabulary.n_relations)
    groups = rule_groups(rules)
    answers = ranker.answer(queries, top_k=10, groups=groups)
    lists = lists_of(answers, 10)
    assert len(lists.candidates) > 100
    for question, candidate, row in zip(lists.questions, lists.candidates, lists.evidence, strict=True):
        fired = ranker.fire(int(queries.entities[question]), int(queries.relations[question]))
        own = fired.candidates == candidate
        expected = evidence_row(fired.scores[own], groups[fired.rules[own]], len(row))
        assert np.allclose(row, expected, rtol=1e-5)


def test_groups_are_types_and_lengths(rules: RuleSet) -> None:
    groups, kinds = rule_groups(rules), rules.type * 10 + np.minimum(rules.lengths, 3)
    assert len(set(zip(groups.tolist(), kinds.tolist(), strict=True))) == len(set(groups.tolist()))
    assert set(groups.tolist()) == set(range(len(set(kinds.tolist()))))


def test_a_model_beats_the_fixed_aggregations(reasoner: Reasoner) -> None:
    tuned = reasoner.evaluate()
    fixed = [reasoner.with_aggregation(name).evaluate() for name in ("max", "noisy-or", "noisy-or-top:5")]
    assert tuning_of(reasoner.ranker).model is not None
    assert tuned.metrics["mrr"] > max(metrics.metrics["mrr"] for metrics in fixed)
    assert tuned.protocol["aggregation"] == "tuned"
    assert tuned.protocol["tuned"]["chosen"] == "model"


def test_ranks_count_the_candidates_before_the_target(ranker: Ranker, data: Dataset) -> None:
    """The order that `best` tells and the ranks that are counted are the same order."""
    known = [data.train.triples, data.valid.triples, data.test.triples]
    queries, _ = make_queries(data.test.triples[:100], known, data.vocabulary.n_relations)
    answers = ranker.answer(queries, top_k=300)
    ranks = target_ranks(queries, answers, ranker.graph.n_entities)
    n_checked = 0
    for question in range(len(queries.entities)):
        listed = answers.best[question][: answers.n_best[question]].tolist()
        keys = answers.best_keys[question][: len(listed)]
        assert np.all(np.diff(keys) <= 0)
        assert len(set(listed)) == len(listed)
        places = range(queries.target_offsets[question], queries.target_offsets[question + 1])
        targets = set(queries.targets[list(places)].tolist())
        for place in places:
            target = int(queries.targets[place])
            if target not in listed[:TOP_K]:
                before = sum(entity not in targets for entity in listed[:TOP_K])
                assert ranks.optimistic[place] > before  # also than what it tied with
                continue
            own = keys[listed.index(target)]
            rivals = [key for entity, key in zip(listed, keys, strict=True) if entity not in targets]
            assert ranks.optimistic[place] == 1 + sum(key > own for key in rivals)
            assert ranks.pessimistic[place] == 1 + sum(key >= own for key in rivals)
            n_checked += 1
    assert n_checked > 100


def test_batches_do_not_matter(ranker: Ranker, data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, _ = make_queries(data.test.triples[:50], [], data.vocabulary.n_relations)
    whole = ranker.answer(queries, top_k=5)
    monkeypatch.setattr("anyburl.models.tuned.listing.QUESTIONS_AT_A_TIME", 7)
    for name, values in ranker.answer(queries, top_k=5)._asdict().items():
        assert np.array_equal(values, getattr(whole, name)), name


def test_predictions_rankings_and_explanations_agree(reasoner: Reasoner, tmp_path: Path) -> None:
    answers = reasoner.predict("France", "official_language", None, top=3)
    for answer in answers:
        explanation = reasoner.explain(answer.triple)
        assert explanation.score == pytest.approx(answer.score)
        assert explanation.aggregation == "tuned"
        assert explanation.reasons[0].contribution != 0
    reasoner.save_rankings(tmp_path / "ranks.parquet")
    frame = pl.read_parquet(tmp_path / "ranks.parquet")
    ranks = reasoner.evaluate().ranks
    assert frame["rank"].mean() == pytest.approx(ranks.realistic.mean())
    first = frame.filter(pl.col("direction") == "object").row(0, named=True)
    triple = (first["subject"], first["relation"], first["object"])
    assert reasoner.explain(triple).rank == first["rank"]


def test_weak_rules_are_passed_over_where_that_saves_much_and_loses_little(
    ranker: Ranker, rules: RuleSet, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists, answers and explanations know the other rules only."""
    assert tuning_of(ranker).least_binary == 0  # not much would be saved
    monkeypatch.setattr(train, "WEAK", 0.2)
    monkeypatch.setattr(train, "MUCH", 0.0)
    monkeypatch.setattr(train, "FEW_LOST", 0.5)
    reasoner = Reasoner(rules, data, TUNED)
    assert tuning_of(reasoner.ranker).least_binary == 0.2
    for answer in reasoner.predict("France", "official_language", None, top=3):
        explanation = reasoner.explain(answer.triple)
        assert explanation.score == pytest.approx(answer.score)
        assert all(reason.confidence >= 0.2 for reason in explanation.reasons if reason.rule.type == "B")


def test_a_contribution_is_what_would_be_lost_without_the_rule(ranker: Ranker, rules: RuleSet, data: Dataset) -> None:
    """The same model, without the rule: it is left out of the index, and so of the candidate's evidence only if no
    other candidate of the query has it. The rule is the best of a triple whose query has one candidate by it."""
    triple = ("Bangladesh", "time_zone", "Asia/Dhaka")
    before = explain_triple(ranker, data, triple, top=1)
    rows = [str(rules.rule(row)) != str(before.reasons[0].rule) for row in range(len(rules))]
    fewer = rules.take(np.flatnonzero(rows))
    reranker = TunedReranker(tuning_of(ranker), rule_groups(fewer))
    after = explain_triple(replace(plain_ranker(fewer, data, TUNED), reranker=reranker), data, triple, top=1)
    assert before.rank == after.rank
    assert before.reasons[0].contribution == pytest.approx(1 - after.score / before.score, abs=1e-6)


def test_below_what_the_model_puts_in_order_contributions_are_those_of_the_fixed_aggregation(
    reasoner: Reasoner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.models.tuned.listing.lists_of", lambda answers, longest: lists_of(answers, 0))
    monkeypatch.setattr("anyburl.models.tuned.listing.SHORT", 0)
    triple, fixed = ("Bangladesh", "time_zone", "Asia/Dhaka"), tuning_of(reasoner.ranker).aggregation
    found, expected = (one.explain(triple) for one in (reasoner, reasoner.with_aggregation(fixed)))
    assert (found.rank, found.score) == (expected.rank, expected.score)
    assert [reason.contribution for reason in found] == [reason.contribution for reason in expected]
    assert sum(reason.contribution for reason in found) > 0


def test_the_same_seed_gives_the_same_model_and_test_is_not_looked_at(
    ranker: Ranker, rules: RuleSet, data: Dataset
) -> None:
    without_test, tuning = Dataset("geo", data.train, data.valid, data.valid), tuning_of(ranker)
    again = tune(plain_ranker(rules, without_test, TUNED), without_test, rule_groups(rules))
    assert again.validation == tuning.validation
    assert again.model is not None
    assert tuning.model is not None
    for name, column in again.model.forest._asdict().items():
        assert np.array_equal(column, getattr(tuning.model.forest, name)), name


def test_with_little_to_learn_from_the_best_fixed_aggregation_is_taken(
    rules: RuleSet, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "FEWEST_ANSWERS", 10**9)
    reasoner = Reasoner(rules, data, TUNED)
    tuning = tuning_of(reasoner.ranker)
    assert tuning.model is None
    chosen = tuning.aggregation
    assert chosen == max(train.FIXED, key=lambda name: tuning.validation[name])
    tuned, fixed = (made.evaluate() for made in (reasoner, reasoner.with_aggregation(chosen)))
    assert tuned.metrics["mrr"] >= fixed.metrics["mrr"]  # what no rule predicts has an order, too
    explanation = reasoner.explain(("Bangladesh", "time_zone", "Asia/Dhaka"))
    assert explanation.score == pytest.approx(
        anyburl.explain(rules, data, explanation.triple, options=RankOptions(aggregation=chosen)).score
    )


def test_without_a_validation_split_facts_of_train_are_asked_for(rules: RuleSet, data: Dataset) -> None:
    alone = replace(data, valid=data.valid.from_frame([], data.vocabulary))
    assert Reasoner(rules, alone, TUNED).evaluate().mrr > Reasoner(rules, alone).evaluate().mrr


def test_without_a_single_rule_candidates_are_ordered_by_how_they_fit_the_question(data: Dataset) -> None:
    """From few facts of valid, and from hidden ones of train: both have the same columns."""
    few = replace(data, valid=data.valid.from_ids(data.valid.triples[:60], data.vocabulary))
    reasoner = Reasoner(RuleSet.empty(data.vocabulary), few, TUNED)
    assert reasoner.evaluate().metrics["mrr"] > 0.1


def test_where_connected_entities_are_blocked_no_question_asks_for_them(rules: RuleSet, data: Dataset) -> None:
    alone = replace(data, valid=data.valid.from_frame([], data.vocabulary))
    facts = Counter(frozenset((s, o)) for s, _, o in data.train.triples.tolist())
    joined_once = {pair for pair, times in facts.items() if times == 1}
    for block in (False, True):
        ranker = make_ranker(graph_of(data.train), rules, RankOptions(), block_connected=block)
        asked = held_out_questions(ranker, alone, rule_groups(rules), most=400, seed=1)
        found = {
            frozenset((entity, target))
            for some in asked
            for query, entity in enumerate(some.queries.entities.tolist())
            for target in some.queries.targets[slice(*some.queries.target_offsets[query : query + 2])].tolist()
        }
        assert len(found) > 100
        assert (found <= joined_once) == block


def test_with_no_facts_to_hold_out_there_is_nothing_to_tune_on() -> None:
    one = Dataset.from_triples([("a", "likes", "b")], name="one")
    with pytest.raises(DataError, match="one has too few facts"):
        Reasoner(RuleSet.empty(one.vocabulary), one, TUNED)


def test_a_fact_is_in_the_folds_of_both_its_questions() -> None:
    """Relation 3 is 0 backward: the first candidate of (1, 0, ?) and that of (5, 3, ?) are the same fact."""
    asked = np.array([1, 5], np.int32), np.array([0, 3], np.int32)
    lists = Lists(np.array([2, 1]), np.array([5, 7, 1], np.int32), np.zeros((3, 0), np.float32))
    first, second = question_folds(*asked, 97).tolist()
    others = folds_of_other_questions(asked[1], lists, 3, 97).tolist()
    assert (others[0], others[2]) == (second, first)
    assert first != second
