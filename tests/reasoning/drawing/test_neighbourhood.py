"""An entity among its neighbours, small or a hub."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import InvalidOptionError, UnknownLabelError
from anyburl.data.dataset import Dataset
from anyburl.graph.stored import graph_of
from anyburl.reasoning.drawing import NODE_HEIGHT, Drawing, edge_width
from anyburl.reasoning.neighbourhood import neighbourhood

Fact = tuple[str, str, str]


def drawn(facts: list[Fact], entity: str, **options: object) -> Drawing:
    train = Dataset.from_triples(facts).train
    return neighbourhood(graph_of(train), train.vocabulary, entity, **options)  # type: ignore[arg-type]


def stated(drawing: Drawing) -> dict[str, list[str]]:
    """What is shown, by relation; "<" before those of which the entity is the object."""
    found: dict[str, list[str]] = {}
    for edge in drawing.edges:
        backward = edge.target == 0
        other = drawing.nodes[edge.source if backward else edge.target]
        found.setdefault("<" * backward + edge.relation, []).append(other.text)
    return found


def test_facts_stand_by_relation_with_their_subjects_on_the_left() -> None:
    drawing = drawn([("ed", "lives", "nl"), ("ed", "knows", "lisa"), ("lisa", "knows", "ed")], "ed")
    assert stated(drawing) == {"lives": ["nl"], "knows": ["lisa"], "<knows": ["lisa"]}
    centre = drawing.nodes[0]
    assert (centre.label, centre.kind) == ("ed", "end")
    for edge in drawing.edges:
        assert drawing.nodes[edge.source].x < drawing.nodes[edge.target].x


def test_a_hub_shows_some_neighbours_of_each_relation_and_counts_the_rest() -> None:
    facts = [(f"p{i}", "born", "nl") for i in range(1300)] + [("nl", "capital", "amsterdam")]
    facts += [("nl", f"r{i:03}", "x") for i in range(60)]
    drawing = drawn(facts, "nl", most=30)
    shown = stated(drawing)
    more = [node for node in drawing.nodes if node.kind == "more"]
    assert sum(edge.count for edge in drawing.edges if edge.relation == "born") == 1300
    assert [(node.text, node.relation, node.backward) for node in more if node.relation] == [
        (f"+ {1301 - len(shown['<born']):,} more", "born", True)
    ]
    assert len(drawing.edges) <= 31
    assert [node.text for node in more if node.relation is None] == [f"+ {61 - (len(shown) - 1)} more relations"]


def test_neighbours_that_more_facts_join_come_first_then_those_with_more_facts() -> None:
    facts = [("hub", "r", name) for name in "abcd"] + [("d", "s", "hub"), ("c", "t", "x"), ("c", "t", "y")]
    assert stated(drawn(facts, "hub", most=3))["r"] == ["d", "c", "a", "+ 1 more"]


def test_predictions_have_their_own_ink_and_join_their_relation() -> None:
    facts = [("a", "r", "b"), ("c", "s", "d")]
    drawing = drawn(facts, "a", predictions=[("a", "r", "c"), ("d", "s", "a"), ("c", "s", "d")])
    assert [(e.relation, e.ink, e.count) for e in drawing.edges] == [
        ("r", "fact", 1),
        ("r", "prediction", 1),
        ("s", "prediction", 1),
    ]


def test_an_entity_that_only_valid_states_stands_alone() -> None:
    dataset = Dataset.from_triples([("a", "r", "b")], valid=[("c", "r", "b")])
    drawing = neighbourhood(graph_of(dataset.train), dataset.vocabulary, "c")
    assert (len(drawing.nodes), len(drawing.edges)) == (1, 0)


def test_what_is_unknown_or_impossible_is_refused() -> None:
    with pytest.raises(UnknownLabelError):
        drawn([("a", "r", "b")], "z")
    with pytest.raises(InvalidOptionError, match="most must be at least 1"):
        drawn([("a", "r", "b")], "a", most=0)


labels = st.sampled_from(["a", "b", "c" * 50, "東京", "e"])


@given(
    st.lists(st.tuples(labels, st.sampled_from(["r", "s", "/t/" + "u" * 40]), labels), min_size=1), st.integers(1, 9)
)
def test_no_box_lies_on_another_and_no_fact_is_lost(facts: list[Fact], most: int) -> None:
    entity = facts[0][0]
    drawing = drawn(facts, entity, most=most)
    boxes = [(n.x, n.y, n.width, NODE_HEIGHT) for n in drawing.nodes]
    boxes += [(*e.text_at, edge_width(e.text), 18.0) for e in drawing.edges if e.text_at]
    for (x, y, width, height), (u, v, wide, high) in combinations(boxes, 2):
        assert abs(x - u) >= (width + wide) / 2 - 1e-6 or abs(y - v) >= (height + high) / 2 - 1e-6
    around = {(s, r, o) for s, r, o in facts if entity in (s, o)}
    n_facts = len(around) + sum(s == o for s, r, o in around)  # a reflexive fact is on both sides
    shown = sum(edge.count for edge in drawing.edges)
    assert shown == n_facts or any(node.kind == "more" and node.relation is None for node in drawing.nodes)
