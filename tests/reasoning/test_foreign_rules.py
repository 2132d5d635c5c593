"""Rules of one vocabulary and data of another: matched by their labels, or refused; ids alone mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import anyburl
from anyburl import Dataset, Learner, LearnOptions, RankOptions, Reasoner, RuleSet
from anyburl.base.errors import DataError, RuleError
from anyburl.graph.stored import graph_of
from anyburl.ranking.ranker import make_ranker
from anyburl.reasoning.evaluation import evaluate_split
from rules.samples import assert_same

TRAIN = [("ed", "lives", "nl"), ("lisa", "lives", "nl"), ("nl", "lang", "dutch"), ("ed", "speaks", "dutch")]
TEST = [("lisa", "speaks", "dutch")]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset.from_triples(TRAIN, test=TEST, name="speakers")


@pytest.fixture(scope="module")
def other() -> Dataset:
    """More entities and relations, so that ids of the one are out of the other's range."""
    more = [(f"e{n}", f"r{n % 7}", f"e{n + 1}") for n in range(50)]
    return Dataset.from_triples([*TRAIN, *more], test=TEST, name="others")


@pytest.fixture(scope="module")
def learned(data: Dataset) -> RuleSet:
    return anyburl.learn(data, paths=500, min_support=1, threads=1, seed=1)


@pytest.fixture(scope="module")
def read(learned: RuleSet, tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    """The same rules from a file of text, whose vocabulary is that of the labels in use."""
    path: Path = tmp_path_factory.mktemp("rules") / "rules.txt"
    learned.filter(relation="speaks").save(path)
    return RuleSet.load(path)


def test_rules_of_a_file_are_counted_on_data_with_other_ids(read: RuleSet, data: Dataset, other: Dataset) -> None:
    for dataset in (data, other):
        assert not read.vocabulary.same_labels(dataset.vocabulary)
        for table in (dataset, dataset.train):
            counted = anyburl.rescore(read, table)
            assert_same(counted, read, same_exact=False)
            assert counted.exact.all()
            measured = anyburl.measure(read, table)
            matched = anyburl.measure(read.with_vocabulary(dataset.vocabulary), dataset.train)
            assert measured.lift is not None
            assert matched.lift is not None
            assert measured.lift.tolist() == matched.lift.tolist()


def test_a_ranker_refuses_the_graph_of_another_vocabulary(learned: RuleSet, other: Dataset) -> None:
    with pytest.raises(RuleError, match="the rules and the graph have different vocabularies"):
        make_ranker(graph_of(other.train), learned, RankOptions(), block_connected=False)


def test_a_ranker_does_not_evaluate_other_data(learned: RuleSet, data: Dataset, other: Dataset) -> None:
    ranker = make_ranker(graph_of(data.train), learned, RankOptions(), block_connected=False)
    with pytest.raises(DataError, match="the ranker was made with data other than others"):
        evaluate_split(ranker, other, "test", {})


def test_a_reasoner_does_not_answer_from_other_data(learned: RuleSet, data: Dataset, other: Dataset) -> None:
    reasoner = Reasoner(learned, data)
    subject, relation, object = other.train.to_polars().row(0)
    reasoner.dataset = other
    for ask in (
        lambda: reasoner.predict(subject, relation, None),
        lambda: reasoner.explain((subject, relation, object)),
        lambda: list(reasoner.complete(min_score=0.1)),
        reasoner.rank,
        reasoner.calibrate,
    ):
        with pytest.raises(DataError, match="vocabularies differ"):
            ask()


def test_a_learner_takes_known_rules_of_another_vocabulary(read: RuleSet, data: Dataset) -> None:
    learner = Learner(data.train, LearnOptions(paths=100, threads=1), known=read)
    assert_same(learner.store.rules(), read)
    assert learner.store.rules().vocabulary is data.vocabulary


def test_a_learner_refuses_known_rules_with_labels_that_the_triples_lack(learned: RuleSet) -> None:
    data = Dataset.from_triples(TRAIN[:2])
    with pytest.raises(RuleError, match="18 of 22 known rules have labels that the triples"):
        Learner(data.train, LearnOptions(paths=100, threads=1), known=learned)


def test_rules_answer_alike_under_any_vocabulary(read: RuleSet, data: Dataset, other: Dataset) -> None:
    matched = read.with_vocabulary(data.vocabulary)
    for found in (data, other):
        answers = [Reasoner(rules, found).predict("lisa", "speaks", None) for rules in (read, matched)]
        assert [(answer.entity, answer.score) for answer in answers[0]] == [
            (answer.entity, answer.score) for answer in answers[1]
        ]
    assert_same(read.with_vocabulary(other.vocabulary).with_vocabulary(data.vocabulary), matched)
