"""Where one rule is right and wrong, compared with plain Python."""

from __future__ import annotations

import pytest
from explaining import Ids, all_groundings, cases, dataset_of, label_triple, ranker_of, rule_set_of
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.errors import InvalidOptionError
from anyburl.data import Dataset
from anyburl.reasoning.explanation import rule_examples
from anyburl.reasoning.explanation.rule_examples import Example, examine_rule
from kernels import examples
from reference.scoring import predicted
from rules.samples import make_rules
from strategies import RuleTuple, SmallGraph

FACTS = [
    *((f"p{i}", "lives", "nl") for i in range(4)),
    ("p0", "speaks", "dutch"),
    ("p1", "speaks", "frisian"),
    ("q", "speaks", "dutch"),
    ("nl", "language", "dutch"),
]


def examined(text: str, **options: int) -> rule_examples.RuleExamples:
    dataset = Dataset.from_triples(FACTS, valid=[("p3", "speaks", "dutch")])
    rules = make_rules([(text, (4, 1))]).with_vocabulary(dataset.vocabulary)
    return examine_rule(ranker_of(rules, dataset), dataset, 0, seconds=600, **options)


@pytest.mark.parametrize("body", ["dutch) <= lives(X,nl)", "dutch) <= lives(X,A)", "Y) <= lives(X,A), language(A,Y)"])
def test_predictions_are_right_wrong_or_new(body: str) -> None:
    found = examined(f"speaks(X,{body}")
    (right,) = found.examples
    assert (right.triple, right.known) == (("p0", "speaks", "dutch"), ("train",))
    (wrong,) = found.counter_examples
    assert (wrong.triple, wrong.known, wrong.instead) == (("p1", "speaks", "dutch"), (), ("frisian",))
    assert wrong.replaced == "dutch"
    assert {(e.triple[0], e.known) for e in found.new_predictions} == {("p2", ()), ("p3", ("valid",))}
    assert found.is_complete
    for example in (right, wrong, *found.new_predictions):
        assert example.facts[0] == (example.triple[0], "lives", "nl")


def test_only_so_many_are_given() -> None:
    found = examined("speaks(X,dutch) <= lives(X,nl)", top=1)
    assert (len(found.new_predictions), found.is_complete) == (1, False)
    with pytest.raises(InvalidOptionError, match="top must be at least 1"):
        examined("speaks(X,dutch) <= lives(X,nl)", top=0)


def test_a_rule_without_body_has_examples_only() -> None:
    found = examined("speaks(X,dutch) <= ")
    assert {e.triple[0] for e in found.examples} == {"p0", "q"}
    assert found.examples[0].facts == ()
    assert (found.counter_examples, found.new_predictions, found.is_complete) == ((), (), False)


@pytest.mark.kernel
@settings(max_examples=examples(200, 30))
@given(cases(max_rules=1), st.booleans())
def test_every_prediction_is_found_and_has_its_facts(
    case: tuple[SmallGraph, list[RuleTuple], list[int], Ids], identity: bool
) -> None:
    graph, tuples, supports, _ = case
    n_entities, n_relations, triples = graph
    (rule,) = tuples
    dataset = dataset_of(graph)
    vocabulary = dataset.vocabulary
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_examples, "WALKS_OF_A_START", 10_000)
        ranker = ranker_of(rule_set_of(vocabulary, tuples, supports), dataset, object_identity=identity)
        found = examine_rule(ranker, dataset, 0, top=10_000, seconds=600)
    if rule[0] == "Z":
        return
    pairs = {(x, x if y == n_entities else y) for x, y in predicted(triples, n_entities, n_relations, rule, identity)}
    said = {(x, rule[1] % n_relations, y) if rule[1] < n_relations else (y, rule[1] % n_relations, x) for x, y in pairs}

    def labelled(ids: set[Ids]) -> set[tuple[str, str, str]]:
        return {label_triple(vocabulary, triple) for triple in ids}

    def given_by(some: tuple[Example, ...]) -> set[tuple[str, str, str]]:
        assert len({example.triple for example in some}) == len(some)
        return {example.triple for example in some}

    stated = said & set(triples)
    assert given_by(found.examples) == labelled(stated)
    assert given_by(found.counter_examples) | given_by(found.new_predictions) == labelled(said - stated)
    assert found.is_complete
    assert all(example.instead for example in found.counter_examples)
    assert not any(example.instead for example in found.new_predictions)
    by_label = {label_triple(vocabulary, triple): triple for triple in said}
    for example in (*found.examples, *found.counter_examples, *found.new_predictions):
        ways = all_groundings(triples, (n_entities, n_relations), rule, by_label[example.triple], vocabulary, identity)
        assert example.facts in ways
