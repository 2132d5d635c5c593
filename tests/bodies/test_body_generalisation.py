"""From paths to bodies: what the reference generalises each path to, and one key for each body."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.rng import batch_state
from anyburl.bodies.arrays import ALL_HEADS, BINARY, CONSTANT, DANGLING, GROUNDED, BodyArrays, PathArrays
from anyburl.bodies.paths import canonical, generalise, listed_heads, make_bodies, sample_paths
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.rules.types import PathProfile
from harvesting import every_constant, every_dangling, every_relations, joined, rule_of
from kernels import arrays_of, examples, random_graphs, table_of
from reference.graph import Body, mirror
from reference.paths import Path, all_acyclic_paths, all_cyclic_paths
from reference.paths import generalise as reference_generalise
from reference.scoring import Rule, normalise
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel

BodyKey = tuple[int, Body, int, int, int]


def all_paths(graph: SmallGraph, cyclic: bool, length: int) -> list[Path]:
    n_entities, n_relations, triples = graph
    every = all_cyclic_paths if cyclic else all_acyclic_paths
    return sorted(every(triples, n_entities, n_relations, length))


def path_arrays(paths: list[Path], length: int) -> PathArrays:
    """The paths as a sampler would give them."""
    ints = {
        "starts": [path.entities[1] for path in paths],
        "heads": [path.head for path in paths],
        "others": [path.entities[0] for path in paths],
        "relations": [path.body for path in paths],
        "ends": [path.entities[-1] for path in paths],
    }
    columns = {name: np.array(values, np.int32) for name, values in ints.items()}
    columns["relations"] = columns["relations"].reshape(-1, length)
    return PathArrays(**columns)


def columns_of(bodies: BodyArrays) -> list[BodyKey]:
    """What makes a body, row by row: kind, relations, constant, head, head's constant."""
    columns = (bodies.kinds, bodies.relations, bodies.constants, bodies.heads, bodies.head_constants)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(kind, tuple(relations), *rest) for kind, relations, *rest in rows]


def sampled_rules(arrays: GraphArrays, bodies: BodyArrays) -> Counter[Rule]:
    """The bodies with the heads sampled along with them, as normalised rules."""
    sizes = arrays.n_entities, arrays.n_relations
    rules = (
        rule_of(bodies, k, int(bodies.heads[k]), int(bodies.head_constants[k]), arrays.n_relations)
        for k in range(len(bodies.kinds))
    )
    return Counter(normalise(rule, *sizes) for rule in rules)


def reference_rules(graph: SmallGraph, paths: list[Path]) -> Counter[Rule]:
    n_entities, n_relations, _ = graph
    return Counter(rule for path in paths for rule in reference_generalise(path, n_entities, n_relations))


@settings(max_examples=examples(150, 50))
@given(graphs(max_triples=12), st.booleans(), st.integers(1, 3))
def test_paths_generalise_as_in_the_reference(graph: SmallGraph, cyclic: bool, length: int) -> None:
    arrays, paths = arrays_of(graph), all_paths(graph, cyclic, length)
    bodies = generalise(arrays, path_arrays(paths, length), cyclic=cyclic, all_heads=False)
    assert sampled_rules(arrays, bodies) == reference_rules(graph, paths)
    kinds = {BINARY, GROUNDED} if cyclic else {CONSTANT, DANGLING}
    assert set(bodies.kinds.tolist()) <= kinds
    grounded = bodies.kinds == GROUNDED
    assert np.array_equal(bodies.constants[grounded], bodies.head_constants[grounded])
    different = bodies.kinds == CONSTANT
    assert (bodies.constants[different] != bodies.head_constants[different]).all()


@settings(max_examples=examples(100, 40))
@given(graphs(max_triples=12), st.booleans(), st.integers(1, 3))
def test_with_all_heads_only_the_heads_are_forgotten(graph: SmallGraph, cyclic: bool, length: int) -> None:
    arrays, paths = arrays_of(graph), all_paths(graph, cyclic, length)
    batch = path_arrays(paths, length)
    bodies = generalise(arrays, batch, cyclic=cyclic)
    expected = columns_of(generalise(arrays, batch, cyclic=cyclic, all_heads=False))
    assert columns_of(bodies) == [(*row[:3], ALL_HEADS, ALL_HEADS) for row in expected]


@settings(max_examples=examples(100, 40))
@given(graphs(max_triples=12), st.integers(1, 3), st.booleans())
def test_cyclic_paths_need_not_give_grounded_bodies(graph: SmallGraph, length: int, all_heads: bool) -> None:
    arrays, paths = arrays_of(graph), all_paths(graph, True, length)
    batch = path_arrays(paths, length)
    bodies = generalise(arrays, batch, cyclic=True, all_heads=all_heads)
    binary = generalise(arrays, batch, cyclic=True, grounded=False, all_heads=all_heads)
    assert columns_of(binary) == [row for row in columns_of(bodies) if row[0] == BINARY]


