"""Facts as RDF that says where they come from; whatever is written, Oxigraph reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl import OptionError
from anyburl.base.errors import InvalidOptionError
from anyburl.data.terms import RDF, XSD
from anyburl.reasoning.completion.files import STATEMENT, VOCABULARY, FactFile, RdfText, open_facts
from rules.strategies import rdf_labels

oxigraph: Any = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")

EX = "http://example.org/"
PREFIXES = {"ex": EX, "": f"{EX}short/", "odd prefix": "http://odd.org/", "broken": "http://bro ken/"}
FACTS = pl.DataFrame(
    {
        "subject": [f"{EX}ed", f"{EX}short/a.b"],
        "relation": [f"{EX}speaks", "_:b"],
        "object": [f"{EX}short/dutch", '"hallo"@nl'],
        "score": [0.8, 0.25],
        "probability": [0.5, None],
        "rule": ['speaks(X,"Y\\") <=\nlives(X,A)', "r <= "],
        "rules": pl.Series([2, 1], dtype=pl.Int32),
        "facts": [[[f"{EX}ed", "lives in", "holland"], [f"{EX}ed", f"{EX}says", '"x"']], []],
    }
)
FORMATS = {".nt": "N_TRIPLES", ".ttl": "TURTLE", ".nq": "N_QUADS", ".trig": "TRIG"}
STARS = [f"{EX}ed", f"{EX}speaks", f"{EX}short/dutch"]


def read(text: str, suffix: str) -> list[tuple[str, str, str]]:
    kind = getattr(oxigraph.RdfFormat, FORMATS[suffix])
    return [tuple(str(term) for term in list(quad)[:3]) for quad in oxigraph.parse(text.encode(), format=kind)]


def written(suffix: str, provenance: str, facts: pl.DataFrame = FACTS) -> str:
    to_text = RdfText(FORMATS[suffix], provenance, PREFIXES)
    return to_text(facts[:1], True) + to_text(facts[1:], False)


@pytest.mark.parametrize("suffix", FORMATS)
def test_reification_states_what_is_known_of_a_fact(suffix: str) -> None:
    found = read(written(suffix, "reification"), suffix)
    ed, speaks, dutch = (f"<{iri}>" for iri in STARS)
    assert (ed, speaks, dutch) in found
    (node,) = (s for s, p, o in found if (p, o) == (f"<{RDF}object>", dutch))
    assert node.startswith(f"<{STATEMENT}")
    said = {(p, o) for s, p, o in found if s == node}
    assert said > {
        (f"<{RDF}type>", f"<{RDF}Statement>"),
        (f"<{RDF}subject>", ed),
        (f"<{RDF}predicate>", speaks),
        (f"<{VOCABULARY}score>", f'"0.8"^^<{XSD}double>'),
        (f"<{VOCABULARY}probability>", f'"0.5"^^<{XSD}double>'),
        (f"<{VOCABULARY}rule>", '"speaks(X,\\"Y\\\\\\") <=\\nlives(X,A)"'),
        (f"<{VOCABULARY}rules>", f'"2"^^<{XSD}integer>'),
    }
    premises = {o for p, o in said if p == f"<{VOCABULARY}premise>"}
    of_premises = {(p, o) for s, p, o in found if s in premises}
    assert {o for p, o in of_premises if p == f"<{RDF}object>"} == {"<urn:anyburl:holland>", '"x"'}


@pytest.mark.parametrize("suffix", FORMATS)
def test_rdf_star_states_it_of_the_fact(suffix: str) -> None:
    found = read(written(suffix, "rdf-star"), suffix)
    quoted = f"{' '.join(f'<{iri}>' for iri in STARS)}"
    (node,) = (s for s, p, o in found if p == f"<{RDF}reifies>" and quoted in o)
    said = {p: o for s, p, o in found if s == node}
    assert said[f"<{VOCABULARY}score>"] == f'"0.8"^^<{XSD}double>'
    premises = [o for s, p, o in found if (s, p) == (node, f"<{VOCABULARY}premise>")]
    reified = [o for s, p, o in found if s in premises and p == f"<{RDF}reifies>"]
    assert len(reified) == 2
    assert any("<urn:anyburl:lives%20in> <urn:anyburl:holland>" in term for term in reified)


def test_turtle_is_short() -> None:
    lines = written(".ttl", "none").splitlines()
    assert lines[:2] == [f"@prefix : <{EX}short/> .", f"@prefix ex: <{EX}> ."]
    assert re.match(r"ex:ed ex:speaks :dutch \. # score 0\.8, probability 0\.5, speaks", lines[2])
    assert lines[3].startswith(f'<{EX}short/a.b> <urn:anyburl:_%3Ab> "hallo"@nl .')
    assert "<< ex:ed ex:speaks :dutch >> anyburl:score" in written(".ttl", "rdf-star")


@given(st.lists(st.tuples(rdf_labels, rdf_labels, rdf_labels), min_size=1, max_size=3), st.sampled_from(list(FORMATS)))
def test_any_labels_can_be_written(triples: list[tuple[str, str, str]], suffix: str) -> None:
    facts = pl.DataFrame(triples, schema=dict.fromkeys(("subject", "relation", "object"), pl.String), orient="row")
    facts = facts.with_columns(
        score=pl.lit(0.5),
        probability=pl.lit(None, pl.Float64),
        rule=pl.col("subject"),
        rules=pl.lit(1),
        facts=pl.Series([[list(triple)] for triple in triples]),
    )
    for provenance in ("none", "rdf-star", "reification"):
        assert len(read(written(suffix, provenance, facts), suffix)) >= len(triples)


def test_provenance_is_for_rdf(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"--provenance needs an RDF file \(\.nt"):
        open_facts(str(tmp_path / "m.tsv"), "rdf-star")
    with pytest.raises(InvalidOptionError, match="one of none, rdf-star, reification"):
        open_facts(str(tmp_path / "m.ttl"), "star")


def test_files_hold_what_was_told(tmp_path: Path) -> None:
    with FactFile(tmp_path / "m.ttl", "reification", PREFIXES) as file:
        file.add(FACTS[:1])
        file.add(FACTS[1:])
    assert (tmp_path / "m.ttl").read_text() == written(".ttl", "reification")
