from __future__ import annotations

from itertools import product

from hypothesis import given, settings

from kernels import examples
from reference.scoring import (
    Rule,
    all_rules,
    confidence,
    groundings,
    is_tautology,
    normalise,
    predicted,
    score,
)
from strategies import RuleTuple, SmallGraph, graphs, graphs_and_rules


def by_definition(graph: SmallGraph, rule: RuleTuple, object_identity: bool) -> tuple[int, int]:
    """Section 3.3.1 word by word: try every entity for every variable, look every atom up."""
    n_entities, n_relations, triples = graph
    kind, head, head_constant, body, body_constant = rule
    self_id = n_entities
    variables = {"B": len(body) + 1, "Ud": len(body) + 1, "Uc": len(body), "Z": 1}[kind]

    def holds(d: int, a: int, b: int) -> bool:
        relation = d % n_relations
        if self_id in (a, b):
            a = b = a if b == self_id else b
            return (a, relation, a) in triples
        return ((a, relation, b) if d < n_relations else (b, relation, a)) in triples

    predictions, supported = set(), set()
    for entities in product(range(n_entities), repeat=variables):
        constants = {c for c in (head_constant, body_constant) if c is not None}
        if object_identity and (len(set(entities)) < len(entities) or constants & set(entities)):
            continue
        path = entities if body_constant is None else (*entities, body_constant)
        x, y = path[0], path[-1] if kind == "B" else head_constant
        assert y is not None
        if kind == "Z":
            true = any(holds(head, x, o) for o in range(n_entities + 1))
        else:
            true = all(holds(d, a, b) for d, a, b in zip(body, path, path[1:], strict=False))
        if true:
            predictions.add((x, y))
            if holds(head, x, y):
                supported.add((x, y))
    return len(predictions), len(supported)


@given(graphs_and_rules())
@settings(max_examples=examples(300), deadline=None)
def test_score_is_the_definition_of_the_paper(drawn: tuple[SmallGraph, RuleTuple]) -> None:
    graph, rule = drawn
    n_entities, n_relations, triples = graph
    for object_identity in (True, False):
        counted = score(triples, n_entities, n_relations, rule, object_identity)
        assert counted == by_definition(graph, rule, object_identity)
        assert counted[0] == len(predicted(triples, n_entities, n_relations, rule, object_identity))


@given(graphs_and_rules())
@settings(deadline=None)
def test_object_identity_only_takes_groundings_away(drawn: tuple[SmallGraph, RuleTuple]) -> None:
    (n_entities, n_relations, triples), rule = drawn
    predictions, support = score(triples, n_entities, n_relations, rule, object_identity=True)
    more_predictions, more_support = score(triples, n_entities, n_relations, rule, object_identity=False)
    assert support <= predictions <= more_predictions
    assert support <= more_support <= more_predictions


def every_rule(n_entities: int, n_relations: int, length: int) -> set[Rule]:
    """Every normalised B, Uc and Ud rule that can be written, tautologies and self-twice left out."""
    self_id, directed, terms = n_entities, range(2 * n_relations), range(n_entities + 1)
    rules = set()
    for head, body in product(directed, product(directed, repeat=length)):
        rules.add(Rule("B", head, None, body, None))
        for c in terms:
            rules.add(Rule("Ud", head, c, body, None))
            rules.update(Rule("Uc", head, c, body, last) for last in terms)
    return {
        rule
        for rule in rules
        if rule == normalise(rule, n_entities, n_relations)
        and not is_tautology(rule)
        and not (length > 1 and rule.head_constant == rule.body_constant == self_id)
    }


@given(graphs(max_entities=4, max_relations=2, max_triples=12))
@settings(max_examples=examples(60), deadline=None)
def test_all_rules_lists_every_rule_that_can_be_written_with_its_score(graph: SmallGraph) -> None:
    n_entities, n_relations, triples = graph
    lengths = (1, 2) if n_relations == 1 or n_entities < 3 else (1,)
    for object_identity in (True, False):
        scored = {
            rule: score(triples, n_entities, n_relations, rule, object_identity)
            for length in lengths
            for rule in every_rule(n_entities, n_relations, length)
        }
        longest = max(lengths)
        found = all_rules(
            triples,
            n_entities,
            n_relations,
            max_cyclic=longest,
            max_acyclic=longest,
            max_grounded=longest,
            object_identity=object_identity,
        )
        assert found == {rule: counts for rule, counts in scored.items() if counts[1] >= 1}


