"""Rules with conditions go wherever rules go: answers, explanations, near misses, missing facts, run folders, words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from anyburl import Dataset, Reasoner, RuleSet, explain, learn
from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.data.names import Names
from anyburl.learning.options import LearnOptions
from anyburl.learning.run import RunDirectory
from anyburl.models.distilling.choosing import implied_rules
from anyburl.reasoning.explanation.relatives import RuleLattice, find_first_alike
from anyburl.reasoning.explanation.rule_examples import examine_rule
from anyburl.tools.report.words import Wording
from rules.samples import make_rules

RULES = [
    ("section(X,games) <= installed_size(X) >= 102400", (4, 3)),
    ("section(X,tools) <= made_by(X,A), employees(A) < 50", (6, 3)),
    ("section(X,games) <= made_by(X,A)", (9, 3)),
]


@pytest.fixture(scope="module")
def data() -> Dataset:
    triples = [("vlc", "made_by", "videolan"), ("doom", "made_by", "id"), ("doom", "section", "games")]
    triples += [("vi", "made_by", "videolan"), ("vi", "section", "tools")]
    plain = Dataset.from_triples(triples)
    ids = plain.vocabulary.encode_entities(["vlc", "doom", "vi", "videolan", "id"])
    sizes = Attribute.of("installed_size", AttributeKind.NUMBER, ids[:3], np.array([142301, 99, 7]))
    staff = Attribute.of("employees", AttributeKind.NUMBER, ids[3:], np.array([20, 300]))
    return Dataset("apps", plain.train, plain.valid, plain.test, attributes=Attributes.of([sizes, staff]))


@pytest.fixture(scope="module")
def reasoner(data: Dataset) -> Reasoner:
    return Reasoner(make_rules(RULES), data)


def test_an_explanation_shows_the_value_and_the_bound(data: Dataset) -> None:
    found = explain(make_rules(RULES), data, ("vlc", "section", "games"))
    values = [("vlc", "installed_size", "142301, at least 102400")]
    assert [list(reason.groundings[0]) for reason in found.reasons if reason.rule.condition] == [values]
    found = explain(make_rules(RULES), data, ("vlc", "section", "tools"))
    assert found.reasons[0].groundings[0] == (
        ("vlc", "made_by", "videolan"),
        ("videolan", "employees", "20, less than 50"),
    )


def test_a_near_miss_says_what_the_value_would_have_to_be(data: Dataset) -> None:
    found = explain(make_rules(RULES[:1]), data, ("vi", "section", "games"))
    assert found.near_miss is not None
    assert found.near_miss.missing == ("vi", "installed_size", "at least 102400")
    assert "would fire if" in str_of(found)


def str_of(shown: object) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def test_missing_facts_come_with_their_values(reasoner: Reasoner) -> None:
    facts = [row for frame in reasoner.complete(min_score=0.1, reasons=True) for row in frame.iter_rows(named=True)]
    by_rule = {row["rule"]: row["facts"] for row in facts}
    assert by_rule[RULES[0][0]] == [["vlc", "installed_size", "142301, at least 102400"]]
    assert by_rule[RULES[1][0]] == [["vlc", "made_by", "videolan"], ["videolan", "employees", "20, less than 50"]]


def test_a_rule_is_examined(reasoner: Reasoner, data: Dataset) -> None:
    found = examine_rule(reasoner.ranker, data, 1)
    assert [example.triple[0] for example in found.examples] == ["vi"]
    assert [example.facts[-1] for example in found.new_predictions] == [("videolan", "employees", "20, less than 50")]


def test_rules_with_conditions_are_compared_by_what_they_predict(reasoner: Reasoner) -> None:
    rules, graph = reasoner.ranker.rules, reasoner.ranker.graph
    assert find_first_alike(graph, rules).tolist() == [0, 1, 2]
    assert RuleLattice.build(rules).generalisations(1).tolist() == []
    assert RuleLattice.build(rules).specialisations(2)[0].tolist() == []
    assert not implied_rules(rules).any()


def test_a_run_folder_keeps_values_and_conditions(data: Dataset, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", data, LearnOptions(paths=1))
    run.write_part([make_rules(RULES).with_vocabulary(data.vocabulary)])
    kept = RuleSet.load(tmp_path / "run")
    assert kept.texts().to_list() == [text for text, _ in RULES]


def test_a_prepared_run_answers_as_before(data: Dataset, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", data, LearnOptions(paths=1))
    run.finish(make_rules(RULES).with_vocabulary(data.vocabulary), {})
    answers = [Reasoner.open(tmp_path / "run", data=data).predict("vlc", "section", None) for _ in range(2)]
    assert [[answer.entity for answer in found] for found in answers] == [["games", "tools"]] * 2


def test_a_rule_is_a_sentence(data: Dataset) -> None:
    words = Wording(data.vocabulary.relations.to_list(), Names())
    said = ["".join(word.text for word in words.rule(rule)) for rule in make_rules(RULES)]
    assert said[0] == "If the installed size of A is at least 102400, then the section of A is games."
    assert said[1].startswith("If A made by B and the employees of B is less than 50, then")


def test_learning_without_attributes_gives_no_conditions() -> None:
    plain = Dataset.from_triples([("a", "r", "b"), ("b", "r", "a")])
    assert learn(plain, paths=10).low is None


COMPARING = "successor(X,Y) <= office(X,A), office(Y,A), since(X) < since(Y)"


@pytest.fixture(scope="module")
def offices() -> Dataset:
    triples = [(name, "office", "mayor") for name in ("ann", "bob", "cy", "di")] + [("ann", "successor", "bob")]
    plain = Dataset.from_triples(triples)
    ids = plain.vocabulary.encode_entities(["ann", "bob", "bob", "cy"])
    years = Attribute.of("since", AttributeKind.DATE, ids, np.array([-36_525.0, 10.0, 20.0, -40_000.0]))
    return Dataset("offices", plain.train, plain.valid, plain.test, attributes=Attributes.of([years]))


@pytest.fixture(scope="module")
def comparing(offices: Dataset) -> Reasoner:
    return Reasoner(make_rules([(COMPARING, (3, 2)), ("successor(X,Y) <= office(X,A), office(Y,A)", (12, 1))]), offices)


def test_a_comparison_answers_both_questions(comparing: Reasoner) -> None:
    assert {a.entity for a in comparing.predict("ann", "successor", None, include_known=True)[:1]} == {"bob"}
    best = comparing.predict(None, "successor", "bob", include_known=True)
    assert {answer.entity for answer in best if str(answer.rule) == COMPARING} == {"ann", "cy"}


def test_an_explanation_of_a_comparison_shows_both_values(comparing: Reasoner) -> None:
    found = comparing.explain(("cy", "successor", "ann"))
    assert found.reasons[0].groundings[0] == (
        ("cy", "office", "mayor"),
        ("ann", "office", "mayor"),
        ("cy", "since", "1860-06-26, before 1869-12-31 of ann"),
    )


def test_a_near_miss_says_how_the_values_would_have_to_compare(offices: Dataset) -> None:
    found = explain(make_rules([(COMPARING, (3, 2))]), offices, ("bob", "successor", "ann"))
    assert found.near_miss is not None
    assert found.near_miss.missing == ("bob", "since", "before that of ann")
    assert [fact[0] for fact in found.near_miss.facts] == ["bob", "ann"]
    assert "would fire if" in str_of(found)
    without = [("successor(X,Y) <= successor(X,A), office(A,B), office(Y,B), since(X) < since(Y)", (3, 2))]
    found = explain(make_rules(without), offices, ("cy", "successor", "bob"))
    assert found.near_miss is not None
    assert found.near_miss.missing[1] == "successor"
    assert "missing" in str_of(found)


def test_a_comparison_is_examined_compared_and_completed(comparing: Reasoner, offices: Dataset) -> None:
    found = examine_rule(comparing.ranker, offices, 0)
    assert [example.triple for example in found.examples] == [("ann", "successor", "bob")]
    judged = {example.triple[0::2] for example in (*found.counter_examples, *found.new_predictions)}
    assert judged == {("cy", "ann"), ("cy", "bob")}
    assert find_first_alike(comparing.ranker.graph, comparing.ranker.rules).tolist()[0] == 0
    facts = [row for frame in comparing.complete(min_score=0.1, reasons=True) for row in frame.iter_rows(named=True)]
    by_ends = {(row["subject"], row["object"]): row["facts"] for row in facts if row["rule"] == COMPARING}
    assert by_ends[("cy", "bob")][-1] == ["cy", "since", "1860-06-26, before 1970-01-11 of bob"]
    assert set(by_ends) == {("cy", "ann"), ("cy", "bob")}


def test_a_comparison_is_a_sentence(offices: Dataset, tmp_path: Path) -> None:
    rules = make_rules([(COMPARING, (3, 2))]).with_vocabulary(offices.vocabulary)
    words = Wording(offices.vocabulary.relations.to_list(), Names())
    said = "".join(word.text for word in words.rule(rules.rule(0)))
    assert said.endswith("and the since of A is before that of C, then the successor of A is C.")
    rules.save(tmp_path / "rules.parquet")
    kept = RuleSet.load(tmp_path / "rules.parquet")
    assert kept.texts().to_list() == [COMPARING]
    assert kept.rule(0).condition == rules.rule(0).condition
