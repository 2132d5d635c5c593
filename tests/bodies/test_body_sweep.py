"""Sweeps list every body of a profile that can give a rule, and none twice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import BINARY, BodyArrays
from anyburl.bodies.paths import followers, sequences, sweep
from anyburl.graph.kernel import GraphArrays
from anyburl.rules.types import PathProfile
from harvesting import harvested, joined, limits
from kernels import arrays_of, examples
from reference.graph import build
from reference.scoring import all_rules, extend
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel


def swept(arrays: GraphArrays, profile: PathProfile, grounded: bool, seed: int, batch: int) -> list[BodyArrays]:
    batches = sweep(arrays, profile, grounded=grounded, seed=seed, batch=batch)
    assert batches is not None
    return list(batches)


@settings(max_examples=examples(150, 25))
@given(
    graphs(max_relations=2),
    st.sampled_from([1, 2, 3]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([3, 4096]),
)
def test_a_sweep_gives_every_rule_of_its_profile(
    graph: SmallGraph, length: int, cyclic: bool, grounded: bool, batch: int
) -> None:
    n_entities, n_relations, triples = graph
    arrays = arrays_of(graph)
    parts = swept(arrays, PathProfile(cyclic, length), grounded, seed=1, batch=batch)
    assert all(0 < len(part.kinds) <= batch for part in parts)
    bodies = joined(parts) if parts else None
    found = {} if bodies is None else harvested(arrays, bodies, limits())
    expected = all_rules(
        triples,
        n_entities,
        n_relations,
        max_cyclic=length * cyclic,
        max_acyclic=length * (not cyclic),
        max_grounded=length * (cyclic and grounded),
    )
    assert found == {rule: (*counts, True) for rule, counts in expected.items() if len(rule.body) == length}
    if bodies is not None:
        assert len(set(bodies.keys.tolist())) == len(bodies.keys)


@settings(max_examples=examples(100, 20))
@given(graphs())
def test_relations_follow_each_other_where_an_entity_has_both(graph: SmallGraph) -> None:
    n_entities, n_relations, triples = graph
    built = build(triples, n_entities, n_relations)
    follows = followers(arrays_of(graph))
    for d, e in product(range(2 * n_relations), repeat=2):
        first = extend(built, {(x,) for x in range(n_entities)}, d, False)
        if extend(built, first, e, False):
            assert follows[d, e]


@settings(max_examples=examples(100, 20))
@given(graphs(), st.integers(1, 3))
def test_every_body_that_can_be_walked_is_a_sequence(graph: SmallGraph, length: int) -> None:
    n_entities, n_relations, triples = graph
    built = build(triples, n_entities, n_relations)
    listed = sequences(arrays_of(graph), length)
    assert listed is not None
    bodies = [tuple(body) for body in listed.tolist()]
    assert len(set(bodies)) == len(bodies)
    for body in product(range(2 * n_relations), repeat=length):
        found = {(x,) for x in range(n_entities)}
        for d in body:
            found = extend(built, found, d, False)
        assert not found or body in bodies


def test_too_many_sequences_are_not_listed() -> None:
    arrays = arrays_of((2, 2, [(0, 0, 1), (1, 1, 0)]))
    assert sequences(arrays, 3, most=3) is None
    listed = sequences(arrays, 3, most=1000)
    assert listed is not None
    assert 3 < len(listed) <= 64


def test_a_sweep_has_its_order_by_its_seed() -> None:
    arrays = arrays_of((3, 2, [(0, 0, 1), (1, 1, 0), (1, 0, 2), (2, 1, 2)]))
    profile = PathProfile(False, 2)
    first, again, other = (joined(swept(arrays, profile, True, seed, 4096)).keys.tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == sorted(other)


def test_binary_bodies_come_first() -> None:
    arrays = arrays_of((3, 2, [(0, 0, 1), (1, 1, 0), (1, 0, 2), (2, 1, 2)]))
    kinds = joined(swept(arrays, PathProfile(True, 2), True, 1, 4096)).kinds
    n_binary = int((kinds == BINARY).sum())
    assert n_binary > 0
    assert np.all(kinds[:n_binary] == BINARY)
