"""Labels as terms of RDF."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from anyburl.data.terms import OWN, literal_text, own_label, rdf_term
from rules.strategies import rdf_labels

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("http://example.org/a?b=c#d", "<http://example.org/a?b=c#d>"),
        ("http://user:pass@example.org:80/é", "<http://user:pass@example.org:80/é>"),
        ("urn:isbn:1", "<urn:isbn:1>"),
        ("a b", "<urn:anyburl:a%20b>"),
        ("http://example.org/a b", "<urn:anyburl:http%3A%2F%2Fexample.org%2Fa%20b>"),
        ("http://example.org:port/", "<urn:anyburl:http%3A%2F%2Fexample.org%3Aport%2F>"),
        ("x:100%", "<urn:anyburl:x%3A100%25>"),
        ("x:a>b", "<urn:anyburl:x%3Aa%3Eb>"),
        ("日本", "<urn:anyburl:%E6%97%A5%E6%9C%AC>"),
        ("_:b1", "_:b1"),
        ("_: b", "<urn:anyburl:_%3A%20b>"),
        ('"1.5"^^<' + XSD + "decimal>", '"1.5"^^<' + XSD + "decimal>"),
        ('"a \\"b\\" \\u00e9"@en-GB', '"a \\"b\\" \\u00e9"@en-GB'),
        ('"a\nb"', "<urn:anyburl:%22a%0Ab%22>"),
        ('"a\\x"', "<urn:anyburl:%22a%5Cx%22>"),
    ],
)
def test_labels_become_terms(label: str, expected: str) -> None:
    assert rdf_term(label, is_object=True) == expected


def test_blank_nodes_are_no_relations() -> None:
    assert rdf_term("_:b", is_object=False, is_relation=True) == "<urn:anyburl:_%3Ab>"


@pytest.mark.parametrize("label", [f"{OWN}a", f"{OWN}a%20b", f"{OWN}range:a", f"{OWN}%zz", OWN])
def test_iris_of_our_own_are_not_taken_for_labels(label: str) -> None:
    assert own_label(rdf_term(label, is_object=False)[1:-1]) == label


@given(rdf_labels)
def test_a_label_behind_an_iri_comes_back(label: str) -> None:
    term = rdf_term(label, is_object=True)
    assert own_label(term[1:-1] if term.startswith("<") else term) == label


def test_literals_are_no_subjects() -> None:
    assert rdf_term('"a"', is_object=False) == "<urn:anyburl:%22a%22>"


@given(rdf_labels)
def test_every_label_is_a_term_that_a_parser_reads(label: str) -> None:
    pyoxigraph: Any = pytest.importorskip(
        "pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'"
    )
    line = f"<a:b> <a:c> {rdf_term(label, is_object=True)} .\n"
    assert len([*pyoxigraph.parse(line.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)]) == 1


def test_the_text_of_a_literal_has_no_escapes() -> None:
    assert literal_text(r"a \"b\" \\n \t\u00e9 \U0001F600 \'c\'") == "a \"b\" \\n \té 😀 'c'"
