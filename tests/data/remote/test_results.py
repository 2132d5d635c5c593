"""Terms of SPARQL results have the labels that RDF files give them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import DataError
from anyburl.data.remote.http import label

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
LANGUAGES = st.sampled_from(["en", "de-AT", "EN-us", "zh-Hant"])
DATATYPES = st.sampled_from(["string", "integer", "date", "boolean"]).map("http://www.w3.org/2001/XMLSchema#{}".format)


def as_json(term: object) -> dict[str, str]:
    """Return a term as Oxigraph writes it into results."""
    pyoxigraph = pytest.importorskip("pyoxigraph")
    store = pyoxigraph.Store()
    relation = pyoxigraph.NamedNode("http://example.org/p")
    store.add(pyoxigraph.Quad(relation, relation, term))
    found = store.query("SELECT ?o { ?s ?p ?o }").serialize(format=pyoxigraph.QueryResultsFormat.JSON)
    binding: dict[str, str] = json.loads(found)["results"]["bindings"][0]["o"]
    return binding


@given(TEXTS)
def test_plain_literals_are_written_as_in_n_triples(text: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    literal = pyoxigraph.Literal(text)
    assert label(as_json(literal)) == str(literal)


@given(TEXTS, LANGUAGES)
def test_literals_with_a_language_are_written_as_in_n_triples(text: str, language: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    literal = pyoxigraph.Literal(text, language=language)
    assert label(as_json(literal)) == str(literal)
    assert label({"type": "literal", "value": text, "xml:lang": language}) == str(literal)


@given(TEXTS, DATATYPES)
def test_literals_with_a_type_are_written_as_in_n_triples(text: str, datatype: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    literal = pyoxigraph.Literal(text, datatype=pyoxigraph.NamedNode(datatype))
    for kind in ("literal", "typed-literal"):
        assert label({"type": kind, "value": text, "datatype": datatype}) == str(literal)


def test_iris_and_blank_nodes_are_their_own_labels() -> None:
    assert label({"type": "uri", "value": "http://example.org/ü"}) == "http://example.org/ü"
    assert label({"type": "bnode", "value": "b0"}) == "_:b0"


def test_what_is_no_term_of_a_triple_is_refused() -> None:
    with pytest.raises(DataError, match="got 'triple'"):
        label({"type": "triple", "value": "?"})
