"""Resuming on a changed graph gives what learning anew gives, rule by rule and count by count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from learned import ENOUGH, counted, learned

from anyburl import Dataset, RuleSet, TripleTable, load_dataset
from anyburl.learning.changes import change_between
from anyburl.learning.update import Update, update_rules
from anyburl.ruleset.difference import changed_pairs, match_rules
from anyburl.triples.vocabulary import Vocabulary
from kernels import examples
from strategies import SmallGraph, graphs

Triples = list[tuple[int, int, int]]


@st.composite
def changed_graphs(draw: DrawFn) -> tuple[SmallGraph, Triples]:
    """A graph, and the triples that it has later."""
    graph = draw(graphs(max_entities=6, max_relations=3, max_triples=24, min_triples=2))
    n_entities, n_relations, triples = graph
    kept = draw(st.lists(st.sampled_from(triples), unique=True, min_size=1)) if triples else []
    fact = st.tuples(st.integers(0, n_entities - 1), st.integers(0, n_relations - 1), st.integers(0, n_entities - 1))
    added = draw(st.lists(fact, max_size=6, unique=True))
    return graph, sorted({*kept, *added})


def table(triples: Triples, prefix: str = "") -> TripleTable:
    """Only the labels that occur: entities and relations come and go, and ids with them."""
    labels = [(f"{prefix}e{s}", f"r{r}", f"{prefix}e{o}") for s, r, o in triples]
    return Dataset.from_triples(labels).train


def updated(before: TripleTable, after: TripleTable, **options: Any) -> tuple[RuleSet, Update]:
    """Learn everything on one table, then update to the other."""
    learner = learned(before, **options)
    change = change_between(before, after)
    rules = learner.rules().with_vocabulary(change.vocabulary)
    found, update, finished = update_rules(rules, change, learner.options, frozenset(learner.options.profiles))
    assert finished == set(learner.options.profiles)
    moved = found.with_vocabulary(after.vocabulary)
    assert len(moved) == len(found)
    return moved, update


OPTIONS = st.fixed_dictionaries(
    {
        "max_cyclic": st.integers(1, 4),
        "max_acyclic": st.integers(0, 2),
        "max_grounded": st.integers(0, 2),
        "min_support": st.integers(1, 3),
        "min_confidence": st.sampled_from([0.0, 0.2, 0.5]),
        "object_identity": st.booleans(),
        "budget": st.just(ENOUGH),
    }
)


@pytest.mark.kernel
@settings(max_examples=examples(120, 2), deadline=None)
@given(changed_graphs(), OPTIONS)
def test_an_update_finds_what_learning_anew_finds(graph: tuple[SmallGraph, Triples], options: dict[str, Any]) -> None:
    (_, _, triples), later = graph
    before, after = table(triples), table(later)
    found, update = updated(before, after, **options)
    anew = learned(after, **options).rules()
    assert counted(found) == counted(anew)
    assert update.new + update.changed + update.unchanged == len(anew)
    assert update.triples_added == len(set(later) - set(triples))
    assert update.triples_removed == len(set(triples) - set(later))


@settings(max_examples=examples(20, 2), deadline=None)
@given(changed_graphs())
def test_an_update_counts_what_is_gone_new_and_changed(graph: tuple[SmallGraph, Triples]) -> None:
    (_, _, triples), later = graph
    before, after = table(triples), table(later)
    found, update = updated(before, after)
    old = learned(before).rules()
    matched = match_rules(old, found)
    differs = changed_pairs(old, found, matched)
    assert (update.gone, update.new) == (len(matched.gone), len(matched.new))
    assert (update.changed, update.unchanged) == (differs.sum(), (~differs).sum())
    assert update.rose + update.fell <= update.changed


def test_rules_of_profiles_that_were_not_exhausted_are_counted_again(random_tables: tuple[TripleTable, ...]) -> None:
    """Not all rules are found, but none has a wrong count."""
    before, after = random_tables
    learner = learned(before, paths=2_000, max_cyclic=3, min_support=2, budget=ENOUGH)
    change = change_between(before, after)
    found, _, finished = update_rules(learner.rules(), change, learner.options, frozenset())
    everything = counted(learned(after, max_cyclic=3, min_support=2, budget=ENOUGH).rules())
    assert finished == frozenset()
    assert counted(found).items() <= everything.items()


def test_sampled_heads_are_counted_again(random_tables: tuple[TripleTable, ...]) -> None:
    before, after = random_tables
    options: dict[str, Any] = {"heads": "sampled", "paths": 30_000, "min_support": 2, "budget": ENOUGH}
    learner = learned(before, **options)
    found, _, _ = update_rules(learner.rules(), change_between(before, after), learner.options, frozenset())
    everything = counted(learned(after, min_support=2, budget=ENOUGH, max_grounded=2).rules())
    assert len(found) > 0
    assert counted(found).items() <= everything.items()


@pytest.fixture
def random_tables() -> tuple[TripleTable, TripleTable]:
    """Two tables over one vocabulary that differ in a few triples."""
    rng = np.random.default_rng(7)
    words = Vocabulary.from_labels([f"e{i:02}" for i in range(30)], [f"r{i}" for i in range(4)])
    triples = np.unique(rng.integers(0, [30, 4, 30], (300, 3)), axis=0)
    rng.shuffle(triples)
    return TripleTable.from_ids(triples[10:], words), TripleTable.from_ids(triples[:-10], words)


def assert_same(found: RuleSet, anew: RuleSet) -> None:
    matched = match_rules(found, anew)
    assert (len(matched.gone), len(matched.new)) == (0, 0)
    assert not changed_pairs(found, anew, matched).any()


def halves(train: TripleTable, n: int) -> tuple[TripleTable, TripleTable]:
    """The table without n of its triples, and without n others."""
    order = np.random.default_rng(1).permutation(len(train))
    return tuple(TripleTable.from_ids(train.triples[rows], train.vocabulary) for rows in (order[n:], order[:-n]))


@pytest.mark.parametrize("direction", ["added", "removed", "both"])
def test_geo_updated_is_geo_learned_anew(direction: str) -> None:
    train = load_dataset("geo").train
    less, other = halves(train, 60)
    before, after = {"added": (less, train), "removed": (train, less), "both": (less, other)}[direction]
    options: dict[str, Any] = {"min_support": 2, "min_confidence": 0.0001, "max_cyclic": 3, "max_acyclic": 1}
    assert_same(updated(before, after, **options)[0], learned(after, **options).rules())


def test_codex_updated_is_codex_learned_anew(shared_data: Callable[[str], Path]) -> None:
    """With all defaults but for the budget: whether a large body is estimated may differ."""
    before, after = halves(load_dataset(shared_data("CoDEx-S")).train, 500)
    options: dict[str, Any] = {
        "min_support": 2,
        "min_confidence": 0.0001,
        "max_cyclic": 3,
        "max_acyclic": 1,
        "budget": ENOUGH,
        "threads": 2,
    }
    assert_same(updated(before, after, **options)[0], learned(after, **options).rules())
