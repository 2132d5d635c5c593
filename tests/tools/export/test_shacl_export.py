"""SHACL rules, executed by pySHACL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from exported import Exported, Fact, check_each, exports, rdf_labels
from hypothesis import given, settings

from anyburl.data.terms import rdf_term
from kernels import examples


@pytest.fixture(scope="module")
def rdflib() -> Any:
    pytest.importorskip("pyshacl", reason="pySHACL is not installed: pip install pyshacl")
    return pytest.importorskip("rdflib")


def term(label: str) -> str:
    return rdf_term(label, is_object=False)


@settings(max_examples=examples(36))  # half a second each
@given(case=exports(max_rules=3))
def test_a_shape_adds_what_a_rule_predicts(rdflib: Any, case: Exported) -> None:
    import pyshacl

    labels = rdf_labels(case)

    def execute(triples: Sequence[Fact], shapes: str) -> set[Fact]:
        graph = rdflib.Graph()
        graph.parse(data="".join(f"{term(s)} {term(r)} {term(o)} .\n" for s, r, o in triples), format="nt")
        rules = rdflib.Graph().parse(data=shapes, format="turtle")
        pyshacl.validate(graph, shacl_graph=rules, advanced=True, inplace=True, meta_shacl=False)
        return {(labels[s.n3()], labels[r.n3()], labels[o.n3()]) for s, r, o in graph}

    check_each(case, "shacl", execute, known=False)
