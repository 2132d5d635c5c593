"""A harvest in small kernel calls is the harvest; of a start that takes too much work, the ends are sampled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import BINARY, CONSTANT, GROUNDED, NO_LIMIT, empty_harvest, empty_scratch, head_arrays
from anyburl.bodies.kernel import harvest
from anyburl.bodies.paths import make_bodies
from harvesting import every_binary, every_constant, every_dangling, harvested, joined, limits
from kernels import arrays_of, examples, random_graphs
from reference.scoring import Rule
from strategies import SmallGraph

pytestmark = pytest.mark.kernel

dense_graphs = random_graphs(8, [1, 2], 30)


@settings(max_examples=examples(100, 12))
@given(dense_graphs, st.integers(1, 3), st.integers(0, 20), st.sampled_from([10, 60, NO_LIMIT]), st.booleans())
def test_calls_of_little_work_give_what_one_call_gives(
    graph: SmallGraph, length: int, work: int, budget: int, object_identity: bool
) -> None:
    arrays = arrays_of(graph, object_identity)
    bodies = joined(
        [
            every_binary(arrays, length),
            every_dangling(arrays, length),
            every_constant(arrays, length, CONSTANT),
            every_constant(arrays, length, GROUNDED),
        ]
    )
    asked = limits(1, 0.0, object_identity, budget)
    assert harvested(arrays, bodies, asked._replace(work=work)) == harvested(arrays, bodies, asked)


def star(n_leaves: int, n_others: int) -> SmallGraph:
    """Entity 0 has r to all leaves, each of them s to a node of its own; some others have one such way each."""
    triples = []
    leaf = 1
    for _ in range(n_leaves):
        triples += [(0, 0, leaf), (leaf, 1, leaf + 1), (0, 2, leaf + 1)]
        leaf += 2
    for _ in range(n_others):
        triples += [(leaf, 0, leaf + 1), (leaf + 1, 1, leaf + 2), (leaf, 2, leaf + 2)]
        leaf += 3
    return leaf, 3, triples


def test_of_a_start_of_too_much_work_the_ends_are_sampled() -> None:
    arrays = arrays_of(star(50, 10))
    body = make_bodies(arrays, BINARY, np.array([[0, 1]], np.int32))
    chain = Rule("B", 2, None, (0, 1), None)
    asked = limits()
    assert harvested(arrays, body, asked)[chain] == (60, 60, True)
    # Of the 11 subjects of r, the centre of the star would touch 100 edges. It has 50 of the 60 possible ends.
    predictions, support, exact = harvested(arrays, body, asked._replace(start=20))[chain]
    assert not exact
    assert abs(predictions - 60) <= 6
    assert 55 <= support <= predictions


def test_of_a_long_body_costly_starts_are_left_out() -> None:
    n_entities, n_relations, triples = star(50, 0)
    arrays = arrays_of((n_entities, n_relations, triples))
    body = make_bodies(arrays, BINARY, np.array([[0, 1, 4, 1]], np.int32))
    assert harvested(arrays, body, limits()._replace(start=20)) == {}


def test_one_body_is_spread_over_many_calls() -> None:
    arrays = arrays_of(star(0, 400))
    body = make_bodies(arrays, BINARY, np.array([[0, 1]], np.int32))
    scratch, heads = empty_scratch(arrays, 2), head_arrays(arrays)
    out = empty_harvest(max(len(arrays.segment_relations), 2 * arrays.n_relations))
    ends = [harvest(arrays, heads, body, 0, limits(work=20), scratch, out) for _ in range(200)]
    n_calls = next(number for number, (following, _) in enumerate(ends, 1) if following)
    assert n_calls > 400 * 3 / 30
    assert all(n_rows == 0 for _, n_rows in ends[: n_calls - 1])
