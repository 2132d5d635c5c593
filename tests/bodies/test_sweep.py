"""A sweep beside the reference's walks: every body that can be grounded, once, whatever object identity says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import BINARY, CONSTANT, DANGLING, GROUNDED
from anyburl.bodies.paths import make_bodies, sequences, sweep
from anyburl.rules.types import PathProfile
from kernels import arrays_of, examples
from reference.graph import Body, Graph, build, mirror
from reference.scoring import walks
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel

Listed = tuple[int, Body, int]
"""Kind, relations, constant (-1: none)."""


def swept(graph: SmallGraph, profile: PathProfile, grounded: bool) -> list[Listed]:
    batches = sweep(arrays_of(graph), profile, grounded=grounded, seed=0, batch=50)
    assert batches is not None
    listed = [
        (kind, tuple(relations), constant)
        for bodies in batches
        for kind, relations, constant in zip(
            bodies.kinds.tolist(), bodies.relations.tolist(), bodies.constants.tolist(), strict=True
        )
    ]
    assert batches.n_bodies == len(listed)
    return listed


def groundable(graph: Graph, profile: PathProfile, grounded: bool) -> set[Listed]:
    """All bodies of the profile that some entity satisfies; B bodies read from the end where they are smaller."""
    found: set[Listed] = set()
    for body in product(range(2 * graph.n_relations), repeat=profile.rule_length):
        free = {walk for x in range(graph.n_entities) for walk in walks(graph, body, x, False)}
        before = {walk for x in range(graph.n_entities) for walk in walks(graph, body[:-1], x, False)}
        ends = {end for walk in before for end in graph.steps.get((walk[-1], body[-1]), ())}
        if body[-1] >= graph.n_relations:
            ends.discard(graph.self_id)
        if free:
            one_way = min(body, mirror(body, graph.n_relations))
            found.add((BINARY, one_way, -1) if profile.cyclic else (DANGLING, body, -1))
        if profile.cyclic and profile.rule_length > 1:
            ends.discard(graph.self_id)
        if grounded or not profile.cyclic:
            found |= {(GROUNDED if profile.cyclic else CONSTANT, body, end) for end in ends}
    return found


@settings(max_examples=examples(100, 15))
@given(graphs(max_entities=5, max_relations=2, max_triples=12), st.booleans(), st.integers(1, 3), st.booleans())
def test_a_sweep_lists_every_body_that_can_be_grounded_and_no_body_twice(
    graph: SmallGraph, cyclic: bool, length: int, grounded: bool
) -> None:
    n_entities, n_relations, triples = graph
    profile = PathProfile(cyclic, length)
    listed = swept(graph, profile, grounded)
    assert len(set(listed)) == len(listed)
    assert groundable(build(triples, n_entities, n_relations), profile, grounded) <= set(listed)


@settings(max_examples=examples(60, 15))
@given(graphs(max_entities=5, max_relations=3, max_triples=12))
def test_where_nothing_is_reflexive_a_sweep_of_length_1_lists_nothing_else(graph: SmallGraph) -> None:
    n_entities, n_relations, triples = graph
    straight = [(s, r, o) for s, r, o in triples if s != o]
    for cyclic in (True, False):
        profile = PathProfile(cyclic, 1)
        listed = swept((n_entities, n_relations, straight), profile, True)
        assert set(listed) == groundable(build(straight, n_entities, n_relations), profile, True)


@pytest.mark.parametrize("most", [1, 5, 8])
def test_sequences_are_listed_up_to_a_bound(most: int) -> None:
    """One triple can only be walked forward and back, in turn: two sequences of any length."""
    arrays = arrays_of((2, 1, [(0, 0, 1)]))
    listed = sequences(arrays, 3, most=most)
    assert (listed is None) == (most < 2)
    assert listed is None or sorted(map(tuple, listed.tolist())) == [(0, 1, 0), (1, 0, 1)]


@pytest.mark.parametrize("n_relations", [1, 2, 3])
def test_bodies_of_all_kinds_and_lengths_have_different_keys(n_relations: int) -> None:
    """One set holds the keys of all profiles: a short body must not pass for a long one."""
    arrays = arrays_of((3, n_relations, []))
    by_key: dict[int, Listed] = {}
    for length, kind in product((1, 2, 3), (BINARY, GROUNDED, CONSTANT, DANGLING)):
        relations = np.array(list(product(range(2 * n_relations), repeat=length)), np.int32)
        for constant in range(4) if kind in (GROUNDED, CONSTANT) else (-1,):
            bodies = make_bodies(arrays, kind, relations, np.full(len(relations), constant, np.int32))
            for key, body in zip(bodies.keys.tolist(), bodies.relations.tolist(), strict=True):
                listed = kind, tuple(body), constant
                assert by_key.setdefault(key, listed) == listed
