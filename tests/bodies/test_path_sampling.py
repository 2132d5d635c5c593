"""Sampled paths: only straight ones, all of them, and as often as the paper's procedure says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.rng import batch_state
from anyburl.bodies.arrays import PathArrays
from anyburl.bodies.paths import heads_of_graph, listed_heads, sample_paths
from anyburl.rules.types import PathProfile
from kernels import arrays_of, examples, table_of
from reference.graph import Body, Graph, build
from reference.paths import Path, all_acyclic_paths, all_cyclic_paths, is_straight
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel

# Ten triples: a ring of five, a parallel and an opposite edge, a chord, and two loops on one entity.
TEN: SmallGraph = (
    5,
    2,
    [
        *[(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 4), (4, 0, 0)],
        *[(0, 1, 1), (1, 1, 0), (1, 1, 3), (3, 0, 3), (3, 1, 3)],
    ],
)
PROFILES = [PathProfile(cyclic, n) for cyclic in (False, True) for n in (1, 2, 3, 4)]

Row = tuple[int, int, int, Body, int]
"""What a sampled path says of itself: start, head, other end of the head, body, end."""


def rows_of(paths: PathArrays) -> list[Row]:
    columns = (paths.starts, paths.heads, paths.others, paths.relations, paths.ends)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(x, d, y, tuple(body), end) for x, d, y, body, end in rows]


def sampled(
    graph: SmallGraph, profile: PathProfile, attempts: int, state: np.ndarray, *, rows: bool = False
) -> list[Row]:
    arrays = arrays_of(graph)
    heads = heads_of_graph(arrays) if rows else listed_heads(table_of(graph).triples)
    return rows_of(sample_paths(arrays, heads, profile, attempts, state))


def possible(graph: SmallGraph, profile: PathProfile) -> set[Row]:
    n_entities, n_relations, triples = graph
    every = all_cyclic_paths if profile.cyclic else all_acyclic_paths
    return {_row(path) for path in every(triples, n_entities, n_relations, profile.rule_length)}


def _row(path: Path) -> Row:
    y, x, *_, last = path.entities
    return x, path.head, y, path.body, last


def chances(graph: SmallGraph, profile: PathProfile) -> dict[Row, float]:
    """How likely one attempt gives each path: a uniform triple, a uniform side, uniform edges.

    The last edge of a cyclic path is uniform among those that close it, the head's own left out.
    """
    n_entities, n_relations, triples = graph
    built = build(triples, n_entities, n_relations)
    found: Counter[Row] = Counter()
    for s, r, o in triples:
        sides = [(s, r, o), (o, r + n_relations, s)] if s != o else [(s, r, n_entities)]
        for x, head, y in sides:
            for body, walk, chance in _walks(built, profile, (y, x), head):
                if n_entities == walk[-1] and not profile.cyclic:
                    body = (*body[:-1], body[-1] % n_relations)
                found[x, head, y, body, walk[-1]] += chance / len(triples) / len(sides)
    return found


def _walks(
    graph: Graph, profile: PathProfile, entities: tuple[int, ...], head: int, body: Body = ()
) -> Iterator[tuple[Body, tuple[int, ...], float]]:
    """Every way to complete a path, and its chance."""
    here, missing = entities[-1], profile.rule_length - len(body)
    if missing == 0:
        if is_straight(entities, profile.cyclic):
            yield body, entities, 1.0
        return
    if here == graph.self_id or not is_straight(entities, False):
        return
    if profile.cyclic and missing == 1:
        edges = [(d, entities[0]) for d in graph.joins.get((here, entities[0]), ()) if body or d != head]
        if entities[0] == graph.self_id:
            edges = [(d, y) for d, y in edges if d < graph.n_relations and not body]
    else:
        edges = [(d, y) for (x, d), reached in graph.steps.items() if x == here for y in reached]
    for d, y in edges:
        for completed, walk, chance in _walks(graph, profile, (*entities, y), head, (*body, d)):
            yield completed, walk, chance / len(edges)


@settings(max_examples=examples(80, 15))
@given(graphs(min_triples=1), st.sampled_from(PROFILES), st.integers(0, 2**32))
def test_every_sampled_path_is_straight(graph: SmallGraph, profile: PathProfile, seed: int) -> None:
    assert set(sampled(graph, profile, 100, batch_state(seed))) <= possible(graph, profile)


@settings(max_examples=examples(30, 8))
@given(graphs(min_triples=1, max_triples=8), st.sampled_from(PROFILES))
def test_the_procedure_can_give_every_straight_path(graph: SmallGraph, profile: PathProfile) -> None:
    """On paper: `chances` is what the next tests compare the sampler with."""
    assert set(chances(graph, profile)) == possible(graph, profile)


@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_every_possible_path_is_found_in_the_end(profile: PathProfile) -> None:
    expected = possible(TEN, profile)
    assert expected
    state, found = batch_state(7), set()
    for _ in range(200):
        found |= set(sampled(TEN, profile, 500, state))
        if found == expected:
            break
    assert found == expected


@pytest.mark.parametrize("rows", [False, True], ids=["heads from a list", "heads from the graph"])
@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_paths_are_as_frequent_as_uniform_choices_make_them(profile: PathProfile, rows: bool) -> None:
    """Chi-square, fixed seed: the mean is df, the deviation sqrt(2 df); five of those is one in a million."""
    weights, attempts = chances(TEN, profile), examples(60_000, 6_000)
    counts = Counter(sampled(TEN, profile, attempts, batch_state(3, profile.rule_length), rows=rows))
    weights_and_failure = {**weights, None: 1 - sum(weights.values())}
    counts_and_failure = {**counts, None: attempts - counts.total()}
    assert set(counts_and_failure) <= set(weights_and_failure)
    chi_square = sum(
        (counts_and_failure.get(row, 0) - attempts * weight) ** 2 / (attempts * weight)
        for row, weight in weights_and_failure.items()
    )
    df = len(weights)
    assert chi_square <= df + 5 * sqrt(2 * df)


def test_the_chi_square_bound_notices_a_side_that_is_preferred() -> None:
    """The same bound, on paths whose starts are subjects only."""
    profile = PathProfile(False, 1)
    weights = chances(TEN, profile)
    forward = [row for row in sampled(TEN, profile, examples(60_000, 6_000), batch_state(3)) if row[1] < 2]
    total = sum(weights.values())
    expected = {row: len(forward) * weight / total for row, weight in weights.items()}
    counts = Counter(forward)
    chi_square = sum((counts[row] - mean) ** 2 / mean for row, mean in expected.items())
    assert chi_square > len(weights) + 5 * sqrt(2 * len(weights))


@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_the_same_state_gives_the_same_paths(profile: PathProfile) -> None:
    state, again = batch_state(1, 2, 3), batch_state(1, 2, 3)
    first = sampled(TEN, profile, 300, state)
    assert first == sampled(TEN, profile, 300, again)
    assert state.tolist() == again.tolist()
    assert state.tolist() != batch_state(1, 2, 3).tolist()
    assert first != sampled(TEN, profile, 300, state)


def test_batches_in_a_row_are_one_large_batch() -> None:
    state, profile = batch_state(5), PathProfile(True, 2)
    parts = [row for _ in range(3) for row in sampled(TEN, profile, 100, state)]
    assert parts == sampled(TEN, profile, 300, batch_state(5))


def test_every_triple_of_a_graph_of_many_blocks_of_rows_is_a_head() -> None:
    """A hub that owns several blocks, entities that share one, entities without edges, and a loop."""
    graph: SmallGraph = (
        420,
        2,
        [*((0, 0, i) for i in range(1, 201)), *((i, 1, i + 1) for i in range(300, 400)), (5, 1, 5)],
    )
    found = sampled(graph, PathProfile(False, 1), 40_000, batch_state(1), rows=True)
    heads = {(x, d, y) if d < 2 else (y, d - 2, x) for x, d, y, _, _ in found}
    assert heads == {(s, r, 420 if s == o else o) for s, r, o in graph[2]}


@settings(max_examples=examples(30, 6))
@given(graphs(min_triples=2), st.sampled_from(PROFILES), st.data())
def test_heads_are_drawn_from_the_given_triples_only(
    graph: SmallGraph, profile: PathProfile, data: st.DataObject
) -> None:
    n_entities, n_relations, triples = graph
    few = data.draw(st.lists(st.sampled_from(triples), min_size=1, max_size=3))
    table = np.array(few, np.int32)
    # The sampler is compiled for read-only triples, which is what tables have.
    table.setflags(write=False)
    paths = sample_paths(arrays_of(graph), listed_heads(table), profile, 50, batch_state(1))
    heads = {(x, d, y) if d < n_relations else (y, d - n_relations, x) for x, d, y, _, _ in rows_of(paths)}
    assert heads <= {(s, r, n_entities if s == o else o) for s, r, o in few}


@settings(max_examples=examples(60, 12))
@given(graphs(min_triples=1), st.sampled_from(PROFILES), st.integers(0, 2**32))
def test_paths_with_steps_by_relation_are_straight_as_well(graph: SmallGraph, profile: PathProfile, seed: int) -> None:
    arrays = arrays_of(graph)
    for heads in (listed_heads(table_of(graph).triples), heads_of_graph(arrays)):
        paths = sample_paths(arrays, heads, profile, 60, batch_state(seed), mixed=True)
        assert set(rows_of(paths)) <= possible(graph, profile)


def test_steps_by_relation_find_the_rare_relation_of_a_hub() -> None:
    """The hub 0 has 200 edges of one relation and one of another: a mixed walk takes either in one of five."""
    graph: SmallGraph = (203, 3, [*((i, 0, 0) for i in range(1, 201)), (0, 1, 201), (0, 2, 202)])
    arrays, heads = arrays_of(graph), np.array([(0, 2, 202)], np.int32)
    heads.setflags(write=False)
    shares = []
    for mixed in (False, True):
        paths = sample_paths(arrays, listed_heads(heads), PathProfile(False, 1), 2_000, batch_state(1), mixed=mixed)
        from_hub = paths.relations[paths.starts == 0, 0]
        shares.append((from_hub == 1).mean())
    assert shares[0] < 0.03
    assert 0.15 < shares[1] < 0.25


def test_a_profile_says_what_it_is() -> None:
    assert [str(profile) for profile in PROFILES[::4]] == ["acyclic 1", "cyclic 1"]
