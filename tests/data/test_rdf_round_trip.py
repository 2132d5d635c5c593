"""Whatever a label holds, it comes back through every form of RDF and through files of rules."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anyburl
from anyburl import DataError, ReadOptions, load_dataset
from anyburl.data.files import read_triples, write_triples
from rules.strategies import rdf_labels

oxigraph: Any = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")

KEEP = ReadOptions(literals="keep")
XSD = "http://www.w3.org/2001/XMLSchema#"
AWKWARD = [
    "two words",
    "a,b",
    'say "hi"',
    "f(x, y) <= z",
    "it's 100 % \\ done",
    "東京 Ελλάδα عربي 🎈",
    "tab\there",
    "line\nbreak\r",
    "http://example.org/a?b=c#d",
    "http://example.org/not an iri",
    "urn:anyburl:mine",
    "_:b1",
    "_: no blank node",
    "x" * 10_000,
    " ",
]
LITERALS = [
    '"plain"',
    '"two\\nlines, \\"quoted\\" \\\\ \\t"',
    '"grüezi"@de-ch',
    f'"1.50"^^<{XSD}decimal>',
    f'"2020-02-29"^^<{XSD}date>',
    f'"true"^^<{XSD}boolean>',
    '"x"^^<http://example.org/type>',
    '""',
]
TRIPLES = [(a, r, b) for r in AWKWARD for a, b in zip(AWKWARD, [*AWKWARD[1:], "a"], strict=True)]
TRIPLES += [("ed", "says", literal) for literal in LITERALS]
WRITTEN = [kind + packed for kind in (".nt", ".ttl", ".nq", ".trig") for packed in ("", ".gz", ".zst")]


@pytest.mark.parametrize("suffix", WRITTEN)
def test_awkward_labels_come_back(tmp_path: Path, suffix: str) -> None:
    write_triples(TRIPLES, tmp_path / f"a{suffix}")
    assert read_triples(tmp_path / f"a{suffix}", KEEP).rows() == TRIPLES


@pytest.mark.parametrize("kind", ["RDF_XML", "JSON_LD", "N3", "TURTLE", "TRIG"])
def test_what_others_write_says_the_same(tmp_path: Path, kind: str) -> None:
    """Relations are IRIs that end in a name, as RDF/XML needs them; it does not allow every control character."""
    relations = {label: f"http://example.org/r{number}" for number, label in enumerate(AWKWARD)}
    kept = [(s, relations.get(r, "http://example.org/says"), o) for s, r, o in TRIPLES]
    write_triples(kept, tmp_path / "a.nt")
    form = getattr(oxigraph.RdfFormat, kind)
    path = tmp_path / f"b.{form.file_extension}.gz"
    quads = oxigraph.parse(path=str(tmp_path / "a.nt"), format=oxigraph.RdfFormat.N_TRIPLES)
    path.write_bytes(gzip.compress(oxigraph.serialize(quads, format=form)))
    assert sorted(read_triples(path, KEEP).rows()) == sorted(kept)


@given(st.lists(st.tuples(rdf_labels, rdf_labels, rdf_labels), min_size=1, max_size=5), st.sampled_from(WRITTEN[::3]))
def test_any_labels_come_back(tmp_path_factory: Any, triples: list[tuple[str, str, str]], suffix: str) -> None:
    path = tmp_path_factory.mktemp("rdf") / f"a{suffix}"
    write_triples(triples, path)
    assert read_triples(path, KEEP).rows() == triples


def test_forms_that_are_not_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected an RDF file that ends in \.nt, \.ttl, \.nq or \.trig"):
        write_triples(TRIPLES, tmp_path / "a.rdf")


@pytest.mark.parametrize("suffix", [".parquet", ".txt"])
def test_rules_of_such_a_graph_come_back(tmp_path: Path, suffix: str) -> None:
    people = [
        triple
        for number in range(6)
        for place, tongue in [(AWKWARD[number % 2], LITERALS[number % 2])]
        for triple in ((f"_:p{number}", AWKWARD[4], place), (f"_:p{number}", "http://example.org/r", tongue))
    ]
    write_triples(people, tmp_path / "a.ttl")
    data = load_dataset(tmp_path / "a.ttl", KEEP)
    assert sorted(data.train.to_polars().rows()) == sorted(people)
    rules = anyburl.learn(data, paths=500, seed=1)
    assert len(rules)
    is_text = suffix == ".txt"  # which cannot carry such labels as they are
    rules.save(tmp_path / f"rules{suffix}", escaped=is_text)
    again = anyburl.RuleSet.load(tmp_path / f"rules{suffix}", escaped=is_text)
    assert {str(rule) for rule in again} == {str(rule) for rule in rules}
    assert set(LITERALS[:2]) & set(again.vocabulary.entities)
