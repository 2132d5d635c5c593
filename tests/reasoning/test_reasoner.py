"""What a reasoner is made of: rules of any vocabulary, options given once, data of any kind."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anyburl
from anyburl import Dataset, OptionError, RankOptions, Reasoner, RuleSet, RunError
from rules.samples import make_rules

TRAIN = [
    ("ed", "lives", "holland"),
    ("lisa", "lives", "holland"),
    ("holland", "lang", "dutch"),
    ("holland", "lang", "frisian"),
    ("ed", "speaks", "dutch"),
]
TEST = [("lisa", "speaks", "dutch")]
RULES = [
    ("speaks(X,Y) <= lives(X,A), lang(A,Y)", (10, 8)),
    ("speaks(X,dutch) <= lives(X,holland)", (10, 6)),
    ("speaks(X,dutch) <= ", (10, 5)),
]
FOREIGN = [
    ("aardvark(X,Y) <= speaks(X,Y)", (10, 9)),
    *RULES,
    ("speaks(X,klingon) <= lives(X,A)", (10, 9)),
    ("speaks(X,zulu) <= lives(X,A)", (10, 9)),
]


@pytest.fixture
def data() -> Dataset:
    return Dataset.from_triples(TRAIN, test=TEST, name="speakers")


def answers(reasoner: Reasoner) -> list[tuple[str, float, str]]:
    return [(one.entity, one.score, str(one.rule)) for one in reasoner.predict("lisa", "speaks", None)]


# Rules of another vocabulary.


def test_rules_of_a_foreign_vocabulary_are_matched_by_label(data: Dataset) -> None:
    """Ids of rules and data differ in all places; the rules say the same."""
    everything = make_rules(FOREIGN)
    foreign, own = everything[1:4], make_rules(RULES)
    assert foreign.vocabulary.n_entities > data.vocabulary.n_entities - 3
    assert foreign.head.tolist() != own.with_vocabulary(data.vocabulary).head.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answers(Reasoner(foreign, data)) == answers(Reasoner(own, data))
        assert anyburl.evaluate(foreign, data).metrics == anyburl.evaluate(own, data).metrics
    assert [answer[0] for answer in answers(Reasoner(foreign, data))] == ["dutch", "frisian"]


def test_rules_that_cannot_be_matched_are_left_out_and_counted(data: Dataset) -> None:
    with pytest.warns(UserWarning, match=r"3 of 6 rules carry over to speakers; left out: "):
        reasoner = Reasoner(make_rules(FOREIGN), data)
    assert len(reasoner.rules) == 3
    assert answers(reasoner) == answers(Reasoner(make_rules(RULES), data))
    with pytest.warns(UserWarning, match=r"3 of 4 rules carry over to speakers; left out: 1 with "):
        Reasoner(make_rules([*RULES, FOREIGN[0]]), data)


def test_rules_of_nothing_but_strangers_answer_nothing(data: Dataset) -> None:
    with pytest.warns(UserWarning, match="0 of 2 rules carry over"):
        reasoner = Reasoner(make_rules(FOREIGN[-2:]), data)
    assert reasoner.predict("lisa", "speaks", None) == []
    assert reasoner.evaluate().by_rule_type["none"]["queries"] == 2


def test_a_vocabulary_of_the_same_size_in_another_order_is_matched_too() -> None:
    """As many entities and relations as the data have: only labels tell that ids are others."""
    data = Dataset.from_triples([("b", "r", "c"), ("c", "s", "d")])
    other = Dataset.from_triples([("a", "r", "b"), ("b", "s", "c")])
    rules = anyburl.learn(other, paths=200, min_support=1, min_confidence=0, threads=1, seed=1)
    assert (rules.vocabulary.n_entities, rules.vocabulary.n_relations) == (3, 2)
    with pytest.warns(UserWarning, match="rules carry over"):
        reasoner = Reasoner(rules, data)
    texts = {str(rule) for rule in rules}
    assert 0 < len(reasoner.rules) < len(rules)
    assert {str(rule) for rule in reasoner.rules} <= texts


# Conflicting arguments.


def test_a_reasoner_of_other_rules_or_data_is_refused(data: Dataset) -> None:
    rules = make_rules(RULES)
    reasoner, other = Reasoner(rules, data), make_rules(RULES)
    again = Dataset.from_triples(TRAIN, test=TEST)
    calls: list[Any] = [
        lambda rules, data: anyburl.predict(rules, data, "lisa", "speaks", None, reasoner=reasoner),
        lambda rules, data: anyburl.evaluate(rules, data, reasoner=reasoner),
        lambda rules, data: anyburl.explain(rules, data, ("lisa", "speaks", "dutch"), reasoner=reasoner),
    ]
    for call in calls:
        with pytest.raises(OptionError, match="the reasoner was made with other rules"):
            call(other, data)
        with pytest.raises(OptionError, match="the reasoner was made with other data"):
            call(rules, again)
        for own in (rules, reasoner.rules):
            call(own, data)


@pytest.mark.parametrize(
    "conflict", [{"options": RankOptions()}, {"smoothing": 1.0}, {"engine": "ray"}, {"address": "10.0.0.1:6379"}]
)
def test_a_reasoner_and_options_of_its_own_are_refused_together(data: Dataset, conflict: dict[str, Any]) -> None:
    rules = make_rules(RULES)
    with pytest.raises(OptionError, match="a reasoner has its own options and engine"):
        anyburl.evaluate(rules, data, reasoner=Reasoner(rules, data), **conflict)


def test_options_and_keywords_are_refused_together(data: Dataset, tmp_path: Path) -> None:
    rules, sentence = make_rules(RULES), r"pass either options or keywords \(smoothing, top_k\), not both"
    for call in (Reasoner, anyburl.evaluate):
        with pytest.raises(OptionError, match=sentence):
            call(rules, data, options=RankOptions(), smoothing=1.0, top_k=3)
    with pytest.raises(OptionError, match=sentence):
        Reasoner.open(tmp_path, options=RankOptions(), smoothing=1.0, top_k=3)


def test_keywords_are_the_options(data: Dataset) -> None:
    rules = make_rules(RULES)
    given = {"aggregation": "noisy-or", "smoothing": 1.0, "weights": {"Z": 0.5}, "top_k": 3}
    left, right = Reasoner(rules, data, **given), Reasoner(rules, data, RankOptions(**given))  # type: ignore[arg-type]
    assert left.options == right.options
    assert answers(left) == answers(right)


@pytest.mark.parametrize("engine", [{"engine": "steam"}, {"address": "10.0.0.1:6379"}])
def test_an_engine_that_there_is_not_and_an_address_for_none_are_refused(data: Dataset, engine: Any) -> None:
    with pytest.raises(OptionError, match="engine"):
        Reasoner(make_rules(RULES), data, **engine)


# What it takes, and gives.


def test_rules_and_data_may_be_files(data: Dataset, tmp_path: Path) -> None:
    rules = make_rules(RULES)
    rules.save(tmp_path / "rules.txt")
    (tmp_path / "train.txt").write_text("".join("\t".join(triple) + "\n" for triple in TRAIN))
    reasoner = Reasoner(tmp_path / "rules.txt", tmp_path / "train.txt")
    assert answers(reasoner) == answers(Reasoner(rules, data))
    assert answers(Reasoner(rules, TRAIN)) == answers(reasoner)


def test_another_aggregation_shares_the_index(data: Dataset) -> None:
    reasoner = Reasoner(make_rules(RULES), data, threads=1)
    other = reasoner.with_aggregation("noisy-or")
    assert other.ranker.index is reasoner.ranker.index
    assert answers(other) == answers(Reasoner(make_rules(RULES), data, aggregation="noisy-or"))
    assert answers(reasoner) != answers(other)
    with pytest.raises(OptionError, match="needs a model"):
        reasoner.with_aggregation("tuned")


def test_a_reasoner_is_a_context_manager_and_shows_itself(data: Dataset) -> None:
    with Reasoner(make_rules(RULES), data) as reasoner:
        assert repr(reasoner) == "Reasoner(3 rules on speakers, max)"
    reasoner.close()


def test_a_run_that_does_not_know_its_data_asks_for_them(data: Dataset, tmp_path: Path) -> None:
    anyburl.learn(data, paths=100, threads=1, out=tmp_path / "run")
    with pytest.raises(RunError, match="does not record where its data came from: pass data"):
        Reasoner.open(tmp_path / "run")
    assert Reasoner.open(tmp_path / "run", data).dataset is data


def test_rankings_and_metrics_agree(data: Dataset) -> None:
    reasoner = Reasoner(make_rules(RULES), data, top_k=1)
    frame = reasoner.rank("test")
    assert np.array_equal(frame["rank"].to_numpy(), reasoner.evaluate().ranks.realistic)
    assert [len(candidates) for candidates in frame["candidates"]] == [1, 1]
    assert [len(candidates) for candidates in reasoner.rank("test", top_k=5)["candidates"]] == [2, 1]


def test_an_empty_set_of_rules_answers_nothing(data: Dataset) -> None:
    reasoner = Reasoner(RuleSet.empty(data.vocabulary), data)
    assert reasoner.predict("ed", "speaks", None) == []
    assert reasoner.predict([("ed", "speaks", None)]).height == 0
    assert reasoner.explain(("ed", "speaks", "dutch")).n_reasons == 0