@given(graphs())
@settings(deadline=None)
def test_all_rules_keeps_to_lengths_and_thresholds(graph: SmallGraph) -> None:
    n_entities, n_relations, triples = graph
    everything = all_rules(triples, n_entities, n_relations, max_cyclic=2, max_acyclic=2, max_grounded=2)
    some = all_rules(
        triples,
        n_entities,
        n_relations,
        max_cyclic=2,
        max_acyclic=1,
        max_grounded=1,
        min_support=2,
        min_confidence=0.5,
    )
    assert some == {
        rule: (predictions, support)
        for rule, (predictions, support) in everything.items()
        if len(rule.body) <= (2 if rule.type == "B" else 1) and support >= 2 and 2 * support > predictions
    }


# ---- The paper's examples --------------------------------------------------------------------------


def test_rule_13_loses_its_confidence_under_object_identity() -> None:
    """h(X,Y) <- b(X,A), b(B,A), h(B,Y): the groundings with B = X only restate facts."""
    h, b, n_relations = 0, 1, 2
    x1, x2, x3, a, y1, y2, y3 = range(7)
    triples = [(x1, b, a), (x2, b, a), (x3, b, a), (x1, h, y1), (x2, h, y2), (x3, h, y3), (x1, h, y2)]
    rule = Rule("B", h, None, (b, b + n_relations, h), None)

    # Without: every x reaches every y, 9 pairs, and the 4 stated ones are among them.
    assert score(triples, 7, n_relations, rule, object_identity=False) == (9, 4)
    # With B != X: (x2,y1), (x3,y1), (x1,y2), (x2,y2) by B = x1, (x3,y2), (x1,y3), (x2,y3). Stated of these
    # are (x1,y2), reached by B = x2, and (x2,y2), reached by B = x1.
    assert score(triples, 7, n_relations, rule, object_identity=True) == (7, 2)


def test_rule_12_is_a_tautology_and_is_not_listed() -> None:
    assert is_tautology(Rule("B", 0, None, (0,), None))
    assert is_tautology(Rule("Uc", 0, 3, (0,), 3))
    assert not is_tautology(Rule("Uc", 0, 3, (0,), 2))
    assert not is_tautology(Rule("Ud", 0, 3, (0,), None))
    assert not is_tautology(Rule("B", 0, None, (1,), None))  # n_relations = 1: h(X,Y) <- h(Y,X)
    found = all_rules([(0, 0, 1), (1, 0, 0)], 2, 1, max_cyclic=1)
    assert {rule for rule in found if rule.type == "B"} == {Rule("B", 0, None, (1,), None)}


def test_the_constraints_of_rule_13_are_all_six_inequalities() -> None:
    b, h, n_relations = 0, 1, 2
    body = (b, b + n_relations, h)
    triples = [(0, b, 1), (2, b, 1), (2, h, 3), (0, h, 3), (2, h, 1), (2, h, 0)]
    assert groundings(triples, 4, n_relations, body, 0, object_identity=True) == {(0, 1, 2, 3)}
    assert groundings(triples, 4, n_relations, body, 0, object_identity=False) == {
        (0, 1, 2, 3),
        (0, 1, 2, 1),  # violates A != Y
        (0, 1, 2, 0),  # violates X != Y
        (0, 1, 0, 3),  # violates X != B
    }


def test_rule_15_loses_its_confidence_under_object_identity() -> None:
    """m(X,Y) <- son(X,A), son(B,A), spo(B,Y): a son is no reason to be married to his own spouse."""
    m, son, spo, n_relations = 0, 1, 2, 3
    parent1, parent2, ann, bea, cleo, s1, s2, s3 = range(8)
    triples = [
        *((s1, son, parent1), (s2, son, parent1), (s3, son, parent2)),
        *((s1, spo, ann), (s2, spo, bea), (s3, spo, cleo)),
        *((s1, m, ann), (s2, m, bea), (s3, m, cleo)),
    ]
    rule = Rule("B", m, None, (son, son + n_relations, spo), None)

    # s1 and s2 with ann and bea, s3 with cleo; three of the five are married.
    assert score(triples, 8, n_relations, rule, object_identity=False) == (5, 3)
    # What is left says that brothers are married to each other's spouses.
    assert score(triples, 8, n_relations, rule, object_identity=True) == (2, 0)
    assert predicted(triples, 8, n_relations, rule) == {(s1, bea), (s2, ann)}
    # The strong rule behind it, m(X,Y) <- spo(X,Y), is the same either way.
    strong = Rule("B", m, None, (spo,), None)
    for object_identity in (True, False):
        assert score(triples, 8, n_relations, strong, object_identity) == (3, 3)


