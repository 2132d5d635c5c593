"""What a change of the graph does to binary bodies, and counts of single heads, against the plain reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from anyburl.bodies.arrays import (
    CONSTANT,
    DANGLING,
    BodyArrays,
    BodyChanges,
    SupportChanges,
    empty_harvest,
    empty_pair_table,
    empty_scratch,
)
from anyburl.bodies.kernel_changes import compare_bodies
from anyburl.bodies.kernel_joins import count_supports
from anyburl.bodies.kernel_short import count_short
from anyburl.learning.changes import change_between, changed_facts
from harvesting import assert_clean, every_relations, limits
from kernels import arrays_of, examples, table_of
from reference.graph import build
from reference.scoring import score, walks
from strategies import SmallGraph, graphs


@st.composite
def changes(draw: DrawFn) -> tuple[SmallGraph, SmallGraph]:
    """A graph before and after, over the same ids."""
    before = draw(graphs(max_entities=6, max_relations=2, max_triples=20, min_triples=1))
    n_entities, n_relations, triples = before
    entities = st.integers(0, n_entities - 1)
    added = draw(st.lists(st.tuples(entities, st.integers(0, n_relations - 1), entities), max_size=4))
    kept = draw(st.lists(st.sampled_from(triples), unique=True)) if triples else []
    return before, (n_entities, n_relations, sorted({*kept, *added}))


def joined_pairs(graph: SmallGraph, body: tuple[int, ...], object_identity: bool) -> set[tuple[int, int]]:
    n_entities, n_relations, triples = graph
    steps = build(triples, n_entities, n_relations, object_identity)
    return {(x, walk[-1]) for x in range(n_entities) for walk in walks(steps, body, x, object_identity)}


def supports(graph: SmallGraph, pairs: set[tuple[int, int]], object_identity: bool) -> Counter[int]:
    joins = build(graph[2], graph[0], graph[1], object_identity).joins
    return Counter(head for pair in pairs for head in joins.get(pair, ()))


@pytest.mark.kernel
@settings(max_examples=examples(150, 10), deadline=None)
@given(changes(), st.integers(1, 3), st.booleans())
def test_bodies_gain_and_lose_the_pairs_that_the_reference_says(
    graphs: tuple[SmallGraph, SmallGraph], length: int, object_identity: bool
) -> None:
    before, after = graphs
    old, new = arrays_of(before, object_identity), arrays_of(after, object_identity)
    facts = changed_facts(change_between(table_of(before), table_of(after)), new, object_identity=object_identity)
    bodies = every_relations(new, length)
    n, scratch = len(bodies), empty_scratch(new, length, witnessed=False)
    found = BodyChanges(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_))
    out = SupportChanges(*(np.empty(2 * new.n_relations * (n + 1), np.int32) for _ in range(3)))
    bounds = limits(object_identity=object_identity)
    table = empty_pair_table(new.n_entities**2)
    done, n_rows = compare_bodies(old, new, facts, bodies, 0, bounds, table, scratch, found, out)
    assert done == n
    assert_clean(scratch)
    changed = {(k, head): count for k, head, count in zip(*(column[:n_rows].tolist() for column in out), strict=True)}
    for k, body in enumerate(map(tuple, bodies.tolist())):
        pairs = [joined_pairs(graph, body, object_identity) for graph in (before, after)]
        assert (found.gained[k], found.lost[k]) == (len(pairs[1] - pairs[0]), len(pairs[0] - pairs[1])), body
        counts = [
            supports(graph, joined, object_identity) for graph, joined in zip((before, after), pairs, strict=True)
        ]
        for head in range(2 * new.n_relations):
            assert changed.get((k, head), 0) == counts[1][head] - counts[0][head], (body, head)


@pytest.mark.kernel
@settings(max_examples=examples(100, 10), deadline=None)
@given(graphs(max_entities=6, max_relations=2, max_triples=20, min_triples=1), st.integers(1, 3), st.booleans())
def test_the_support_of_a_single_head_is_that_of_the_reference(
    graph: SmallGraph, length: int, object_identity: bool
) -> None:
    new = arrays_of(graph, object_identity)
    every = every_relations(new, length)
    heads = np.tile(np.arange(2 * new.n_relations, dtype=np.int32), len(every))
    bodies = np.repeat(every, 2 * new.n_relations, axis=0)
    found = np.zeros(len(bodies), np.int64)
    count_supports(new, bodies, heads, object_identity, found)
    expected = [
        supports(graph, joined_pairs(graph, tuple(body), object_identity), object_identity) for body in every.tolist()
    ]
    assert found.tolist() == [expected[k // (2 * new.n_relations)][head] for k, head in enumerate(heads.tolist())]


@pytest.mark.kernel
@settings(max_examples=examples(100, 10), deadline=None)
@given(graphs(max_entities=5, max_relations=2, max_triples=20, min_triples=1), st.booleans())
def test_unary_heads_are_counted_as_the_reference_counts_them(graph: SmallGraph, object_identity: bool) -> None:
    n_entities, n_relations, triples = graph
    rules = [
        (kind, head, head_constant, (relation,), constant)
        for head in range(2 * n_relations)
        for head_constant in range(n_entities + (head < n_relations))
        for relation in range(2 * n_relations)
        for kind, constant in [
            ("Ud", None),
            *(("Uc", c) for c in range(n_entities + (relation < n_relations)) if c != head_constant),
        ]
    ]
    bodies = BodyArrays(
        np.array([DANGLING if rule[0] == "Ud" else CONSTANT for rule in rules], np.uint8),
        np.array([rule[3] for rule in rules], np.int32),
        np.array([-1 if rule[4] is None else rule[4] for rule in rules], np.int32),
        np.array([rule[1] for rule in rules], np.int32),
        np.array([rule[2] for rule in rules], np.int32),
        np.zeros(len(rules), np.uint64),
    )
    out = empty_harvest(len(rules))
    n_rows = count_short(arrays_of(graph, object_identity), bodies, limits(object_identity=object_identity), out)
    found = {
        rules[k]: counts
        for k, *counts in zip(*(c[:n_rows].tolist() for c in (out.bodies, out.predictions, out.supports)), strict=True)
    }
    expected = {rule: list(score(triples, n_entities, n_relations, rule, object_identity)) for rule in rules}
    assert found == {rule: counts for rule, counts in expected.items() if counts[1] > 0}
