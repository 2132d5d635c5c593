"""Harvests and scores on graphs that fit on a page, with counts worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from anyburl.bodies.arrays import (
    BINARY,
    CONSTANT,
    DANGLING,
    GROUNDED,
    BodyArrays,
    HarvestArrays,
    Limits,
    empty_harvest,
    empty_scratch,
    head_arrays,
)
from anyburl.bodies.kernel import harvest, score
from anyburl.bodies.paths import make_bodies
from anyburl.graph.kernel import GraphArrays
from harvesting import assert_clean, every_binary, every_constant, every_dangling, harvested, joined, limits
from kernels import arrays_of, random_graph
from reference.measures import Measurer
from reference.scoring import Rule
from strategies import SmallGraph

pytestmark = pytest.mark.kernel

B, H, G, K = range(4)
BACK = 4  # from a relation to its inverse
PAIRS: SmallGraph = (
    6,
    4,
    [*((x, B, x + 1) for x in (0, 2, 4)), (0, H, 1), (2, H, 3), (4, G, 5), (1, K, 0), (3, K, 2)],
)
"""b joins three pairs; h says so of two, g of one, and k of two the other way round."""
OF_H, OF_G = Rule("B", H, None, (B,), None), Rule("B", G, None, (B,), None)
OF_K = Rule("B", K, None, (B + BACK,), None)


def body(arrays: GraphArrays, kind: int, relations: tuple[int, ...], constant: int = -1) -> BodyArrays:
    constants = None if constant < 0 else np.array([constant], np.int32)
    return make_bodies(arrays, kind, np.array([relations], np.int32), constants)


def heads_of(limits: Limits, wanted: list[int] | None = None) -> dict[Rule, tuple[int, int, bool]]:
    arrays = arrays_of(PAIRS)
    heads = head_arrays(arrays, None if wanted is None else np.array(wanted, np.int64))
    return harvested(arrays, body(arrays, BINARY, (B,)), limits, heads)


def test_a_binary_body_has_every_head_that_joins_its_pairs() -> None:
    assert heads_of(limits()) == {OF_H: (3, 2, True), OF_G: (3, 1, True), OF_K: (3, 2, True)}


def test_heads_with_too_little_support_or_confidence_are_left_out() -> None:
    assert heads_of(limits(2)).keys() == {OF_H, OF_K}
    assert heads_of(limits(3)) == {}
    assert heads_of(limits(min_confidence=1 / 3)).keys() == {OF_H, OF_K}
    assert heads_of(limits(min_confidence=0.33)).keys() == {OF_H, OF_G, OF_K}
    assert heads_of(limits(min_confidence=2 / 3)) == {}


def test_heads_are_worth_their_support_times_their_confidence() -> None:
    """2 * 2/3 and 1 * 1/3."""
    assert heads_of(limits()._replace(floor=1 / 3)).keys() == {OF_H, OF_G, OF_K}
    assert heads_of(limits()._replace(floor=0.34)).keys() == {OF_H, OF_K}
    assert heads_of(limits()._replace(floor=2 * (2 / 3))).keys() == {OF_H, OF_K}
    assert heads_of(limits()._replace(floor=1.34)) == {}


def test_heads_that_nobody_wants_are_left_out() -> None:
    assert heads_of(limits(), [G]) == {OF_G: (3, 1, True)}
    assert heads_of(limits(), [K, B]) == {OF_K: (3, 2, True)}
    assert heads_of(limits(), []) == {}


def test_a_body_gives_only_the_head_that_was_sampled() -> None:
    arrays = arrays_of(PAIRS)
    for head, rule in ((H, OF_H), (G, OF_G), (K + BACK, OF_K)):
        one = body(arrays, BINARY, (B,))._replace(heads=np.array([head], np.int32))
        assert harvested(arrays, one, limits()).keys() == {rule}
    one = body(arrays, BINARY, (B,))._replace(heads=np.array([0], np.int32))
    assert harvested(arrays, one, limits()) == {}


UNARY: SmallGraph = (
    8,
    3,
    [*((x, 0, 6) for x in range(4)), *((x, 1, 7) for x in range(3)), (0, 2, 6), (1, 2, 6), (6, 1, 4), (6, 1, 5)],
)
"""Four are b of 6; three of them h of 7, two of them g of 6. And 6 is h of 4 and 5."""


def unary_heads(kind: int, limits: Limits, wanted: list[int] | None = None) -> dict[Rule, tuple[int, int, bool]]:
    arrays = arrays_of(UNARY)
    heads = head_arrays(arrays, None if wanted is None else np.array(wanted, np.int64))
    return harvested(arrays, body(arrays, kind, (0,), -1 if kind == DANGLING else 6), limits, heads)


def test_a_constant_body_has_every_head_of_its_members_with_another_constant() -> None:
    of_7 = Rule("Uc", 1, 7, (0,), 6)
    assert unary_heads(CONSTANT, limits()) == {of_7: (4, 3, True)}
    assert unary_heads(CONSTANT, limits(3)) == {of_7: (4, 3, True)}
    assert unary_heads(CONSTANT, limits(4)) == {}
    assert unary_heads(CONSTANT, limits(min_confidence=0.75)) == {}
    assert unary_heads(CONSTANT, limits(min_confidence=0.74)) == {of_7: (4, 3, True)}
    assert unary_heads(CONSTANT, limits()._replace(floor=2.25)) == {of_7: (4, 3, True)}
    assert unary_heads(CONSTANT, limits()._replace(floor=2.26)) == {}
    assert unary_heads(CONSTANT, limits(), [0, 2]) == {}


def test_a_grounded_body_has_the_other_heads_with_its_own_constant() -> None:
    assert unary_heads(GROUNDED, limits()) == {Rule("Uc", 2, 6, (0,), 6): (4, 2, True)}
    assert unary_heads(GROUNDED, limits(3)) == {}


def test_a_dangling_body_has_no_head_through_the_only_way_of_its_members() -> None:
    """All four reach 6 alone, so that nothing is left of heads with 6; without object identity it is."""
    of_7 = Rule("Ud", 1, 7, (0,), None)
    assert unary_heads(DANGLING, limits()) == {of_7: (4, 3, True)}
    free = {of_7: (4, 3, True), Rule("Ud", 0, 6, (0,), None): (4, 4, True), Rule("Ud", 2, 6, (0,), None): (4, 2, True)}
    assert unary_heads(DANGLING, limits(object_identity=False)) == free


def test_a_unary_body_gives_only_the_head_that_was_sampled() -> None:
    arrays = arrays_of(UNARY)
    one = body(arrays, DANGLING, (0,))
    for head, constant, n_rules in ((1, 7, 1), (1, 6, 0), (0, 7, 0), (0, 6, 0)):
        sampled = one._replace(heads=np.array([head], np.int32), head_constants=np.array([constant], np.int32))
        assert len(harvested(arrays, sampled, limits())) == n_rules


def test_reflexive_heads_are_read_forward() -> None:
    """Entity 2, of four, stands for itself: h(X, self) counts those who are h of themselves."""
    arrays = arrays_of((4, 2, [(0, 0, 3), (1, 0, 3), (0, 1, 0), (1, 1, 1), (2, 1, 2)]))
    found = harvested(arrays, body(arrays, CONSTANT, (0,), 3), limits())
    assert found == {Rule("Uc", 1, 4, (0,), 3): (2, 2, True)}


def every_body(arrays: GraphArrays, length: int) -> BodyArrays:
    unary = [every_dangling(arrays, length), *(every_constant(arrays, length, kind) for kind in (CONSTANT, GROUNDED))]
    return joined([every_binary(arrays, length), *unary])


def scored(arrays: GraphArrays, bodies: BodyArrays, found: HarvestArrays, n: int, asked: Limits) -> HarvestArrays:
    """Score what was harvested of those bodies, in the order of the bodies."""
    turned = found.bodies[:n] >= len(bodies.kinds)
    numbers = np.where(turned, found.bodies[:n] - len(bodies.kinds), found.bodies[:n])
    order = np.argsort(numbers, kind="stable")
    out = empty_harvest(n, pca=asked.pca)
    out.heads[:] = (found.heads[:n] + arrays.n_relations * turned)[order]
    out.head_constants[:] = found.head_constants[:n][order]
    offsets = np.searchsorted(numbers[order], np.arange(len(bodies.kinds) + 1))
    scratch = empty_scratch(arrays, bodies.relations.shape[1], pca=asked.pca)
    assert score(arrays, head_arrays(arrays), bodies, 0, offsets, asked, scratch, out) == len(bodies.kinds)
    assert_clean(scratch)
    return HarvestArrays(*(column[np.argsort(order)] if len(column) else column for column in out))


MID = random_graph(3, 40, 2, 170)


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"object_identity": False},
        {"pca": True},
        {"pca": True, "object_identity": False},
        {"pca": True, "budget": 40},
        {"budget": 60},
        {"first_look": 1, "precision": 1e-6},
        {"first_look": 20, "budget": 150},
        {"first_look": 20, "budget": 150, "start": 12},
    ],
    ids=str,
)
def test_rules_are_scored_as_they_were_harvested(length: int, changes: dict[str, float]) -> None:
    """The same counts, margins and judgements: exact, estimated from some starts, and from hubs and some others."""
    arrays = arrays_of(MID)
    bodies = every_body(arrays, length)
    bodies = bodies.take(np.random.default_rng(1).permutation(len(bodies.kinds))[:40])
    asked = limits()._replace(**changes)
    scratch = empty_scratch(arrays, length, pca=asked.pca)
    found = empty_harvest(100_000, pca=asked.pca)
    end, n = harvest(arrays, head_arrays(arrays), bodies, 0, asked, scratch, found)
    assert end == len(bodies.kinds)
    assert_clean(scratch)
    again = scored(arrays, bodies, found, n, asked)
    assert n > 20
    for column in ("predictions", "supports", "exact", "margins", *["pca_predictions"] * asked.pca):
        assert getattr(again, column).tolist() == getattr(found, column)[:n].tolist(), column
    assert (found.margins[:n][found.exact[:n]] == 0).all()
    assert ((found.margins[:n] > 0) == ~found.exact[:n]).all()
    assert found.exact[:n].all() == ("budget" not in changes)


def test_all_starts_visited_in_two_ways_give_the_same_counts() -> None:
    """Hubs first and the others after them, or all of them in turn."""
    arrays = arrays_of(MID)
    for length in (1, 2):
        bodies = every_body(arrays, length).take(np.arange(0, 40, 2))
        assert harvested(arrays, bodies, limits()._replace(first_look=1, precision=1e-6)) == harvested(
            arrays, bodies, limits()
        )


@pytest.mark.parametrize("object_identity", [True, False])
def test_given_rules_are_judged_as_the_reference_does(object_identity: bool) -> None:
    """By the partial completeness assumption; also rules that predict nothing true."""
    graph = random_graph(7, 6, 2, 12)
    arrays, reference = arrays_of(graph, object_identity), Measurer(graph[2], graph[0], graph[1], object_identity)
    asked = limits(object_identity=object_identity)._replace(pca=True)
    for kind, constant in ((BINARY, -1), (DANGLING, -1), (CONSTANT, 2), (GROUNDED, 3)):
        one = body(arrays, kind, (0, 3), constant)
        heads = [(d, c) for d in range(4) for c in ([-1] if kind == BINARY else [3] if kind == GROUNDED else range(6))]
        heads = [(d, c) for d, c in heads if kind != CONSTANT or c != constant]
        out = empty_harvest(len(heads), pca=True)
        out.heads[:], out.head_constants[:] = zip(*heads, strict=True)
        scratch = empty_scratch(arrays, 2, pca=True)
        score(arrays, head_arrays(arrays), one, 0, np.array([0, len(heads)]), asked, scratch, out)
        assert_clean(scratch)
        for row, (head, c) in enumerate(heads):
            type_ = {BINARY: "B", DANGLING: "Ud"}.get(kind, "Uc")
            rule = Rule(type_, head, None if c < 0 else c, (0, 3), None if constant < 0 else constant)
            assert out.pca_predictions[row] == reference.measures(rule).pca_predictions, rule
            assert out.predictions[row] == len(reference.pairs(rule)), rule
            assert out.supports[row] == reference.support(rule), rule


def test_a_harvest_ends_where_its_work_or_its_room_does() -> None:
    """The first body takes 14 edges and one more for itself: 2 for each start, and those of 0, 2 and 4, 3 + 3 + 2.

    With less work, the second is not begun; with as much, it is begun and continued by the next call.
    """
    arrays = arrays_of(PAIRS)
    bodies = joined([body(arrays, BINARY, (relation,)) for relation in (B, H, K)])
    scratch, heads = empty_scratch(arrays, 1), head_arrays(arrays)
    room = max(len(arrays.segment_relations), 2 * arrays.n_relations)
    large, exact, small = (empty_harvest(n) for n in (100, room, room - 1))
    assert harvest(arrays, heads, bodies, 0, limits(), scratch, large) == (3, 3 + 2 + 2)
    assert harvest(arrays, heads, bodies, 1, limits(), scratch, large) == (3, 2 + 2)
    assert harvest(arrays, heads, bodies, 3, limits(), scratch, large) == (3, 0)
    assert harvest(arrays, heads, bodies, 0, limits(), scratch, exact) == (1, 3)
    assert harvest(arrays, heads, bodies, 0, limits(), scratch, small) == (0, 0)
    for work, is_begun in ((14, False), (15, True)):
        assert harvest(arrays, heads, bodies, 0, limits(work=work), scratch, large) == (1, 3)
        assert scratch.grounding[0].under_way == is_begun
        assert harvest(arrays, heads, bodies, 1, limits(), scratch, large) == (3, 2 + 2)


def test_scoring_ends_where_its_work_does() -> None:
    arrays = arrays_of(PAIRS)
    bodies, offsets = joined([body(arrays, BINARY, (relation,)) for relation in (B, H, K)]), np.arange(4)
    scratch, heads, out = empty_scratch(arrays, 1), head_arrays(arrays), empty_harvest(3)
    out.heads[:], out.head_constants[:] = G, -1
    assert score(arrays, heads, bodies, 3, offsets, limits(), scratch, out) == 3
    for work, is_begun in ((14, False), (15, True)):
        assert score(arrays, heads, bodies, 0, offsets, limits(work=work), scratch, out) == 1
        assert scratch.grounding[0].under_way == is_begun
        assert score(arrays, heads, bodies, 1, offsets, limits(), scratch, out) == 3
        assert out.predictions.tolist() == [3, 2, 2]
        assert out.supports.tolist() == [1, 0, 0]
        assert out.exact.tolist() == [True] * 3
        assert out.margins.tolist() == [0.0] * 3


def test_members_that_a_head_cannot_predict_do_not_count_against_it() -> None:
    """Of the four who are b of 6, 0 is the constant of the head: it predicts three, two of them right."""
    arrays = arrays_of((7, 2, [*((x, 0, 6) for x in range(4)), (1, 1, 0), (2, 1, 0)]))
    found = harvested(arrays, body(arrays, CONSTANT, (0,), 6), limits(2, 0.6))
    assert found == {Rule("Uc", 1, 0, (0,), 6): (3, 2, True)}


def test_members_with_no_way_around_the_constant_of_a_head_do_not_count_against_it() -> None:
    """0 and 1 are b of 5 alone, 2 and 3 of others: of the head with 5, only those two are predicted."""
    arrays = arrays_of((8, 2, [(0, 0, 5), (1, 0, 5), (2, 0, 6), (3, 0, 7), (2, 1, 5), (3, 1, 5)]))
    found = harvested(arrays, body(arrays, DANGLING, (0,)), limits(2, 0.9))
    assert found == {Rule("Ud", 1, 5, (0,), None): (2, 2, True)}
