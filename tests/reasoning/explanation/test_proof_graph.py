"""Proofs as graphs: from the subject to the object, one rule or several."""

from __future__ import annotations

from anyburl import explain
from anyburl.data import Dataset
from anyburl.reasoning.drawing import Drawing
from anyburl.reasoning.explanation.render import near_miss_graph, proof_graph
from rules.samples import make_rules

FACTS = [("ed", "lives", "nl"), ("nl", "language", "dutch"), ("ed", "knows", "lisa"), ("dutch", "in", "europe")]
RULES = [
    ("speaks(X,Y) <= lives(X,A), language(A,Y)", (10, 9)),
    ("speaks(X,dutch) <= knows(X,lisa)", (10, 8)),
    ("speaks(ed,Y) <= in(Y,A)", (10, 7)),
]
TRIPLE = ("ed", "speaks", "dutch")


def stated(drawing: Drawing) -> list[tuple[str, str, str, str]]:
    texts = [node.text for node in drawing.nodes]
    return [(texts[edge.source], edge.relation, texts[edge.target], edge.ink) for edge in drawing.edges]


def columns(drawing: Drawing) -> list[str]:
    return [node.text for node in sorted(drawing.nodes, key=lambda node: node.x)]


def test_several_rules_share_one_graph_from_subject_to_object() -> None:
    dataset = Dataset.from_triples([*FACTS, ("lisa", "speaks", "dutch")])
    found = explain(make_rules(RULES), dataset, TRIPLE)
    drawing = proof_graph(found.reasons, TRIPLE, str.upper)
    assert columns(drawing) == ["LISA", "ED", "NL", "DUTCH", "EUROPE"]
    assert stated(drawing) == [
        ("ED", "speaks", "DUTCH", "prediction"),
        ("ED", "lives", "NL", "fact"),
        ("NL", "language", "DUTCH", "fact"),
        ("ED", "knows", "LISA", "fact"),
        ("DUTCH", "in", "EUROPE", "fact"),
    ]
    assert [node.text for node in drawing.nodes if node.kind == "end"] == ["ED", "DUTCH"]


def test_a_shorter_proof_ends_at_the_same_object() -> None:
    dataset = Dataset.from_triples([*FACTS, ("ed", "likes", "dutch"), ("a", "speaks", "b")])
    rules = make_rules([*RULES[:1], ("speaks(X,Y) <= likes(X,Y)", (10, 5))])
    drawing = proof_graph(explain(rules, dataset, TRIPLE).reasons, TRIPLE)
    assert columns(drawing) == ["ed", "nl", "dutch"]
    assert ("ed", "likes", "dutch", "fact") in stated(drawing)


def test_an_entity_of_several_rules_is_drawn_once() -> None:
    """Lisa stands beside Ed, between Ed and Dutch, and beside Dutch."""
    facts = [("ed", "knows", "lisa"), ("lisa", "learns", "dutch"), ("dutch", "of", "lisa"), ("a", "speaks", "b")]
    dataset = Dataset.from_triples(facts)
    rules = make_rules(
        [
            ("speaks(X,dutch) <= knows(X,lisa)", (10, 9)),
            ("speaks(X,Y) <= knows(X,A), learns(A,Y)", (10, 8)),
            ("speaks(ed,Y) <= of(Y,lisa)", (10, 7)),
        ]
    )
    drawing = proof_graph(explain(rules, dataset, TRIPLE).reasons, TRIPLE)
    assert sorted(node.text for node in drawing.nodes) == ["dutch", "ed", "lisa"]
    assert ("dutch", "of", "lisa", "fact") in stated(drawing)
    assert all(drawing.nodes[edge.source].x != drawing.nodes[edge.target].x for edge in drawing.edges)


def test_a_triple_without_reasons_is_a_single_arrow() -> None:
    assert stated(proof_graph((), TRIPLE)) == [("ed", "speaks", "dutch", "prediction")]
    assert stated(proof_graph((), ("ed", "likes", "ed"))) == [("ed", "likes", "ed", "prediction")]


def test_a_rule_that_starts_at_the_object_leads_back_to_the_subject() -> None:
    dataset = Dataset.from_triples([("dutch", "spoken_in", "nl"), ("nl", "home_of", "ed"), ("a", "speaks", "b")])
    rules = make_rules([("speaks(ed,Y) <= spoken_in(Y,A), home_of(A,ed)", (10, 9))])
    drawing = proof_graph(explain(rules, dataset, TRIPLE).reasons, TRIPLE)
    assert columns(drawing) == ["ed", "nl", "dutch"]


def test_a_reflexive_prediction_is_a_loop_with_its_facts_beside_it() -> None:
    dataset = Dataset.from_triples([("ed", "knows", "lisa"), ("ed", "is", "ed"), ("lisa", "likes", "lisa")])
    itself = "likes(X,me_myself_i)"
    rules = make_rules([(f"{itself} <= knows(X,A)", (10, 9)), (f"{itself} <= is(X,me_myself_i)", (9, 8))])
    drawing = proof_graph(explain(rules, dataset, ("ed", "likes", "ed")).reasons, ("ed", "likes", "ed"))
    assert stated(drawing) == [
        ("ed", "likes", "ed", "prediction"),
        ("ed", "knows", "lisa", "fact"),
        ("ed", "is", "ed", "fact"),
    ]
    assert columns(drawing) == ["ed", "lisa"]


def test_a_near_miss_shows_the_missing_fact_in_its_place() -> None:
    dataset = Dataset.from_triples([FACTS[0], ("be", "language", "dutch"), ("a", "speaks", "b")])
    near_miss = explain(make_rules(RULES[:1]), dataset, TRIPLE).near_miss
    assert near_miss is not None
    drawing = near_miss_graph(near_miss, TRIPLE)
    assert ("nl", "language", "dutch", "missing") in stated(drawing)
    assert columns(drawing) == ["ed", "nl", "dutch"]
