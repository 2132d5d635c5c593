"""The reference's ranking on examples that can be worked out by hand."""

from __future__ import annotations

from math import isclose

from hypothesis import given, settings

from kernels import examples
from reference.ranking import Rank, answered, best, connected, known_answers, noisy_or, predicting, rank, strength
from reference.scoring import predicted
from strategies import RuleTuple, SmallGraph, graphs_and_rules

# ed 0, lisa 1, nl 2, dutch 3; born 0, lives 1, speaks 2; directed relations 3, 4 and 5 lead back
TRIPLES = [(0, 0, 2), (1, 1, 2), (1, 2, 3)]
SPEAKS_LIKE_A_NEIGHBOUR = ("B", 2, None, (0, 4, 2), None)
DUTCH_IF_BORN_IN_NL = ("Uc", 2, 3, (0,), 2)
DUTCH_IF_LIVING_SOMEWHERE = ("Ud", 2, 3, (1,), None)


def test_a_rule_answers_both_queries_for_what_it_predicts() -> None:
    assert answered(TRIPLES, 4, 3, SPEAKS_LIKE_A_NEIGHBOUR) == {(0, 2, 3), (3, 5, 0)}
    assert answered(TRIPLES, 4, 3, DUTCH_IF_BORN_IN_NL) == {(0, 2, 3), (3, 5, 0)}
    assert answered(TRIPLES, 4, 3, DUTCH_IF_LIVING_SOMEWHERE) == {(1, 2, 3), (3, 5, 1)}


def test_a_head_that_starts_with_its_constant_is_answered_the_other_way_round() -> None:
    """born(ed,Y) <- lives(A,Y)."""
    assert answered(TRIPLES, 4, 3, ("Ud", 3, 0, (4,), None)) == {(2, 3, 0), (0, 0, 2)}


def test_self_is_the_entity_itself_in_either_query() -> None:
    expected = {(0, 1, 0), (0, 4, 0)}
    assert answered(TRIPLES, 4, 3, ("Ud", 1, 4, (0,), None)) == expected
    assert answered(TRIPLES, 4, 3, ("Ud", 4, 4, (0,), None)) == expected


def test_a_rule_without_a_body_answers_with_its_constant_only() -> None:
    assert answered(TRIPLES, 4, 3, ("Z", 2, 3, (), None)) == {(0, 2, 3), (1, 2, 3), (2, 2, 3)}
    assert answered([], 2, 1, ("Z", 0, 2, (), None)) == {(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)}


def test_candidates_keep_the_rules_that_predict_them() -> None:
    rules = [SPEAKS_LIKE_A_NEIGHBOUR, DUTCH_IF_LIVING_SOMEWHERE, DUTCH_IF_BORN_IN_NL]
    answers = [answered(TRIPLES, 4, 3, rule) for rule in rules]
    assert predicting(answers, (0, 2)) == {3: [0, 2]}
    assert predicting(answers, (3, 5)) == {0: [0, 2], 1: [1]}
    assert predicting(answers, (2, 0)) == {}


def test_max_compares_rule_by_rule_and_the_longer_list_wins() -> None:
    assert strength([1, 9], "max") > strength([8, 8, 8], "max")
    assert strength([9, 2], "max") > strength([1, 9], "max") > strength([9], "max")
    assert strength([0], "max") > strength([], "max")


def test_noisy_or_adds() -> None:
    assert strength([1, 9], "noisy-or") < strength([8, 8, 8], "noisy-or")
    assert strength([1, 9], "noisy-or-top:1") > strength([8, 8, 8], "noisy-or-top:1")
    assert strength([1, 9], "noisy-or-top:2") < strength([8, 8, 8], "noisy-or-top:2")
    assert isclose(noisy_or([0.5, 0.5, 0.2]), 0.8)


def test_ranks_count_what_is_better_and_what_ties() -> None:
    strengths = {0: (5,), 1: (7,), 2: (5,), 3: (9,)}
    found = rank(strengths, 7, 0, {3})
    assert found == Rank(better=1, equal=1)
    assert (found.optimistic, found.pessimistic, found.realistic) == (2, 3, 2.5)
    assert rank(strengths, 7, 6, {3}) == Rank(better=3, equal=2)
    assert best(strengths, 3) == [3, 1, 0]


def test_what_is_known_and_what_is_connected() -> None:
    assert known_answers([TRIPLES, [(0, 0, 1), (2, 0, 0)]], 3, (0, 0)) == {1, 2}
    assert known_answers([TRIPLES, [(0, 0, 1), (2, 0, 0)]], 3, (0, 3)) == {2}
    assert connected([*TRIPLES, (2, 0, 2)], 2) == {0, 1, 2}
    assert connected(TRIPLES, 3) == {1}


@settings(max_examples=examples(100))
@given(graphs_and_rules())
def test_answers_are_the_predicted_pairs_twice(drawn: tuple[SmallGraph, RuleTuple]) -> None:
    (n_entities, n_relations, triples), rule = drawn
    found = answered(triples, n_entities, n_relations, rule)
    if rule[0] == "Z":
        return
    pairs = predicted(triples, n_entities, n_relations, rule)
    assert len(found) == 2 * len(pairs)
    assert {(y, (d + n_relations) % (2 * n_relations), x) for x, d, y in found} == found
