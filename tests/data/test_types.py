"""Types and the classes above them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anyburl import Dataset
from anyburl.data.dataset import all_types, default_types, stated_types
from anyburl.data.terms import RDF_TYPE, SUBCLASS

things, classes = st.sampled_from("abc"), st.sampled_from("KLMN")


@given(
    st.lists(st.tuples(things, st.just(RDF_TYPE), classes), min_size=1),
    st.lists(st.tuples(classes, st.just(SUBCLASS), classes)),
)
def test_types_go_up_the_hierarchy(types: list[tuple[str, str, str]], order: list[tuple[str, str, str]]) -> None:
    data = Dataset.from_triples(types + order)
    relation, words = data.vocabulary.relation_id(RDF_TYPE), data.vocabulary
    expected = {(thing, kind) for thing, _, kind in types}
    stated = {(words.entity_label(e), words.entity_label(t)) for e, t in stated_types(data, relation).rows()}
    assert stated == expected
    for _ in range(4):
        expected |= {(thing, above) for thing, kind in expected for below, _, above in order if kind == below}
    found = [(words.entity_label(e), words.entity_label(t)) for e, t in all_types(data, relation).rows()]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_other_relations_have_no_hierarchy() -> None:
    data = Dataset.from_triples([("a", "type", "K"), ("K", SUBCLASS, "L")])
    assert all_types(data, data.vocabulary.relation_id("type")).height == 1
    assert default_types(data) is None
    assert default_types(Dataset.from_triples([("a", RDF_TYPE, "K")])) == RDF_TYPE
