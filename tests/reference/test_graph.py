from __future__ import annotations

from reference.graph import build, inverse, mirror

SELF = 3


def test_a_triple_is_a_step_forward_and_a_step_backward() -> None:
    graph = build([(0, 1, 2)], n_entities=3, n_relations=2)
    assert graph.steps == {(0, 1): {2}, (2, 3): {0}}
    assert graph.joins == {(0, 2): {1}, (2, 0): {3}}


def test_a_reflexive_triple_becomes_edges_between_the_entity_and_self() -> None:
    graph = build([(1, 0, 1)], n_entities=3, n_relations=2)
    assert graph.self_id == SELF
    assert graph.steps == {(1, 0): {SELF}, (1, 2): {SELF}, (SELF, 0): {1}, (SELF, 2): {1}}
    assert graph.joins == {(1, SELF): {0, 2}, (SELF, 1): {0, 2}}


def test_two_relations_between_the_same_entities_are_both_kept() -> None:
    graph = build([(0, 0, 1), (1, 1, 0)], n_entities=2, n_relations=2)
    assert graph.joins == {(0, 1): {0, 3}, (1, 0): {2, 1}}


def test_inverse_and_mirror_undo_themselves() -> None:
    assert [inverse(d, 2) for d in range(4)] == [2, 3, 0, 1]
    assert mirror((0, 1, 2), 2) == (0, 3, 2)
    assert mirror(mirror((0, 1, 2), 2), 2) == (0, 1, 2)
    assert mirror((1, 3), 2) == (1, 3)  # b(X,A), b(Y,A) is its own mirror image
