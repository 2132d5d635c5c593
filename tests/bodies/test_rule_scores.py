"""Scores of rules that are given, instead of found: whatever the rule, the counts of the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.arrays import (
    BINARY,
    CONSTANT,
    DANGLING,
    GROUNDED,
    BodyArrays,
    empty_harvest,
    empty_scratch,
    head_arrays,
)
from anyburl.bodies.kernel import score
from anyburl.bodies.paths import canonical, make_bodies, with_keys
from anyburl.graph.kernel import GraphArrays
from harvesting import UNLIMITED, Scores, assert_clean, limits
from kernels import arrays_of, examples, random_graphs
from reference.graph import inverse
from reference.scoring import Rule
from reference.scoring import score as reference_score
from strategies import RuleTuple, SmallGraph, graphs, grounded_rules, rules

pytestmark = pytest.mark.kernel

BodyOf = tuple[int, tuple[int, ...], int]
"""Kind, relations, constant or -1."""


def body_of(rule: Rule) -> BodyOf:
    if rule.type == "B":
        return BINARY, rule.body, -1
    if rule.type == "Ud":
        return DANGLING, rule.body, -1
    assert rule.body_constant is not None
    same = rule.head_constant == rule.body_constant
    return GROUNDED if same else CONSTANT, rule.body, rule.body_constant


def bodies_of(arrays: GraphArrays, found: list[BodyOf]) -> BodyArrays:
    kinds, relations, constants = zip(*found, strict=True)
    none = np.full(len(found), -1, np.int32)
    columns = (np.array(kinds, np.uint8), np.array(relations, np.int32), np.array(constants, np.int32))
    return with_keys(arrays, BodyArrays(*columns, none, none.copy(), np.zeros(len(found), np.uint64)))


def scored(
    arrays: GraphArrays, found: list[Rule], object_identity: bool = True, work: int = UNLIMITED
) -> dict[Rule, Scores]:
    """Score rules of one length, grouped by body."""
    groups: dict[BodyOf, list[Rule]] = {}
    for rule in dict.fromkeys(found):
        groups.setdefault(body_of(rule), []).append(rule)
    rows = [rule for group in groups.values() for rule in group]
    bodies = bodies_of(arrays, list(groups))
    out = empty_harvest(len(rows))
    out.heads[:] = [rule.head for rule in rows]
    out.head_constants[:] = [-1 if rule.head_constant is None else rule.head_constant for rule in rows]
    offsets = np.cumsum([0, *map(len, groups.values())])
    scratch, k = empty_scratch(arrays, len(rows[0].body)), 0
    asked = limits(object_identity=object_identity, work=work)
    while k < len(groups):
        following = score(arrays, head_arrays(arrays), bodies, k, offsets, asked, scratch, out)
        assert following > k or scratch.grounding[0].under_way
        k = following
    assert_clean(scratch)
    columns = zip(out.predictions.tolist(), out.supports.tolist(), out.exact.tolist(), strict=True)
    return dict(zip(rows, columns, strict=True))


def expected_scores(graph: SmallGraph, found: list[Rule], object_identity: bool = True) -> dict[Rule, Scores]:
    n_entities, n_relations, triples = graph
    counts = {rule: reference_score(triples, n_entities, n_relations, rule, object_identity) for rule in found}
    return {rule: (*count, True) for rule, count in counts.items()}


def of_one_length(found: list[RuleTuple]) -> list[list[Rule]]:
    """The rules with a body, sorted by its length."""
    lengths = {len(rule[3]) for rule in found} - {0}
    return [[Rule(*rule) for rule in found if len(rule[3]) == length] for length in sorted(lengths)]


@settings(max_examples=examples(200, 60))
@given(graphs(), st.data(), st.booleans())
def test_any_rules_are_scored_as_the_reference_does(
    graph: SmallGraph, data: st.DataObject, object_identity: bool
) -> None:
    """Also rules that predict nothing, or nothing true, and heads that no triple has."""
    kinds = [rules(graph[0], graph[1], max_length=4)]
    if graph[2]:
        kinds.append(grounded_rules(graph, max_length=4))
    found = data.draw(st.lists(st.one_of(kinds), min_size=1, max_size=12))
    arrays = arrays_of(graph, object_identity)
    for group in of_one_length(found):
        expected = expected_scores(graph, group, object_identity)
        assert scored(arrays, group, object_identity) == expected
        assert scored(arrays, group, object_identity, work=0) == expected


@settings(max_examples=examples(100, 15))
@given(random_graphs(7, [1, 2], 20), st.data(), st.booleans())
def test_every_head_of_a_body_is_scored_at_once(graph: SmallGraph, data: st.DataObject, object_identity: bool) -> None:
    """All heads there are, true or not, `self` read forward; the tautology among them."""
    n_entities, n_relations, _ = graph
    length = data.draw(st.integers(1, 4))
    directed = st.integers(0, 2 * n_relations - 1)
    body = tuple(data.draw(st.lists(directed, min_size=length, max_size=length)))
    last = data.draw(st.integers(0, n_entities - 1))
    heads = [(d, c) for d in range(2 * n_relations) for c in range(n_entities + (d < n_relations))]
    found = [Rule("B", d, None, body, None) for d in range(n_relations)]
    found += [Rule("Ud", d, c, body, None) for d, c in heads]
    found += [Rule("Uc", d, c, body, last) for d, c in heads]
    assert scored(arrays_of(graph, object_identity), found, object_identity) == expected_scores(
        graph, found, object_identity
    )


@settings(max_examples=examples(100, 20))
@given(graphs(max_relations=2), st.data(), st.booleans())
def test_a_binary_rule_scores_the_same_read_from_either_end(
    graph: SmallGraph, data: st.DataObject, object_identity: bool
) -> None:
    n_relations = graph[1]
    directed = st.integers(0, 2 * n_relations - 1)
    body = tuple(data.draw(st.lists(directed, min_size=1, max_size=3)))
    arrays = arrays_of(graph, object_identity)
    smaller, flipped = canonical(arrays, np.array([body], np.int32))
    for head in range(n_relations):
        rule = Rule("B", head, None, body, None)
        turned = Rule("B", inverse(head, n_relations) if flipped[0] else head, None, tuple(smaller[0].tolist()), None)
        [expected] = expected_scores(graph, [rule], object_identity).values()
        assert scored(arrays, [turned], object_identity) == {turned: expected}


def test_a_graph_without_triples_scores_nothing() -> None:
    graph: SmallGraph = (2, 1, [])
    found = [Rule("B", 0, None, (0,), None), Rule("Ud", 0, 1, (1,), None), Rule("Uc", 0, 2, (0,), 1)]
    assert scored(arrays_of(graph), found) == dict.fromkeys(found, (0, 0, True))


def test_made_bodies_and_written_ones_have_the_same_keys() -> None:
    arrays = arrays_of((3, 2, [(0, 0, 1)]))
    written = bodies_of(arrays, [(CONSTANT, (0, 3), 2), (CONSTANT, (1, 1), 0)])
    made = make_bodies(arrays, CONSTANT, np.array([[0, 3], [1, 1]], np.int32), np.array([2, 0], np.int32))
    assert written.keys.tolist() == made.keys.tolist()
