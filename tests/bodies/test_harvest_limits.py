"""What a harvest leaves out, and what it estimates: thresholds, wanted heads, budgets."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.rng import batch_state
from anyburl.bodies.arrays import (
    BINARY,
    CONSTANT,
    DANGLING,
    GROUNDED,
    NO_LIMIT,
    BodyArrays,
    Limits,
    Scratch,
    empty_harvest,
    empty_scratch,
    head_arrays,
)
from anyburl.bodies.kernel import score
from anyburl.bodies.kernel_binary import visiting_order
from anyburl.bodies.paths import generalise, listed_heads, make_bodies, sample_paths
from anyburl.graph.kernel import GraphArrays
from anyburl.rules.types import PathProfile
from called import ground
from harvesting import (
    Scores,
    distinct,
    every_binary,
    every_constant,
    every_dangling,
    harvested,
    joined,
    limits,
    rule_of,
)
from kernels import CHECKED, arrays_of, examples, random_graph, random_graphs, table_of
from reference.graph import build, inverse
from reference.scoring import Rule, normalise, predicted, walks
from strategies import SmallGraph

pytestmark = pytest.mark.kernel

keys = st.integers(0, 2**64 - 1)
mid_graphs = random_graphs(8, [1, 2], 24)


def every_body(arrays: GraphArrays, length: int) -> BodyArrays:
    parts = [every_binary(arrays, length), every_dangling(arrays, length)]
    return joined([*parts, *(every_constant(arrays, length, kind) for kind in (CONSTANT, GROUNDED))])


def rekeyed(bodies: BodyArrays, keys: list[int]) -> BodyArrays:
    """The bodies with other keys, so that their starts are visited in another order."""
    return bodies._replace(keys=np.array(keys, np.uint64))


@settings(max_examples=examples(100, 20))
@given(
    mid_graphs,
    st.sampled_from([1, 2]),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.99, 1.0]),
)
def test_rules_need_the_support_and_more_than_the_confidence(
    graph: SmallGraph, length: int, min_support: int, min_confidence: float
) -> None:
    arrays = arrays_of(graph)
    bodies = every_body(arrays, length)
    everything = harvested(arrays, bodies, limits())
    expected = {
        rule: scores
        for rule, scores in everything.items()
        if scores[1] >= min_support and scores[1] / scores[0] > min_confidence
    }
    assert harvested(arrays, bodies, limits(min_support, min_confidence)) == expected


@pytest.mark.parametrize(("support", "predictions"), [(29, 100), (1, 3), (7, 10), (57, 100), (58, 100)])
def test_a_confidence_that_equals_the_threshold_is_not_above_it(support: int, predictions: int) -> None:
    """Whatever the rounding: 0.29 * 100 is a little less than 29."""
    triples = [(x, 0, 1000) for x in range(predictions)] + [(x, 1, 1001) for x in range(support)]
    arrays = arrays_of((1002, 2, triples))
    body = make_bodies(arrays, CONSTANT, np.array([[0]], np.int32), np.array([1000], np.int32))
    at = support / predictions
    assert harvested(arrays, body, limits(min_confidence=at)) == {}
    rule = Rule("Uc", 1, 1001, (0,), 1000)
    below = float(np.nextafter(at, 0))
    assert harvested(arrays, body, limits(min_confidence=below)) == {rule: (predictions, support, True)}


@settings(max_examples=examples(60, 10))
@given(random_graphs(6, [3], 20), st.sampled_from([1, 2]), st.sets(st.integers(0, 2)))
def test_only_wanted_head_relations_are_harvested(graph: SmallGraph, length: int, wanted: set[int]) -> None:
    arrays = arrays_of(graph)
    bodies = every_body(arrays, length)
    heads = head_arrays(arrays, np.array(sorted(wanted), np.int64))
    expected = {
        rule: scores for rule, scores in harvested(arrays, bodies, limits()).items() if rule.head % graph[1] in wanted
    }
    assert harvested(arrays, bodies, limits(), heads) == expected


@settings(max_examples=examples(100, 15))
@given(random_graphs(6, [1, 2], 16), st.booleans(), st.integers(1, 3), st.integers(0, 2**32), st.booleans())
def test_a_body_with_a_sampled_head_gives_the_rule_with_that_head_only(
    graph: SmallGraph, cyclic: bool, length: int, seed: int, object_identity: bool
) -> None:
    n_entities, n_relations, _ = graph
    arrays = arrays_of(graph, object_identity)
    triples = table_of(graph).triples
    paths = sample_paths(arrays, listed_heads(triples), PathProfile(cyclic, length), 40, batch_state(seed))
    literal = distinct(generalise(arrays, paths, cyclic=cyclic, all_heads=False))
    found = harvested(arrays, literal, limits(object_identity=object_identity))
    sampled = {
        normalise(
            rule_of(literal, k, int(literal.heads[k]), int(literal.head_constants[k]), n_relations),
            n_entities,
            n_relations,
        )
        for k in range(len(literal.kinds))
    }
    assert set(found) == sampled
    everything = harvested(
        arrays, distinct(generalise(arrays, paths, cyclic=cyclic)), limits(object_identity=object_identity)
    )
    assert {rule: everything[rule] for rule in found} == found


@settings(max_examples=examples(300, 300))
@given(st.integers(0, 300), keys)
def test_a_visiting_order_comes_to_every_place_once(n: int, key: int) -> None:
    first, stride = visiting_order(n, np.uint64(key))
    assert sorted((first + i * stride) % n for i in range(n)) == list(range(n))


@settings(max_examples=examples(100, 100))
@given(st.integers(2, 2**31 - 2), keys)
def test_a_visiting_order_is_one_for_large_domains_too(n: int, key: int) -> None:
    first, stride = visiting_order(n, np.uint64(key))
    assert 0 <= first < n
    assert 0 < stride < max(n, 2)
    assert np.gcd(n, stride) == 1


def test_visiting_orders_differ_by_key_and_begin_anywhere() -> None:
    orders = [visiting_order(10, np.uint64(key)) for key in range(1000)]
    assert {first for first, _ in orders} == set(range(10))
    assert {stride for _, stride in orders} == {1, 3, 7, 9}
    counts = np.bincount([first for first, _ in orders])
    assert ((counts - 100) ** 2 / 100).sum() < 27.9  # 9 degrees of freedom: one in a thousand


def visited_in_order(arrays: GraphArrays, relation: int, key: int, n: int) -> list[int]:
    """The first `n` starts of a body that begins with `relation`."""
    domain = arrays.domains[arrays.domain_offsets[relation] : arrays.domain_offsets[relation + 1]].tolist()
    first, stride = visiting_order(len(domain), np.uint64(key))
    return [domain[(first + i * stride) % len(domain)] for i in range(n)]


def scaled(count: int, visited: int, total: int) -> int:
    return count if visited == total else round(count * (total / visited))


def kept(counts: dict[Rule, tuple[int, int]], asked: Limits, visited: int, total: int) -> dict[Rule, Scores]:
    """What a harvest keeps of counts over the visited starts: thresholds look at what was seen."""
    return {
        rule: (scaled(predictions, visited, total), scaled(support, visited, total), visited == total)
        for rule, (predictions, support) in counts.items()
        if support >= asked.min_support and support / predictions > asked.min_confidence
    }


def binary_sample(
    graph: SmallGraph, body: tuple[int, ...], oriented: tuple[int, ...], starts: list[int]
) -> dict[Rule, tuple[int, int]]:
    """Reference counts of every B rule of `body` over the pairs whose walk along `oriented` begins at `starts`."""
    n_entities, n_relations, triples = graph
    built = build(triples, n_entities, n_relations)
    pairs = {(walk[0], walk[-1]) for x in starts for walk in walks(built, oriented, x, True)}
    counts = {}
    for d in range(2 * n_relations):
        support = sum(d in built.joins.get(pair, ()) for pair in pairs)
        head = d if body == oriented else inverse(d, n_relations)
        rule = normalise(("B", head, None, body, None), n_entities, n_relations)
        # A body that is its own reversal reads every head forward.
        if support and body != (head,) and (rule.body == body) == (head < n_relations):
            counts[rule] = (len(pairs), support)
    return counts


@settings(max_examples=examples(200, 30))
@given(mid_graphs, st.data(), keys, st.integers(0, 60), st.integers(1, 2))
def test_a_binary_body_beyond_its_budget_is_counted_over_the_visited_starts(
    graph: SmallGraph, data: st.DataObject, key: int, budget: int, min_support: int
) -> None:
    arrays = arrays_of(graph)
    length = data.draw(st.integers(1, 4))
    every = every_binary(arrays, length)
    body = every.take(np.array([data.draw(st.integers(0, len(every.kinds) - 1))]))
    body, asked = rekeyed(body, [key]), limits(min_support, object_identity=True, budget=budget)
    if CHECKED:
        harvested(arrays, body, asked)
        return
    scratch, relations = empty_scratch(arrays, length), tuple(body.relations[0].tolist())
    assert ground(arrays, head_arrays(arrays), body, 0, asked, NO_LIMIT, scratch)[0]
    state = scratch.grounding[0]
    pairs, visited, total, work = (int(n) for n in (state.groundings, state.visited, state.starts, state.work))
    oriented = tuple(scratch.body[:length].tolist())
    starts = visited_in_order(arrays, oriented[0], key, visited)
    counts = binary_sample(graph, relations, oriented, starts)
    assert all(predictions == pairs for predictions, _ in counts.values())
    assert visited == total or work > budget
    assert visited > 0 or total == 0
    assert harvested(arrays, body, asked) == kept(counts, asked, visited, total)


@settings(max_examples=examples(200, 30))
@given(mid_graphs, st.data(), keys, st.integers(0, 60), st.integers(1, 2), st.booleans())
def test_a_unary_body_beyond_its_budget_is_counted_over_the_visited_members(
    graph: SmallGraph, data: st.DataObject, key: int, budget: int, min_support: int, object_identity: bool
) -> None:
    n_entities, n_relations, triples = graph
    arrays = arrays_of(graph, object_identity)
    length = data.draw(st.integers(1, 3))
    kind = data.draw(st.sampled_from([CONSTANT, DANGLING]))
    every = every_dangling(arrays, length) if kind == DANGLING else every_constant(arrays, length, kind)
    body = every.take(np.array([data.draw(st.integers(0, len(every.kinds) - 1))]))
    body, asked = rekeyed(body, [key]), limits(min_support, 0.0, object_identity, budget)
    if CHECKED:
        harvested(arrays, body, asked)
        return
    heads, scratch = head_arrays(arrays), empty_scratch(arrays, length)
    assert ground(arrays, heads, body, 0, asked, NO_LIMIT, scratch)[0]
    state = scratch.grounding[0]
    visited, total, work = (int(n) for n in (state.visited, state.starts, state.work))
    members = set(np.flatnonzero(scratch.members == state.clock).tolist())
    assert len(members) == state.groundings <= visited <= total
    assert visited == total or work > budget
    assert visited > 0 or total == 0
    counts = {}
    for d, c in product(range(2 * n_relations), range(n_entities + 1)):
        rule = rule_of(body, 0, d, c, n_relations)
        if c == rule.body_constant or (c == n_entities and d >= n_relations):
            continue
        pairs = predicted(triples, n_entities, n_relations, rule, object_identity)
        seen = {x for x, _ in pairs} & members
        joins = build(triples, n_entities, n_relations, object_identity).joins
        support = sum(d in joins.get((x, c), ()) for x in seen)
        if support:
            counts[rule] = (len(seen), support)
    assert harvested(arrays, body, asked) == kept(counts, asked, visited, total)


@settings(max_examples=examples(100, 15))
@given(mid_graphs, st.sampled_from([1, 2, 3]), st.booleans())
def test_with_a_budget_of_nothing_one_start_stands_for_all(
    graph: SmallGraph, length: int, object_identity: bool
) -> None:
    arrays = arrays_of(graph, object_identity)
    bodies = joined([every_binary(arrays, length), every_dangling(arrays, length)])
    sizes = np.diff(arrays.domain_offsets).tolist()
    for rule, scores in harvested(arrays, bodies, limits(1, 0.0, object_identity, budget=0)).items():
        predictions, support, exact = scores
        ends = {rule.body[0], inverse(rule.body[-1], graph[1])} if rule.type == "B" else {rule.body[0]}
        totals = {sizes[d] for d in ends}
        assert any(predictions % total == support % total == 0 for total in totals)
        assert exact == (1 in totals) or len(totals) == 2
        assert 0 < support <= predictions


@settings(max_examples=examples(35, 8))
@given(mid_graphs, st.sampled_from([1, 2, 3]), st.integers(0, 40), st.booleans())
def test_given_rules_are_scored_over_the_same_sample_as_a_harvest(
    graph: SmallGraph, length: int, budget: int, object_identity: bool
) -> None:
    arrays = arrays_of(graph, object_identity)
    bodies = every_body(arrays, length)
    asked = limits(1, 0.0, object_identity, budget)
    found = harvested(arrays, bodies, asked)
    directed = 2 * graph[1]
    binary = int((bodies.kinds == BINARY).sum())
    n_heads = np.where(bodies.kinds == BINARY, directed, directed * graph[0])
    offsets = np.concatenate([[0], np.cumsum(n_heads)])
    out = empty_harvest(int(offsets[-1]))
    constants = [-1] * directed * binary + list(range(graph[0])) * directed * (len(bodies.kinds) - binary)
    out.head_constants[:] = constants
    unary = np.repeat(np.arange(directed), graph[0]).tolist() * (len(bodies.kinds) - binary)
    out.heads[:] = list(range(directed)) * binary + unary
    score(arrays, head_arrays(arrays), bodies, 0, offsets, asked, empty_scratch(arrays, length), out)
    scored = {}
    for k, (first, last) in enumerate(pairwise(offsets)):
        for row in range(first, last):
            head, constant = int(out.heads[row]), int(out.head_constants[row])
            rule = normalise(rule_of(bodies, k, head, constant, graph[1]), graph[0], graph[1])
            counts = (int(out.predictions[row]), int(out.supports[row]), bool(out.exact[row]))
            scored.setdefault((rule, bodies.kinds[k] == GROUNDED), counts)
    for rule, scores in found.items():
        if rule.head_constant != graph[0]:
            same = rule.type == "Uc" and rule.head_constant == rule.body_constant
            assert scored[rule, same] == scores


MID = random_graph(5, 300, 4, 3000)
"""Ten edges for each entity, and as many again read backward."""


def estimates(arrays: GraphArrays, body: BodyArrays, head: tuple[int, int], budget: int, n: int) -> np.ndarray:
    """Predictions and support of one rule, as estimated with `n` different keys."""
    many = rekeyed(body.take(np.zeros(n, np.int64)), list(range(n)))
    out = empty_harvest(n)
    out.heads[:], out.head_constants[:] = head
    scratch: Scratch = empty_scratch(arrays, body.relations.shape[1])
    asked = limits(budget=budget)
    assert score(arrays, head_arrays(arrays), many, 0, np.arange(n + 1), asked, scratch, out) == n
    assert out.exact.all() == (budget > 10**6)
    return np.stack([out.predictions, out.supports]).astype(float)


@pytest.mark.parametrize(
    ("kind", "relations", "head", "budget"),
    [
        (BINARY, (0, 1), (2, -1), 1500),
        (BINARY, (0, 5), (3, -1), 1500),
        (BINARY, (0, 1, 6), (2, -1), 8000),
        (DANGLING, (1,), (2, 7), 1500),
        (DANGLING, (1, 2), (2, 7), 1500),
    ],
)
def test_estimates_are_right_on_average(
    kind: int, relations: tuple[int, ...], head: tuple[int, int], budget: int
) -> None:
    """A cluster sample: over many keys the mean of each count, and of the confidence, is near the exact one.

    Tolerance: five standard errors of the mean, and for the confidence, whose ratio has a bias of its
    own that vanishes with the size of the sample, at least a tenth of it.
    """
    arrays, n = arrays_of(MID), examples(2000, 100)
    body = make_bodies(arrays, kind, np.array([relations], np.int32))
    exact = estimates(arrays, body, head, 10**9, 1)[:, 0]
    found = estimates(arrays, body, head, budget, n)
    errors = found.std(axis=1) / np.sqrt(n)
    assert (errors > 0).all()
    assert (np.abs(found.mean(axis=1) - exact) <= 5 * errors + 0.5).all()
    confidences = found[1] / found[0]
    error = confidences.std() / np.sqrt(n)
    expected = exact[1] / exact[0]
    assert abs(confidences.mean() - expected) <= max(5 * error, 0.1 * expected)


@settings(max_examples=examples(60, 10))
@given(
    mid_graphs,
    st.sampled_from([1, 2]),
    st.sampled_from([0.3, 1.0, 1.5, 2.0, 3.0, 4.5]),
    st.sampled_from([20, NO_LIMIT]),
)
def test_rules_worth_less_than_the_floor_are_left_out(
    graph: SmallGraph, length: int, floor: float, budget: int
) -> None:
    arrays = arrays_of(graph)
    bodies = every_body(arrays, length)
    asked = limits(budget=budget)
    expected = {
        rule: scores
        for rule, scores in harvested(arrays, bodies, asked).items()
        if scores[1] * (scores[1] / scores[0]) >= floor
    }
    assert harvested(arrays, bodies, asked._replace(floor=floor)) == expected
