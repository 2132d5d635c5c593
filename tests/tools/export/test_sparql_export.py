"""SPARQL, executed by Oxigraph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from exported import Exported, Fact, check_each, exports, rdf_labels, text_of
from hypothesis import given

from anyburl.data.terms import rdf_term
from rules.samples import make_rules

pyoxigraph: Any = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")

EX = "http://example.org/"


def store_of(triples: Sequence[Fact]) -> Any:
    """Return a store with some facts; what is no IRI gets one of ours."""
    store = pyoxigraph.Store()
    lines = (f"{term(s)} {term(r)} {term(o, is_object=True)} .\n" for s, r, o in triples)
    store.load("".join(lines).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
    return store


def term(label: str, *, is_object: bool = False) -> str:
    return rdf_term(label, is_object=is_object)


def constructed(triples: Sequence[Fact], query: str, vocabulary: dict[str, str]) -> set[Fact]:
    found = store_of(triples).query(query)
    return {(vocabulary[str(t.subject)], vocabulary[str(t.predicate)], vocabulary[str(t.object)]) for t in found}


@given(exports())
def test_a_query_constructs_what_a_rule_predicts(case: Exported) -> None:
    vocabulary = rdf_labels(case)
    check_each(case, "sparql", lambda triples, query: constructed(triples, query, vocabulary))


@given(exports())
def test_one_query_constructs_what_all_rules_predict(case: Exported) -> None:
    for object_identity in (True, False):
        query = text_of(case.rules, "sparql", object_identity=object_identity)
        expected = set().union(*(case.expected(number, object_identity) for number in range(len(case.rules))))
        assert constructed(case.triples, query, rdf_labels(case)) == expected


@given(exports())
def test_an_update_inserts_what_all_rules_predict(case: Exported) -> None:
    """No rule sees what another has inserted: that goes to a graph of its own."""
    rdf_labels(case)
    for object_identity in (True, False):
        store = store_of(case.triples)
        store.update(text_of(case.rules, "sparql", insert=True, object_identity=object_identity))
        quads = store.quads_for_pattern(None, None, None, pyoxigraph.NamedNode("urn:anyburl:predictions"))
        found = {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads}
        expected = set().union(*(case.expected(number, object_identity) for number in range(len(case.rules))))
        assert found == {(term(s), term(r), term(o)) for s, r, o in expected}


def test_without_rules_a_query_constructs_nothing() -> None:
    query = text_of(make_rules([]), "sparql")
    assert list(store_of([("a", "b", "c")]).query(query)) == []


def test_literals_are_compared_as_terms() -> None:
    """To compare a number with a literal of an unknown type by its value is an error, and the filter fails."""
    one, more = (f'"{number}"^^<http://www.w3.org/2001/XMLSchema#decimal>' for number in ("1.0", "1.5"))
    odd = '"x"^^<http://example.org/unknown>'
    rules = make_rules([("near(X,Y) <= size(X,A), size(Y,A)", (2, 1)), (f"big(X,{odd}) <= size(X,A)", (2, 1))])
    facts = [(f"{EX}a", "size", one), (f"{EX}b", "size", one), (f"{EX}c", "size", odd), (f"{EX}d", "size", more)]
    found = {str(triple) for triple in store_of(facts).query(text_of(rules, "sparql"))}
    near, big = "<urn:anyburl:near>", "<urn:anyburl:big>"
    assert found == {
        f"<{EX}a> {near} <{EX}b>",
        f"<{EX}b> {near} <{EX}a>",
        *(f"<{EX}{name}> {big} {odd}" for name in "abd"),
    }


def test_blank_nodes_are_found_but_not_named() -> None:
    rules = make_rules([("p(X,Y) <= q(Y,X)", (2, 1)), ("p(X,_:b) <= q(X,A)", (2, 1)), ("p(_:b,Y) <= ", (2, 1))])
    text = text_of(rules, "sparql")
    assert "_:b" not in text
    found = [str(triple) for triple in store_of([("_:b", "q", "a")]).query(text)]
    assert len(found) == 1
    assert found[0].startswith("<urn:anyburl:a> <urn:anyburl:p> _:")


def test_names_are_below_a_base_and_go_to_a_graph_of_choice() -> None:
    rules = make_rules([("speaks(X,Y) <= lives(X,A), lang(A,Y)", (2, 1))])
    text = text_of(rules, "sparql", base=EX, insert=True, target="http://example.org/new")
    assert f"INSERT {{ GRAPH <{EX}new> {{ ?X <{EX}speaks> ?Y }} }}" in text
    assert f"?X <{EX}lives> ?A ." in text
