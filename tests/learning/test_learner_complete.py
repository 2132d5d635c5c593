"""With all heads harvested, a learner that runs to completion finds every rule there is, with the
reference's counts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learned import ENOUGH, counted, learned, make_learner

from anyburl import Learner, LearnOptions, TripleTable, load_dataset
from anyburl.learning.recorder import run_learner
from anyburl.learning.store import sort_rules
from kernels import examples, random_graphs
from reference.scoring import Counts, Rule, all_rules, is_tautology
from strategies import SmallGraph, graphs


def reference_rules(graph: SmallGraph, **limits: Any) -> dict[Rule, Counts]:
    n_entities, n_relations, triples = graph
    return all_rules(triples, n_entities, n_relations, **{"max_acyclic": 2, **limits})


@settings(max_examples=examples(60))
@given(graphs(min_triples=1), st.sampled_from([0, 1, 2]), st.sampled_from([1, 2]), st.booleans())
def test_every_rule_of_length_1_and_2_is_found_once(
    graph: SmallGraph, max_grounded: int, min_support: int, object_identity: bool
) -> None:
    chosen = {"max_grounded": max_grounded, "min_support": min_support, "object_identity": object_identity}
    learner = learned(graph, budget=ENOUGH, **chosen)
    assert learner.stopped_by == "complete"
    assert counted(learner.rules()) == reference_rules(graph, **chosen)
    assert learner.rules().exact.all()


@settings(max_examples=15)
@given(random_graphs(8, [2, 3], 30), st.booleans())
def test_every_rule_is_found_where_there_are_many_ways(graph: SmallGraph, object_identity: bool) -> None:
    learner = learned(graph, max_grounded=2, object_identity=object_identity, budget=ENOUGH)
    assert learner.stopped_by == "complete"
    assert counted(learner.rules()) == reference_rules(graph, max_grounded=2, object_identity=object_identity)


@settings(max_examples=10)
@given(graphs(min_triples=1, max_relations=2), st.booleans())
def test_every_rule_of_length_3_is_found(graph: SmallGraph, object_identity: bool) -> None:
    longest = {"max_cyclic": 3, "max_acyclic": 3, "max_grounded": 3, "object_identity": object_identity}
    learner = learned(graph, budget=ENOUGH, **longest)
    assert learner.stopped_by == "complete"
    assert counted(learner.rules()) == reference_rules(graph, **longest)


@settings(max_examples=15)
@given(graphs(min_triples=1), st.data())
def test_relations_restrict_the_heads_and_nothing_else(graph: SmallGraph, data: st.DataObject) -> None:
    stated = sorted({relation for _, relation, _ in graph[2]})
    chosen = data.draw(st.lists(st.sampled_from(stated), unique=True, min_size=1))
    labels = tuple(f"r{relation:06}" for relation in chosen)
    learner = learned(graph, relations=labels, budget=ENOUGH)
    assert learner.stopped_by == "complete"
    expected = reference_rules(graph)
    assert counted(learner.rules()) == {
        rule: counts for rule, counts in expected.items() if rule.head % graph[1] in chosen
    }


@settings(max_examples=15)
@given(graphs(min_triples=1), st.sampled_from([0.25, 0.5, 0.29, 1 / 3, 1.0]))
def test_the_least_confidence_is_a_strict_bound(graph: SmallGraph, least: float) -> None:
    found = counted(learned(graph, min_confidence=least, budget=ENOUGH).rules())
    assert found == reference_rules(graph, min_confidence=least)
    assert all(support / predictions > least for predictions, support in found.values())


@settings(max_examples=15)
@given(graphs(min_triples=1))
def test_more_spans_never_lose_a_rule_and_none_is_a_tautology(graph: SmallGraph) -> None:
    learner = make_learner(graph)
    before: dict[Rule, Counts] = {}
    for span in learner.spans():
        now = counted(span.rules)
        assert before.items() <= now.items()
        assert len(now) == span.n_rules == len(before) + span.new_rules
        assert not any(is_tautology(rule) for rule in now)
        before = now


def test_bodies_of_different_lengths_are_not_taken_for_each_other() -> None:
    """r0(X,A), r1(A,Y) was once taken for r1(X,Y): one number stood for both."""
    chain = [(0, 0, 1), (1, 1, 2), (0, 2, 2), (3, 0, 4), (4, 1, 5), (3, 2, 5), (0, 1, 2)]
    found = counted(learned((6, 3, chain)).rules())
    assert found[Rule("B", 2, None, (0, 1), None)] == (2, 2)
    assert found[Rule("B", 2, None, (1,), None)] == (3, 1)


def test_a_profile_without_any_path_does_not_keep_a_run_from_its_end() -> None:
    """One triple has no cyclic path of length 2 or 3, and no acyclic path at all."""
    learner = learned((2, 1, [(0, 0, 1)]), max_cyclic=3)
    assert learner.stopped_by == "complete"
    assert len(learner.rules()) == 0


def assert_brute_force_agrees(table: TripleTable, n_rules: int, **limits: int) -> None:
    learner = learned(table, budget=ENOUGH, threads=2, **limits)
    assert learner.stopped_by == "complete"
    sizes = table.vocabulary.n_entities, table.vocabulary.n_relations
    expected = all_rules(table.triples.tolist(), *sizes, **limits)
    assert len(expected) == n_rules
    assert counted(learner.rules()) == expected


def with_some_relations(whole: TripleTable, chosen: slice) -> TripleTable:
    """The triples of some relations, frequent and rare."""
    by_frequency = np.argsort(-np.bincount(whole.triples[:, 1]), kind="stable")
    rows = np.flatnonzero(np.isin(whole.triples[:, 1], by_frequency[chosen]))
    return TripleTable.from_frame(whole.to_polars()[rows])


def test_brute_force_finds_the_same_rules_in_a_real_graph(shared_data: Callable[[str], Path]) -> None:
    """B rules of length 1 and 2, unary rules of length 1: all there are with every second relation."""
    table = with_some_relations(load_dataset(shared_data("umls")).train, slice(1, None, 2))
    assert_brute_force_agrees(table, 71_527, max_cyclic=2, max_acyclic=1, max_grounded=1, min_support=2)


def test_brute_force_finds_the_same_unary_rules_of_length_2(shared_data: Callable[[str], Path]) -> None:
    """All types, length 1 and 2, with every fourth relation: all take the brute force minutes."""
    table = with_some_relations(load_dataset(shared_data("nations")).train, slice(2, None, 4))
    assert_brute_force_agrees(table, 390_827, max_cyclic=2, max_acyclic=2, max_grounded=2, min_support=2)


UMLS = {"B 1": 257, "B 2": 8_872, "Uc 1": 26_792, "Uc 2": 1_322_319, "Ud 1": 5_308, "Ud 2": 129_622}
"""All rules of support 10, of those of support 2 that the brute force found, with the same scores, in five minutes."""


def test_as_many_rules_are_found_as_brute_force_once_found(shared_data: Callable[[str], Path]) -> None:
    table = load_dataset(shared_data("umls")).train
    learner = learned(table, max_grounded=2, min_support=10, budget=ENOUGH, threads=2)
    assert learner.stopped_by == "complete"
    assert learner.store.rules().counts_by_length() == UMLS


def test_bodies_left_half_done_at_the_end_of_a_span_are_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """With kernel calls of next to no work, spans end in the middle of bodies all the time."""
    data = load_dataset("geo")
    options = {"max_cyclic": 1, "max_acyclic": 1, "seconds": 1_000, "snapshots": ()}
    whole = Learner(data.train, LearnOptions(**options))
    run_learner(whole)
    monkeypatch.setattr("anyburl.learning.threads.KERNEL_WORK", 200)
    halves = Learner(data.train, LearnOptions(**options, span=0.01))
    run_learner(halves)
    assert whole.stopped_by == halves.stopped_by == "complete"
    assert len(halves.history) > 10
    assert sort_rules(whole.rules()).to_polars().equals(sort_rules(halves.rules()).to_polars())