@settings(max_examples=examples(100, 15))
@given(random_graphs(6, [1, 2], 14), st.booleans(), st.integers(1, 3), st.integers(0, 2**32))
def test_sampled_paths_give_rules_of_the_reference(graph: SmallGraph, cyclic: bool, length: int, seed: int) -> None:
    arrays = arrays_of(graph)
    triples = table_of(graph).triples
    paths = sample_paths(arrays, listed_heads(triples), PathProfile(cyclic, length), 50, batch_state(seed))
    bodies = generalise(arrays, paths, cyclic=cyclic, all_heads=False)
    possible = reference_rules(graph, all_paths(graph, cyclic, length))
    assert set(sampled_rules(arrays, bodies)) <= set(possible)


@settings(max_examples=examples(100, 60))
@given(graphs(max_triples=12), st.integers(1, 3), st.booleans())
def test_a_cycle_read_from_either_end_gives_the_same_keys(graph: SmallGraph, length: int, all_heads: bool) -> None:
    """h(X,Y) with a body from X to Y, and h read backward with the body from Y to X, are one rule."""
    n_relations = graph[1]
    arrays = arrays_of(graph)
    paths = [path for path in all_paths(graph, True, length) if graph[0] not in path.entities]
    turned = [
        Path(
            True,
            int(inverses(np.array([path.head]), n_relations)[0]),
            (path.entities[1], *path.entities[:0:-1]),
            mirror(path.body, n_relations),
        )
        for path in paths
    ]
    one, other = (
        generalise(arrays, path_arrays(batch, length), cyclic=True, all_heads=all_heads) for batch in (paths, turned)
    )
    binary = one.kinds == BINARY
    assert one.keys[binary].tolist() == other.keys[other.kinds == BINARY].tolist()
    assert Counter(one.keys.tolist()) == Counter(other.keys.tolist())


@pytest.mark.parametrize(("n_relations", "length"), [(1, 1), (1, 4), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_of_a_body_and_its_reversal_the_smaller_is_canonical(n_relations: int, length: int) -> None:
    arrays = arrays_of((2, n_relations, []))
    relations = every_relations(arrays, length)
    smaller, flipped = canonical(arrays, relations)
    for body, chosen, is_reversal in zip(relations.tolist(), smaller.tolist(), flipped, strict=True):
        reversal = mirror(tuple(body), n_relations)
        assert tuple(chosen) == min(tuple(body), reversal)
        assert is_reversal == (reversal < tuple(body))
    assert smaller.dtype == np.int32


@pytest.mark.parametrize(("n_relations", "length"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2)])
def test_two_bodies_have_the_same_key_if_and_only_if_they_are_the_same(n_relations: int, length: int) -> None:
    arrays = arrays_of((3, n_relations, []))
    relations = every_relations(arrays, length)
    parts = [make_bodies(arrays, BINARY, relations), every_dangling(arrays, length)]
    parts += [every_constant(arrays, length, kind) for kind in (CONSTANT, GROUNDED)]
    bodies = joined(parts)
    by_key: dict[int, set[BodyKey]] = {}
    for key, row in zip(bodies.keys.tolist(), columns_of(bodies), strict=True):
        by_key.setdefault(key, set()).add(row)
    assert all(len(rows) == 1 for rows in by_key.values())
    assert len(by_key) == len(set(columns_of(bodies)))
    keys = bodies.keys[: len(relations)].tolist()
    same = dict(zip(map(tuple, relations.tolist()), keys, strict=True))
    for body, key in same.items():
        assert [other for other in same if same[other] == key] == sorted({body, mirror(body, n_relations)})


@settings(max_examples=examples(100, 60))
@given(graphs(max_triples=10), st.booleans(), st.integers(1, 3))
def test_sampled_heads_are_part_of_the_key(graph: SmallGraph, cyclic: bool, length: int) -> None:
    arrays, paths = arrays_of(graph), all_paths(graph, cyclic, length)
    bodies = generalise(arrays, path_arrays(paths, length), cyclic=cyclic, all_heads=False)
    rules = [
        (int(bodies.kinds[k]), normalise(rule_of(bodies, k, head, constant, graph[1]), *graph[:2]))
        for k, (head, constant) in enumerate(zip(bodies.heads, bodies.head_constants, strict=True))
    ]
    assert len(set(zip(bodies.keys.tolist(), rules, strict=True))) == len(set(rules)) == len(set(bodies.keys))


def test_no_path_gives_no_body() -> None:
    arrays = arrays_of((2, 1, [(0, 0, 1)]))
    for cyclic, all_heads in product((True, False), repeat=2):
        bodies = generalise(arrays, path_arrays([], 2), cyclic=cyclic, all_heads=all_heads)
        assert len(bodies.kinds) == len(bodies.keys) == 0
        assert bodies.relations.shape == (0, 2)
