from __future__ import annotations

from hypothesis import given, settings

from kernels import examples
from reference.paths import Path, all_acyclic_paths, all_cyclic_paths, generalise, is_straight
from reference.scoring import Rule, all_rules
from strategies import SmallGraph, graphs

# The graph around Ed of section 2.2.
SPEAKS, BORN, MARRIED, LIVES, LANG = range(5)
R = 5
ED, DUTCH, AMSTERDAM, LISA, NETHERLANDS = range(5)
E = 5
TRIPLES = [
    (ED, SPEAKS, DUTCH),
    (ED, BORN, AMSTERDAM),
    (ED, MARRIED, LISA),
    (LISA, BORN, AMSTERDAM),
    (ED, LIVES, NETHERLANDS),
    (NETHERLANDS, LANG, DUTCH),
]
RULE_9 = Path(False, SPEAKS, (DUTCH, ED, AMSTERDAM), (BORN,))
RULE_10 = Path(False, SPEAKS, (DUTCH, ED, LISA, AMSTERDAM), (MARRIED, BORN))
RULE_11 = Path(True, SPEAKS, (DUTCH, ED, NETHERLANDS, DUTCH), (LIVES, LANG))


def test_a_straight_path_visits_no_entity_twice() -> None:
    assert is_straight((1, 2, 3), cyclic=False)
    assert not is_straight((1, 2, 1), cyclic=False)
    assert not is_straight((1, 2, 2), cyclic=False)


def test_a_straight_cyclic_path_ends_where_it_began_and_only_there() -> None:
    assert is_straight((1, 2, 1), cyclic=True)
    assert is_straight((1, 2, 3, 1), cyclic=True)
    assert not is_straight((1, 2, 3), cyclic=True)
    assert not is_straight((1, 2, 2, 1), cyclic=True)
    assert not is_straight((1, 2, 1, 1), cyclic=True)


def test_the_three_paths_of_section_2_2_can_be_sampled() -> None:
    assert RULE_9 in all_acyclic_paths(TRIPLES, E, R, 1)
    assert RULE_10 in all_acyclic_paths(TRIPLES, E, R, 2)
    assert RULE_11 in all_cyclic_paths(TRIPLES, E, R, 2)


def test_all_paths_for_ed_speaks_dutch() -> None:
    """From ed or from d; the head triple reads `x -head-> y`, so from d it is SPEAKS + R."""
    speaks = {SPEAKS, SPEAKS + R}
    acyclic = {path for path in all_acyclic_paths(TRIPLES, E, R, 1) if path.head in speaks}
    assert acyclic == {
        RULE_9,
        Path(False, SPEAKS, (DUTCH, ED, LISA), (MARRIED,)),
        Path(False, SPEAKS, (DUTCH, ED, NETHERLANDS), (LIVES,)),
        Path(False, SPEAKS + R, (ED, DUTCH, NETHERLANDS), (LANG + R,)),
    }
    cyclic = {path for path in all_cyclic_paths(TRIPLES, E, R, 2) if path.head in speaks}
    assert cyclic == {
        RULE_11,
        Path(True, SPEAKS + R, (ED, DUTCH, NETHERLANDS, ED), (LANG + R, LIVES + R)),
    }
    assert all_cyclic_paths(TRIPLES, E, R, 1) == set()


def test_an_acyclic_path_generalises_to_one_dangling_and_one_constant_rule() -> None:
    assert generalise(RULE_9, E, R) == {
        Rule("Ud", SPEAKS, DUTCH, (BORN,), None),
        Rule("Uc", SPEAKS, DUTCH, (BORN,), AMSTERDAM),
    }
    assert generalise(RULE_10, E, R) == {
        Rule("Ud", SPEAKS, DUTCH, (MARRIED, BORN), None),
        Rule("Uc", SPEAKS, DUTCH, (MARRIED, BORN), AMSTERDAM),
    }


def test_a_cyclic_path_generalises_to_one_binary_and_two_constant_rules() -> None:
    expected = {
        Rule("B", SPEAKS, None, (LIVES, LANG), None),
        Rule("Uc", SPEAKS, DUTCH, (LIVES, LANG), DUTCH),
        Rule("Uc", SPEAKS + R, ED, (LANG + R, LIVES + R), ED),
    }
    assert generalise(RULE_11, E, R) == expected
    from_dutch = Path(True, SPEAKS + R, (ED, DUTCH, NETHERLANDS, ED), (LANG + R, LIVES + R))
    assert generalise(from_dutch, E, R) == expected


def test_the_closing_triple_of_a_cycle_of_two_is_not_the_head_itself() -> None:
    assert all_cyclic_paths([(0, 0, 1)], 2, 1, 1) == set()
    assert all_cyclic_paths([(0, 0, 1), (1, 0, 0)], 2, 1, 1) == {
        Path(True, 0, (1, 0, 1), (1,)),
        Path(True, 1, (1, 0, 1), (0,)),
        Path(True, 0, (0, 1, 0), (1,)),
        Path(True, 1, (0, 1, 0), (0,)),
    }


def test_self_ends_paths_and_is_read_forward() -> None:
    self_id, n_relations = 2, 2
    triples = [(0, 0, 1), (0, 1, 0)]
    assert all_acyclic_paths(triples, 2, n_relations, 1) == {
        Path(False, 0, (1, 0, self_id), (1,)),
        Path(False, 1, (self_id, 0, 1), (0,)),
    }
    assert generalise(Path(False, 0, (1, 0, self_id), (1,)), 2, n_relations) == {Rule("Uc", 0, 1, (1,), self_id)}
    assert generalise(Path(False, 1, (self_id, 0, 1), (0,)), 2, n_relations) == {
        Rule("Ud", 1, self_id, (0,), None),
        Rule("Uc", 1, self_id, (0,), 1),
    }


def test_two_reflexive_triples_of_one_entity_are_a_cyclic_path_of_length_one_only() -> None:
    self_id, n_relations = 2, 2
    triples = [(0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)]
    assert all_cyclic_paths(triples, 2, n_relations, 1) == {
        Path(True, 0, (self_id, 0, self_id), (1,)),
        Path(True, 1, (self_id, 0, self_id), (0,)),
    }
    assert all_cyclic_paths(triples, 2, n_relations, 2) == set()
    path = Path(True, 0, (self_id, 0, self_id), (1,))
    assert generalise(path, 2, n_relations) == {Rule("Uc", 0, self_id, (1,), self_id)}


@given(graphs())
@settings(max_examples=examples(60), deadline=None)
def test_the_rules_with_support_are_exactly_what_the_straight_paths_generalise_to(graph: SmallGraph) -> None:
    """Under object identity: a true grounding of a rule, head included, is a straight path, and back."""
    n_entities, n_relations, triples = graph
    for n in (1, 2):
        acyclic = all_acyclic_paths(triples, n_entities, n_relations, n)
        cyclic = all_cyclic_paths(triples, n_entities, n_relations, n)
        assert all(is_straight(path.entities, path.cyclic) for path in acyclic | cyclic)
        rules = {rule for path in acyclic | cyclic for rule in generalise(path, n_entities, n_relations)}
        found = all_rules(triples, n_entities, n_relations, max_cyclic=n, max_acyclic=n, max_grounded=n)
        assert rules == {rule for rule in found if len(rule.body) == n}
