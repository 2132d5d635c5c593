"""Rescoring: any rules, any graph, the reference's counts; and what PyClause counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl import Dataset, OptionError, RuleError, RuleSet, RuleType, TripleTable, learn, load_dataset, rescore
from kernels import examples, table_of
from reference.scoring import score
from rules.samples import make_rules
from strategies import RuleTuple, SmallGraph, graphs, grounded_rules, rules

CODES = {str(name): name.code for name in RuleType}


def rule_set(table: TripleTable, wanted: list[RuleTuple]) -> RuleSet:
    """The rules as columns, with scores that are all wrong."""
    longest = max((len(rule[3]) for rule in wanted), default=1) or 1
    bodies = [(*rule[3], *([-1] * (longest - len(rule[3])))) for rule in wanted]
    distinct = sorted(set(bodies))
    return RuleSet(
        vocabulary=table.vocabulary,
        bodies=np.array(distinct, np.int32).reshape(-1, longest),
        type=np.array([CODES[rule[0]] for rule in wanted], np.uint8),
        head=np.array([rule[1] for rule in wanted], np.int32),
        body=np.array([distinct.index(body) for body in bodies], np.int32),
        head_constant=np.array([-1 if rule[2] is None else rule[2] for rule in wanted], np.int32),
        body_constant=np.array([-1 if rule[4] is None else rule[4] for rule in wanted], np.int32),
        predictions=np.full(len(wanted), 99, np.int64),
        support=np.full(len(wanted), 77, np.int32),
        exact=np.zeros(len(wanted), np.bool_),
    )


@st.composite
def graphs_with_rules(draw: st.DrawFn) -> tuple[SmallGraph, list[RuleTuple]]:
    """A graph and rules of all types and lengths, some twice, mostly such that predict something."""
    graph = draw(graphs())
    chosen = rules(graph[0], graph[1])
    if graph[2]:
        chosen = st.one_of(grounded_rules(graph), grounded_rules(graph), chosen)
    return graph, draw(st.lists(chosen, max_size=12))


@settings(max_examples=examples(150, 20))
@given(graphs_with_rules(), st.booleans(), st.sampled_from([1, 2]))
def test_every_rule_gets_the_counts_of_the_reference_in_its_place(
    drawn: tuple[SmallGraph, list[RuleTuple]], object_identity: bool, threads: int
) -> None:
    graph, wanted = drawn
    n_entities, n_relations, triples = graph
    table = table_of(graph)
    given_rules = rule_set(table, wanted)
    done: list[int] = []
    found = rescore(given_rules, table, object_identity=object_identity, threads=threads, progress=done.append)
    counts = list(zip(found.predictions.tolist(), found.support.tolist(), strict=True))
    assert counts == [score(triples, n_entities, n_relations, rule, object_identity) for rule in wanted]
    assert found.exact.all()
    assert list(found) == list(given_rules)
    assert sum(done) == sum(len(rule[3]) > 0 for rule in wanted)


def test_a_rule_without_a_body_predicts_whoever_has_the_relation() -> None:
    """0 and 1 lead to 2 and 2 to itself: h(X, 2) predicts 0 and 1, and 2 as well where object identity is off."""
    graph = (3, 1, [(0, 0, 2), (1, 0, 2), (2, 0, 2)])
    table = table_of(graph)
    zero = rule_set(table, [("Z", 0, 2, (), None)])
    for object_identity, expected in ((True, (2, 2)), (False, (3, 3))):
        found = rescore(zero, table, object_identity=object_identity)
        assert (int(found.predictions[0]), int(found.support[0])) == expected
        assert score(graph[2], 3, 1, ("Z", 0, 2, (), None), object_identity) == expected


def test_no_rules_are_no_work() -> None:
    table = table_of((2, 1, [(0, 0, 1)]))
    assert len(rescore(RuleSet.empty(table.vocabulary), table)) == 0


def test_rules_with_labels_that_the_triples_do_not_have_are_kept_with_a_support_of_0() -> None:
    """The second rule predicts nobody for every subject of r, which has no fact of the unknown relation."""
    triples = [("a", "r", "b"), ("c", "r", "b"), ("a", "s", "b")]
    data = Dataset.from_triples(triples)
    rules = make_rules(
        [
            ("unknown(X,nobody) <= unheard(X,A)", (9, 9)),
            ("unknown(X,nobody) <= r(X,A)", (9, 9)),
            ("s(X,Y) <= r(X,Y)", (9, 9)),
        ],
        exact=False,
    )
    for found in (rescore(rules, data), rescore(rules, data.train)):
        assert list(found) == list(rules)
        assert list(zip(found.predictions.tolist(), found.support.tolist(), strict=True)) == [(0, 0), (2, 0), (2, 1)]
        assert found.exact.all()


def test_bodies_that_are_too_long_for_the_kernels_are_refused() -> None:
    table = table_of((3, 1, [(0, 0, 1), (1, 0, 2)]))
    for length in (8, 24):
        with pytest.raises(RuleError, match=f"at most 7 body atoms can be counted, got one with {length}"):
            rescore(rule_set(table, [("B", 0, None, (0,) * length, None)]), table)
    assert len(rescore(rule_set(table, [("B", 0, None, (0,) * 7, None)]), table)) == 1


def test_on_a_graph_without_triples_no_rule_predicts_anything() -> None:
    table = table_of((3, 2, []))
    wanted: list[RuleTuple] = [
        ("Z", 0, 1, (), None),
        ("B", 0, None, (1,), None),
        ("Uc", 0, 1, (1, 0), 2),
        ("Ud", 2, 3, (1,), None),
    ]
    found = rescore(rule_set(table, wanted), table)
    assert found.predictions.tolist() == found.support.tolist() == [0] * 4


def test_a_budget_makes_large_bodies_estimates() -> None:
    """Ten starts with ten ends each: 100 edges, of which a budget of 20 sees some."""
    table = table_of((20, 2, [(x, r, 10 + y) for x in range(10) for y in range(10) for r in (0, 1)]))
    wanted = rule_set(table, [("B", 0, None, (1,), None), ("Uc", 0, 10, (1,), 11)])
    found = rescore(wanted, table, budget=20)
    assert not found.exact.any()
    assert (found.confidence() == 1.0).all()
    exact = rescore(wanted, table, budget=10_000)
    assert exact.exact.all()
    assert exact.predictions.tolist() == [100, 10]


@pytest.mark.parametrize(("name", "n_rules"), [("FB15k-237", 2975), ("WN18RR", 250)])
def test_exact_scores_are_those_of_pyclause(
    shared_data: Callable[[str], Path], shared_peers: Path, name: str, n_rules: int
) -> None:
    """3225 rules in all."""
    table = load_dataset(shared_data(name)).train
    given_rules = RuleSet.load(shared_peers / f"{name}-exact.txt.gz", table.vocabulary)
    assert len(given_rules) == n_rules
    found = rescore(given_rules, table)
    assert found.exact.all()
    assert found.predictions.tolist() == given_rules.predictions.tolist()
    assert found.support.tolist() == given_rules.support.tolist()


def test_only_the_best_estimated_rules_are_counted_if_asked_for() -> None:
    data = load_dataset("geo")
    learned = learn(data, paths=3_000, seed=1, threads=1)
    guessed = rescore(learned, data.train, budget=5)
    before = np.flatnonzero(~guessed.exact)
    assert len(before) > 50
    found = rescore(guessed, data.train, best=20)
    changed = np.flatnonzero(found.exact & ~guessed.exact)
    smoothed = guessed.support / (guessed.predictions + 5)
    assert len(changed) == 20
    assert smoothed[changed].min() >= np.delete(smoothed[before], np.searchsorted(before, changed)).max()
    assert found.support[changed].tolist() == learned.support[changed].tolist()
    assert found.predictions[changed].tolist() == learned.predictions[changed].tolist()
    assert found.margin is not None
    assert guessed.margin is not None
    assert not found.margin[changed].any()
    others = np.setdiff1d(np.arange(len(learned)), changed)
    for column in ("support", "predictions", "exact", "margin"):
        assert np.array_equal(getattr(found, column)[others], getattr(guessed, column)[others]), column
    assert rescore(guessed, data.train, best=10**6).exact.all()
    with pytest.raises(OptionError, match="drop best"):
        rescore(guessed, data.train, best=1, measures=True)
