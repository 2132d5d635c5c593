"""Comparisons that are learned: planted ones are, shuffled values and hubs give none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anyburl import Dataset, RuleSet, learn
from anyburl.bodies.comparisons import log_chance_of_pairs
from anyburl.data.attributes import Attribute, AttributeKind, Attributes

pytestmark = pytest.mark.kernel

N = 200


@pytest.fixture(scope="module")
def planted() -> Dataset:
    """Who has held an office earlier is often succeeded by who holds it later."""
    rng = np.random.default_rng(1)
    since, offices = rng.integers(-50_000, 10_000, N), rng.integers(0, 20, N)
    triples = [(f"e{i}", "office", f"o{offices[i]}") for i in range(N)]
    together = [(i, j) for i in range(N) for j in range(N) if i != j and offices[i] == offices[j]]
    triples += [(f"e{i}", "successor", f"e{j}") for i, j in together if since[i] < since[j] and rng.random() < 0.7]
    triples += [(f"e{i}", "knows", f"e{j}") for i, j in together if rng.random() < 0.5]
    data = Dataset.from_triples(triples)
    ids = data.vocabulary.encode_entities([f"e{i}" for i in range(N)])
    dates = Attribute.of("since", AttributeKind.DATE, ids, since)
    sizes = Attribute.of("size", AttributeKind.NUMBER, ids, rng.integers(0, 9, N))
    return replace(data, attributes=Attributes.of([dates, sizes]))


def comparisons(data: Dataset) -> list[str]:
    rules = learn(data, paths=3000, seed=1, max_cyclic=2, max_acyclic=0, keep="all")
    return rules.take(rules.has_condition & rules.is_binary).texts().to_list()


def test_a_planted_comparison_is_learned(planted: Dataset) -> None:
    found = comparisons(planted)
    assert "successor(X,Y) <= office(X,A), office(Y,A), since(X) < since(Y)" in found
    assert all("since(" in text for text in found)
    assert not any(text.startswith("knows(X,Y) <= office") for text in found)


def test_shuffled_values_give_none(planted: Dataset) -> None:
    rng = np.random.default_rng(2)
    moved = [
        Attribute.of(one.name, one.kind, rng.permutation(one.entities), one.values)
        for one in planted.attributes.values()
    ]
    assert comparisons(replace(planted, attributes=Attributes.of(moved))) == []


def test_pairs_of_one_entity_are_a_cluster() -> None:
    """A hub that precedes everybody and is joined to all says no more than one entity."""
    n = 400
    xs, ys = np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32)
    others = np.arange(n, dtype=np.int32) + n + 1
    xs, ys = np.concatenate([xs, others]), np.concatenate([ys, others + n])
    hits = compares = np.arange(2 * n) < n
    assert (log_chance_of_pairs(xs, ys, hits, compares) or 0) > -1
    apart = np.arange(4 * n, dtype=np.int32)
    assert (log_chance_of_pairs(apart[::2], apart[1::2], hits, compares) or 0) < -50


def test_conditions_can_be_left_out(planted: Dataset) -> None:
    rules = learn(planted, paths=500, seed=1, max_cyclic=2, max_acyclic=0, keep="all", conditions=False)
    assert isinstance(rules, RuleSet)
    assert rules.low is None
