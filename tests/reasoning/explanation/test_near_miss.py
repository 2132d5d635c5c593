"""Where nothing fires: the strongest rule that lacks one fact, compared with plain Python."""

from __future__ import annotations

import pytest
from explaining import Ids, cases, dataset_of, label_triple, near_misses, ranker_of, rule_set_of
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl import explain
from anyburl.data import Dataset
from anyburl.reasoning.explanation import explain as explaining
from anyburl.reasoning.explanation.explain import explain_triple
from kernels import examples
from reference.graph import build, inverse
from rules.samples import make_rules
from strategies import RuleTuple, SmallGraph


def in_index(graph: SmallGraph, rule: RuleTuple) -> bool:
    """Whether the ranker's indexes hold the rule: those of one atom that no fact satisfies are left out."""
    kind, _, _, body, last = rule
    steps = build(graph[2], graph[0], graph[1]).steps
    return kind != "Uc" or len(body) > 1 or (last, inverse(body[0], graph[1])) in steps


@pytest.mark.kernel
@settings(max_examples=examples(500, 60))
@given(cases(), st.booleans())
def test_the_near_miss_is_the_strongest_rule_that_lacks_one_fact(
    case: tuple[SmallGraph, list[RuleTuple], list[int], Ids], by_index: bool
) -> None:
    graph, tuples, supports, triple = case
    dataset = dataset_of(graph)
    vocabulary = dataset.vocabulary
    rules = rule_set_of(vocabulary, tuples, supports)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explaining, "FEW_RULES", -1 if by_index else 100)
        found = explain_triple(ranker_of(rules, dataset), dataset, label_triple(vocabulary, triple))
    if found.reasons:
        assert found.near_miss is None
        return
    possible = {
        row: near_misses(graph[2], graph[:2], rule, triple, vocabulary)
        for row, rule in enumerate(tuples)
        if supports[row] > 0 and (not by_index or in_index(graph, rule))
    }
    possible = {row: misses for row, misses in possible.items() if misses}
    if not possible:
        assert found.near_miss is None
        return
    assert found.near_miss is not None
    near = found.near_miss
    assert near.support == max(supports[row] for row in possible)
    rows = {rules.rule(row): row for row in range(len(rules))}
    assert (near.facts, near.missing) in possible[rows[near.rule]]


FACTS = [
    ("ed", "born_in", "hague"),
    ("hague", "in", "holland"),
    ("holland", "language", "dutch"),
    ("lisa", "speaks", "dutch"),
]


@pytest.mark.parametrize("gone", range(3))
def test_a_fact_taken_away_is_the_one_that_is_missing(gone: int) -> None:
    rules = make_rules([("speaks(X,Y) <= born_in(X,A), in(A,B), language(B,Y)", (10, 9))])
    triple = ("ed", "speaks", "dutch")
    assert explain(rules, Dataset.from_triples(FACTS), triple).reasons[0].groundings == (tuple(FACTS[:3]),)
    left = [fact for fact in FACTS if fact != FACTS[gone]]
    dataset = Dataset.from_triples(left, valid=[FACTS[gone]])
    near = explain(rules, dataset, triple).near_miss
    assert near is not None
    assert near.missing == FACTS[gone]
    assert near.facts == tuple(fact for fact in FACTS[:3] if fact != FACTS[gone])
    assert near.position == gone


def test_a_missing_fact_with_a_dangling_end_is_open() -> None:
    rules = make_rules([("speaks(X,dutch) <= born_in(X,A)", (10, 9))])
    dataset = Dataset.from_triples(FACTS)
    near = explain(rules, dataset, ("hague", "speaks", "dutch")).near_miss
    assert near is not None
    assert near.missing == ("hague", "born_in", None)
    assert near.to_json()["missing"] == ["hague", "born_in", None]


def test_a_tautology_is_no_near_miss() -> None:
    rules = make_rules([("speaks(X,Y) <= speaks(X,Y)", (10, 9)), ("speaks(X,dutch) <= speaks(X,dutch)", (10, 9))])
    assert explain(rules, Dataset.from_triples(FACTS), ("ed", "speaks", "dutch")).near_miss is None


@pytest.mark.kernel
@settings(max_examples=examples(200, 30))
@given(cases())
def test_near_misses_are_rules_that_do_not_fire_each_with_another_missing_fact(
    case: tuple[SmallGraph, list[RuleTuple], list[int], Ids],
) -> None:
    graph, tuples, supports, triple = case
    dataset = dataset_of(graph)
    vocabulary = dataset.vocabulary
    rules = rule_set_of(vocabulary, tuples, supports)
    ranker = ranker_of(rules, dataset)
    found = explaining.near_misses(ranker, label_triple(vocabulary, triple), top=10)
    fired = {reason.rule for reason in explain_triple(ranker, dataset, label_triple(vocabulary, triple), top=10)}
    rows = {rules.rule(row): row for row in range(len(rules))}
    for near in found:
        assert near.rule not in fired
        misses = near_misses(graph[2], graph[:2], tuples[rows[near.rule]], triple, vocabulary)
        assert (near.facts, near.missing) in misses
    assert len({near.missing for near in found}) == len(found)
    assert [near.support for near in found] == sorted((near.support for near in found), reverse=True)


def test_a_candidate_that_ranks_low_is_told_what_would_lift_it() -> None:
    facts = [("ed", "lives", "nl"), ("ed", "knows", "lisa"), ("be", "language", "dutch"), ("x", "speaks", "y")]
    bodies = ["dutch) <= knows(X,A)", "Y) <= lives(X,A), language(A,Y)", "dutch) <= born(X,nl)"]
    dataset = Dataset.from_triples([*facts, ("p", "born", "nl")])
    rules = make_rules([(f"speaks(X,{body}", (10, 3 + i)) for i, body in enumerate(bodies)])
    ranker = ranker_of(rules.with_vocabulary(dataset.vocabulary), dataset)
    found = explaining.near_misses(ranker, ("ed", "speaks", "dutch"))
    assert [near.missing for near in found] == [("ed", "born", "nl"), ("nl", "language", "dutch")]