def test_the_rules_5_to_8_about_languages() -> None:
    """One B rule, its Ud specialisation and two Uc rules, scored by hand."""
    speaks, lives, lang, n_relations = 0, 1, 2, 3
    english, french, german, france, germany, uk, p1, p2, p3, p4 = range(10)
    triples = [
        *((english, lang, uk), (french, lang, france), (german, lang, germany)),
        *((p1, lives, france), (p2, lives, france), (p3, lives, germany), (p4, lives, uk)),
        *((p1, speaks, french), (p3, speaks, german), (p4, speaks, english), (p1, speaks, english)),
    ]
    expected = {
        Rule("B", speaks, None, (lives, lang + n_relations), None): (4, 3),
        Rule("Ud", speaks, english, (lives,), None): (4, 2),
        Rule("Uc", speaks, french, (lives,), france): (2, 1),
        Rule("Uc", speaks, german, (lives,), germany): (1, 1),
    }
    for rule, counts in expected.items():
        assert score(triples, 10, n_relations, rule) == counts
    found = all_rules(triples, 10, n_relations, max_cyclic=2)
    assert {rule: found[rule] for rule in expected} == expected


def test_the_constant_of_the_head_is_a_term_too() -> None:
    """speaks(X,english) <- likes(X,A): who likes only English gives no grounding, nor does English."""
    speaks, likes, n_relations = 0, 1, 2
    english, tea, ann, bob = range(4)
    triples = [(ann, likes, english), (bob, likes, tea), (english, likes, tea), (ann, speaks, english)]
    rule = Rule("Ud", speaks, english, (likes,), None)
    assert score(triples, 4, n_relations, rule, object_identity=True) == (1, 0)
    assert score(triples, 4, n_relations, rule, object_identity=False) == (3, 1)


def test_self_is_a_constant_that_no_variable_stands_for() -> None:
    """Section 4.4: h(X,self) <- b(X,A) and h(X,self) <- b(X,c)."""
    h, b, n_relations = 0, 1, 2
    triples = [(0, h, 0), (0, b, 2), (1, b, 2), (1, b, 1)]
    self_id = n_entities = 3
    assert score(triples, n_entities, n_relations, Rule("Ud", h, self_id, (b,), None)) == (2, 1)
    assert score(triples, n_entities, n_relations, Rule("Uc", h, self_id, (b,), 2)) == (2, 1)
    assert score(triples, n_entities, n_relations, Rule("Uc", b, 2, (h,), self_id)) == (1, 1)
    assert groundings(triples, n_entities, n_relations, (h,), 0) == set()
    assert groundings(triples, n_entities, n_relations, (h,), 0, object_identity=False) == {(0, 0)}
    for object_identity in (True, False):
        assert groundings(triples, n_entities, n_relations, (h,), self_id, object_identity) == set()


def test_without_object_identity_a_reflexive_fact_counts_like_any_other() -> None:
    """h(X,Y) <- h(X,A), h(A,Y) on 0 -h-> 0 -h-> 1 and 2 -h-> 0, by hand."""
    triples, rule = [(0, 0, 0), (0, 0, 1), (2, 0, 0)], Rule("B", 0, None, (0, 0), None)
    assert score(triples, 3, 1, rule, object_identity=True) == (1, 0)  # (2,1) by A = 0
    # (0,0) and (0,1) by A = 0, (2,0) and (2,1) by A = 0: three of the four are stated
    assert score(triples, 3, 1, rule, object_identity=False) == (4, 3)
    assert score(triples, 3, 1, Rule("Ud", 0, 0, (0,), None), object_identity=False) == (2, 2)
    assert score(triples, 3, 1, Rule("Uc", 0, 1, (0,), 0), object_identity=False) == (2, 1)
    assert score(triples, 3, 1, Rule("Z", 0, 0, (), None), object_identity=False) == (2, 2)


def test_a_zero_rule_predicts_its_constant_for_every_subject_of_the_relation() -> None:
    triples = [(0, 0, 3), (1, 0, 3), (2, 0, 1), (3, 0, 0)]
    assert score(triples, 4, 1, Rule("Z", 0, 3, (), None), object_identity=True) == (3, 2)
    assert score(triples, 4, 1, Rule("Z", 0, 3, (), None), object_identity=False) == (4, 2)
    assert score(triples, 4, 1, Rule("Z", 1, 0, (), None), object_identity=True) == (2, 1)  # h(0,Y) <-


def test_confidence_is_support_over_smoothed_predictions() -> None:
    assert confidence(4, 3) == 0.75
    assert confidence(5, 3, smoothing=5) == 0.3
    assert confidence(0, 0) == 0.0


def test_a_binary_rule_and_its_mirror_image_are_one_rule() -> None:
    n_relations = 2
    assert normalise(Rule("B", 2, None, (1, 0), None), 5, n_relations) == Rule("B", 0, None, (2, 3), None)
    triples = [(0, 0, 1), (0, 1, 2), (2, 0, 1), (3, 1, 1)]
    for body in ((1, 0), (1, 3), (0, 2)):
        mirrored = Rule("B", 0 + n_relations, None, body, None)
        assert score(triples, 4, n_relations, mirrored) == score(
            triples, 4, n_relations, normalise(mirrored, 4, n_relations)
        )
